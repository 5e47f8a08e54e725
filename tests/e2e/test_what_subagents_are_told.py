"""A subagent is told of every skill and agent that lies about; the session's settings hide them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_kit.testing import ToolCall

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

AGENT = "---\nname: outsider\ndescription: canary(description)\n---\ncanary(body)\n"
# Where a project has the name, what it leads to, and what of it would be seen.
PLANTED = (
    (".claude/skills/commit/SKILL.md", "out/secret.txt", "outside"),
    (".claude/commands/c.md", "course/private/letter.txt", "letter"),
    (".claude/skills/env/SKILL.md", "course/.env", "env"),
    (".claude/agents/a.md", "out/agent.md", "description"),
    ("sources/.claude/skills/nested/SKILL.md", "home/secret.txt", "home"),
    ("drafts/deep/er/.claude/skills/deeper/SKILL.md", "course/README.md", "readme"),
)


@pytest.fixture
def prepared(course: Course) -> Course:
    (course.out / "agent.md").write_text(AGENT)
    for name, target, _ in PLANTED:
        path = course.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(course.root / target)
    (course.project / "drafts/deep/er/note.md").write_text("a note")
    return course


def start(agent: str, *script: Any) -> ToolCall:
    asked = {"description": "d", "prompt": "p", "subagent_type": agent, "run_in_background": False}
    return ToolCall("Agent", asked, script=[*script, "Done."])


def session(course: Course, *, hidden: bool) -> set[str]:
    options = course.options(spec={"tools": ["Agent"]})
    if not hidden:
        text = options.settings or ""
        settings = json.loads(text if text.startswith("{") else Path(text).read_text())
        del settings["skillOverrides"]
        deny = settings["permissions"]["deny"]
        settings["permissions"]["deny"] = [rule for rule in deny if "Agent(" not in rule]
        options = replace(options, settings=json.dumps(settings))
    look = [
        course.call("Read", file_path="<course>/sources/syllabus.md"),
        course.call("Read", file_path="<course>/drafts/deep/er/note.md"),
        course.call("Glob", pattern="*", path="drafts"),
    ]
    return course.seen(course.run(options, [start("general-purpose", *look), "Done."]))


def test_a_linked_skill_command_or_agent_tells_nothing_of_a_closed_file(prepared: Course) -> None:
    closed = {canary for _, _, canary in PLANTED} | {"body"}
    assert not closed & session(prepared, hidden=True)


def test_without_the_overrides_it_tells_it(prepared: Course) -> None:
    """The control: each door is open by itself."""
    told = session(prepared, hidden=False)
    assert {canary for _, _, canary in PLANTED} <= told


def test_an_agent_whose_file_is_closed_can_not_be_started(prepared: Course) -> None:
    plan = prepared.plan(spec={"tools": ["Agent"]})
    assert "Agent(outsider)" in plan.settings["permissions"]["deny"]
    assert any("'outsider' is refused" in note for note in plan.notes)
    options = prepared.options(spec={"tools": ["Agent"]})
    call = ToolCall("Agent", {"description": "d", "prompt": "p", "subagent_type": "outsider"})
    run = prepared.run(options, [call, "Done."])
    assert run.calls[0].is_error
    assert "body" not in prepared.seen(run)


def test_an_honest_project_keeps_its_skills_and_agents(course: Course) -> None:
    skill = course.project / ".claude/skills/cite/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: cite\ndescription: canary(cite)\n---\nCite.")
    agent = course.project / ".claude/agents/helper.md"
    agent.parent.mkdir(parents=True)
    agent.write_text("---\nname: helper\ndescription: canary(helper)\n---\ncanary(help)")
    options = course.options(spec={"tools": ["Agent"]})
    run = course.run(options, [start("helper"), "Done."])
    assert {"cite", "helper", "help"} <= course.seen(run)
