"""Becomes bubblewrap, without the mounts of what has gone since they were planned.

Run as ``python -I -S _bubblewrap_start.py FD BWRAP PROGRAM WORDS…``. ``FD`` holds a JSON list of
bubblewrap's words in groups, each with the path that it needs (see
:mod:`agent_kit.confine.bubblewrap`). Standard library only; nothing is looked up in the working
folder or on ``PATH``.

Bubblewrap would make an empty file on the host where a covered one has gone, end where a folder has,
and mount what a link leads to where one has come in a folder's place. So a group counts only while
its path is there and is still a real one.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Final, NoReturn

FAILED: Final = 126


def main(arguments: list[str]) -> NoReturn:
    """Become ``arguments[1]`` with what the descriptor ``arguments[0]`` holds, then the rest."""
    try:
        with os.fdopen(int(arguments[0]), "rb") as text:
            groups = json.loads(text.read())
        words = [word for needed, group in groups if _is_there(needed) for word in group]
        os.execv(  # noqa: S606 - what the host described
            arguments[1], [arguments[1], "--args", str(_handle(words)), "--", *arguments[2:]]
        )
    except BaseException as error:  # noqa: BLE001 - whatever it is, nothing runs unconfined
        sys.stderr.write(f"agent-kit: the confined program could not be started: {error}\n")
        os._exit(FAILED)


def _is_there(path: str) -> bool:
    return not path or (os.path.lexists(path) and os.path.realpath(path) == path)


def _handle(words: list[str]) -> int:
    """A descriptor that bubblewrap reads the words from."""
    handle = os.memfd_create("agent-kit", 0)
    os.write(handle, b"".join(os.fsencode(word) + b"\0" for word in words))
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


if __name__ == "__main__":
    main(sys.argv[1:])
