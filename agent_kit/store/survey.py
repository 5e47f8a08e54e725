"""What the files of a folder look like without reading one: by each one's name, size and times.

A file's mark is a number that is another one once the file has changed, and the marks of a folder are
added up: of a folder whose sum is the one that is known, nothing has changed.
"""

from __future__ import annotations

import os
import stat
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from agent_kit.store.disk import open_folder
from agent_kit.store.errors import StoreError
from agent_kit.store.folder import NO_ID, SUFFIX, id_at, reason_of
from agent_kit.store.names import PageId

__all__ = [
    "BITS",
    "RACY",
    "Look",
    "Survey",
    "Where",
    "can_be_kept",
    "files_of",
    "look_at",
    "survey",
]

Where = tuple[str, str]
"""A folder of the root, and a file in it, as the disk spells them."""

BITS: Final = 61  # of a mark
RACY: Final = 2.0
"""Seconds within which two changes of a file might leave the same times."""

_MASK: Final = (1 << BITS) - 1
_LINK: Final = "it is a link"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A file as it is now. ``mark`` is ``None`` where a later change might not be told.

    ``fault`` says why it is no page, ``""``: it may be one. ``linked``: it has another name elsewhere.
    """

    id: PageId
    mark: int | None
    fault: str = ""
    linked: bool = False


@dataclass(slots=True, kw_only=True)
class Survey:
    """The sum of each folder's marks, ``None`` where one can't be told.

    ``others`` are what lies beside the folders and is no page, by path in the root, with the reason.
    ``linked`` are files that have another name elsewhere, by which they may be changed.
    """

    sums: dict[str, int | None] = field(default_factory=dict)
    others: list[tuple[str, str]] = field(default_factory=list)
    linked: set[Where] = field(default_factory=set)


def survey(root: int) -> Survey:
    """Look at every file. ``root`` is an open folder; hidden names are left out."""
    found = Survey()
    with os.scandir(root) as entries:
        beside = sorted((e for e in entries if not e.name.startswith(".")), key=lambda e: e.name)
    for entry in beside:
        if entry.is_dir(follow_symlinks=False):
            _add_up(root, entry.name, found)
        elif entry.name.endswith(SUFFIX):
            found.others.append((entry.name, "it is in no type's folder"))
        elif entry.is_symlink():
            found.others.append((entry.name, _LINK))
    return found


def _add_up(root: int, folder: str, found: Survey) -> None:
    """Add up the marks of one folder, with all that is done for each of its files in one place."""
    total, settled, before, crc = 0, True, _settled_before(), zlib.crc32
    try:
        with open_folder(folder, inside=root) as handle:
            for name in os.listdir(handle):
                if name[-3:] != SUFFIX or name[0] == ".":
                    continue
                try:
                    text = f"{folder}/{name}".encode()
                    status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                except UnicodeEncodeError:
                    found.others.append((f"{folder}/{name}", NO_ID))
                    continue
                except FileNotFoundError:  # it has gone since the folder was listed
                    continue
                changed = status.st_ctime_ns
                numbers = (crc(text), status.st_mtime_ns, changed, status.st_size)
                total += hash(numbers) & _MASK
                if changed > before:
                    settled = False
                if status.st_nlink > 1:
                    found.linked.add((folder, name))
    except (StoreError, OSError) as error:
        found.others.append((folder, reason_of(error)))
    else:
        if can_be_kept(folder, ""):
            found.sums[folder] = total if settled else None


def can_be_kept(folder: str, file: str) -> bool:
    """Whether the names are text; others are no page's, and no index takes them."""
    try:
        folder.encode(), file.encode()
    except UnicodeEncodeError:
        return False
    return True


def files_of(root: int, folder: str) -> Iterator[tuple[str, int | None]]:
    """The files of one folder that may be pages, ordered by name, with their marks."""
    before = _settled_before()
    with suppress(StoreError), open_folder(folder, inside=root) as handle:
        for name in sorted(os.listdir(handle)):
            if name.endswith(SUFFIX) and name[0] != "." and can_be_kept(folder, name):
                with suppress(FileNotFoundError):
                    status = os.stat(name, dir_fd=handle, follow_symlinks=False)
                    yield name, (_mark((folder, name), status) if _is_old(status, before) else None)


def look_at(root: int, where: Where) -> Look | None:
    """One file as it is now; ``None``: there is none, or it can't be a page whatever it holds.

    Raises ``OSError`` when that can't be told.
    """
    folder, file = where
    if not file.endswith(SUFFIX) or file.startswith(".") or folder.startswith("."):
        return None
    before = _settled_before()
    try:
        with open_folder(folder, inside=root) as handle:
            status = os.stat(file, dir_fd=handle, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError, StoreError):
        return None
    known = id_at(folder, file)
    return Look(
        id=known or PageId(type="", slug=""),
        mark=_mark(where, status) if _is_old(status, before) else None,
        fault=NO_ID if known is None else _why_not(status.st_mode),
        linked=status.st_nlink > 1,
    )


def _why_not(mode: int) -> str:
    if stat.S_ISLNK(mode):
        return _LINK
    return "" if stat.S_ISREG(mode) else "it is no regular file"


def _mark(where: Where, status: os.stat_result) -> int:
    """A file's mark. Numbers alone are hashed: the hash of a text differs from process to process."""
    crc = zlib.crc32("/".join(where).encode())
    return hash((crc, status.st_mtime_ns, status.st_ctime_ns, status.st_size)) & _MASK


def _is_old(status: os.stat_result, before: int) -> bool:
    return status.st_ctime_ns <= before


def _settled_before() -> int:
    """Nanoseconds since the epoch. What was changed before can't change again with the same times."""
    return time.time_ns() - int(RACY * 1e9)
