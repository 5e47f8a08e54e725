"""A program at a terminal of its own, and what a person sees and types there."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path


def typed(program: str, root: Path, answers: Iterable[tuple[str, str]]) -> str:
    """What the program prints to its stdout. Each answer is a pattern that is waited for, and the line that is
    typed then."""
    process, end = _started(program, root)
    try:
        for pattern, line in answers:
            _sees(end, pattern)
            time.sleep(0.5)
            os.write(end, f"{line}\n".encode())
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(end)
    return out.decode()


def _started(program: str, root: Path) -> tuple[subprocess.Popen[bytes], int]:
    """The program in a session of its own, and our end of its terminal."""
    end, terminal = pty.openpty()
    code = f"import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n{program}"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(root)],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    return process, end


def _sees(end: int, pattern: str, limit: float = 60) -> None:
    """Read the terminal until the pattern was shown."""
    shown, until = "", time.monotonic() + limit
    while time.monotonic() < until:
        try:
            shown += os.read(end, 65536).decode(errors="replace")
        except OSError:
            break
        if re.search(pattern, shown):
            return
    raise AssertionError(f"{pattern!r} was not shown: {shown!r}")
