"""What control files lead to: links, second names, what a repository's configuration names.

What a control file that is a link leads to is read by the same programs, and so are another name of
the same file, and the files and hooks that the project's git is told to take from elsewhere. All are
to be read-only where they lie in a writable folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from agent_kit.confine.git_config import named_by_git
from agent_kit.confine.view import Sight, above, is_in
from agent_kit.scope.control import is_control_file
from agent_kit.scope.index import split
from agent_kit.scope.text import fold

__all__ = [
    "control_inodes",
    "decided_at",
    "entries_of",
    "files_led_to",
    "is_control",
    "led_to",
    "with_second_names",
]


def led_to(links: Iterable[str], project: str, sights: Mapping[str, Sight]) -> dict[str, Sight]:
    """What ``links``, which are control files, lead to in the writable folders; and links in there.
    What the project's own repository names counts as led to.

    Those of the project's own folder count whether or not it is opened: the CLI reads them anyway.
    """
    return _led_to([*links, *_leads(project)], sights)


def _led_to(todo: list[str], sights: Mapping[str, Sight]) -> dict[str, Sight]:
    found: dict[str, Sight] = {}
    seen: set[str] = set()
    writable = {path for path, sight in sights.items() if sight is Sight.WRITE}
    while todo:
        target = os.path.realpath(todo.pop())
        known = not seen.isdisjoint((target, *above(target)))
        if known or is_control(target) or not os.path.exists(target):
            continue
        held = [top for top in sights if is_in(top, target) and sights[top] is Sight.WRITE]
        held += [target] if _is_writable(target, sights) else []
        if held:
            seen.add(target)
            found.update(dict.fromkeys(held, Sight.READ))
            if writable <= found.keys():  # there is no more to close: "/", for one, is not walked
                break
            todo += _links_below(target)
    return found


def decided_at(project: str, writable: Iterable[str]) -> tuple[str, ...]:
    """The names in ``writable`` folders at which it is decided where control links of a project lead.

    Links on their ways, and the first name that is missing for their ends. What has changed there when
    a session ends steers the next one.
    """
    sights = {os.path.realpath(folder): Sight.WRITE for folder in writable}
    found: dict[str, None] = {}
    for link in _leads(project):
        end = link
        for end in _way(link):
            if os.path.islink(end) and not is_control(end):
                found[end] = None
        missing = [each for each in (end, *above(end)) if not os.path.lexists(each)]
        found.update(dict.fromkeys(missing[-1:]))
    return tuple(each for each in found if _is_writable(each, sights))


def _way(link: str) -> Iterator[str]:
    """Every link on the way from ``link``, without a link above it, and its end."""
    here, names, hops = "/", link.split("/")[::-1], 0
    while names:
        name = names.pop()
        here = (
            os.path.dirname(here)
            if name == ".."
            else os.path.join(here, name if name != "." else "")
        )
        here = here.rstrip("/") or "/"
        if name in ("", ".", "..") or not os.path.islink(here):
            continue
        yield here
        if (hops := hops + 1) > _MOST_HOPS:
            return
        target = os.readlink(here)
        names += target.split("/")[::-1]
        here = "/" if target.startswith("/") else os.path.dirname(here)
    yield here


_MOST_HOPS: Final = 40  # as the kernel


def files_led_to(project: str, writable: Iterable[str]) -> tuple[str, ...]:
    """What control files of a project's own folder lead to in ``writable`` folders, there or not.

    Absolute paths, links resolved. Whoever may write there writes what steers the next session.
    """
    sights = {os.path.realpath(folder): Sight.WRITE for folder in writable}
    links = [*_leads(project)]
    ends = map(os.path.realpath, links[:])
    found = _led_to(links, sights)
    nowhere = (end for end in ends if not os.path.exists(end) and not is_control(end))
    return tuple(dict.fromkeys((*found, *(end for end in nowhere if _is_writable(end, sights)))))


def _leads(project: str) -> Iterator[str]:
    """What leads on from a project's control files: links, and paths that its repository names."""
    yield from _own_links(project)
    yield from named_by_git(project)


def _own_links(project: str) -> Iterator[str]:
    """The links among the control files of a project's own folder."""
    for entry in entries_of(project) or ():
        if is_control(entry.path):
            yield from [entry.path] if entry.is_symlink() else _links_below(entry.path)


def _links_below(folder: str) -> Iterator[str]:
    return filter(os.path.islink, _names_below(folder))


def _names_below(folder: str) -> Iterator[str]:
    """But for what a repository holds: a clone shares it with where it is from, and it runs nothing."""
    for here, folders, files in os.walk(folder):
        if os.path.basename(here) == ".git" and "objects" in folders:
            folders.remove("objects")
        yield from (os.path.join(here, name) for name in (*folders, *files))


def _is_writable(path: str, sights: Mapping[str, Sight]) -> bool:
    """Whether a path is in a writable folder, by the nearest opened one."""
    for here in (path, *above(path)):
        if here in sights:
            return sights[here] is Sight.WRITE
    return False


def is_control(path: str) -> bool:
    return is_control_file(path, split(fold(path)), str)


def control_inodes(project: str) -> Iterator[tuple[int, int]]:
    """Device and inode of the control files in a project's own folder that have several names."""
    entries = entries_of(project) or ()
    tops = (entry.path for entry in entries if is_control(entry.path))
    names = (name for top in tops for name in (top, *_names_below(top)))
    yield from with_second_names(name for name in names if not os.path.isdir(name))


def entries_of(folder: str) -> list[os.DirEntry[str]] | None:
    """What a folder holds; ``None`` when its names, or what they are, can't be asked."""
    try:
        os.stat(os.path.join(folder, "."))  # who can list it may still not go into it
        with os.scandir(folder) as found:
            return list(found)
    except FileNotFoundError:
        return []
    except OSError:
        return None


def with_second_names(paths: Iterable[str]) -> Iterator[tuple[int, int]]:
    for path in paths:
        for file in _files(path):
            try:
                found = os.lstat(file)
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
                yield found.st_dev, found.st_ino


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
        return
    for here, _, names in os.walk(path):
        yield from (os.path.join(here, name) for name in names)
