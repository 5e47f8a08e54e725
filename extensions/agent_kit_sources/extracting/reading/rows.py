"""Tables in text: comma, semicolon, tab or bar between the cells."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO

from .cells import row_text, top
from .decoding import decoded
from .document import Document, Request

__all__ = ["read"]

_SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_SAMPLE = 20  # rows that the separator is found by


def read(file: BinaryIO, request: Request) -> Document:
    """The table, by row. A row's number counts records: a cell may hold several lines."""
    text, encoding = decoded(file.read(), named=request.encoding)
    csv.field_size_limit(len(text) + 1)
    separator = "\t" if request.suffix == ".tsv" else _separator(text)
    count, width = 0, 0
    for cells in _cells(text, separator):
        count += 1
        width = max(width, len(cells))
    return Document(
        kind="TSV table" if separator == "\t" else "CSV table",
        texts=lambda first: _texts(text, separator, first),
        unit="row",
        count=count,
        facts=f"{_SEPARATORS[separator]} between cells, encoding {encoding}",
        top=top(width),
        between="\n",
    )


def _cells(text: str, separator: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), delimiter=separator)


def _texts(text: str, separator: str, first: int) -> Iterator[str]:
    for number, cells in enumerate(islice(_cells(text, separator), first - 1, None), first):
        yield row_text(number, cells)


def _separator(text: str) -> str:
    """The one that cuts the first rows into the most cells, the row with the fewest counting."""

    def fewest(separator: str) -> int:
        rows = islice((row for row in _cells(text, separator) if row), _SAMPLE)
        return min(map(len, rows), default=0)

    return max(_SEPARATORS, key=fewest)
