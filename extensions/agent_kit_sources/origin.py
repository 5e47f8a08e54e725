"""The file that is to become an original: found, judged and read so that nothing can slip in.

It is judged by the session's scope as Read and Write would be, opened folder by folder without
following a link, and judged again when its bytes are there: what was read is what was judged.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.store import StoreCode, StoreError, shown
from agent_kit.store.disk import open_folder

__all__ = ["MAX_ORIGINAL", "OriginReader", "check_plain", "check_still", "read_plain"]

MAX_ORIGINAL = 50 * 1024 * 1024
"""Most bytes of a file that is saved."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginReader:
    """Reads files of the session's writable folders and of its run folder.

    ``project_dir``, ``run_dir`` and ``home`` are absolute. ``closed`` says of an absolute path that
    something else than the scope closes it.
    """

    scope: Callable[[], FileScope]
    project_dir: Path
    run_dir: Path
    home: Path
    closed: Callable[[Path], bool] = lambda _path: False

    def locate(self, written: str) -> Path:
        """The absolute path that a text names; relative to the project, ``~`` is the home."""
        text = written.strip()
        if not text or "\0" in text:
            raise StoreError("Name the file to save.", code=StoreCode.BAD_NAME)
        if text == "~" or text.startswith("~/"):
            text = f"{self.home}{text[1:]}"
        return Path(os.path.abspath(self.project_dir / text))

    def label(self, path: Path) -> str:
        """The path as the model knows it: relative inside the project."""
        inside = path.is_relative_to(self.project_dir)
        return str(path.relative_to(self.project_dir)) if inside else str(path)

    def read(self, path: Path) -> bytes:
        """The bytes of the file at an absolute path.

        Raises :class:`StoreError` for a file that Read would refuse, one in another folder, a link,
        a special file, one with a second name, one of more than ``MAX_ORIGINAL`` bytes and one that
        changes meanwhile.
        """
        self._judge(path)
        real = Path(os.path.realpath(path.parent)) / path.name
        self._judge(real)
        label = f'"{shown(self.label(path))}"'
        data, status = read_plain(real, label)
        self._judge(real)
        check_still(real, status, label)
        return data

    def _judge(self, path: Path) -> None:
        scope, call = self.scope(), {"file_path": str(path)}
        if (reason := check_file_scope(scope, "Read", call)) is not None:
            raise StoreError(f"{reason} Nothing was saved.", code=StoreCode.DENIED)
        if self.closed(path):
            label = shown(self.label(path))
            raise StoreError(f'"{label}" is closed. Nothing was saved.', code=StoreCode.DENIED)
        if not self._is_own(path) and check_file_scope(scope, "Write", call) is not None:
            raise StoreError(
                f'"{shown(self.label(path))}" isn\'t in a folder that you write in, nor in the run '
                "folder: only such files are saved. Save a copy of your own.",
                code=StoreCode.DENIED,
            )

    def _is_own(self, path: Path) -> bool:
        """Whether it lies in the run folder."""
        return any(path.is_relative_to(own) for own in (self.run_dir, self.run_dir.resolve()))


def read_plain(path: Path, label: str) -> tuple[bytes, os.stat_result]:
    """The bytes and the status of a regular file with one name; no link is followed on the way.

    ``label`` is the file in a sentence. Raises :class:`StoreError` as :meth:`OriginReader.read`.
    """
    with ExitStack() as handles:
        folder = handles.enter_context(open_folder("/"))
        for part in path.parent.parts[1:]:
            folder = handles.enter_context(open_folder(part, inside=folder))
        check_plain(os.stat(path.name, dir_fd=folder, follow_symlinks=False), label)
        handle = os.open(path.name, _READ, dir_fd=folder)  # a link now is ELOOP
        handles.callback(os.close, handle)
        before = os.fstat(handle)
        check_plain(before, label)
        data = _all_of(handle, MAX_ORIGINAL + 1)
        after = os.fstat(handle)
    if len(data) != before.st_size or _state(before) != _state(after):
        raise _changed(label)
    return data, after


def check_still(path: Path, status: os.stat_result, label: str) -> None:
    """Raise StoreError unless the path still names the file with this status."""
    try:
        same = _state(os.lstat(path)) == _state(status)
    except OSError:
        same = False
    if not same:
        raise _changed(label)


def check_plain(status: os.stat_result, label: str) -> None:
    """Raise StoreError for what can't become an original."""
    if stat.S_ISLNK(status.st_mode):
        reason = "it is a link. Name the file that it leads to"
    elif not stat.S_ISREG(status.st_mode):
        reason = "it is no file. Name a file"
    elif status.st_nlink > 1:
        reason = "it has a second name elsewhere (a hard link). Write a copy of your own first"
    elif status.st_size > MAX_ORIGINAL:
        size = f"it has {status.st_size} bytes, and at most {MAX_ORIGINAL} are saved"
        raise StoreError(f"{label} was not saved: {size}.", code=StoreCode.TOO_LARGE)
    else:
        return
    raise StoreError(f"{label} was not saved: {reason}.", code=StoreCode.UNREADABLE)


def _all_of(handle: int, most: int) -> bytes:
    with open(handle, "rb", closefd=False) as file:
        return file.read(most)


def _state(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_nlink, status.st_size, status.st_mtime_ns,
            status.st_ctime_ns)  # fmt: skip


def _changed(label: str) -> StoreError:
    return StoreError(
        f"{label} was changed while it was read, so it was not saved: try once more.",
        code=StoreCode.STALE,
    )
