"""A yes that was kept for a skill counts for the files that the person was shown, on the real CLI."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit import answer, approve, edit, guard_options, pending_questions
from agent_kit.testing import SessionRun, ToolCall, run_session
from tests.people import rule

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

SKILL = ToolCall("Skill", {"skill": "quiet", "args": "@a.md"})


def planted(course: Course, body: str) -> Path:
    """A skill of the project, and a file of one name in two folders."""
    file = course.project / ".claude/skills/quiet/SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(f"---\ndescription: d\n---\n{body}\n")
    for folder in ("drafts", "sources"):
        (course.project / folder / "a.md").write_text(f"canary({folder}-a)\n")
    return file


def played(course: Course, *steps: Any, **more: Any) -> SessionRun:
    rules = [
        rule("interrupt", f"{each}/a.md", operations=("read",)) for each in ("drafts", "sources")
    ]
    options = course.options(
        spec={"tools": ["Bash"]},
        allow_unconfined_commands=True,
        ask="defer",
        permissions=rules,
        **more,
    )
    return asyncio.run(run_session(options, list(steps), home=course.home))


def agreed(course: Course, *steps: Any) -> str:
    """The session whose question about the skill a person has said yes to."""
    played(course, *steps)
    (question,) = pending_questions(course.run_dir)
    answer(question.question_id, approve(), run_dir=course.run_dir)
    return question.session_id


@pytest.mark.parametrize("folder", ["drafts", "sources"])
def test_it_counts_in_the_folder_where_it_was_asked(course: Course, folder: str) -> None:
    planted(course, "Look.")
    session = agreed(course, ToolCall("Bash", {"command": "cd drafts"}), SKILL)
    run = played(course, ToolCall("Bash", {"command": f"cd {folder}"}), SKILL, resume=session)
    assert run.saw("canary(drafts-a)") is (folder == "drafts")
    assert not run.saw("canary(sources-a)")


@pytest.mark.parametrize("changed", [False, True])
def test_it_counts_for_what_the_skill_mentioned_then(course: Course, changed: bool) -> None:
    file, skill = planted(course, "See @drafts/a.md please."), ToolCall("Skill", {"skill": "quiet"})
    session = agreed(course, skill)
    if changed:
        file.write_text(file.read_text().replace("drafts", "sources"))
    run = played(course, skill, resume=session)
    assert run.saw("canary(drafts-a)") is not changed
    assert not run.saw("canary(sources-a)")


@pytest.mark.parametrize("closed", [True, False])
def test_in_guarded_options_an_edit_opens_nothing_that_they_disallow(
    course: Course, closed: bool
) -> None:
    target = course.project / "drafts/x"
    target.write_text("x")
    given = ClaudeAgentOptions(
        tools=["Bash", "Read"],
        allowed_tools=["Bash"],
        disallowed_tools=["Bash(rm:*)"] if closed else [],
    )
    options = guard_options(
        given,
        course.config(
            allow_unconfined_commands=True,
            interrupt_on={"Bash": True},
            ask=lambda _asked: edit({"command": "rm drafts/x"}),
        ),
    )
    step = ToolCall("Bash", {"command": "mkdir -p drafts/q"})
    asyncio.run(run_session(options, [step], home=course.home))
    assert target.exists() is closed
