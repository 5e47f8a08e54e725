"""From a request and an open file to an answer that JSON can carry."""

from __future__ import annotations

from typing import Any, BinaryIO

from .document import Request, take
from .faults import Unreadable
from .formats import format_of

__all__ = ["answer", "load"]


def load(suffix: str) -> None:
    """Load the library of a format, where it has one and it is installed."""
    format_of(suffix).load()


def answer(request: dict[str, Any], file: BinaryIO) -> dict[str, Any]:
    """The piece that was asked for, or ``fault`` and ``details``. Raises only ``MemoryError``."""
    limits = request["limits"]
    asked = Request(
        suffix=request["suffix"],
        part=request["part"],
        sheet=request["sheet"],
        encoding=request["encoding"],
        offset=request["offset"],
        characters=limits["characters"],
        unpacked_bytes=limits["unpacked_bytes"],
        entries=limits["entries"],
    )
    known = format_of(asked.suffix)
    try:
        return take(known.read(file, asked), asked)
    except Unreadable as error:
        return {"fault": error.code, "details": {"kind": known.kind, **error.details}}
    except RecursionError:
        return {"fault": "deep"}
    except MemoryError:
        raise
    except BaseException:  # noqa: BLE001 - a library's panic as well: whatever it is, it's the file
        return {"fault": "corrupt", "details": {"kind": known.kind}}
