"""The file of a decision trail: appended to line by line, rotated by size, read in order."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

__all__ = ["TRAIL_NAME", "TrailFile", "read_trail"]

TRAIL_NAME: Final = ".decisions.jsonl"  # how the name of a trail ends
_WHERE: Final = f"<session id>{TRAIL_NAME} in SessionPlan.host_dir"
_FLAGS: Final = (
    os.O_RDWR  # its last byte is read; and a named pipe in its place doesn't hold up the opening
    | os.O_CREAT
    | os.O_APPEND
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
)


class TrailFile:
    """Lines at the end of ``path``, for this user alone. Every method but ``close`` raises OSError.

    What is removed or moved away meanwhile is begun anew. A line is never split over two files,
    and one that another process or a full disk left torn doesn't spoil the next.
    """

    def __init__(self, path: Path, *, max_bytes: int, keep: int) -> None:
        self._path, self._max_bytes, self._keep = path, max_bytes, keep
        self._handle: int | None = None
        self._torn = False

    def write(self, line: bytes) -> None:
        handle = self._current()
        size = os.fstat(handle).st_size
        if size and size + len(line) > self._max_bytes:
            self._rotate()
            handle = self._current()
        data = b"\n" + line if self._torn else line
        done = 0
        try:
            while done < len(data):
                done += _written(handle, data[done:])
        finally:
            if done:
                self._torn = data[done - 1 : done] != b"\n"

    def close(self) -> None:
        if self._handle is not None:
            with contextlib.suppress(OSError):
                os.close(self._handle)
        self._handle = None

    def _current(self) -> int:
        """The open file, as long as it is the one at ``path``."""
        if self._handle is not None and not _is_at(self._path, self._handle):
            self.close()
        if self._handle is None:
            self._handle = _opened(self._path)
            self._torn = _ends_torn(self._handle)
        return self._handle

    def _rotate(self) -> None:
        """Move the files on by one; where that can't be, the current one grows rather than ends."""
        self.close()  # or Windows would not rename it
        with contextlib.suppress(OSError):
            for number in range(self._keep - 1, 0, -1):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(_numbered(self._path, number), _numbered(self._path, number + 1))
            os.replace(self._path, _numbered(self._path, 1))


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _written(handle: int, data: bytes) -> int:
    done = os.write(handle, data)
    if not done:
        raise OSError(errno.ENOSPC, "nothing could be written")
    return done


def _opened(path: Path) -> int:
    handle = os.open(path, _FLAGS, 0o600)
    try:
        if not _is_own_file(os.fstat(handle)):
            raise PermissionError(errno.EPERM, "it is no plain file of this user", str(path))
        if os.name != "nt":
            os.fchmod(handle, 0o600)
    except OSError:
        os.close(handle)
        raise
    return handle


def _is_own_file(found: os.stat_result) -> bool:
    return stat.S_ISREG(found.st_mode) and (os.name == "nt" or found.st_uid == os.getuid())


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _ends_torn(handle: int) -> bool:
    if not os.fstat(handle).st_size:
        return False
    os.lseek(handle, -1, os.SEEK_END)
    return os.read(handle, 1) != b"\n"


def read_trail(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """The lines of a trail from the oldest on, those of rotated files included; torn ones are skipped.

    ``path`` is that of the newest file, relative to the process's folder. The trail of a session that has
    judged nothing yet (the folder is there, and the name is a trail's) has no lines. It may grow
    meanwhile: what is written later may be missing. Raises FileNotFoundError for another file that isn't
    there, OSError for what can't be read.
    """
    place = Path(path)
    with contextlib.ExitStack() as opened:
        files = [opened.enter_context(file) for file in _newest_first(place)]
        if not files and not (place.name.endswith(TRAIL_NAME) and place.parent.is_dir()):
            raise FileNotFoundError(f"there is no trail {path}: it is {_WHERE}")
        for file in reversed(files):
            for line in file:
                yield from _parsed(line)


def _newest_first(path: Path) -> Iterator[BinaryIO]:
    """Open files. They may move on by one meanwhile: so none is missed, and none comes twice."""
    seen: set[tuple[int, int]] = set()
    for name in (path, *(_numbered(path, number) for number in _numbers(path))):
        try:
            file = open(name, "rb")  # noqa: SIM115 - whoever asks closes it
        except FileNotFoundError:
            continue
        found = os.fstat(file.fileno())
        if (found.st_dev, found.st_ino) in seen:
            file.close()
            continue
        seen.add((found.st_dev, found.st_ino))
        yield file


def _numbers(path: Path) -> list[int]:
    """The numbers of its rotated files, and one more."""
    ends = (name.removeprefix(f"{path.name}.") for name in _names(path.parent))
    found = sorted(int(end) for end in ends if end.isascii() and end.isdigit() and len(end) < 10)
    return [*found, found[-1] + 1] if found else [1]


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _parsed(line: bytes) -> Iterator[dict[str, Any]]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return
    if isinstance(found, dict):
        yield found
