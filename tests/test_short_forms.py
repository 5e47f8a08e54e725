"""What the documentation says of workspaces, and of guarding and checking options: it runs, it is so."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit import Lock
from agent_kit.session.environment import FIXED
from agent_kit.session.workspace import SECRETS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    return CONFIGURATION.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_the_short_forms_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path.parent / "state"))
    blocks = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    short = [
        block
        for block in blocks
        if "workspace=" in block or "guard_options" in block or "check_options" in block
        if "async " not in block
    ]
    assert len(short) == 5
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-made-up")
    names: dict[str, Any] = {"my_options": ClaudeAgentOptions(system_prompt="You help.")}
    for block in short:
        most = 5 if "confined" in block else 6 if "permissions" in block else 3
        assert len([line for line in block.splitlines() if line.strip()]) <= most
        exec(block, names)
    assert names["options"].tools == ["Read", "Glob", "Grep", "Write", "Edit"]
    assert "Bash" in names["confined"].tools
    assert names["confined"].cli_path is not None
    assert names["guarded"].system_prompt.startswith("You help.")
    assert all(isinstance(lock, Lock) for lock in names["locks"].values())
    assert [*names["locks"]] == ["gate", "rules", "prompts", "kernel"]
    assert names["locks"]["gate"].on


def test_the_table_of_secrets_is_the_one_of_the_code() -> None:
    rows = re.findall(r"^\| (`.*) \| (.*) \|$", section("A workspace"), re.MULTILINE)
    assert [(tuple(re.findall(r"`([^`]+)`", names)), why) for names, why in rows] == [
        (row.names, row.why) for row in SECRETS
    ]


def test_every_option_that_is_read_stands_in_the_table_of_the_guard() -> None:
    from agent_kit.session.reading import _READ

    first = re.findall(r"^\| (`.*?) \| ", section("Options that one already has"), re.MULTILINE)
    named = {name for cell in first for name in re.findall(r"`(\w+)`", cell)}
    assert named == _READ - {"cwd"}


def test_every_field_that_is_checked_stands_in_its_table() -> None:
    text = section("Which locks a set of options holds")
    source = (ROOT / "agent_kit/session/check.py").read_text(encoding="utf-8")
    checked = {*re.findall(r'_lost\(\s*"(\w+)"', source)}
    first = re.findall(r"^\| (.*?) \| ", text, re.MULTILINE)
    named = {name for cell in first for name in re.findall(r"`(\w+)`", cell)} - {
        "memory",
        "initialPrompt",
    }
    assert named == checked
    assert checked <= {field.name for field in dataclasses.fields(ClaudeAgentOptions)}
    assert all(f"`{row.name}`" in text for row in FIXED)
