"""The command line: what it says without a session, and what it loads for that."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import agent_kit

if TYPE_CHECKING:
    from tests.cli.conftest import Run

LOADED = """
import sys
from agent_kit.cli import main
try:
    main()
except SystemExit as end:
    print("status", end.code)
print("loaded", sorted(sys.modules.keys() & {"claude_agent_sdk", "mcp", "agent_kit.testing"}))
"""


def test_version_is_the_packages_own(command: Run) -> None:
    ran = command("--version")
    assert (ran.status, ran.out) == (0, f"agent-kit {agent_kit.__version__}\n")


def test_help_names_the_demo_and_loads_neither_the_sdk_nor_mcp(command: Run) -> None:
    ran = command("--help", code=LOADED)
    assert "demo" in ran.out
    assert ran.out.splitlines()[-2:] == ["status 0", "loaded []"]


def test_the_demos_help_names_every_option_and_loads_neither_the_sdk_nor_mcp(command: Run) -> None:
    ran = command("demo", "--help", code=LOADED)
    assert [name for name in ("--live", "--plain", "--keep") if name not in ran.out] == []
    assert ran.out.splitlines()[-1] == "loaded []"


def test_live_without_a_key_is_one_sentence_and_status_2(command: Run) -> None:
    ran = command("demo", "--live", "When is the exam?")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "Set ANTHROPIC_API_KEY to a key of your own: --live asks the real model.\n"
    assert list(ran.temporary.iterdir()) == []


def test_live_without_a_key_loads_neither_the_sdk_nor_mcp(command: Run) -> None:
    ran = command("demo", "--live", "x", code=LOADED)
    assert ran.out.splitlines() == ["status 2", "loaded []"]


def test_an_unknown_command_is_status_2(command: Run) -> None:
    ran = command("dome")
    assert ran.status == 2
    assert "dome" in ran.err


def test_the_projects_entry_point_can_be_called() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    module, name = project["project"]["scripts"]["agent-kit"].split(":")
    assert callable(getattr(import_module(module), name))
