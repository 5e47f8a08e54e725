"""Names in writable folders that lead out of them: links, and second names of closed files.

The gate refuses to write through them. But the CLI looks into a file before it asks the gate
(see ``agent_kit.sdk.outside``), and its rules for writing don't follow links (measured on CLI
2.1.332). So each such name gets a rule of its own. The file tools can't make links: what is there
when the session is planned is all that the agent can use.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from typing import Final

from agent_kit.scope import FileScope, check_file_scope

__all__ = ["MAX_LOOKED_AT", "closed_names"]

MAX_LOOKED_AT: Final = 100_000  # files and folders


def closed_names(scope: FileScope, folders: Iterable[str]) -> tuple[list[str], bool]:
    """The links and hard links below ``folders`` that the scope refuses to write, and whether
    everything was looked at (folders that may not be read, and what is over the bound, were not).
    """
    names, whole = _other_names(folders)
    links = [path for path, identity in names if identity is None]
    shared = [(path, identity) for path, identity in names if identity is not None]
    found = [
        path for path in links if check_file_scope(scope, "Write", {"file_path": path}) is not None
    ]
    if shared:
        closed = _identities(path for path, _ in scope._compiled.closed_paths)
        found += [path for path, identity in shared if identity in closed]
    return found, whole


_Identity = tuple[int, int]  # device and inode


def _other_names(folders: Iterable[str]) -> tuple[list[tuple[str, _Identity | None]], bool]:
    """The links below ``folders``, and the files with more than one name with their identity."""
    found: list[tuple[str, _Identity | None]] = []
    looked_at, whole, todo = 0, True, list(folders)
    while todo:
        for entry in _entries(todo.pop()):
            looked_at += 1
            if looked_at > MAX_LOOKED_AT:
                return found, False
            if entry is None:
                whole = False
            elif entry.is_symlink():
                found.append((entry.path, None))
            elif entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            elif (status := _status(entry)) is not None and status.st_nlink > 1:
                found.append((entry.path, (status.st_dev, status.st_ino)))
    return found, whole


def _identities(paths: Iterable[str]) -> set[_Identity]:
    """Of files, and of all files in folders. Each folder is walked once."""
    found: set[_Identity] = set()
    seen: set[str] = set()
    todo = list(paths)
    while todo:
        path = todo.pop()
        if path in seen:
            continue
        seen.add(path)
        with contextlib.suppress(OSError, ValueError):
            status = os.lstat(path)
            if not stat.S_ISDIR(status.st_mode):
                found.add((status.st_dev, status.st_ino))
                continue
        for entry in _entries(path):
            if entry is not None and entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            elif entry is not None and (status_ := _status(entry)) is not None:
                found.add((status_.st_dev, status_.st_ino))
    return found


def _entries(folder: str) -> Iterator[os.DirEntry[str] | None]:
    """What is in a folder; ``None`` for one that can't be read."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except (OSError, ValueError):
        yield None


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:  # gone since the folder was listed
        return None
