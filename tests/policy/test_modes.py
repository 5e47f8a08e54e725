"""The mode of a session, and the tools that change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from agent_kit.policy.modes import READ_ONLY_TOOLS, Mode, SessionMode, stays_narrow
from agent_kit.policy.policy import Call, Policy
from agent_kit.scope import ConfigError, FileScope
from agent_kit.scope.decision import Access
from agent_kit.scope.tools import FILE_TOOLS


def test_a_switch_is_told_with_what_was_before() -> None:
    told: list[tuple[str, str]] = []
    mode = SessionMode("guided", lambda before, after: told.append((before, after)))
    mode.set("plan")
    mode.set(Mode.AUTONOMOUS)
    assert mode.current is Mode.AUTONOMOUS
    assert told == [("guided", "plan"), ("plan", "autonomous")]


def test_a_mode_is_printed_as_its_word() -> None:
    mode = SessionMode("plan")
    assert (str(mode), repr(mode)) == ("plan", "SessionMode('plan')")


@pytest.mark.parametrize("wrong", ["Plan", "", "read-only", None, 1, ["plan"]])
def test_a_mode_that_there_is_not_changes_nothing(wrong: Any) -> None:
    mode = SessionMode("plan", lambda *_: pytest.fail("nothing was switched"))
    with pytest.raises(ConfigError, match="choose from 'guided'") as error:
        mode.set(wrong)
    assert error.value.faults[0].value == wrong
    assert mode.current is Mode.PLAN


def test_no_file_tool_that_writes_counts_as_read_only_and_each_that_reads_does() -> None:
    for name, tool in FILE_TOOLS.items():
        assert (name in READ_ONLY_TOOLS) is (tool.access is not Access.WRITE), name
    assert READ_ONLY_TOOLS.isdisjoint({"Bash", "Monitor", "KillShell", "CronCreate"})


@pytest.mark.parametrize(
    ("tool", "stays"),
    [
        *((tool, True) for tool in ("Read", "Write", "Edit", "Grep", "Glob", "WebFetch")),
        *((tool, True) for tool in ("TaskList", "TaskUpdate", "TodoWrite", "mcp__own__look")),
        *((tool, False) for tool in ("Agent", "Task", "Skill", "Bash", "Monitor", "KillShell")),
        *((tool, False) for tool in ("CronCreate", "CronDelete", "ScheduleWakeup")),
        *((tool, False) for tool in ("SendMessage", "TaskStop", "EnterWorktree", "Workflow")),
        ("NotThereYet", False),
    ],
)
def test_an_agent_that_may_write_less_has_only_tools_that_are_known_to_stay_so(
    tool: str, stays: bool
) -> None:
    assert stays_narrow(tool) is stays
    place = FileScope(project_dir="/work")
    held = Policy(scope=place, scopes={"auditor": place}, mode=SessionMode("guided"))
    found = [
        held.judge(Call(tool=tool, tool_input={}, cwd="/work", agent=agent), ()).code
        for agent in ("auditor", "other", None)
    ]
    assert found == [None if stays else "narrower-agent", None, None]
