"""Hard links: the same file under a second name, which no comparison of names can see."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from agent_kit.scope.index import Entry

__all__ = ["same_file"]


def same_file(device: int, inode: int, closed: Iterable[tuple[str, Entry]]) -> Entry | None:
    """The entry that a file of this identity belongs to, or ``None``.

    ``closed`` are absolute paths as the system writes them, with their entries: a file is compared,
    a folder is walked without following links. The cost is one look a file, so this is asked only
    of files with more than one link. What may not be looked at is passed over.
    """
    for path, entry in closed:
        if (device, inode) in _identities(path, inode):
            return entry
    return None


def _identities(path: str, inode: int) -> Iterator[tuple[int, int]]:
    """Device and inode of the file, or of the folder's files that may have this ``inode``."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return
    if not stat.S_ISDIR(found.st_mode):
        yield found.st_dev, found.st_ino
        return
    folders = [path]
    while folders:
        yield from _in_folder(folders.pop(), folders, inode)


def _in_folder(path: str, folders: list[str], inode: int) -> Iterator[tuple[int, int]]:
    try:
        entries = list(os.scandir(path))
    except OSError:
        return
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.inode() == inode:
                found = entry.stat(follow_symlinks=False)
                yield found.st_dev, found.st_ino
        except OSError:  # gone since the folder was listed
            continue
