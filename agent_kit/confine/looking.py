"""From a scope to mounts: what its folders hold that must be covered, as it is at the start.

Literal entries are taken as they are. Patterns, control files and second names of closed files are
looked for on the disk, once; what appears later is the business of the other locks. A folder that
can't be looked into is covered: it may be opened up later, by a session beside this one, too.

A control file may be a link, or have a second name. What it leads to is read by the same programs,
so it is read-only as well, wherever it lies in a writable folder; a folder with all that is in it.

The system's folders are there whatever the scope opens, so what it closes is covered in them as well:
literal entries, what a pattern means that begins with such a folder, and a home that lies in one. A
pattern for every folder (``**/*.pem``) isn't looked for there: it would take the certificates away.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from agent_kit.confine.control_links import (
    control_inodes,
    entries_of,
    is_control,
    led_to,
    with_second_names,
)
from agent_kit.confine.system import seen_anyway
from agent_kit.confine.view import Mount, Sight, above, is_in
from agent_kit.scope import Access, FileScope
from agent_kit.scope.compiled import Compiled, Mark
from agent_kit.scope.index import Rank

__all__ = ["MAX_ENTRIES", "Found", "add", "look"]

MAX_ENTRIES: Final = 1_000_000  # names in the folders of a scope that are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The mounts of a scope. ``complete``: every name in its folders was looked at."""

    mounts: tuple[Mount, ...]
    complete: bool


def look(scope: FileScope, *, most: int = MAX_ENTRIES) -> Found:
    """The mounts that hold ``scope``: opened folders, and what is closed in them.

    What may be written is seen as well: no kernel has a folder for writing only.
    """
    compiled = scope._compiled
    sights = _opened(compiled)
    system = _System(compiled)
    walk = _Walk(compiled, most)
    walk.visit([*_tops(sights), *system.walked()])
    for path, sight in (*_closed(compiled, tuple(sights)), *system.closed(), *walk.found):
        sights[path] = min(sights.get(path, sight), sight, key=_STRICT.index)
    if not compiled.control_files_open:
        sights |= led_to(walk.links, compiled.project, sights)
    mounts = (
        Mount(path=path, sight=sight, folder=os.path.isdir(path))
        for path, sight in sorted(sights.items())
        if os.path.lexists(path)
    )
    return Found(mounts=tuple(mounts), complete=walk.left > 0)


_STRICT: Final = (Sight.NOTHING, Sight.READ, Sight.WRITE)
_RANKS: Final = {
    None: Sight.WRITE,
    Rank.TOOLS_ONLY: Sight.NOTHING,
    Rank.DENIED: Sight.NOTHING,
    Rank.READ_ONLY: Sight.READ,
}


def _opened(compiled: Compiled) -> dict[str, Sight]:
    """Each opened folder under its real name, unless something above it is closed."""
    found: dict[str, Sight] = {}
    for path, _ in compiled.opened_paths:
        if os.path.realpath(path) != path:
            continue
        writes = bool(compiled.open.mask(path) & Mark.WRITE)
        entry, _below = compiled.closed.find(path, folder=os.path.isdir(path))
        limit = _RANKS[entry.rank if entry else None]
        writes = writes and (compiled.control_files_open or not is_control(path))
        sight = min(Sight.WRITE if writes else Sight.READ, limit, key=_STRICT.index)
        if sight is not Sight.NOTHING:
            found[path] = sight
    return found


def _closed(compiled: Compiled, opened: tuple[str, ...]) -> Iterator[tuple[str, Sight]]:
    """The literal closed entries below an opened folder, each under its real name."""
    for path, entry in compiled.closed_paths:
        real = os.path.realpath(path)
        if any(is_in(real, top) for top in opened):
            strongest, _ = compiled.closed.find(real, folder=os.path.isdir(real))
            yield real, _RANKS[(strongest or entry).rank]


class _System:
    """What a scope closes of the system's folders."""

    def __init__(self, compiled: Compiled) -> None:
        self.compiled = compiled
        self._tops = frozenset(seen_anyway())
        self._above = frozenset(each for top in self._tops for each in above(top))

    def closed(self) -> Iterator[tuple[str, Sight]]:
        """The literal entries in or around the system's folders, and a home in one."""
        for path, entry in self.compiled.closed_paths:
            real = os.path.realpath(path)
            if _RANKS[entry.rank] is Sight.NOTHING and (real in self._above or self._has(real)):
                yield real, Sight.NOTHING
        home = os.path.realpath(self.compiled.home or "/")
        # An account of the system's own has /bin or /usr/sbin for one.
        private = self._has(os.path.dirname(os.path.dirname(home)))
        if private and not self.compiled.open.mask(home):
            yield home, Sight.NOTHING

    def walked(self) -> Iterator[tuple[str, Sight]]:
        """Folders of the system that a denied pattern begins with. A project's own are no such."""
        fixed = dict.fromkeys(p.fixed for p in self.compiled.patterns if p.fixed is not None)
        project = os.path.realpath(self.compiled.project)
        for folder in fixed:
            if self._has(folder) and not is_in(folder, project):
                yield folder, Sight.READ

    def _has(self, path: str) -> bool:
        return path in self._tops or not self._tops.isdisjoint(above(path))


def _tops(sights: dict[str, Sight]) -> list[tuple[str, Sight]]:
    """The opened folders that have to be walked: none that lies in another of the same sight."""
    return [
        (path, sight)
        for path, sight in sights.items()
        if not any(
            path != other and is_in(path, other) and sight is same for other, same in sights.items()
        )
    ]


def add(scope: FileScope, mounts: Iterable[Mount], extra: Iterable[str]) -> tuple[Mount, ...]:
    """``mounts``, and each path of ``extra`` read-only, unless the scope closes it.

    What the scope closes below such a path (by name; patterns aren't looked for there) is covered.
    """
    compiled = scope._compiled
    found = {mount.path: mount for mount in mounts}
    for path in extra:
        entry, _ = compiled.closed.find(path, folder=os.path.isdir(path))
        if path in found or (entry is not None and _RANKS[entry.rank] is Sight.NOTHING):
            continue
        if os.path.lexists(path):
            found[path] = Mount(path=path, sight=Sight.READ, folder=os.path.isdir(path))
            for closed, sight in _closed(compiled, (path,)):
                if sight is Sight.NOTHING and os.path.lexists(closed):
                    found[closed] = Mount(path=closed, sight=sight, folder=os.path.isdir(closed))
    return tuple(found[path] for path in sorted(found))


class _Walk:
    """Looks at every name once. Enters no link and nothing that is closed.

    ``links``: those that are control files.
    """

    def __init__(self, compiled: Compiled, most: int) -> None:
        self.compiled = compiled
        self.left = self._most = most
        self.found: list[tuple[str, Sight]] = []
        self.links: list[str] = []
        self._second = frozenset(_closed_files(compiled))
        self._frozen = frozenset(_frozen_files(compiled))

    def visit(self, tops: Iterable[tuple[str, Sight]]) -> None:
        """Look at all that is below; again, when what is closed or frozen has other names, too."""
        tops = list(tops)
        known = self._second, self._frozen
        self._visit(tops)
        closed = (path for path, sight in self.found if sight is Sight.NOTHING)
        self._second |= frozenset(with_second_names(closed))
        if (self._second, self._frozen) != known:
            self.left, self.found = self._most, []
            self._visit(tops)

    def _visit(self, tops: Iterable[tuple[str, Sight]]) -> None:
        todo = [(top, sight is Sight.WRITE) for top, sight in tops if os.path.isdir(top)]
        for inode, file in ((each, top) for top, _ in tops for each in _own_second_names(top)):
            if inode in self._second or inode in self._frozen:
                self.found.append((file, Sight.NOTHING if inode in self._second else Sight.READ))
        while todo and self.left > 0:
            folder, writes = todo.pop()
            if (entries := entries_of(folder)) is None:
                self.found.append((folder, Sight.NOTHING))
                continue
            for entry in entries:
                self.left -= 1
                if (sight := self._sight(entry, writes)) is not None:
                    self.found.append((entry.path, sight))
                if sight is not Sight.NOTHING and entry.is_dir(follow_symlinks=False):
                    todo.append((entry.path, writes and sight is None))

    def _sight(self, entry: os.DirEntry[str], writable: bool) -> Sight | None:
        if entry.is_symlink():  # what it leads to has a name of its own
            if is_control(entry.path):
                self.links.append(entry.path)
            return None
        folder = entry.is_dir(follow_symlinks=False)
        closed, _ = self.compiled.closed.find(entry.path, folder=folder)
        limit = _RANKS[closed.rank if closed else None]
        if limit is Sight.NOTHING or (not folder and self._is_second_name(entry, self._second)):
            return Sight.NOTHING
        if not folder and not entry.is_file(follow_symlinks=False):
            return Sight.NOTHING  # a socket, a FIFO, a device: a way out to who listens there
        if not writable:
            return None
        frozen = not self.compiled.control_files_open and is_control(entry.path)
        if frozen and not folder and "/.git/objects/" not in entry.path:
            self._frozen |= frozenset(with_second_names([entry.path]))
        frozen = frozen or (not folder and self._is_second_name(entry, self._frozen))
        return Sight.READ if frozen or limit is Sight.READ else None

    @staticmethod
    def _is_second_name(entry: os.DirEntry[str], among: frozenset[tuple[int, int]]) -> bool:
        if not among:
            return False
        found = entry.stat(follow_symlinks=False)
        return found.st_nlink > 1 and (found.st_dev, found.st_ino) in among


def _own_second_names(path: str) -> Iterator[tuple[int, int]]:
    """Device and inode of an opened path, where that is a file with several names."""
    return iter(()) if os.path.isdir(path) else with_second_names([path])


def _closed_files(compiled: Compiled) -> Iterator[tuple[int, int]]:
    """Device and inode of each closed file that has several names; a closed folder's are looked up."""
    yield from with_second_names(path for path, _ in compiled.second_names(Access.READ))


def _frozen_files(compiled: Compiled) -> Iterator[tuple[int, int]]:
    """The same of what is read-only: by name, and the control files of the project's own folder."""
    yield from with_second_names(path for path, _ in compiled.second_names(Access.WRITE))
    if not compiled.control_files_open:
        yield from control_inodes(compiled.project)
