"""From a view to Landlock rules: which rights each path gets, with everything below it.

A Landlock rule gives rights on a folder *and all that lies below it*, and nothing takes them away
again further down. A second ruleset on top does not either: each ruleset allows whole hierarchies,
and what all of them allow is again made of whole hierarchies. So where a folder holds something
that is less than itself, the right in question is not given to the folder but to what lies in it,
name by name, as it is at the start. Rights are worked out one group at a time, since one group may
be given to a folder where another can't:

* a closed *file* in a folder keeps its ``CONTENT`` rights back, its names can still be listed;
* a closed *folder* keeps ``NAMES`` back as well: whoever may list a folder may list all below it;
* a frozen file or folder keeps only ``CHANGE`` back.

What is lost there, and nowhere else: a folder above a closed folder can't be listed; a file that
appears later in a folder above a closed one can't be read; in a folder above a closed or frozen one
nothing is created, renamed or removed, while files that were there can be written, and folders in
it that hold nothing of the kind are as writable as ever. Nothing is ever seen that the view hides.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntFlag
from typing import Final

from agent_kit.confine.view import ConfinedView, Mount, Sight, above, is_in

__all__ = ["MAX_RULES", "Entry", "Group", "Rule", "Rules", "TooManyRules", "listed", "make_rules"]

MAX_RULES: Final = 50_000  # 10,000 neighbours of a closed file delay the start by about 0.3 s


class TooManyRules(ValueError):
    """The view needs more rules than can sensibly be handed to the kernel."""


class Group(IntFlag):
    """Rights that are given together."""

    CONTENT = 1  # read and execute files
    NAMES = 2  # list folders
    CHANGE = 4  # write, create, rename, remove


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Rule:
    """What is given on ``path`` (absolute, links resolved) and on everything below it."""

    path: str
    groups: Group


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of a view, sorted, and in plain sentences what they can't do that the view says.

    ``hindered`` are those folders that these sentences are about and that the view itself opens.
    """

    rules: tuple[Rule, ...]
    notes: tuple[str, ...]
    hindered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A name in a folder. A link is never followed: what it leads to has a name of its own."""

    path: str
    folder: bool
    link: bool = False


Listing = Callable[[str], Iterable[Entry]]

_GROUPS: Final[Mapping[Sight, Group]] = {
    Sight.NOTHING: Group(0),
    Sight.READ: Group.CONTENT | Group.NAMES,
    Sight.WRITE: Group.CONTENT | Group.NAMES | Group.CHANGE,
}
_ALL: Final = tuple(Group)


def listed(folder: str) -> tuple[Entry, ...]:
    """What a folder of the disk holds; nothing when it can't be read."""
    try:
        with os.scandir(folder) as found:
            return tuple(
                Entry(path=e.path, folder=e.is_dir(follow_symlinks=False), link=e.is_symlink())
                for e in found
            )
    except OSError:
        return ()


def make_rules(view: ConfinedView, listing: Listing = listed) -> Rules:
    """The rules that hold ``view``. ``listing`` tells what a folder holds; it is the only look.

    The links in ``view.system`` must have been resolved, as those of the mounts are.
    Raises :class:`TooManyRules` when siblings of closed entries would take too many.
    """
    work = _Work(_mounts(view), listing)
    own = {mount.path for mount in view.mounts} | {view.tmp}
    hindered: set[str] = set()
    for mount in work.mounts.values():
        lost = work.grant(mount.path, _GROUPS[mount.sight])
        hindered.update(lost if mount.path in own else ())
    for mount in view.mounts:  # under its own name: nothing can be seen under another one
        if mount.source:
            work.add(mount.source, _GROUPS[mount.sight])
    rules = (Rule(path=path, groups=groups) for path, groups in sorted(work.found.items()))
    return Rules(rules=tuple(rules), notes=tuple(work.notes()), hindered=tuple(sorted(hindered)))


def _mounts(view: ConfinedView) -> dict[str, Mount]:
    """The mounts of the disk itself, sorted; the system's folders and the temporary one included.

    A system folder that lies in something closed is none. The working folder that nothing opens may
    itself lie in one of the system's.
    """
    found = {
        mount.path: Mount(path=mount.path, sight=Sight.NOTHING, folder=mount.folder)
        if mount.source
        else mount
        for mount in (view.mounts if view.tmp and is_in(view.cwd, view.tmp) else view.whole)
    }
    for path in view.uncovered(view.system):
        found.setdefault(path, Mount(path=path, sight=Sight.READ))
    if view.tmp:
        found.setdefault(view.tmp, Mount(path=view.tmp, sight=Sight.WRITE))
    return dict(sorted(found.items()))


class _Work:
    """One working-out. ``found``: what has been given so far."""

    def __init__(self, mounts: dict[str, Mount], listing: Listing) -> None:
        self.mounts = mounts
        self.found: dict[str, Group] = {}
        self._listing = listing
        self._held: dict[str, Group] = {}  # folder -> what it can't be given as a whole
        self._why: dict[tuple[str, Group], str] = {}  # and the first entry below that is the reason
        self._lost: dict[str, Group] = {}
        for mount in mounts.values():
            self._hold_back(mount)

    def _hold_back(self, mount: Mount) -> None:
        lacks = Group.CONTENT | Group.NAMES | Group.CHANGE
        lacks &= ~_GROUPS[mount.sight]
        if not mount.folder:
            lacks &= ~Group.NAMES
        for folder in above(mount.path) if lacks else ():
            self._held[folder] = self._held.get(folder, Group(0)) | lacks
            for group in _ALL:
                if group & lacks:
                    self._why.setdefault((folder, group), mount.path)

    def grant(self, path: str, groups: Group) -> list[str]:
        """Give ``groups`` on a path: as a whole where that is right, else name by name.

        Returns the folders that could not be given all of it.
        """
        todo = [(path, groups)]
        lost = []
        while todo:
            here, wanted = todo.pop()
            held = self._held.get(here, Group(0)) & wanted
            self.add(here, wanted & ~held)
            if not held:
                continue
            self._lost[here] = held
            lost.append(here)
            todo += [(entry.path, held) for entry in self._inside(here, held)]
        return lost

    def _inside(self, folder: str, groups: Group) -> Iterator[Entry]:
        for entry in self._listing(folder):
            if entry.link or entry.path in self.mounts:
                continue
            if entry.folder or groups & ~Group.NAMES:
                yield entry

    def add(self, path: str, groups: Group) -> None:
        """Give ``groups`` on a path and all below it."""
        if groups:
            self.found[path] = self.found.get(path, Group(0)) | groups
        if len(self.found) > MAX_RULES:
            raise TooManyRules(f"{path} and its neighbours would take over {MAX_RULES:,} rules")

    def notes(self) -> Iterator[str]:
        for folder, lost in sorted(self._lost.items()):
            for group in _ALL:
                if group & lost:
                    yield _NOTES[group].format(folder=folder, why=self._why[folder, group])


_NOTES: Final[Mapping[Group, str]] = {
    Group.CONTENT: "{folder}: a file that appears here during the session can't be read, because"
    " {why} is closed",
    Group.NAMES: "{folder}: can't be listed, because {why} is closed",
    Group.CHANGE: "{folder}: nothing can be created, renamed or removed here, because {why} is"
    " closed or read-only",
}
