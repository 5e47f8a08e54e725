"""PDF, by pypdf, which is written in Python: a hostile file can't corrupt the memory it is read in."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, BinaryIO

from .document import Document, Request
from .faults import Unreadable, library

__all__ = ["read"]

_NO_TEXT = "(No text on this page: it may be a picture, which can't be read here.)"
_BROKEN = "(This page can't be read.)"


def read(file: BinaryIO, _request: Request) -> Document:
    """The document, by page. Raises :class:`Unreadable` where a password is needed."""
    pypdf = library("pypdf")
    logging.disable()
    try:
        reader = pypdf.PdfReader(file)
        if reader.is_encrypted and not reader.decrypt(""):  # none is needed only to read
            raise Unreadable("locked")
        count = len(reader.pages)
    except pypdf.errors.DependencyError:
        raise Unreadable("missing") from None
    return Document(
        kind="PDF", texts=lambda first: _pages(reader, first, count), unit="page", count=count
    )


def _pages(reader: Any, first: int, count: int) -> Iterator[str]:
    for number in range(first, count + 1):
        yield f"## Page {number}\n\n{_text(reader, number)}"


def _text(reader: Any, number: int) -> str:
    """One page; a broken one says so, and the others are read all the same."""
    try:
        return reader.pages[number - 1].extract_text().strip() or _NO_TEXT
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - whatever a library trips over, it is the page
        return _BROKEN
