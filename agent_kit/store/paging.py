"""Results cut to a size that a model can take, with the way to the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agent_kit.store.errors import StoreCode, StoreError

__all__ = ["PAGE_SIZE", "Slice", "cut", "fill"]

PAGE_SIZE = 20_000
"""Most characters of one result, a few lines of heading aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A part of a result. ``next_offset`` is where the next one starts; ``None`` at the end."""

    text: str
    offset: int
    next_offset: int | None


def cut(text: str, offset: int, *, size: int = PAGE_SIZE) -> Slice:
    """At most ``size`` characters from ``offset``, counted in characters from 0.

    Raises :class:`StoreError` when the offset lies past the end.

    >>> cut("abcdef", 2, size=3)
    Slice(text='cde', offset=2, next_offset=5)
    """
    if not 0 <= offset <= max(0, len(text) - 1):
        raise StoreError(
            f"There is nothing at offset {offset}: the text has {len(text)} characters. "
            "Use an offset from 0 that is smaller.",
            code=StoreCode.NOT_FOUND,
        )
    end = offset + size
    return Slice(text=text[offset:end], offset=offset, next_offset=end if end < len(text) else None)


def fill(lines: Iterable[str], *, size: int = PAGE_SIZE) -> tuple[tuple[str, ...], bool]:
    """The lines that fit in ``size`` characters, at least one, and whether that was all.

    Lines are taken from the iterable only as long as they fit, so later ones cost nothing.

    >>> fill(["abc", "def", "ghi"], size=8)
    (('abc', 'def'), False)
    """
    kept: list[str] = []
    used = 0
    for line in lines:
        used += len(line) + 1
        if kept and used > size:
            return tuple(kept), False
        kept.append(line)
    return tuple(kept), True
