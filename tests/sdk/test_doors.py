"""The doors beside the file tools that need no session to be judged."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny

from agent_kit.scope import FileScope
from agent_kit.sdk import catalogue
from agent_kit.sdk.doors import DOORS
from agent_kit.sdk.gate import create_file_scope_gate
from agent_kit.sdk.host_approval import approve_with_host
from agent_kit.testing import tree


def answer(project: Path, tool: str, tool_input: Any, **options: Any) -> str | None:
    """Why the gate refuses a call, or ``None``."""
    scope = FileScope(project_dir=str(project), searchable_dirs=["open"], writable_dirs=["open"])
    (hook,) = create_file_scope_gate(scope, **options).hooks
    payload = {"tool_name": tool, "tool_input": tool_input, "cwd": str(project)}
    found = asyncio.run(hook(payload, "toolu_1", {}))  # type: ignore[arg-type]
    said = found.get("hookSpecificOutput", {})
    return said.get("permissionDecisionReason")


@pytest.mark.parametrize("durable", [True, "true", 1, {}])
def test_a_scheduled_task_that_outlasts_the_session_is_refused(
    tmp_path: Path, durable: object
) -> None:
    asked = {"cron": "* * * * *", "prompt": "x", "durable": durable}
    reason = answer(tmp_path, "CronCreate", asked)
    assert (reason is None) == (not durable)
    if reason is not None:
        assert "outlast this session" in reason
    assert (answer(tmp_path, "CronCreate", asked, worktrees=True) is None) == (not durable)


@pytest.mark.parametrize(
    ("tool", "field"),
    [
        ("Workflow", "scriptPath"),
        ("self_hosted_runner_tail_log", "log_path"),
        ("self_hosted_runner_spawn_local", "secret_file_path"),
        ("self_hosted_runner_spawn_local", "base_dir"),
        ("SendUserFile", "files"),
        ("SendUserMessage", "attachments"),
        ("SomeLaterTool", "targetFolders"),
    ],
)
def test_a_path_of_a_tool_that_nobody_knows_is_judged(
    tmp_path: Path, tool: str, field: str
) -> None:
    closed, opened = "secret.txt", "open/a.txt"
    for wrap in (str, lambda text: [text]):
        assert answer(tmp_path, tool, {field: wrap(closed)}) is not None
        assert answer(tmp_path, tool, {field: wrap(opened)}) is None


def test_a_worktree_is_refused_unless_the_session_allows_it(tmp_path: Path) -> None:
    for tool, asked in (("Agent", {"isolation": "worktree"}), ("EnterWorktree", {"name": "x"})):
        assert answer(tmp_path, tool, asked) is not None
        assert answer(tmp_path, tool, asked, worktrees=True) is None


def test_an_agent_whose_file_asks_for_a_copy_is_refused_with_a_way_out(tmp_path: Path) -> None:
    tree(tmp_path, [".claude/agents/evil.md=---\nname: evil\nisolation: worktree\n---\n"])
    reason = answer(tmp_path, "Agent", {"subagent_type": "evil"})
    assert reason is not None
    assert "The file of this agent asks for it: start another agent." in reason
    assert "without" not in reason
    assert answer(tmp_path, "Agent", {"subagent_type": "other"}) is None
    asked = answer(tmp_path, "Agent", {"subagent_type": "other", "isolation": "worktree"})
    assert asked is not None
    assert 'Start it without "isolation".' in asked


@pytest.mark.parametrize(
    ("front", "asked", "refused"),
    [
        ('name: "h\\u0065lper"\n"isol\\u0061tion": worktree', "helper", True),
        ('name: "h\\u0065lper"\n"isol\\u0061tion": worktree', "other", False),
        ('name: "h\\u0065lper"\ndescription: a\\b', "helper", False),
        ("name: general-purpose\nisolation: worktree", None, True),
        ('name: x\ndescription: "a: b: \\ [', "helper", True),
    ],
)
def test_an_agents_file_asks_for_a_copy_in_whatever_letters(
    tmp_path: Path, front: str, asked: str | None, refused: bool
) -> None:
    tree(tmp_path, [".claude/agents/"])
    (tmp_path / ".claude/agents/x.md").write_text(f"---\n{front}\n---\nBody.\n")
    given = {} if asked is None else {"subagent_type": asked}
    assert (answer(tmp_path, "Agent", given) is not None) is refused


def test_links_in_circles_pipes_and_dead_links_among_the_agents_are_passed_over(
    tmp_path: Path,
) -> None:
    agents = tree(tmp_path, [".claude/agents/"]) / ".claude/agents"
    tree(agents, ["a => .", "b => .", "dead.md => nowhere"])
    os.mkfifo(agents / "pipe.md")
    assert answer(tmp_path, "Agent", {"subagent_type": "helper"}, timeout=5) is None


@pytest.mark.parametrize("limit", ["MAX_NAMES", "MAX_TEXT", "MAX_TEXTS"])
def test_where_the_agents_can_not_all_be_checked_none_is_started(
    tmp_path: Path, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, [f".claude/agents/{name}.md=some text" for name in range(3)])
    assert answer(tmp_path, "Agent", {"subagent_type": "helper"}) is None
    monkeypatch.setattr(catalogue, limit, 2)
    reason = answer(tmp_path, "Agent", {"subagent_type": "helper"})
    assert reason is not None
    assert "can't be checked" in reason


@pytest.mark.parametrize("tool", sorted(DOORS))
def test_a_host_can_not_change_a_call_that_only_the_gate_judges(tmp_path: Path, tool: str) -> None:
    scope = FileScope(project_dir=str(tmp_path), searchable_dirs=["open"])
    given = {"prompt": "x"}

    def answered(changed: dict[str, Any]) -> object:
        async def host(*_: object) -> PermissionResultAllow:
            return PermissionResultAllow(updated_input=changed)

        return asyncio.run(approve_with_host(scope, host, cwd=str(tmp_path))(tool, given, None))

    assert isinstance(answered({**given}), PermissionResultAllow)
    assert isinstance(answered({**given, "durable": True}), PermissionResultDeny)
