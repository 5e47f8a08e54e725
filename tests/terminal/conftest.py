"""A person at a pseudo-terminal, who reads what is shown and types."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import struct
import termios
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agent_kit.policy.approval import Approval
from agent_kit.terminal import Ask, terminal_asker

PATIENCE = 20.0  # seconds: long, for a busy machine; nothing waits for its end unless it fails


class Person:
    """The other end of a terminal. Only this process has it open."""

    def __init__(self, *, columns: int = 100, rows: int = 60) -> None:
        self.end, self.terminal = pty.openpty()
        self.resize(columns, rows)
        os.set_blocking(self.end, False)
        self.shown = ""
        self._read = 0  # how much of it the person has read
        streams = [os.fdopen(os.dup(self.terminal), mode, encoding="utf-8") for mode in ("r", "w")]
        self._streams = streams
        self.ask: Ask = terminal_asker(input=streams[0], output=streams[1], plain=True)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def look(self) -> str:
        """All that was shown so far."""
        try:
            while data := os.read(self.end, 65536):
                self.shown += data.decode("utf-8", "surrogateescape")
        except (BlockingIOError, OSError):
            pass
        return self.shown

    def unread(self) -> str:
        return self.look()[self._read :]

    async def sees(self, pattern: str) -> str:
        """What was shown up to the pattern, once it was; the next look begins behind it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if found := re.search(pattern, self.unread()):
                part = self.unread()[: found.end()]
                self._read += found.end()
                return part
            await asyncio.sleep(0.01)
        raise AssertionError(f"{pattern!r} was not shown, but {self.unread()!r}")

    def types(self, text: str) -> None:
        os.write(self.end, text.encode())

    def close(self) -> None:
        for stream in self._streams:
            stream.close()
        os.close(self.terminal)
        os.close(self.end)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)
    someone = Person()
    yield someone
    someone.close()


def approval(**fields: Any) -> Approval:
    known = {"question_id": "one", "tool": "Write", "reason": "The rule asks."}
    known["tool_input"] = {"file_path": "/work/a.md", "content": "text"}
    return Approval(**(known | fields))
