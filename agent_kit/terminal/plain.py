"""A terminal without POSIX: lines read in a thread. Untested on Windows, which it is for."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from agent_kit.terminal.device import TICK, EndOfInput, Withdrawn, screen_size

__all__ = ["PlainTerminal"]


class _Lines:
    """Lines of one stream, each read when it is wanted, by a thread that nobody has to wait for.

    A read that was begun for a question that is gone serves the next one: no line is swallowed.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._read: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._reading = False

    def forget(self) -> None:
        while not self._read.empty():
            self._read.get()

    def next(self, withdrawn: Callable[[], bool]) -> str:
        with self._lock:
            if not self._reading and self._read.empty():
                self._reading = True
                threading.Thread(target=self._one, name="agent-kit-line", daemon=True).start()
        while not withdrawn():
            try:
                line = self._read.get(timeout=TICK)
            except queue.Empty:
                continue
            if not line.endswith("\n"):
                raise EndOfInput
            return line[:-1]
        raise Withdrawn

    def _one(self) -> None:
        try:
            line = self._stream.readline()
        except (OSError, ValueError):  # closed, or no text
            line = ""
        with self._lock:
            self._reading = False
            self._read.put(line)


_LINES: dict[int, _Lines] = {}  # one reader for a stream, however many questions there are


class PlainTerminal:
    """Two streams of a terminal, as they are: what was typed early is dropped line by line."""

    def __init__(self, reading: TextIO, writing: TextIO) -> None:
        self.encoding = writing.encoding or "ascii"
        self._reading, self._writing = reading, writing
        self._lines = _LINES.setdefault(reading.fileno(), _Lines(reading))

    def size(self) -> tuple[int, int]:
        return screen_size(self._writing.fileno())

    def write(self, text: str) -> None:
        try:
            self._writing.write(text)
            self._writing.flush()
        except (OSError, ValueError) as error:
            raise EndOfInput from error

    def forget_input(self) -> None:
        self._lines.forget()

    def read_line(self, withdrawn: Callable[[], bool]) -> str:
        return self._lines.next(withdrawn)

    @contextmanager
    def lent(self) -> Iterator[tuple[int, int]]:
        yield self._reading.fileno(), self._writing.fileno()

    def close(self) -> None:
        """Nothing was changed."""
