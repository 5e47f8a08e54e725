"""Names in writable folders that lead out of them: links, and second names of closed files.

The gate refuses to write through them. But the CLI looks into a file before it asks the gate
(see ``agent_kit.sdk.outside``), and its rules for writing don't follow links (measured on CLI
2.1.332). So each such name gets a rule of its own. The file tools can't make links: what is there
when the session is planned is all that the agent can use.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Final

from agent_kit.scope import FileScope, check_file_scope

__all__ = ["MAX_LOOKED_AT", "closed_names"]

MAX_LOOKED_AT: Final = 20_000  # files and folders


def closed_names(scope: FileScope, folders: Iterable[str]) -> tuple[list[str], bool]:
    """The links and hard links below ``folders`` that the scope refuses to write, and whether
    everything was looked at (folders that may not be read, and what is over the bound, were not).
    """
    found: list[str] = []
    looked_at = 0
    whole = True
    todo = list(folders)
    while todo:
        for entry in _entries(todo.pop()):
            looked_at += 1
            if looked_at > MAX_LOOKED_AT:
                return found, False
            if entry is None:
                whole = False
            elif entry.is_dir(follow_symlinks=False):
                todo.append(entry.path)
            elif _has_other_names(entry) and _refused(scope, entry.path):
                found.append(entry.path)
    return found, whole


def _entries(folder: str) -> Iterator[os.DirEntry[str] | None]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        yield None


def _has_other_names(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_symlink() or entry.stat(follow_symlinks=False).st_nlink > 1
    except OSError:
        return True


def _refused(scope: FileScope, path: str) -> bool:
    return check_file_scope(scope, "Write", {"file_path": path}) is not None
