"""Hard links: the same file under a second name, which no comparison of names can see."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from agent_kit.scope.index import Entry

__all__ = ["same_file"]


def same_file(device: int, inode: int, closed: Iterable[tuple[str, Entry]]) -> Entry | None:
    """The entry that a file of this identity belongs to, or ``None``.

    ``closed`` are absolute paths with their entries: a file is compared, a folder is walked without
    following links. The cost is one ``lstat`` a file, so this is asked only of files with more than
    one link. What may not be looked at is passed over.
    """
    for path, entry in closed:
        for found in _files(path):
            if found.st_ino == inode and found.st_dev == device:
                return entry
    return None


def _files(path: str) -> Iterator[os.stat_result]:
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return
    if not stat.S_ISDIR(found.st_mode):
        yield found
        return
    folders = [path]
    while folders:
        yield from _in_folder(folders.pop(), folders)


def _in_folder(path: str, folders: list[str]) -> Iterator[os.stat_result]:
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    yield entry.stat(follow_symlinks=False)
    except OSError:
        return
