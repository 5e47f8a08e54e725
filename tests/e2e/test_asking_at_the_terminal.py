"""A whole session whose person sits at the terminal of the program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent_kit.testing import tree
from tests.terminals import typed

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


def test_what_is_typed_at_the_terminal_decides_and_stdout_stays_the_programs(root: Path) -> None:
    out = typed(PROGRAM, root, [(r"\[y\]|yes", "n not this one"), (r"\[y\]|yes", "y")])
    assert out.splitlines() == ["SAW True [True, False]", "TOLD True"]


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
