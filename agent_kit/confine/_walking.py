"""Folders walked through held descriptors. Standard library only: the launcher loads this alone.

What is walked was written by others, who may still change it. A descriptor stays what it was when a
name is swapped for a link, and needs no path: none is too long.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Final

    _Left = Callable[[int, str], None]
    """What is done with a folder, by name in an open one, when all below it was walked."""

__all__ = ["Here", "change_mode", "opened", "printable", "remove_tree", "walk", "walk_in"]

_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW
_ITSELF: Final = getattr(os, "O_PATH", 0) | _NOFOLLOW
_HELD: Final = 64  # descriptors: folders are nested deeper than a process may open files
_SAID: Final = 16  # folders at each end of a path that is told
_CLOSED: Final = -1


class Here:
    """One folder of a walk, open while it is handed out. ``folders`` may be cut: those are entered."""

    __slots__ = ("_identity", "_mode", "above", "files", "folders", "handle", "name")

    def __init__(self, above: Here | None, name: str, handle: int, mode: int | None) -> None:
        self.above, self.name, self.handle, self._mode = above, name, handle, mode
        self._identity = _identity(handle)
        self.folders: list[str] = []
        self.files: list[str] = []
        with contextlib.suppress(OSError), os.scandir(handle) as entries:
            for entry in entries:
                folder = entry.is_dir(follow_symlinks=False)
                (self.folders if folder else self.files).append(entry.name)

    def allow_changes(self) -> None:
        """Let this user change what lies here; what is inside may have taken that away."""
        mode = stat.S_IMODE(os.fstat(self.handle).st_mode)
        if mode & 0o700 != 0o700:
            with contextlib.suppress(OSError):  # another user's
                os.fchmod(self.handle, mode | 0o700)
                self._mode = mode if self._mode is None else self._mode

    def shut_again(self) -> None:
        """Give it the mode back that it had."""
        if self._mode is not None:
            with contextlib.suppress(OSError):
                os.fchmod(self.handle, self._mode)

    def is_opened(self, handle: int) -> bool:
        """Take a new descriptor, if it is the same folder's; else it is closed."""
        if _identity(handle) == self._identity:
            self.handle = handle
            return True
        os.close(handle)
        return False

    def below(self) -> list[str]:
        """The names that lead here from the top of the walk, which is not among them."""
        found, each = [], self
        while each.above is not None:
            found.append(each.name)
            each = each.above
        return found[::-1]

    def path(self, top: str, name: str) -> str:
        """The whole path of ``name`` in here. It may be longer than a system takes."""
        return os.path.join(top, *self.below(), name)

    def told(self, top: str, name: str) -> str:
        """The same for a person to read: of a very long one the two ends."""
        names = [*self.below(), name]
        if len(names) > 2 * _SAID:
            names = [*names[:_SAID], "…", *names[-_SAID:]]
        return printable(os.path.join(top, *names))


def printable(text: str) -> str:
    """A name or path as one line that any file and terminal takes."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def _identity(handle: int) -> tuple[int, int]:
    found = os.fstat(handle)
    return found.st_dev, found.st_ino


def walk(top: str, *, keep_open: bool = False) -> Iterator[Here]:
    """The folder at ``top``, an absolute path through no link, and those below it, top-down.

    One that this user may not list is made one first, and gets its mode back when it is left, unless
    all are to be kept open. What can't be opened is passed over.
    """
    try:
        handle, mode = _opened_top(top)
    except OSError:
        return
    yield from _walk(Here(None, top, handle, mode), keep_open, None)


def _walk(here: Here, keep_open: bool, left: _Left | None) -> Iterator[Here]:
    levels = [here]
    try:
        yield here
        while levels:
            here = levels[-1]
            if not here.folders:
                _leave(levels, keep_open, left)
            elif (below := _entered(here, here.folders.pop())) is not None:
                levels.append(below)
                if len(levels) > _HELD + 1:  # the top stays open
                    _close(levels[-1 - _HELD])
                yield below
    finally:
        for each in levels:
            _close(each)


def _entered(here: Here, name: str) -> Here | None:
    try:
        handle, mode = opened(here.handle, name)
    except OSError:
        return None
    return Here(here, name, handle, mode)


def _leave(levels: list[Here], keep_open: bool, left: _Left | None) -> None:
    """Out of the last one, into the one above it, which may have to be opened anew."""
    last = levels.pop()
    if levels and levels[-1].handle == _CLOSED:
        _open_anew(levels, last.handle)
    if not keep_open:
        last.shut_again()
    _close(last)
    if left is not None and levels and levels[-1] is last.above:
        with contextlib.suppress(OSError):
            left(levels[-1].handle, last.name)


def _open_anew(levels: list[Here], below: int) -> None:
    """The last level through the one below it, else by the names; what can't be is left out."""
    with contextlib.suppress(OSError):
        if levels[-1].is_opened(os.open("..", _FOLDER, dir_fd=below)):
            return
    for above, each in itertools.pairwise(levels):  # something was moved meanwhile
        if each.handle == _CLOSED:
            with contextlib.suppress(OSError):
                if above.handle == _CLOSED or not each.is_opened(
                    opened(above.handle, each.name)[0]
                ):
                    break
                if above is not levels[0]:
                    _close(above)
    while levels[-1].handle == _CLOSED:
        levels.pop()


def _close(here: Here) -> None:
    if here.handle != _CLOSED:
        os.close(here.handle)
        here.handle = _CLOSED


def _opened_top(path: str) -> tuple[int, int | None]:
    """A folder by its path. Raises FileNotFoundError when that leads through a link."""
    itself = os.open(path, _ITSELF)
    try:
        if os.readlink(f"/proc/self/fd/{itself}") != path:
            raise FileNotFoundError(path)
        try:
            return opened(itself, ".")
        except PermissionError:
            return _opened_up(itself)
    finally:
        os.close(itself)


def opened(above: int | None, name: str) -> tuple[int, int | None]:
    """A folder in an open one, not a link to one, and the mode that it had if that was changed.

    One that this user may not list is made one that may: what is inside may have taken that away.
    """
    try:
        handle = os.open(name, _FOLDER, dir_fd=above)
    except PermissionError:
        itself = os.open(name, _ITSELF, dir_fd=above)
        try:
            return _opened_up(itself)
        finally:
            os.close(itself)
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    if mode & 0o500 != 0o500:
        with contextlib.suppress(OSError):  # another user's
            os.fchmod(handle, mode | 0o700)
            return handle, mode
    return handle, None


def _opened_up(itself: int) -> tuple[int, int]:
    """The same for one that can't be opened as it is."""
    found = os.fstat(itself).st_mode
    if not stat.S_ISDIR(found):
        raise NotADirectoryError
    mode, name = stat.S_IMODE(found), f"/proc/self/fd/{itself}"
    os.chmod(name, mode | 0o700)
    return os.open(f"{name}/.", _FOLDER), mode


def change_mode(above: int, name: str, *, take: int = 0, give: int = 0) -> None:
    """Change the mode of a file in an open folder; a link, and what is no file, stays as it is."""
    itself = os.open(name, _ITSELF, dir_fd=above)
    try:
        mode = os.fstat(itself).st_mode
        if stat.S_ISREG(mode):
            os.chmod(f"/proc/self/fd/{itself}", stat.S_IMODE(mode) & ~take | give)
    finally:
        os.close(itself)


def walk_in(above: int, name: str, left: _Left | None = None) -> Iterator[Here]:
    """The same for a folder in an open one; all are kept open. Raises OSError when it is none.

    ``left`` is called for each folder below it when that is left.
    """
    yield from _walk(Here(None, name, *opened(above, name)), True, left)


def remove_tree(above: int, name: str) -> None:
    """Remove what has a name in an open folder, with all that is below. Raises OSError if it stays."""
    with contextlib.suppress(OSError):
        for here in walk_in(above, name, _rmdir):
            here.allow_changes()
            for each in here.files:
                with contextlib.suppress(OSError):
                    os.unlink(each, dir_fd=here.handle)
        os.rmdir(name, dir_fd=above)
        return
    try:
        os.unlink(name, dir_fd=above)
    except FileNotFoundError:
        return


def _rmdir(above: int, name: str) -> None:
    os.rmdir(name, dir_fd=above)
