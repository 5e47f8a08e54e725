"""Which file a canonical path really is: links resolved, without opening anything.

Two ways, one answer. On Linux the kernel resolves: an ``O_PATH`` handle says through
``/proc/self/fd`` where it stands, and when that is the very text that was asked for, no link is in
it. Everything else takes :func:`walk`, one component at a time, which also sees a link that leads
through ``/proc`` (where this process and the CLI see different things).
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import NamedTuple

from agent_kit.scope.flavour import WINDOWS

__all__ = ["SPECIAL_DIRS", "Located", "Unresolvable", "is_special_dir", "locate", "walk"]

SPECIAL_DIRS = ("/proc", "/sys", "/dev")  # pseudo-files: environments, memory, devices
_SPECIAL_NAMES = frozenset(path[1:] for path in SPECIAL_DIRS)
_MAX_LINKS = 40  # as Linux counts them (path_resolution(7))


class Unresolvable(ValueError):
    """A path that can't be resolved: a loop, a name too long, a folder that may not be looked at."""


class Located(NamedTuple):
    """A resolved path. ``mode`` is 0 for what doesn't exist; the rest is from ``lstat``.

    ``size`` is in bytes.
    """

    path: str
    mode: int = 0
    links: int = 0  # hard links
    device: int = 0
    inode: int = 0
    size: int = 0


def is_special_dir(path: str) -> bool:
    """Whether a canonical POSIX path is in ``/proc``, ``/sys`` or ``/dev``, in any case."""
    return path[1:].partition("/")[0].lower() in _SPECIAL_NAMES


def walk(path: str) -> Located:
    """Resolve an absolute path component by component. ``..`` climbs after links are followed.

    A missing tail stays as it is written; a link whose target is missing counts as the target.
    A path that enters a special folder ends there: the result is in it. Raises Unresolvable.
    """
    todo = path.split("/")[::-1]
    here, links = "", 0
    found: os.stat_result | None = None
    while todo:
        name = todo.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here, found = here.rpartition("/")[0], None
            continue
        first, here = not here, f"{here}/{name}"
        if first and is_special_dir(here):
            return Located("/".join([here, *reversed(todo)]))
        found = _lstat(here)
        if found is not None and stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MAX_LINKS:
                raise Unresolvable("too many links")
            target = _readlink(here)
            here = "" if target[:1] == "/" else here.rpartition("/")[0]
            todo.extend(target.split("/")[::-1])
            found = None
    return _located(here or "/", found)


def _located(path: str, found: os.stat_result | None) -> Located:
    if found is None and (found := _lstat(path)) is None:
        return Located(path)
    return _as_found(path, found)


def _as_found(path: str, found: os.stat_result) -> Located:
    return Located(path, found.st_mode, found.st_nlink, found.st_dev, found.st_ino, found.st_size)


_ABSENT = (errno.ENOENT, errno.ENOTDIR)


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError as error:
        if error.errno in _ABSENT:
            return None
        raise Unresolvable(str(error.strerror)) from error
    except ValueError as error:  # NUL, or a surrogate that the file system can't spell
        raise Unresolvable("it holds a character that no name can hold") from error


def _readlink(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError as error:  # replaced or closed since the look
        raise Unresolvable(str(error.strerror)) from error


def _handle_flags() -> int:
    if not sys.platform.startswith("linux") or not os.path.exists("/proc/self/fd"):
        return 0
    return os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


_FLAGS = _handle_flags()


def _locate_by_handle(path: str) -> Located:
    """As :func:`walk`, with one handle where no link is in the way."""
    try:
        handle = os.open(path, _FLAGS)
    except OSError as error:
        if error.errno in _ABSENT and _ancestor_is_plain(path):
            return Located(path)
        return walk(path)
    except ValueError as error:
        raise Unresolvable("it holds a character that no name can hold") from error
    try:
        where = os.readlink(f"/proc/self/fd/{handle}")
        found = os.fstat(handle)
    except OSError as error:
        raise Unresolvable(str(error.strerror)) from error
    finally:
        os.close(handle)
    if where != path or found.st_mode & 0o170000 == stat.S_IFLNK:
        return walk(path)
    return _as_found(path, found)


def _ancestor_is_plain(path: str) -> bool:
    """Whether the deepest existing folder above a missing path stands where its text says."""
    while path := path.rpartition("/")[0]:
        try:
            handle = os.open(path, _FLAGS | os.O_DIRECTORY)
        except OSError as error:
            if error.errno == errno.ENOENT:
                continue
            return False
        try:
            return os.readlink(f"/proc/self/fd/{handle}") == path
        except OSError:  # reached through links, and its own path is too long to be told
            return False
        finally:
            os.close(handle)
    return True


def _locate_on_windows(path: str) -> Located:
    """As :func:`walk`, by the system's own resolution. Short names come back long."""
    native = WINDOWS.display(path)
    try:
        real = WINDOWS.absolute(os.path.realpath(native), path)
    except (OSError, ValueError) as error:
        raise Unresolvable(str(error)) from error
    return _located(real, _lstat(WINDOWS.display(real)))


locate = _locate_on_windows if os.name == "nt" else _locate_by_handle if _FLAGS else walk
