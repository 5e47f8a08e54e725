"""A document as its parts, and the piece of it that one answer holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .faults import Unreadable
from .plain import plain

__all__ = ["Document", "Request", "take", "whole"]

_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:([-–])\s*(\d{1,9})?\s*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked for. ``part`` is a range as it was written, ``offset`` in characters."""

    suffix: str
    part: str
    sheet: str
    encoding: str
    offset: int
    characters: int
    unpacked_bytes: int
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document: ``count`` parts, each a ``unit`` (page, slide, row, chapter), or one piece.

    ``texts`` gives the parts' texts, from a number (the first is 1), lazily. ``top`` stands above
    the parts of each answer, ``between`` between two. ``facts`` are about the file.
    """

    kind: str
    texts: Callable[[int], Iterator[str]]
    unit: str = ""
    count: int = 1
    facts: str = ""
    top: str = ""
    between: str = "\n\n"


def whole(kind: str, text: str, facts: str = "") -> Document:
    """A document in one piece."""
    return Document(kind=kind, texts=lambda _first: iter([text]), facts=facts)


def take(document: Document, request: Request) -> dict[str, Any]:
    """The parts that were asked for, as many as fit, and where the next ones begin.

    A part that is too long alone is cut. Raises :class:`Unreadable` for parts that aren't there.
    """
    first, last = _chosen(document, request)
    kept: list[str] = []
    room = request.characters - len(document.top)
    length, following = 0, (0, 0)
    for number, found in zip(range(first, last + 1), document.texts(first), strict=False):
        text = plain(found)
        length = len(text)
        skipped = _skipped(text, document, request.offset) if number == first else 0
        text = text[skipped:]
        if len(text) > room:
            following = (number, 0) if kept else (number, skipped + room)
            kept += [] if kept else [text[:room]]
            break
        kept.append(text)
        room -= len(text) + len(document.between)
    return {
        "kind": document.kind,
        "unit": document.unit,
        "count": document.count,
        "facts": document.facts,
        "text": document.top + document.between.join(kept),
        "first": first,
        "last": first + len(kept) - 1,
        "end": last,
        "length": length,
        "next_part": following[0],
        "next_offset": following[1],
    }


def _skipped(text: str, document: Document, offset: int) -> int:
    if offset and offset >= len(text):
        unit = document.unit or "text"
        raise Unreadable("no-offset", offset=offset, unit=unit, length=len(text))
    return offset


def _chosen(document: Document, request: Request) -> tuple[int, int]:
    """The first and the last part."""
    if not request.part.strip():
        return 1, document.count
    if not document.unit:
        raise Unreadable("whole")
    found = _RANGE.fullmatch(request.part)
    if found is None:
        raise Unreadable("part", part=request.part)
    if not document.count:
        raise Unreadable("no-parts", unit=document.unit)
    first = int(found[1])
    last = first if found[2] is None else int(found[3] or document.count)
    if not 1 <= first <= document.count:
        raise Unreadable("no-part", unit=document.unit, part=first, count=document.count)
    if last < first:
        raise Unreadable("part", part=request.part)
    return first, min(last, document.count)
