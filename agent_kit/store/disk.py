"""One folder on a disk that other programs change too: opened, read and written by handle.

Every step below the root is relative to an open folder and follows no link, so a folder that is
swapped for a link between two steps can't lead a read or a write out of the root. A file is
written beside its place, synced, and then put there in one step: after a crash the old file or
the new one is there, never a part of one. POSIX only.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agent_kit.store.errors import StoreCode, StoreError

__all__ = [
    "FileBytes",
    "is_staged",
    "make_folder",
    "open_folder",
    "publish_new",
    "publish_over",
    "read_file",
    "remove_file",
    "settle",
    "stage",
    "sync_folder",
]

_STAGED = re.compile(r"\.tmp-[0-9a-f]{16}")

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a FIFO must not block
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LINK_ERRORS = (errno.ELOOP, errno.EMLINK, errno.ENOTDIR)
_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileBytes:
    """What a regular file held when it was read. ``changed`` is in seconds since the epoch."""

    data: bytes
    mode: int
    changed: float


@contextmanager
def open_folder(path: str | Path, *, inside: int | None = None) -> Iterator[int]:
    """A handle for a folder. A link is followed only when the folder is a root (no ``inside``).

    Raises ``FileNotFoundError`` when it isn't there, :class:`StoreError` when it is a link.
    """
    nofollow = 0 if inside is None else os.O_NOFOLLOW
    try:
        handle = os.open(path, _FOLDER | nofollow, dir_fd=inside)
    except OSError as error:
        if inside is not None and error.errno in _LINK_ERRORS:
            raise _unreadable("it is a link or no folder") from None
        raise
    try:
        yield handle
    finally:
        os.close(handle)


def read_file(name: str, *, inside: int, limit: int) -> FileBytes:
    """The bytes of a regular file in an open folder.

    Raises ``FileNotFoundError``, or :class:`StoreError` for a link, a folder, a special file and
    a file of more than ``limit`` bytes.
    """
    try:
        handle = os.open(name, _READ, dir_fd=inside)
    except OSError as error:
        if error.errno in (*_LINK_ERRORS, errno.ENXIO):
            raise _unreadable("it is a link or a special file") from None
        raise
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise _unreadable("it is no regular file")
        if status.st_size > limit:
            raise _unreadable(f"it has more than {limit} bytes")
        with open(handle, "rb", closefd=False) as file:
            data = file.read(limit)
    finally:
        os.close(handle)
    return FileBytes(data=data, mode=stat.S_IMODE(status.st_mode), changed=status.st_mtime)


def make_folder(name: str, *, inside: int, mode: int) -> bool:
    """Make a folder in an open folder; whether it was made (``False``: it was there)."""
    try:
        os.mkdir(name, mode, dir_fd=inside)
    except FileExistsError:
        return False
    return True


def stage(data: bytes, *, inside: int, mode: int, exact_mode: bool = False) -> str:
    """Write and sync a file under a name of its own in an open folder; that name.

    ``mode`` is narrowed by the process's umask unless ``exact_mode``. Nothing is left when it
    fails.
    """
    name = f".tmp-{secrets.token_hex(8)}"
    handle = os.open(name, _CREATE, mode, dir_fd=inside)
    try:
        with open(handle, "wb") as file:
            if exact_mode:
                os.fchmod(handle, mode)
            file.write(data)
            file.flush()
            os.fsync(handle)
    except BaseException:
        remove_file(name, inside=inside)
        raise
    return name


def is_staged(name: str) -> bool:
    """Whether an unfinished file may have this name. None is a page, and the next writer removes it."""
    return _STAGED.fullmatch(name) is not None


def publish_new(temp: str, name: str, *, inside: int) -> None:
    """Give a staged file its name, only when the name is free.

    Raises ``FileExistsError`` otherwise, with the staged file still there. On a disk without hard
    links the name is looked up first: there another program may come between.
    """
    try:
        os.link(temp, name, src_dir_fd=inside, dst_dir_fd=inside, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        _move_when_free(temp, name, inside=inside)
    else:
        os.unlink(temp, dir_fd=inside)


def _move_when_free(temp: str, name: str, *, inside: int) -> None:
    try:
        os.stat(name, dir_fd=inside, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(temp, name, src_dir_fd=inside, dst_dir_fd=inside)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def publish_over(temp: str, name: str, *, inside: int) -> None:
    """Put a staged file in the place of another, in one step."""
    os.replace(temp, name, src_dir_fd=inside, dst_dir_fd=inside)


def replace_file(name: str, data: bytes, *, inside: int, mode: int) -> None:
    """Write a file whole and synced, in the place of what has its name. Nothing is half done."""
    temp = stage(data, inside=inside, mode=mode)
    try:
        publish_over(temp, name, inside=inside)
    except BaseException:
        remove_file(temp, inside=inside)
        raise
    sync_folder(inside)


def remove_empty(folder: str, *, inside: int) -> None:
    """Remove a folder, unless something is in it."""
    with suppress(OSError):
        os.rmdir(folder, dir_fd=inside)


def remove_file(name: str, *, inside: int) -> None:
    """Remove a file if it is there."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=inside)


def sync_folder(handle: int) -> None:
    """Make the names in an open folder last. File systems that can't are taken as they are."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise


def settle(handle: int) -> None:
    """Sync an open folder after a change was made in it.

    Raises :class:`StoreError` (``UNFINISHED``) when that fails: the change is there.
    """
    try:
        sync_folder(handle)
    except OSError as error:
        raise StoreError(
            "The change was made, but the disk didn't confirm that it will last: read it again.",
            code=StoreCode.UNFINISHED,
        ) from error


def _unreadable(reason: str) -> StoreError:
    return StoreError(f"It can't be read: {reason}.", code=StoreCode.UNREADABLE)
