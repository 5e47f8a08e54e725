"""Tools that are open in part: what the model reads beyond that, and what an agent that may write less has."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import create_sdk_mcp_server, tool
from mcp.types import ToolAnnotations

from agent_kit import (
    AgentSpec,
    SessionConfig,
    Subagent,
    approve,
    build_session_options,
    edit,
    reject,
)
from agent_kit.testing import AnsweredBy, CallRecord, Say, ToolCall, Turn, run_session, tree
from tests.people import Person

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e


async def test_the_refusal_names_the_rules_by_which_the_tool_is_open(tmp_path: Path) -> None:
    tree(tmp_path, ["project/drafts/"])
    config = SessionConfig(
        project_dir=tmp_path / "project",
        run_dir=tmp_path / "run",
        extra_writable_dirs=["drafts"],
        confinement="off",
        allow_unconfined_commands=True,
    )
    spec = AgentSpec(name="a", tools=["Bash(git *)", "Bash(make test)"])
    command = f'python3 -c \'open("{tmp_path}/made", "w")\''
    script = [ToolCall("Bash", {"command": command}), Say("x")]
    run = await run_session(build_session_options(spec, config), script)
    (call,) = run.calls
    assert call.lock is not AnsweredBy.RAN
    assert "only as Bash(git *), Bash(make test)." in (call.result or "")
    assert not (tmp_path / "made").exists()


def own_server() -> Any:
    async def run(_arguments: Any) -> Any:
        return {"content": [{"type": "text", "text": "it ran"}]}

    look = tool("look", "d", {}, annotations=ToolAnnotations(readOnlyHint=True))(run)
    return create_sdk_mcp_server(
        "own", tools=[look, tool("change", "d", {})(run), tool("said", "d", {})(run)]
    )


@pytest.mark.parametrize(
    ("named", "open_"),
    [
        (None, {"mcp__own__look", "mcp__own__said"}),
        (["Read", "mcp__own__change"], {"mcp__own__change"}),
    ],
)
def test_an_auditor_has_the_tools_that_only_read_or_those_that_are_named(
    named: list[str] | None, open_: set[str], course: Course
) -> None:
    auditor = Subagent(description="d", prompt="p", tools=named, writable_dirs=[])
    calls = tuple(course.call(f"mcp__own__{name}") for name in ("look", "change", "said"))
    start = ToolCall(
        "Agent",
        {"description": "d", "prompt": "p", "subagent_type": "auditor", "run_in_background": False},
        script=[calls, "Done."],
    )
    run = course.session(
        [start, "Done."],
        spec={
            "subagents": {"auditor": auditor},
            "mcp_servers": {"own": own_server()},
            "read_only_tools": ["mcp__own__said"],
        },
    )
    own = [call for call in run.calls if call.agent == "auditor" or call.tool.startswith("mcp__")]
    assert {call.tool for call in own if call.lock is AnsweredBy.RAN} == open_
    assert len(own) == 3


def in_a_copy(course: Course, made: list[bool]) -> ToolCall:
    """A call that starts an agent in a copy. ``made`` gets whether git knows of one while it works."""
    git = "git init -q . && git add -A && git -c user.name=x -c user.email=x@x.x commit -qm x"
    subprocess.run(git, shell=True, cwd=course.project, check=True)
    fields = {"description": "d", "prompt": "p", "subagent_type": "helper"}

    def works(_turn: Turn) -> str:
        made.append((course.project / ".git/worktrees").exists())  # older CLIs clear it away later
        return "Done."

    given = {**fields, "isolation": "worktree", "run_in_background": False}
    return ToolCall("Agent", given, script=works)


def copied(course: Course, **config: Any) -> tuple[CallRecord, bool]:
    """A call that starts an agent in a copy of the repository, and whether there was one."""
    helper = {"helper": Subagent(description="d", prompt="p")}
    made: list[bool] = []
    run = course.session(
        [in_a_copy(course, made), "Done."],
        spec={"subagents": helper},
        allow_worktrees=True,
        **config,
    )
    return run.calls[0], any(made)


def test_an_agent_in_a_copy_of_the_repository_changes_something(course: Course) -> None:
    call, made = copied(course, mode="plan")
    assert call.is_error
    assert "plan mode" in (call.result or "")
    assert not made


AGENT_FILE = """---
name: {name}
description: d
{more}---
Work.
"""


def beside_a_copier(course: Course, made: list[bool], more: str) -> ToolCall:
    """As :func:`in_a_copy`, in no copy by its own word; a file with ``more`` defines the agent "copier"."""
    file = course.project / ".claude/agents/copier.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(AGENT_FILE.format(name="copier", more=more))
    start = in_a_copy(course, made)
    del start.input["isolation"]
    return start


@pytest.mark.parametrize(
    ("more", "mode"),
    [("isolation: worktree\n", "plan"), ("isolation: worktree\n", "interactive"), ("", "plan")],
)
def test_an_agent_whose_own_file_asks_for_a_copy_changes_something_too(
    more: str, mode: str, course: Course
) -> None:
    made: list[bool] = []
    start = beside_a_copier(course, made, more)
    start.input["subagent_type"] = "copier"
    person = Person(reject("no"))
    run = course.session(
        [start, "Done."],
        spec={"tools": ["Agent"]},
        allow_worktrees=True,
        setting_sources=["project"],
        mode=mode,
        ask=person,
    )
    assert run.calls[0].is_error is bool(more), run.calls[0].result
    assert [asked.rule for asked in person.asked] == ["mode[Agent]"] * (mode == "interactive")
    assert not any(made)


def test_a_person_does_not_edit_such_an_agent_into_a_call_in_plan_mode(course: Course) -> None:
    made: list[bool] = []
    start = beside_a_copier(course, made, "isolation: worktree\n")
    run = course.session(
        [start, "Done."],
        spec={"subagents": {"helper": Subagent(description="d", prompt="p")}},
        allow_worktrees=True,
        setting_sources=["project"],
        mode="plan",
        interrupt_on={"Agent": True},
        ask=Person(edit({**start.input, "subagent_type": "copier"})),
    )
    assert "plan mode" in (run.calls[0].result or "")
    assert not any(made)


@pytest.mark.parametrize("answer", [approve(), reject("no")])
def test_in_interactive_mode_a_person_is_asked_for_such_a_copy(answer: Any, course: Course) -> None:
    person = Person(answer)
    call, made = copied(course, mode="interactive", ask=person)
    assert [asked.rule for asked in person.asked] == ["mode[Agent]"]
    assert call.is_error is (answer == reject("no"))
    assert made is not call.is_error
