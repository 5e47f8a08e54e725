"""What a reader refuses with: a code, of which the host makes a sentence."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["Unreadable", "library"]


class Unreadable(Exception):
    """A document can't be read, or has no such part. ``details`` are names and numbers for the host."""

    def __init__(self, code: str, **details: object) -> None:
        super().__init__(code)
        self.code = code
        self.details = details


def library(name: str) -> Any:
    """A module of the extra. Raises :class:`Unreadable` when it isn't installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise Unreadable("missing") from None
