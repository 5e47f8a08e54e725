"""What a confined process sees of the disk: a plain value, before any kernel is asked.

A view is a list of mounts. A path's nearest mount above it says what it is: read, written, or not
there. What lies below no mount is not there either, but for the folders on the way to one. Every
backend builds the same view with its own means; :meth:`ConfinedView.sight` is what they are tested
against.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["ConfinedView", "Mount", "Sight", "above", "is_in"]


class Sight(StrEnum):
    """What can be done with a path."""

    NOTHING = "nothing"
    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Mount:
    """One path, and what it and everything below it are. ``path`` is absolute, its links resolved.

    ``folder`` says what it is on the disk. ``source`` is what is seen there, where that is another
    path of the host (a folder of the session's own); empty: the path itself.
    """

    path: str
    sight: Sight
    folder: bool = True
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedView:
    """The whole of what a confined CLI sees.

    * ``mounts``: sorted by path, no path twice.
    * ``links``: names that are symbolic links on the host and are needed inside: (name, target).
    * ``system``: folders and files of the operating system, read-only.
    * ``cwd``: the working folder; it exists inside, be it empty.
    * ``tmp``: a folder of the host that is the session's own temporary folder. Not seen by itself where
      the backend has a ``/tmp`` of its own.
    * ``network``: whether anything but ``sockets`` can be reached.
    * ``sockets``: Unix sockets of the host that can be connected to.
    """

    mounts: tuple[Mount, ...]
    cwd: str
    tmp: str
    links: tuple[tuple[str, str], ...] = ()
    system: tuple[str, ...] = ()
    network: bool = True
    sockets: tuple[str, ...] = ()

    def sight(self, path: str) -> Sight:
        """What an absolute path, links resolved, is inside. The system's own folders aside.

        >>> read, write = Mount(path="/w", sight=Sight.READ), Mount(path="/w/d", sight=Sight.WRITE)
        >>> view = ConfinedView(mounts=(read, write), cwd="/w", tmp="/t")
        >>> [str(view.sight(path)) for path in ("/w/a", "/w/d/a", "/etc/passwd", "/wd")]
        ['read', 'write', 'nothing', 'nothing']
        """
        known = {mount.path: mount.sight for mount in self.mounts}
        return _nearest(known, path) or Sight.NOTHING

    @property
    def whole(self) -> tuple[Mount, ...]:
        """The mounts, and the working folder as an empty one where none of them opens it.

        It may lie in a folder of the system, which is seen without it.
        """
        bare = self.sight(self.cwd) is Sight.NOTHING and self.cwd != _ROOT
        if not bare or any(mount.path == self.cwd for mount in self.mounts):
            return self.mounts
        return tuple(sorted((*self.mounts, Mount(path=self.cwd, sight=Sight.NOTHING))))

    def uncovered(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of the system's paths, links resolved, that are not in something closed.

        >>> closed = Mount(path="/etc/ssl", sight=Sight.NOTHING)
        >>> view = ConfinedView(mounts=(closed,), cwd="/usr/src/w", tmp="/t")
        >>> sorted(view.uncovered(["/etc/ssl/certs", "/etc/hosts", "/usr", "/usr/src/w"]))
        ['/etc/hosts', '/usr']
        """
        known = {mount.path: mount.sight for mount in self.whole}
        return frozenset(path for path in paths if _nearest(known, path) is not Sight.NOTHING)

    def below(self, path: str) -> tuple[Mount, ...]:
        """The mounts strictly below a path."""
        start = path.rstrip("/") + "/"
        return tuple(mount for mount in self.mounts if mount.path.startswith(start))


def _nearest(known: Mapping[str, Sight], path: str) -> Sight | None:
    """What the nearest mount at or above a path says."""
    while path:
        if (sight := known.get(path)) is not None:
            return sight
        path = path.rpartition("/")[0]
    return known.get(_ROOT)


_ROOT: Final = "/"


def above(path: str) -> Iterator[str]:
    """The folders above an absolute path, the nearest first."""
    while path != "/":
        path = os.path.dirname(path)
        yield path


def is_in(path: str, folder: str) -> bool:
    """Whether an absolute path is a folder, or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
