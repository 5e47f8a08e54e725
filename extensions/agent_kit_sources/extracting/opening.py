"""The document's file: judged as Read would be, opened without following a link, judged again.

What is handed on is the open file, so that what was judged is what is read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from agent_kit.scope import check_file_scope
from agent_kit.store import StoreCode, StoreError, shown
from agent_kit.store.disk import open_folder
from agent_kit_sources.origin import OriginReader

__all__ = ["open_document"]

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


@contextmanager
def open_document(path: Path, reader: OriginReader, *, limit: int) -> Iterator[int]:
    """A handle, open for reading, of the regular file at an absolute path; a link is resolved first.

    Raises :class:`StoreError` for a file that Read would refuse, a special file, one of more than
    ``limit`` bytes and one that changes until the handle is given back; ``OSError`` for none.
    """
    label = shown(reader.label(path))
    _judge(path, reader)
    real = Path(os.path.realpath(path))
    _judge(real, reader)
    with ExitStack() as handles:
        handle, status = _open_plain(real, label, handles, limit)
        _judge(path, reader)
        _judge(real, reader)
        if _state(os.lstat(real)) != _state(status):
            raise _changed(label)
        yield handle
        if _state(os.fstat(handle)) != _state(status):
            raise _changed(label)


def _judge(path: Path, reader: OriginReader) -> None:
    reason = check_file_scope(reader.scope(), "Read", {"file_path": str(path)})
    if reason is None and reader.closed(path):
        reason = f'"{shown(reader.label(path))}" is closed: it can\'t be read.'
    if reason is not None:
        raise StoreError(reason, code=StoreCode.DENIED)


def _open_plain(
    path: Path, label: str, handles: ExitStack, limit: int
) -> tuple[int, os.stat_result]:
    """The handle and the status of a regular file; no link is followed on the way."""
    folder = handles.enter_context(open_folder("/"))
    for part in path.parent.parts[1:]:
        folder = handles.enter_context(open_folder(part, inside=folder))
    _check_plain(os.stat(path.name or ".", dir_fd=folder, follow_symlinks=False), label, limit)
    handle = os.open(path.name, _READ, dir_fd=folder)  # a link now is ELOOP
    handles.callback(os.close, handle)
    status = os.fstat(handle)
    _check_plain(status, label, limit)
    return handle, status


def _check_plain(status: os.stat_result, label: str, limit: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise StoreError(f'"{label}" is no file: name a file.', code=StoreCode.UNREADABLE)
    if status.st_size > limit:
        raise StoreError(
            f'"{label}" has {status.st_size} bytes, and documents of at most {limit} are read: '
            "ask the person for a smaller one, or for a part of it.",
            code=StoreCode.TOO_LARGE,
        )


def _state(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _changed(label: str) -> StoreError:
    return StoreError(
        f'"{label}" was changed while it was read: try once more.', code=StoreCode.STALE
    )
