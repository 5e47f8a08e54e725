"""Rows of a sheet as rows of a Markdown table, with the numbers and letters that a cell has there."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

__all__ = ["cell_text", "row_text", "table", "top"]

_MOST_COLUMNS = 100  # in the line at the top; rows show all their cells


def top(width: int) -> str:
    """The two lines above the rows: ``row`` and the columns' letters."""
    letters = [_letters(column) for column in range(min(width, _MOST_COLUMNS))]
    return f"{_line(['row', *letters])}\n{_line(['---'] * (len(letters) + 1))}\n"


def row_text(number: int, cells: Sequence[object]) -> str:
    """One row with its number; empty cells at its end are left out."""
    texts = [cell_text(cell) for cell in cells]
    while texts and not texts[-1]:
        texts.pop()
    return _line([str(number), *texts])


def table(rows: Sequence[Sequence[str]]) -> str:
    """A whole table whose first row is its head."""
    if not rows:
        return ""
    width = max(map(len, rows))
    lines = [_line([cell_text(cell) for cell in row] + [""] * (width - len(row))) for row in rows]
    return "\n".join([lines[0], _line(["---"] * width), *lines[1:]])


def cell_text(cell: object) -> str:
    """One cell on one line. Times are in ISO 8601; a whole number has no ``.0``."""
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        cell = int(cell)
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        cell = cell.date()
    text = "<br>".join(str(cell).strip().splitlines())
    return text.replace("|", "\\|")


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _letters(column: int) -> str:
    """The letters of a column, counted from 0: A to Z, AA."""
    text = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(ord("A") + rest) + text
    return text
