"""One writer at a time in a folder, among threads and among processes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from agent_kit.store.errors import StoreCode, StoreError

__all__ = ["LOCK_NAME", "exclusive"]

LOCK_NAME = ".agent-kit.lock"
"""The file in the folder that the lock is held on. It stays; it is empty."""


class _ThreadLock:
    """A lock that a weak dictionary can hold."""

    __slots__ = ("__weakref__", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()


_threads: WeakValueDictionary[str, _ThreadLock] = WeakValueDictionary()
_threads_guard = threading.Lock()


@contextmanager
def exclusive(root: Path, *, timeout: float) -> Iterator[None]:
    """Hold the folder's lock. Raises :class:`StoreError` after ``timeout`` seconds of waiting.

    Threads of this process queue on a lock in memory: the file lock polls, and would be slow
    among many.
    """
    from filelock import FileLock, Timeout

    mine = _thread_lock(os.path.realpath(root))
    if not mine.lock.acquire(timeout=timeout):
        raise _busy()
    try:
        with FileLock(root / LOCK_NAME, timeout=timeout, poll_interval=0.01):
            yield
    except Timeout:
        raise _busy() from None
    finally:
        mine.lock.release()


def _thread_lock(key: str) -> _ThreadLock:
    with _threads_guard:
        return _threads.setdefault(key, _ThreadLock())


def _busy() -> StoreError:
    return StoreError(
        "Another session is writing in this folder: nothing was changed. Try once more.",
        code=StoreCode.BUSY,
    )
