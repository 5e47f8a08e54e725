"""Plain text and Markdown, as they are."""

from __future__ import annotations

from typing import BinaryIO

from .decoding import decoded
from .document import Document, Request, whole
from .packages import check_magic

__all__ = ["read"]

_KINDS = {".md": "Markdown", ".markdown": "Markdown"}


def read(file: BinaryIO, request: Request) -> Document:
    """The text in one piece. Raises :class:`Unreadable` for what is no text."""
    data = file.read()
    check_magic(data)
    text, encoding = decoded(data, named=request.encoding)
    return whole(_KINDS.get(request.suffix, "text"), text, f"encoding {encoding}")
