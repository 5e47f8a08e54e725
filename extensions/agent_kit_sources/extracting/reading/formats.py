"""The formats, by the suffix of the file's name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, cast

from .document import Document, Request
from .faults import Unreadable, library

__all__ = ["FORMATS", "LISTED", "Format", "format_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format: what it is called, the module whose ``read`` reads it, and the library that it needs."""

    kind: str
    module: str
    library: str = ""

    def load(self) -> None:
        """Load the library, where it is installed."""
        if self.library:
            with suppress(Unreadable):
                library(self.library)

    def read(self, file: BinaryIO, request: Request) -> Document:
        """The document. The module is imported now: a format's library costs only its own files."""
        module = importlib.import_module(f".{self.module}", __package__)
        reader = cast("Callable[[BinaryIO, Request], Document]", module.read)
        return reader(file, request)


_WORD = Format(kind="Word document", module="word", library="mammoth")
_SLIDES = Format(kind="PowerPoint presentation", module="slides")
_WORKBOOK = Format(kind="Excel workbook", module="workbook", library="python_calamine")
_HTML = Format(kind="HTML page", module="markup_file")
_TABLE = Format(kind="table", module="rows")
_TEXT = Format(kind="text", module="text")  # of any suffix, as long as it is text

FORMATS = {
    ".docx": _WORD,
    ".docm": _WORD,
    ".pptx": _SLIDES,
    ".pptm": _SLIDES,
    ".xlsx": _WORKBOOK,
    ".xlsm": _WORKBOOK,
    ".pdf": Format(kind="PDF", module="pages", library="pypdf"),
    ".html": _HTML,
    ".htm": _HTML,
    ".xhtml": _HTML,
    ".epub": Format(kind="EPUB book", module="book"),
    ".csv": _TABLE,
    ".tsv": _TABLE,
}

LISTED = "docx, pptx, xlsx, pdf, html, epub, csv, tsv, plain text"


def format_of(suffix: str) -> Format:
    """The format of files with this suffix, in lower case with its dot."""
    return FORMATS.get(suffix, _TEXT)
