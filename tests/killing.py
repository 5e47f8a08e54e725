"""A process that is killed before each of its steps in turn, and what is found then."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

_KILLING = """
import os, signal

def die_before(limit, names):
    # From here on the system call of that number, of these of os, is one that never comes.
    seen = 0
    def counted(real):
        def step(*args, **kwargs):
            nonlocal seen
            seen += 1
            if seen > limit:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **kwargs)
        return step
    for name in names:
        setattr(os, name, counted(getattr(os, name)))

def is_killed(act):
    # Whether a child that does it was killed.
    pid = os.fork()
    if pid == 0:
        act()
        os._exit(0)
    return os.waitpid(pid, 0)[1] != 0
"""


def killed_everywhere(code: str, *arguments: str, least: int) -> list[dict[str, Any]]:
    """The rows that a program prints as JSON, one for each step before which it was killed; it knows
    ``die_before`` and ``is_killed``. The last one was let through, and there are more than ``least``."""
    rows: list[dict[str, Any]] = json.loads(run_python(_KILLING + code, *arguments))
    assert len(rows) > least
    assert [row["killed"] for row in rows] == [True] * (len(rows) - 1) + [False]
    return rows


def python(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", "-c", code, *arguments]


def run_python(code: str, *arguments: str) -> str:
    done = subprocess.run(python(code, *arguments), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
