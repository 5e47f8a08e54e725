"""A whole session whose person sits at the terminal of the program."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_kit.testing import tree

pytestmark = pytest.mark.e2e

PROGRAM = """
import asyncio, sys
from pathlib import Path
from agent_kit import *
from agent_kit.testing import ToolCall, run_session
root = Path(sys.argv[1])
read = ToolCall("Read", {"file_path": str(root / "course/drafts/letter.md")})
options = build_session_options(
    AgentSpec(name="asked"),
    SessionConfig(
        project_dir=root / "course",
        extra_writable_dirs=["drafts"],
        run_dir=root / "run",
        permissions=[FilePermission(operations=["read"], paths=["drafts/**"], mode="interrupt")],
        ask=ask_in_terminal,
        confinement="off",
    ),
)
run = asyncio.run(run_session(options, [read, read, "Done."], home=root / "home"))
print("SAW", run.saw("canary(letter)"), [call.is_error for call in run.calls])
print("TOLD", "not this one" in (run.calls[0].result or ""))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path, ["home/", "course/drafts/letter.md=canary(letter)"])


def start(root: Path) -> tuple[subprocess.Popen[bytes], int]:
    """The program in a session of its own, at a terminal of its own, and our end of that."""
    end, terminal = pty.openpty()
    code = f"import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n{PROGRAM}"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(root)],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    return process, end


def sees(end: int, pattern: str, limit: float = 60) -> None:
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


def test_what_is_typed_at_the_terminal_decides_and_stdout_stays_the_programs(root: Path) -> None:
    process, end = start(root)
    try:
        sees(end, r"\[y\]|yes")
        time.sleep(0.5)
        os.write(end, b"n not this one\n")
        sees(end, r"\[y\]|yes")
        time.sleep(0.5)
        os.write(end, b"y\n")
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(end)
    assert out.decode().splitlines() == ["SAW True [True, False]", "TOLD True"]


def test_without_a_terminal_nobody_is_asked(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(root)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines()[0] == "SAW False [True, True]"
