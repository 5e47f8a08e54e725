"""Names in a folder that the CLI's rules may read otherwise than the gate: those beyond ASCII.

The gate folds names as volumes do (:func:`agent_kit.scope.text.fold`); the CLI compares them as
JavaScript does. An ASCII name is the same to both. So a search that passes because the CLI leaves out
what is closed has to be looked at for other names alone. What a folder holds is remembered for as
long as the folder is the same, so a second look costs one look a folder.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from agent_kit.scope.text import fold, in_script

__all__ = ["Cleared", "Closes", "TooManyNames", "first_odd", "is_narrow"]

_NAMES: Final = 1_000_000  # that a search may have below it; those that are known count, too
_SECONDS: Final = 4.0
_REMEMBERED: Final = 100_000  # folders
_SETTLED: Final = 2_500_000_000  # nanoseconds: as coarse as a file system's times may be


class TooManyNames(Exception):
    """More is below a folder than is looked at. What was seen is remembered."""


class _Names(NamedTuple):
    """What a folder holds. ``odd`` are the names beyond ASCII, folders among them."""

    state: tuple[int, int, int]
    number: int
    folders: tuple[str, ...]
    odd: tuple[str, ...]


_NOTHING: Final = _Names((0, 0, 0), 0, (), ())

Closes = Callable[[str, bool], bool]
"""Of a canonical path, and whether it is a folder."""
Cleared = dict[str, _Names]
"""Folders in which nothing was found, and what they held."""

_known: Cleared = {}


def first_odd(
    folder: str, path: str, is_it: Closes, cleared: Sequence[Cleared]
) -> tuple[str, bool] | None:
    """The first path below a folder in which a name is beyond ASCII, and of which ``is_it`` says yes;
    and whether it is a folder.

    ``folder`` is as the system writes it, ``path`` the same canonical, as are those that are asked
    about. No link is followed below it; what may not be listed holds nothing. Names in ASCII below
    names that gate and rules read alike are not asked about, nor is what is in a folder that all of
    ``cleared`` have, as it is. Raises TooManyNames.
    """
    left, until = _NAMES, time.monotonic() + _SECONDS
    todo = [(folder, path.rstrip("/"), not _is_read_alike(path))]
    while todo:
        here, above, every = todo.pop()
        found = _names_in(here)
        left -= found.number + 1
        if left < 0 or time.monotonic() > until:
            raise TooManyNames
        if behind := [each for each in cleared if each.get(here) is not found]:
            for name in _listed(here) if every else found.odd:
                odd = f"{above}/{name}", name in found.folders
                if is_it(*odd):
                    return odd
            for each in behind:
                _remember(each, here, found)
        for name in found.folders:
            below = every or not _is_read_alike(name)
            todo.append((os.path.join(here, name), f"{above}/{name}", below))
    return None


def is_narrow(text: str) -> bool:
    """Whether each character is one to the CLI, too, which has UTF-16."""
    return max(text, default="") < "\U00010000"


def _is_read_alike(text: str) -> bool:
    return text.isascii() or (is_narrow(text) and in_script(text) == in_script(fold(text)))


def _names_in(folder: str) -> _Names:
    try:
        seen = os.stat(folder)
    except OSError:
        return _NOTHING
    if not stat.S_ISDIR(seen.st_mode):
        return _NOTHING
    state = seen.st_dev, seen.st_ino, seen.st_ctime_ns
    known = _known.get(folder)
    if known is not None and known.state == state:
        return known
    now = time.time_ns()
    found = _looked_at(folder, state)
    if now - seen.st_ctime_ns > _SETTLED:  # else it may change once more at the same time
        _remember(_known, folder, found)
    return found


def _remember(among: Cleared, folder: str, found: _Names) -> None:
    if len(among) >= _REMEMBERED:
        among.clear()
    among[folder] = found


def _looked_at(folder: str, state: tuple[int, int, int]) -> _Names:
    number, folders, odd = 0, [], []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                number += 1
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                if not entry.name.isascii():
                    odd.append(entry.name)
    except OSError:
        pass
    return _Names(state, number, tuple(folders), tuple(odd))


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
