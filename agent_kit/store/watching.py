"""Which files of a base have changed since it was last looked at, told by the kernel.

Linux tells of each change before the call that made it returns, so nothing is missed by asking when a
search begins. It tells nothing of what another machine does on a network file system, so there, and
wherever it can't watch, the answer is that anything may have changed. Of a file that has a second name
outside the folder it tells nothing of a change that is made by that name: those are for the caller to
look at.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from agent_kit.store.survey import Where

__all__ = ["FolderWatch"]

# Of these every change is made by this machine's kernel.
_LOCAL: Final = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watching:
    """What the kernel tells, and the folder that each of its numbers stands for."""

    process: int
    inotify: Any
    folders: dict[int, str]
    close: Callable[[], object]


class FolderWatch:
    """Watches ``root``, an absolute path, and the folders in it that are no hidden ones."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._watching: _Watching | None = None

    def changed(self) -> set[Where] | None:
        """The files that may have changed since :meth:`start`, or since this was last asked.

        ``None``: anything may have, the folders included.
        """
        watching = self._watching
        if watching is None or watching.process != os.getpid():
            return None
        try:
            events = watching.inotify.read(timeout=0)
        except OSError:
            return None
        found: set[Where] = set()
        for event in events:
            if event.name.startswith("."):
                continue
            folder = watching.folders.get(event.wd)
            # A name is missing where a folder itself went, or where there were too many events to tell.
            if folder is None or not event.name:
                self.stop()
                return None
            found.add((folder, event.name))
        return found

    def start(self, folders: Callable[[], Iterable[str]]) -> None:
        """Watch from now on. ``folders`` tells those in the root, when that is watched already.

        Raises nothing: where watching isn't possible it isn't done.
        """
        self.stop()
        with contextlib.suppress(OSError, ImportError):
            if sys.platform == "linux" and _file_system(self._root) in _LOCAL:
                self._start(lambda: self._on_one_disk(folders()))

    def _start(self, folders: Callable[[], Iterable[str]]) -> None:
        from inotify_simple import INotify, flags

        inotify = INotify(nonblocking=True)
        close = weakref.finalize(self, inotify.close)
        mask = (
            flags.CREATE
            | flags.DELETE
            | flags.MODIFY
            | flags.ATTRIB
            | flags.CLOSE_WRITE
            | flags.MOVED_FROM
            | flags.MOVED_TO
            | flags.DELETE_SELF
            | flags.MOVE_SELF
        )
        watched: dict[int, str] = {}
        try:
            inotify.add_watch(self._root, mask | flags.ONLYDIR)
            for folder in folders():
                path = os.path.join(self._root, folder)
                number = inotify.add_watch(path, mask | flags.ONLYDIR | flags.DONT_FOLLOW)
                watched[number] = folder
        except OSError:
            close()
            raise
        self._watching = _Watching(
            process=os.getpid(), inotify=inotify, folders=watched, close=close
        )

    def _on_one_disk(self, folders: Iterable[str]) -> Iterable[str]:
        """The folders. Raises ``OSError`` where another file system is mounted on one."""
        here = os.stat(self._root).st_dev
        for folder in folders:
            if os.lstat(os.path.join(self._root, folder)).st_dev != here:
                raise OSError(f"another disk is mounted on {folder}")
            yield folder

    def stop(self) -> None:
        """Watch no more."""
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.close()


def _file_system(path: str) -> str:
    """The type of the file system that a path lies on, as the kernel calls it; ``""`` when unknown."""
    wanted = os.stat(path).st_dev
    name = f"{os.major(wanted)}:{os.minor(wanted)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
        for line in mounts:
            head, _, tail = line.partition(" - ")
            if head.split(" ")[2] == name:
                return tail.split(" ")[0]
    return ""
