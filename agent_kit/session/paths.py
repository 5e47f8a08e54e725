"""Paths as a person writes them in a configuration."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

from agent_kit.scope.patterns import is_pattern

__all__ = ["absolute", "inside", "literal", "resolved"]

_SPECIAL = re.compile(r"([*?\[\\])")


def absolute(text: str | Path, base: Path, home: Path) -> Path:
    """``text`` below ``base``, with ``~`` as the CLI's ``home`` and ``..`` collapsed.

    Links are not resolved. ``~name`` is a name like any other, as it is in a scope.
    """
    parts = os.fspath(text)
    if parts == "~" or parts.startswith("~/"):
        parts = f"{home}{parts[1:]}"
    return Path(os.path.normpath(base / parts))


def literal(path: str) -> str:
    """A path as an entry of ``denied_paths`` that is no pattern."""
    return _SPECIAL.sub(r"\\\1", path) if is_pattern(path) else path


def resolved(path: str | Path) -> str:
    """``path`` with its links resolved, in the form in which two paths are compared.

    Closing a folder ignores case and Unicode form, so what asks whether something is closed must.
    """
    return unicodedata.normalize("NFC", os.path.realpath(path)).casefold()


def inside(path: str, folder: str) -> bool:
    """Whether resolved ``path`` is resolved ``folder`` or lies in it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
