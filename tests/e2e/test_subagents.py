"""Subagents are held by the same locks: own and built-in types, in front and in the background."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import AgentDefinition

from agent_kit import Subagent
from agent_kit.testing import AnsweredBy, CallRecord, Say, SessionRun, ToolCall

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

CLOSED = (
    ("Read", {"file_path": "README.md"}),
    ("Read", {"file_path": "<out>/secret.txt"}),
    ("Read", {"file_path": "agent.config.json"}),
    ("Read", {"file_path": "knowledge/index.md"}),
    ("Glob", {"pattern": "<out>/**"}),
    ("Glob", {"pattern": "private/*"}),
    ("Grep", {"pattern": "canary", "output_mode": "content"}),
    ("Grep", {"pattern": "canary", "output_mode": "content", "path": "~"}),
    ("Write", {"file_path": "new.txt", "content": "x"}),
    ("Edit", {"file_path": "README.md", "old_string": "old", "new_string": "new"}),
)
OPEN = (
    ("Read", {"file_path": "sources/syllabus.md"}),
    ("Grep", {"pattern": "canary", "output_mode": "content", "path": "drafts"}),
)
WRITERS = ("helper", "reader", "general-purpose")  # the built-in searchers have no Write and Edit


@dataclass(frozen=True)
class Start:
    type: str
    background: bool

    @property
    def prompt(self) -> str:
        """A subagent's prompt mentions a closed file as well: the CLI doesn't expand it there."""
        return f"Look at @README.md, {self.type}, {'behind' if self.background else 'in front'}."


TYPES = ("helper", "reader", "general-purpose", "Explore", "Plan")
STARTS = [Start(name, background) for name in TYPES for background in (False, True)]
SUBAGENTS = {
    "helper": Subagent(description="Helps.", prompt="You help."),
    "reader": Subagent(
        description="Reads.", prompt="You read.", tools=["Read", "Glob", "Grep", "Write", "Edit"]
    ),
}


def start(course: Course, each: Start) -> ToolCall:
    steps: list[Any] = [
        tuple(course.call(tool, **fields) for tool, fields in (*CLOSED, *OPEN)),
        "Nothing found.",
    ]
    fields = {"description": "d", "prompt": each.prompt, "subagent_type": each.type}
    return ToolCall("Agent", {**fields, "run_in_background": each.background}, script=steps)


@pytest.fixture(scope="module")
def before(shared_course: Course) -> dict[str, object]:
    return shared_course.snapshot()


@pytest.fixture(scope="module")
def run(shared_course: Course, before: dict[str, object]) -> SessionRun:
    """One session starts them all; those in the background work while the next begin."""
    starts = sorted(STARTS, key=lambda each: not each.background)
    return shared_course.session(
        [*(start(shared_course, each) for each in starts), "The end."],
        spec={"subagents": SUBAGENTS},
        run={"wait_for_background": True},
    )


def calls_of(run: SessionRun, each: Start) -> list[CallRecord]:
    """The calls of one subagent, which is known by the prompt that it was given."""
    agents = {
        request.agent
        for request in run.requests
        if request.agent is not None and each.prompt in str(request.body["messages"][0])
    }
    [agent] = agents
    return [call for call in run.calls if call.agent_id == agent]


@pytest.mark.parametrize("each", STARTS, ids=lambda each: each.prompt.split(", ", 1)[1])
def test_a_subagent_reaches_what_is_open_and_nothing_else(
    each: Start, run: SessionRun, refused: Callable[[CallRecord], bool]
) -> None:
    calls = calls_of(run, each)
    assert {call.agent for call in calls} == {each.type}
    closed, opened = calls[: len(CLOSED)], calls[len(CLOSED) :]
    for call in closed:
        absent = call.tool in ("Write", "Edit") and each.type not in WRITERS
        assert call.is_error
        assert (call.lock is AnsweredBy.TOOL) if absent else refused(call), call
    assert [call.lock for call in opened] == [AnsweredBy.RAN] * len(OPEN)
    assert "canary(syllabus)" in (opened[0].result or "")


@pytest.mark.parametrize("background", [False, True])
def test_both_kinds_of_start_were_there(background: bool, run: SessionRun) -> None:
    results = [
        call.result or ""
        for call in run.calls
        if call.tool == "Agent" and call.input["run_in_background"] is background
    ]
    assert len(results) == len(TYPES)
    assert all(("Nothing found." not in result) is background for result in results)


def test_no_subagent_saw_a_closed_file_or_changed_one(
    shared_course: Course, run: SessionRun, before: dict[str, object]
) -> None:
    assert shared_course.seen(run) == {"syllabus", "newsletter", "plan"}
    assert shared_course.snapshot() == before


def test_without_the_locks_a_subagent_reaches_the_files(course: Course) -> None:
    run = course.run(course.bare(), [start(course, Start("general-purpose", False)), "The end."])
    assert course.seen(run) >= {"readme", "outside", "config", "knowledge", "privatename"}


def in_a_worktree(course: Course) -> ToolCall:
    """A subagent in a copy of the whole repository, denied files included."""
    git = "git init -q . && git add -A && git -c user.name=x -c user.email=x@x.x commit -qm x"
    subprocess.run(git, shell=True, cwd=course.project, check=True)
    fields = {"description": "d", "prompt": "Look.", "subagent_type": "helper"}
    return ToolCall(
        "Agent",
        {**fields, "isolation": "worktree", "run_in_background": False},
        script=lambda turn: (
            course.call("Read", file_path="agent.config.json") if turn.number == 0 else Say("No.")
        ),
    )


def test_no_subagent_works_in_a_copy_of_the_repository(course: Course) -> None:
    run = course.session(
        [in_a_worktree(course), course.call("Read", file_path="README.md"), "The end."],
        spec={"subagents": SUBAGENTS, "extensions": []},
        extra_readable_dirs=["."],
    )
    assert run.calls[0].lock is AnsweredBy.GATE
    assert course.seen(run) == {"readme"}
    assert not (course.project / ".claude").exists()


def test_without_the_kit_a_copy_of_the_repository_has_the_denied_files(course: Course) -> None:
    denied = json.dumps({"permissions": {"deny": [f"Read(/{course.project}/agent.config.json)"]}})
    run = course.run(
        course.bare(
            settings=denied,
            agents={"helper": AgentDefinition(description="Helps.", prompt="You help.")},
        ),
        [course.call("Read", file_path="agent.config.json"), in_a_worktree(course), "The end."],
    )
    assert run.calls[0].lock is AnsweredBy.RULES
    assert course.seen(run) == {"config"}
