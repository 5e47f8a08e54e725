"""Whether anything has changed in a base since it was last looked at, told by the kernel.

Linux tells of each change before the call that made it returns, so nothing is missed by asking when a
search begins. It tells nothing of what another machine does on a network file system, so there, and
wherever it can't watch, the answer is that something may have changed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final

__all__ = ["FolderWatch"]

# Of these every change is made by this machine's kernel.
_LOCAL: Final = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"}
)


class FolderWatch:
    """Watches ``root``, an absolute path, and the folders in it that are no hidden ones."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._watching: tuple[int, Any, Callable[[], object]] | None = None

    def is_unchanged(self) -> bool:
        """Whether nothing has changed since :meth:`start`."""
        if self._watching is None or self._watching[0] != os.getpid():
            return False
        try:
            events = self._watching[1].read(timeout=0)
        except OSError:
            return False
        # A name is missing where a folder itself went, or where there were too many events to tell.
        return all(event.name.startswith(".") for event in events)

    def start(self, folders: Callable[[], Iterable[str]]) -> None:
        """Watch from now on. ``folders`` tells those in the root, when that is watched already.

        Raises nothing: where watching isn't possible it isn't done.
        """
        self.stop()
        with contextlib.suppress(OSError, ImportError):
            if sys.platform == "linux" and _file_system(self._root) in _LOCAL:
                self._start(folders)

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
        try:
            inotify.add_watch(self._root, mask | flags.ONLYDIR)
            for folder in folders():
                inotify.add_watch(
                    os.path.join(self._root, folder), mask | flags.ONLYDIR | flags.DONT_FOLLOW
                )
        except OSError:
            close()
            raise
        self._watching = (os.getpid(), inotify, close)

    def stop(self) -> None:
        """Watch no more."""
        watching, self._watching = self._watching, None
        if watching is not None:
            watching[2]()


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
