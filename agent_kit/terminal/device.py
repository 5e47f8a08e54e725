"""A terminal while a question is open on it: lines come in, rows go out, and it is left as it was."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Final, Protocol

__all__ = ["TICK", "Device", "EndOfInput", "Withdrawn", "screen_size"]

TICK: Final = 0.1  # seconds between two looks at whether the question still stands
_CTRL_C: Final = b"\x03"
_ONE_READ: Final = 65536  # bytes; a terminal gives one line at a time, of 4096 bytes at most


class Withdrawn(Exception):
    """Nobody waits for the answer any more."""


class EndOfInput(Exception):
    """The person pressed Ctrl+C or Ctrl+D, or the terminal is gone."""


class Device(Protocol):
    """What a question needs of a terminal. A terminal that is gone raises EndOfInput."""

    encoding: str

    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        ...

    def write(self, text: str) -> None: ...

    def forget_input(self) -> None:
        """Drop what was typed so far."""
        ...

    def read_line(self, withdrawn: Callable[[], bool]) -> str:
        """The next line, without its end. Raises EndOfInput, and Withdrawn within a ``TICK``."""
        ...

    def lent(self) -> AbstractContextManager[tuple[int, int]]:
        """The terminal for another program: the files to read from and to write to."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was found. Never raises."""
        ...


def screen_size(writing: int) -> tuple[int, int]:
    """Columns and rows of a terminal; 80 and 24 where it doesn't say."""
    try:
        columns, rows = os.get_terminal_size(writing)
    except OSError:
        columns, rows = 0, 0
    return columns or 80, rows or 24


if sys.platform != "win32":
    import termios

    __all__ += ["Terminal"]

    class Terminal:
        """A POSIX terminal, line by line, where Ctrl+C ends the line instead of the program.

        ``reading`` and ``writing`` are open files of it; those in ``owned`` are closed with it.
        Everything is shown and echoed by the terminal itself. Raises OSError or termios.error for
        what is no terminal.
        """

        def __init__(
            self, reading: int, writing: int, *, encoding: str, owned: tuple[int, ...] = ()
        ) -> None:
            self.encoding = encoding
            self._reading, self._writing, self._owned = reading, writing, owned
            self._found = termios.tcgetattr(reading)
            self._off = bytes([max(os.fpathconf(reading, "PC_VDISABLE"), 0) & 0xFF])
            interrupt = self._found[6][termios.VINTR]
            self._interrupt = interrupt if interrupt not in (self._off, b"\0") else _CTRL_C
            self._set(self._asking())

        def size(self) -> tuple[int, int]:
            return screen_size(self._writing)

        def write(self, text: str) -> None:
            data = memoryview(text.encode(self.encoding, "backslashreplace"))
            while data:
                try:
                    data = data[os.write(self._writing, data) :]
                except BlockingIOError:  # somebody else who has it open made it so
                    _ready(self._writing, for_writing=True)
                except OSError as error:
                    raise EndOfInput from error

        def forget_input(self) -> None:
            with suppress(termios.error):  # the next read tells
                termios.tcflush(self._reading, termios.TCIFLUSH)

        def read_line(self, withdrawn: Callable[[], bool]) -> str:
            line = b""
            while not withdrawn():
                if not _ready(self._reading):
                    continue
                try:
                    read = os.read(self._reading, _ONE_READ)
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise EndOfInput from error
                if not read or self._interrupt in read:
                    raise EndOfInput
                line += read  # Ctrl+D sends what was typed so far, which isn't yet a line
                if line.endswith(b"\n"):
                    return line[:-1].decode(self.encoding, "replace")
            raise Withdrawn

        @contextmanager
        def lent(self) -> Iterator[tuple[int, int]]:
            self._set(self._lending())
            try:
                yield self._reading, self._writing
            finally:
                self._set(self._asking())

        def close(self) -> None:
            with suppress(termios.error):
                self._set(self._found)
            for file in self._owned:
                with suppress(OSError):
                    os.close(file)

        def _asking(self) -> list[Any]:
            """Lines with echo, as a shell gives them; Ctrl+C is a second end of a line."""
            mode = self._lending()
            mode[0] = (mode[0] | termios.ICRNL) & ~(termios.INLCR | termios.IGNCR)
            mode[1] |= termios.OPOST | termios.ONLCR
            mode[3] |= termios.ICANON | termios.ECHO | termios.ECHOE | termios.ECHOK
            mode[6][termios.VEOL] = self._interrupt
            return mode

        def _lending(self) -> list[Any]:
            """As it was found, but Ctrl+C is a key: an editor's must not end this program."""
            mode = [*self._found[:6], list(self._found[6])]
            mode[6][termios.VINTR] = self._off
            return mode

        def _set(self, mode: list[Any]) -> None:
            termios.tcsetattr(self._reading, termios.TCSANOW, mode)


def _ready(file: int, *, for_writing: bool = False) -> bool:
    """Whether ``file`` can be read or written, now or within a ``TICK``."""
    if sys.platform == "darwin" or not hasattr(select, "poll"):  # poll knows no terminals there
        rows = select.select([] if for_writing else [file], [file] if for_writing else [], [], TICK)
        return any(rows)
    poll = select.poll()
    poll.register(file, select.POLLOUT if for_writing else select.POLLIN)
    return bool(poll.poll(TICK * 1000))
