"""Which terminal a question goes to, and whether somebody can be there."""

from __future__ import annotations

import locale
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TextIO

from agent_kit.terminal.device import Device
from agent_kit.terminal.plain import PlainTerminal

if sys.platform != "win32":
    from agent_kit.terminal.device import Terminal

__all__ = ["Nobody", "Place", "find_place"]

_TTY: Final = "/dev/tty"
_NO_TERMINAL: Final = "Nobody could be asked: there is no terminal."
_BACKGROUND: Final = "Nobody could be asked: the program runs in the background of its terminal."

Streams = tuple[TextIO, TextIO]


class Nobody(Exception):
    """Nobody can be asked; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A terminal. ``key`` is the same for every way to name it; ``open`` begins a question on it."""

    key: str
    open: Callable[[], Device]


def find_place(streams: Streams | None = None) -> Place:
    """The controlling terminal, or that of ``streams`` (to read from, to write to).

    Where there is no controlling terminal, standard input and standard error may be one. Opens
    nothing for long and waits for nothing. Raises Nobody.
    """
    if streams is None and (found := _controlling()) is not None:
        return found
    if streams is None:
        if sys.stdin is None or sys.stderr is None:
            raise Nobody(_NO_TERMINAL)
        streams = (sys.stdin, sys.stderr)
    return _of_streams(*streams)


def _controlling() -> Place | None:
    if sys.platform == "win32":
        return None
    try:
        file = os.open(_TTY, os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return None
    try:
        key = _key(file)
    finally:
        os.close(file)

    def opened() -> Device:
        file = os.open(_TTY, os.O_RDWR | os.O_NOCTTY)
        return _begun(file, file, locale.getencoding())

    return Place(key=key, open=opened)


def _of_streams(reading: TextIO, writing: TextIO) -> Place:
    try:
        files = reading.fileno(), writing.fileno()
    except (AttributeError, OSError, ValueError):  # a stream in memory, or a closed one
        raise Nobody(_NO_TERMINAL) from None
    if not all(os.isatty(file) for file in files):
        raise Nobody(_NO_TERMINAL)
    if sys.platform == "win32":
        return Place(key="console", open=lambda: PlainTerminal(reading, writing))

    def opened() -> Device:  # with files of its own: the host may close the streams meanwhile
        encoding = writing.encoding or locale.getencoding()
        return _begun(os.dup(reading.fileno()), os.dup(writing.fileno()), encoding)

    return Place(key=_key(files[0]), open=opened)


def _begun(reading: int, writing: int, encoding: str) -> Device:
    """A question on files that are closed with it."""
    owned = tuple({reading, writing})
    try:
        return Terminal(reading, writing, encoding=encoding, owned=owned)
    except BaseException:
        for file in owned:
            os.close(file)
        raise


def _key(file: int) -> str:
    """The name of a terminal. Raises Nobody when this program is in its background.

    There a question would stop the whole program (SIGTTIN, SIGTTOU).
    """
    if sys.platform == "win32":
        raise NotImplementedError
    try:
        front = os.tcgetpgrp(file)
    except OSError:  # it isn't the controlling terminal
        return f"device {os.fstat(file).st_rdev}"
    if front != os.getpgrp():
        raise Nobody(_BACKGROUND)
    return "the controlling terminal"
