"""The ``agent-kit`` command as a process of its own: own HOME, own temporary folder, no keys."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from agent_kit.cli._course import Course, build_course

LIMIT = 60  # seconds until a command that hangs is ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command that is over. ``times`` has the second at which each line of ``out`` came."""

    status: int
    out: str
    err: str
    times: tuple[float, ...]
    seconds: float
    home: Path
    temporary: Path

    def line(self, text: str) -> int:
        """The number of the only line that holds ``text``."""
        (number,) = [n for n, line in enumerate(self.out.splitlines()) if text in line]
        return number

    @property
    def flat(self) -> str:
        """The output on one line: where a sentence is broken doesn't matter."""
        return " ".join(self.out.split())


Run = Callable[..., Ran]


def run_command(
    folder: Path, *arguments: str, env: dict[str, str] | None = None, code: str | None = None
) -> Ran:
    """Run ``agent-kit`` with ``arguments``, or Python with ``code``, below ``folder``."""
    home, temporary = folder / "home", folder / "tmp"
    home.mkdir()
    temporary.mkdir()
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("ANTHROPIC_", "CLAUDE"))}
    own = {"HOME": str(home), "TMPDIR": str(temporary), "COLUMNS": "88", "PYTHONUTF8": "1"}
    command = ["-c", code] if code is not None else ["-m", "agent_kit.cli"]
    began = time.monotonic()
    with (
        (folder / "err").open("w") as err,
        subprocess.Popen(
            [sys.executable, *command, *arguments],
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
            encoding="utf-8",
            env={**inherited, **own, "PYTHONPATH": os.pathsep.join(sys.path), **(env or {})},
        ) as process,
    ):
        lines = list(_timed(process, began))
        status = process.wait(LIMIT)
    return Ran(
        status=status,
        out="".join(line for _, line in lines),
        err=(folder / "err").read_text(),
        times=tuple(at for at, _ in lines),
        seconds=time.monotonic() - began,
        home=home,
        temporary=temporary,
    )


def _timed(process: subprocess.Popen[str], began: float) -> Iterator[tuple[float, str]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield time.monotonic() - began, line


@pytest.fixture(scope="session")
def command_in() -> Callable[..., Ran]:
    """``run_command``, for a fixture that keeps one run for several tests."""
    return run_command


@pytest.fixture
def command(tmp_path: Path) -> Run:
    """Runs ``agent-kit`` once, below the test's own folder."""
    return partial(run_command, tmp_path)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """The demo's folder, made."""
    return build_course(tmp_path)
