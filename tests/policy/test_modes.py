"""The mode of a session, and the tools that change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from agent_kit.policy.modes import READ_ONLY_TOOLS, Mode, SessionMode
from agent_kit.scope import ConfigError
from agent_kit.scope.decision import Access
from agent_kit.scope.tools import FILE_TOOLS


def test_a_switch_is_told_with_what_was_before() -> None:
    told: list[tuple[str, str]] = []
    mode = SessionMode("guided", lambda before, after: told.append((before, after)))
    mode.set("plan")
    mode.set(Mode.AUTONOMOUS)
    assert mode.current is Mode.AUTONOMOUS
    assert told == [("guided", "plan"), ("plan", "autonomous")]


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
