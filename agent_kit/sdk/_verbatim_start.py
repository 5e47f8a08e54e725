"""Becomes the CLI, with a reader of the host's messages before it (:mod:`agent_kit.sdk.verbatim`).

Run as ``python -I -S -c START FOLDER N NAME… PROGRAM… WORDS…``: ``FOLDER`` is this one's, the ``N``
names are the slash commands that may run. This process becomes the CLI, and every session waits for
it: it loads next to nothing, the reader loads what it needs while the CLI boots. A program that is
this interpreter, started the same way, runs here: one more would take as long as all that it does.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Final

START: Final = (
    "import sys; sys.path.append(sys.argv[1]); import _verbatim_start; sys.path.pop();"
    " sys.exit(_verbatim_start.main(sys.argv[2:]))"
)
FAILED: Final = 126
_STREAMED: Final = "--input-format"  # without it (-v, --help) the CLI reads no messages
_ALONE: Final = ["-I", "-S", "-c"]


def main(arguments: list[str]) -> int:
    """Become the program that the arguments name, with the words that follow it."""
    try:
        first = 1 + int(arguments[0])
        names, words = frozenset(arguments[1:first]), arguments[first:]
        if _STREAMED in words:
            _start_reader(names)
        if words[0] != sys.executable or words[1:4] != _ALONE:
            os.execv(words[0], words)  # noqa: S606 - the program that the host named
    except (OSError, ValueError, IndexError) as error:
        sys.stderr.write(f"agent-kit: the CLI could not be started: {error}\n")
        return FAILED
    sys.argv = ["-c", *words[5:]]
    exec(words[4], {"__name__": "__main__"})  # noqa: S102 - as that program would
    return 0


def _start_reader(allowed: Collection[str]) -> None:
    """Put a child between the host's messages and this process's standard input."""
    read, write = os.pipe()
    if os.fork():
        os.close(write)
        if read:  # it is 0 where there was no standard input
            os.dup2(read, 0)
            os.close(read)
        os.set_inheritable(0, True)
        return
    try:  # the child
        os.close(read)
        _read(write, allowed)
    except BaseException as error:  # noqa: BLE001 - the CLI hears of an end
        sys.stderr.write(f"agent-kit: the host's messages can't be read: {error}\n")
    finally:
        os._exit(0)


def _read(write: int, allowed: Collection[str]) -> None:
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the host or with the CLI
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    from verbatim import hand_on  # type: ignore[import-not-found]  # a neighbour, without its package

    nowhere = os.open(os.devnull, os.O_RDWR)
    for each in (1, 2):  # the host waits for the end of the CLI's output, not of ours
        os.dup2(nowhere, each)
    hand_on(0, write, allowed)
