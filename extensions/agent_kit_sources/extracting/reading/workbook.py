"""Excel workbooks, by calamine, which is written in a memory-safe language and reads a sheet fast."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, BinaryIO

from .cells import row_text, top
from .document import Document, Request
from .faults import Unreadable, library
from .packages import check_no_entities, open_package

__all__ = ["read"]

_MOST_NAMES = 50  # sheets that are listed


def read(file: BinaryIO, request: Request) -> Document:
    """One sheet, by row: the one that is named, else the first. Raises :class:`Unreadable`."""
    calamine = library("python_calamine")
    with open_package(file, request) as package:
        check_no_entities(package)
    file.seek(0)
    try:
        book = calamine.CalamineWorkbook.from_filelike(file)
    except calamine.PasswordError:
        raise Unreadable("locked") from None
    sheets = [
        found for found in book.sheets_metadata if found.typ == calamine.SheetTypeEnum.WorkSheet
    ]
    name = _chosen([found.name for found in sheets], request.sheet)
    sheet = book.get_sheet_by_name(name)
    last_row, last_column = sheet.end or (-1, -1)  # from 0
    return Document(
        kind="Excel workbook",
        texts=lambda first: _rows(sheet, first),
        unit="row",
        count=last_row + 1,
        facts=f'sheet "{name}", of {len(sheets)}: {_listed(sheets, calamine)}',
        top=top(last_column + 1),
        between="\n",
    )


def _chosen(names: list[str], wanted: str) -> str:
    wanted = wanted.strip()
    fitting = [name for name in names if name.strip() == wanted] or [
        name for name in names if name.strip().casefold() == wanted.casefold()
    ]
    if (wanted and not fitting) or not names:
        listed = ", ".join(f'"{name}"' for name in names[:_MOST_NAMES])
        raise Unreadable("no-sheet", sheet=wanted, sheets=listed or "another file: it has none")
    return fitting[0] if wanted else names[0]


def _listed(sheets: list[Any], calamine: Any) -> str:
    seen = calamine.SheetVisibleEnum.Visible
    names = [
        f'"{sheet.name}"' + ("" if sheet.visible == seen else " (hidden)")
        for sheet in sheets[:_MOST_NAMES]
    ]
    return ", ".join(names) + (", …" if len(sheets) > _MOST_NAMES else "")


def _rows(sheet: Any, first: int) -> Iterator[str]:
    """Rows from ``first``, numbered as in the sheet; calamine leaves out empty columns at the left."""
    left = sheet.start[1] if sheet.start else 0
    for number, cells in enumerate(islice(sheet.iter_rows(), first - 1, None), first):
        yield row_text(number, [""] * left + cells)
