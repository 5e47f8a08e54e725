"""The program of the child process: it holds itself to limits and a lock, reads a file, and answers.

The file is its standard input. The request is the one argument, the answer one line, both JSON.
It is started by path with ``-I``, so it finds the readers itself, and nothing else of the kit.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
from contextlib import suppress
from typing import Any

_GRACE = 2  # seconds between the signal that says why and the one that can't be ignored


def _lower(limit: int, most: int, grace: int = 0) -> None:
    """Lower a limit for good, the hard one by ``grace`` less; one that is lower already stays."""
    _soft, hard = resource.getrlimit(limit)
    top = most + grace if hard == resource.RLIM_INFINITY else min(most + grace, hard)
    resource.setrlimit(limit, (min(most, top), top))


def _hold(limits: dict[str, Any]) -> None:
    """Memory and processor time; no files are written, and no processes started."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    _lower(resource.RLIMIT_NOFILE, 64)
    _lower(resource.RLIMIT_NPROC, 0)  # not for root, whom it doesn't hold
    _lower(resource.RLIMIT_CPU, limits["cpu_seconds"], _GRACE)
    with suppress(
        ValueError, OSError
    ):  # macOS; the clock and the processor time are held there too
        _lower(resource.RLIMIT_AS, limits["memory_bytes"])


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    """What the readers say. Nothing of theirs is shadowed: the folder is on the path only here.

    Nothing of the file is read before the lock is on; where it can't be put on nothing is read at all.
    """
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    answering = importlib.import_module("reading.answering")
    locking = importlib.import_module("locking") if request["lock"] else None
    del sys.path[0]
    if locking is not None:
        answering.load(request["suffix"])
        try:
            locking.lock(request["lock"])
        except OSError:
            return {"fault": "unlocked"}
    with open(0, "rb", closefd=False) as file:
        found: dict[str, Any] = answering.answer(request, file)
    return found


def _main() -> None:
    request = json.loads(sys.argv[1])
    _hold(request["limits"])
    own = os.dup(1)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)  # a library that prints doesn't spoil the answer
    try:
        found = _answer(request)
    except MemoryError:
        found = {"fault": "memory"}
    line = json.dumps(found).encode()
    while line:
        line = line[os.write(own, line) :]
    os._exit(0)  # taking a large document apart would take time


if __name__ == "__main__":
    _main()
