"""Rules for everything that is *not* writable, in a language that can only name what is.

The CLI validates an Edit before any hook runs, and says whether the old text stands in the file: an
agent could guess at any file of the working folder, letter by letter, though the gate would refuse
the edit itself. A deny rule answers first. Deny beats allow, so "everything but ``drafts``" has to
be spelled out: names that begin otherwise, names that stop short, names that go on::

    [^d]*  d  d[^r]*  dr  dr[^a]*  dra  …  drafts?*

for each folder from the root down to a writable one. The language has no negated class, so each is
written as the ranges around the letter (matching ignores case, so around both its forms).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

__all__ = ["outside_patterns"]

_TOP = 0xFFFF
# As an end of a range these would be read as syntax: the range stops one short of them.
_SYNTAX = frozenset(map(ord, "\\]^[!-"))


@dataclass(slots=True)
class _Folder:
    """A folder on the way to a writable one; ``open`` when it is one itself."""

    open: bool = False
    below: dict[str, _Folder] = field(default_factory=dict)


def outside_patterns(writable: Iterable[str], spell: Callable[[str], str | None]) -> Iterator[str]:
    """Patterns that match every absolute path outside the ``writable`` folders (canonical paths).

    ``spell`` writes an absolute path as the rule language names it, ``?`` standing for what it has
    no letter for; what follows from its answers is remembered of it. Beside and below a name that
    can't be spelled exactly less is matched, never anything writable: the gate stands alone there.
    """
    root = _Folder()
    for path in writable:
        folder = root
        for name in path[1:].split("/") if path != "/" else ():
            folder = folder.below.setdefault(name, _Folder())
        folder.open = True
    yield from _outside("", root, spell)


def _outside(path: str, folder: _Folder, spell: Callable[[str], str | None]) -> Iterator[str]:
    if folder.open:
        return
    prefix = spell(path) if path else "/"
    if prefix is None:
        return
    if not folder.below:
        yield prefix + "/**"
        return
    for pattern in _other_names(frozenset(folder.below), spell):
        yield f"{prefix}/{pattern}"
    for name, below in folder.below.items():
        mistaken = _expression(name, spell)
        if not any(other != name and mistaken.fullmatch(other) for other in folder.below):
            yield from _outside(f"{path}/{name}", below, spell)


@lru_cache(maxsize=1024)  # sessions have most folders in common
def _other_names(names: frozenset[str], spell: Callable[[str], str | None]) -> tuple[str, ...]:
    """Patterns for every name but these, whatever its case. None of them matches one of these."""
    return tuple(_but_for(names, spell))


def _but_for(names: frozenset[str], spell: Callable[[str], str | None]) -> Iterator[str]:
    stems = {name[:length] for name in names for length in range(len(name) + 1)}
    folded = {name.lower() for name in names}
    for stem in sorted(stems):
        spelled = _name(stem, spell)
        if spelled is None:
            continue
        follow = {
            name[len(stem)] for name in stems if len(name) > len(stem) and _begins(name, stem)
        }
        if stem and stem.lower() not in folded and not _hits(_expression(stem, spell), names):
            yield spelled
        other = f"(?![{re.escape(''.join(follow))}])." if follow else "."
        if not _hits(_expression(stem, spell, other + ".*"), names):
            yield f"{spelled}{_but(follow)}*" if follow else f"{spelled}?*"


def _hits(expression: re.Pattern[str], names: Iterable[str]) -> bool:
    return any(expression.fullmatch(name) for name in names)


def _expression(stem: str, spell: Callable[[str], str | None], rest: str = "") -> re.Pattern[str]:
    """What a spelled stem really matches: a ``?`` stands where the language has no letter."""
    inexact = {char for char in set(stem) if "?" in (spell(f"/{char}x") or "")}
    body = "".join("." if char in inexact else re.escape(char) for char in stem)
    return re.compile(body + rest, re.IGNORECASE | re.DOTALL)


def _begins(name: str, stem: str) -> bool:
    return name.lower().startswith(stem.lower())


def _name(stem: str, spell: Callable[[str], str | None]) -> str | None:
    if not stem:
        return ""
    spelled = spell("/" + stem)
    return None if spelled is None else spelled[2:]


def _but(chars: set[str]) -> str:
    """A class of every UTF-16 unit but these characters (either case) and the slash.

    Beyond U+FFFF a character is two units: none of their kind is in the class then.
    """
    forms = {form for char in chars for form in (char, char.lower(), char.upper())}
    closed = {ord(form) for form in forms if len(form) == 1} | {ord("/")}
    if any(code > _TOP for code in closed):
        closed = {code for code in closed if code <= _TOP} | {*range(0xD800, 0xE000)}
    ranges: list[str] = []
    low = 1
    for code in sorted(closed | {_TOP + 1}):
        first, last = low, code - 1
        while first <= last and first in _SYNTAX:
            first += 1
        while last >= first and last in _SYNTAX:
            last -= 1
        if first <= last:
            ranges.append(f"{chr(first)}-{chr(last)}")
        low = code + 1
    return f"[{''.join(ranges)}]"
