"""What would steer a later session, and how it is taken away. Standard library only."""

from __future__ import annotations

import contextlib
import os
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Final

if TYPE_CHECKING or __package__:
    from agent_kit.confine._walking import (
        Here,
        change_mode,
        opened,
        printable,
        remove_tree,
        walk,
        walk_in,
    )
else:  # it runs alone: the package is not there, its neighbours are
    from _walking import Here, change_mode, opened, printable, remove_tree, walk, walk_in

__all__ = ["known_files", "remove_new_files", "said"]

Identity = tuple[object, ...]


def said(text: str) -> None:
    """Tell whoever started the session, if anybody still listens."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"agent-kit: {printable(text)}\n")


_UNSEEN: Final[Identity] = ()  # it could not be looked at


def known_files(description: Mapping[str, Any]) -> list[tuple[str, Identity]]:
    """What is in the writable folders already: each path, and what tells that it is still the same."""
    found: list[tuple[str, Identity]] = []
    for top, here, name in _steering(description):
        try:
            found.append((here.path(top, name), _identity(here.handle, name)))
        except FileNotFoundError:
            continue
        except OSError:  # in another user's folder, say
            found.append((here.path(top, name), _UNSEEN))
    return found


def _steering(description: Mapping[str, Any]) -> Iterator[tuple[str, Here, str]]:
    names, led = set(description["control_names"]), set(description.get("led", ()))
    for top in description["writable"]:
        for here in walk(top):
            found = _names_in(here, names)
            if led:
                found += [each for each in _left(here, found) if here.path(top, each) in led]
            for name in found:
                yield top, here, name


def _left(here: Here, found: list[str]) -> list[str]:
    return [name for name in (*here.folders, *here.files) if name not in found]


def _names_in(here: Here, names: set[str]) -> list[str]:
    """What in a folder has one of these names, which are folded, or makes it a bare repository."""
    found = [name for name in (*here.folders, *here.files) if name.casefold() in names]
    here.folders[:] = [name for name in here.folders if name.casefold() not in names]
    left = [*here.folders, *here.files]
    folded = {*map(str.casefold, left)}
    if any(parts <= folded for parts in _BARE):
        found += [name for name in left if name.casefold() == "head"]
    return found


# gitrepository-layout(5): without its HEAD git takes neither for a repository.
_BARE: Final = (frozenset({"head", "objects", "refs"}), frozenset({"head", "commondir"}))


def _identity(folder: int, name: str) -> Identity:
    """What tells that a name still leads to the same thing: a link's target, a file's inode."""
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    target = os.readlink(name, dir_fd=folder) if stat.S_ISLNK(found.st_mode) else None
    return found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode), target


def remove_new_files(noted: Mapping[str, Any]) -> None:
    """What was not there at the start is moved to the host's part of the run folder, and listed.

    It is not deleted: a person may have made it meanwhile. What was there, and has another name now,
    stays. What can't be moved is removed all the same, and what can't be looked at is told: it may
    steer the next session.
    """
    known = {path: tuple(identity) for path, identity in noted["known"]}
    before = frozenset(known.values())
    with contextlib.closing(_Kept(noted["removed"])) as kept:
        for top, here, name in _steering(noted):
            path = here.path(top, name)
            try:
                found = _identity(here.handle, name)
                if found not in before or known.get(path, found) != found:
                    here.allow_changes()
                    kept.take(here, name, here.told(top, name), (found, before))
            except FileNotFoundError:
                continue
            except OSError as error:
                if known.get(path) != _UNSEEN:
                    told = here.told(top, name)
                    said(f"not looked at after a session ({error.strerror}), look at it: {told}")


_Judged = tuple[Identity, frozenset[Identity]]
"""What was found at a name, and all that was there before."""
_NONE: Final = -1


def _moved(folder: int, name: str, target: int, new: str, judged: _Judged) -> bool:
    """Rename; whether it was right to. Raises OSError when it can't be done.

    Another session may meanwhile have put there what was somewhere before: that is put back.
    """
    found, before = judged
    try:
        os.rename(name, new, src_dir_fd=folder, dst_dir_fd=target)
    except FileNotFoundError:
        return False
    moved = _identity(target, new)
    if moved == found or moved not in before:
        return True
    os.rename(new, name, src_dir_fd=target, dst_dir_fd=folder)
    return False


class _Kept:
    """Where removed files are kept; made with the first one. Each has a number, and its name."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._handle = _NONE
        self._number = 0
        self._budget = _MOST

    def close(self) -> None:
        if self._handle != _NONE:
            os.close(self._handle)

    def take(self, here: Here, name: str, told: str, judged: _Judged) -> None:
        """Take away what has a name in an open folder, and list it as ``told``."""
        with contextlib.suppress(OSError):  # renaming a folder needs the right to change its ".."
            os.close(_changeable(here.handle, name))
        folder, lacks = self._opened(), ""
        kept = f"{self._number}-{name}"
        try:
            if not _moved(here.handle, name, folder, kept, judged):
                return
        except OSError:  # another file system, a full one, …
            lacks = self._copy_and_remove(here.handle, name, kept, judged)
        self._list(f"{self._number}: {told}{lacks}")
        self._number += 1
        if lacks:
            said(f"removed after a session: {told}{lacks}")

    def _opened(self) -> int:
        """The folder; where there can be none, nothing that is open: whatever is tried there fails."""
        with contextlib.suppress(OSError):
            if self._handle == _NONE:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(self._folder, mode=0o700)
                self._handle = opened(None, self._folder)[0]
                numbers = (each.partition("-")[0] for each in os.listdir(self._handle))
                self._number = 1 + max(map(int, filter(str.isdecimal, numbers)), default=-1)
        return self._handle

    def _list(self, line: str) -> None:
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open("list.txt", flags, 0o600, dir_fd=self._opened())
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except OSError as error:
            said(f"removed after a session, and not listed ({error.strerror}): {line}")

    def _copy_and_remove(self, here: int, name: str, kept: str, judged: _Judged) -> str:
        """Away from its name first; then what can be kept is copied. Returns what is to be said."""
        aside = f".agent-kit-{os.urandom(8).hex()}"
        try:
            if not _moved(here, name, here, aside, judged):
                return " (it had gone)"
        except OSError:
            aside = name
        whole = False
        with contextlib.suppress(OSError):
            whole = self._copy(here, aside, f"/proc/self/fd/{self._opened()}/{kept}")
        try:
            remove_tree(here, aside)
        except OSError as error:
            return f" (what is left of it could not be removed: {error.strerror}, {aside})"
        return "" if whole else " (not all of it could be kept)"

    def _copy(self, above: int, name: str, target: str) -> bool:
        """Copy what has a name in an open folder, with what is below; whether that was all of it."""
        if not stat.S_ISDIR(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode):
            return self._copy_file(above, name, target)
        whole = True
        for here in walk_in(above, name):
            folder = os.path.join(target, *here.below()[:_DEEPEST])
            try:
                os.mkdir(folder, mode=0o700)
            except OSError:
                whole = False
                here.folders.clear()
                continue
            for each in here.files:
                whole &= self._copy_file(here.handle, each, os.path.join(folder, each))
        return whole

    def _copy_file(self, above: int, name: str, target: str) -> bool:
        """A FIFO, a socket or a device is nothing to keep."""
        import shutil

        try:
            found = os.stat(name, dir_fd=above, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                os.symlink(os.readlink(name, dir_fd=above), target)
                return True
            self._budget -= found.st_size
            if not stat.S_ISREG(found.st_mode) or self._budget < 0:
                return False
            change_mode(above, name, give=0o400)
            handle = os.open(name, _FILE, dir_fd=above)
            with os.fdopen(handle, "rb") as read, open(target, "xb") as written:
                os.chmod(target, 0o600)
                shutil.copyfileobj(read, written)
        except OSError:
            return False
        return True


_MOST: Final = 256 * 1024 * 1024  # bytes that one session's end copies to another file system
_DEEPEST: Final = 100  # folders in each other; further down the same name is there already: no copy
_FILE: Final = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


def _changeable(above: int, name: str) -> int:
    """A folder in an open one, opened, that this user may list and change."""
    here = Here(None, name, *opened(above, name))
    here.allow_changes()
    return here.handle
