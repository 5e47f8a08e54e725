"""What a session gets of the runner's configuration, and what comes back. Standard library only."""

from __future__ import annotations

import contextlib
import os
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

_MOST: Final = 256 * 1024 * 1024  # bytes of a file that is brought back
_DEEPEST: Final = 50  # folders in each other; the CLI's own are three
_NOFOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NOFOLLOW
_FILE: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _NOFOLLOW


def copy_in(source: str, target: str) -> None:
    """A file, or a folder with all that is below; links, too: it is the runner who made them."""
    if not os.path.exists(source):
        return
    import shutil

    if os.path.isdir(source):
        shutil.copytree(source, target, ignore=_not_for_copying, dirs_exist_ok=True)
    elif os.path.isfile(source):
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        shutil.copyfile(source, target)
        os.chmod(target, 0o600)
        _date(target, os.stat(source))


def _not_for_copying(folder: str, names: list[str]) -> list[str]:
    """What is neither file nor folder (a link to nowhere, a FIFO), and links to what they lie in."""
    return [name for name in names if not _can_be_copied(folder, os.path.join(folder, name))]


def _can_be_copied(folder: str, path: str) -> bool:
    if os.path.isdir(path):
        return not f"{os.path.realpath(folder)}/".startswith(f"{os.path.realpath(path)}/")
    return os.path.isfile(path)


def bring_back(noted: dict[str, Any]) -> list[str]:
    """The transcript and its results go where an unconfined CLI keeps them.

    What is inside may have made links: not one is followed, on the way or at its end. Returns, in
    words, what could not be brought.
    """
    failed: list[str] = []
    for name in noted["copied_out"]:
        *folders, last = name.split("/")
        target = os.path.join(noted["runners_config"], name)
        with contextlib.suppress(OSError), _opened(noted["config_dir"], folders) as here:
            failed += _copy_out(here, last, target)
    return failed


@contextlib.contextmanager
def _opened(top: str, folders: list[str]) -> Iterator[int]:
    """A folder below ``top``. Raises OSError when it isn't there: then there is nothing to bring."""
    with contextlib.ExitStack() as opened:
        here = os.open(top, _FOLDER)
        opened.callback(os.close, here)
        for folder in folders:
            here = os.open(folder, _FOLDER, dir_fd=here)
            opened.callback(os.close, here)
        yield here


def _copy_out(folder: int, name: str, target: str, deep: int = 0) -> Iterator[str]:
    """``name`` in an open folder, with all that is below. Yields what fails."""
    if deep > _DEEPEST:
        yield f"{target} (too deep)"
        return
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            yield from _copy_folder(folder, name, target, deep + 1)
        elif stat.S_ISREG(status.st_mode):
            _copy_file(folder, name, target, status)
    except FileNotFoundError as error:
        if error.filename != name:  # else it is not there: nothing is lost
            yield f"{target} ({error.strerror})"
    except OSError as error:
        yield f"{target} ({error.strerror or error})"


def _copy_folder(folder: int, name: str, target: str, deep: int) -> Iterator[str]:
    here = os.open(name, _FOLDER, dir_fd=folder)
    try:
        for each in os.listdir(here):
            yield from _copy_out(here, each, os.path.join(target, each), deep)
    finally:
        os.close(here)


def _copy_file(folder: int, name: str, target: str, status: os.stat_result) -> None:
    if _is_as_new(target, status):
        return
    import shutil

    if status.st_size > _MOST:
        raise OSError(f"over {_MOST >> 20} MiB")
    os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
    partial = f"{target}.{os.getpid()}.part"
    handle = os.open(name, _FILE, dir_fd=folder)
    try:
        with os.fdopen(handle, "rb") as read, open(partial, "wb") as written:
            os.chmod(partial, 0o600)
            shutil.copyfileobj(read, written)
        _date(partial, status)
        os.replace(partial, target)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def _is_as_new(path: str, status: os.stat_result) -> bool:
    """Whether a file is no older: a session beside this one may have brought its own back."""
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(path)
        return stat.S_ISREG(found.st_mode) and found.st_mtime_ns >= status.st_mtime_ns
    return False


def _date(path: str, status: os.stat_result) -> None:
    """Give a copy the time of its original, which is in no future."""
    when = min(status.st_mtime_ns, time.time_ns())
    os.utime(path, ns=(when, when))
