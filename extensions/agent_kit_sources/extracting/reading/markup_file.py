"""A page of HTML in a file."""

from __future__ import annotations

import re
from typing import BinaryIO

from .decoding import decoded
from .document import Document, Request, whole
from .markup import markdown

__all__ = ["page_text", "read"]

_HEAD = 4096  # bytes that a page's encoding is declared in
_DECLARED = re.compile(
    rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE
)


def read(file: BinaryIO, request: Request) -> Document:
    """The page in one piece."""
    text, encoding = page_text(file.read(), named=request.encoding)
    title, body = markdown(text)
    return whole("HTML page", f"{title}\n\n{body}".strip(), f"encoding {encoding}")


def page_text(data: bytes, *, named: str = "") -> tuple[str, str]:
    """The page's source, and the encoding that it was read in: what it declares is believed."""
    declared = _DECLARED.search(data[:_HEAD])
    return decoded(data, named=named, declared=declared[1].decode() if declared else "")
