"""What a project's control files lead to is as closed to writing as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_kit import (
    AgentSpec,
    SessionConfig,
    build_session_options,
    check_file_scope,
    plan_session,
)
from agent_kit.session.plan import SessionPlan
from agent_kit.testing import AnsweredBy, ToolCall, run_session, tree

SPEC = AgentSpec(name="writer", system_prompt="Write.")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path.resolve() / "w"
    tree(root, ["docs/rules.md=old", "docs/other.md=old", "skills/a/SKILL.md=old", ".claude/"])
    os.symlink("docs/rules.md", root / "CLAUDE.md")
    os.symlink("docs/new.md", root / "AGENTS.md")
    os.symlink("../skills", root / ".claude/skills")
    return root


def config(project: Path, **more: object) -> SessionConfig:
    home = project.parent / "home"
    home.mkdir(exist_ok=True)
    folders = [str(project / name) for name in ("docs", "skills")]
    given = {"workspace": project, "extra_writable_dirs": folders, "confinement": "off"}
    return SessionConfig(**given, env={"ANTHROPIC_API_KEY": "sk-made-up"}, **more)  # type: ignore[arg-type]


def refusals(plan: SessionPlan) -> dict[str, bool]:
    names = ("docs/rules.md", "docs/new.md", "skills/a/SKILL.md", "docs/other.md")
    given = ({"file_path": name, "content": "new"} for name in names)
    return {
        each["file_path"]: check_file_scope(plan.scope, "Write", each) is not None for each in given
    }


def test_what_a_linked_control_file_leads_to_is_not_written(project: Path) -> None:
    plan = plan_session(SPEC, config(project))
    assert refusals(plan) == {
        "docs/rules.md": True,
        "docs/new.md": True,
        "skills/a/SKILL.md": True,
        "docs/other.md": False,
    }
    assert f"Edit(/{project}/docs/rules.md)" in plan.rules.deny
    assert [note for note in plan.notes if "docs/rules.md is read-only" in note]


def test_whoever_opens_control_files_opens_that_as_well(project: Path) -> None:
    plan = plan_session(SPEC, config(project, writable_control_files=True))
    assert not any(refusals(plan).values())
    assert not [note for note in plan.notes if "is read-only" in note]


@pytest.mark.e2e
@pytest.mark.parametrize("opened", [False, True])
async def test_a_session_writes_no_instructions_through_a_link(project: Path, opened: bool) -> None:
    options = build_session_options(SPEC, config(project, writable_control_files=opened))
    steps = [
        ToolCall("Write", {"file_path": str(project / name), "content": "new"})
        for name in ("docs/new.md", "docs/other.md")
    ]
    run = await run_session(options, steps, home=project.parent / "home")
    ran = [call.lock is AnsweredBy.RAN for call in run.calls]
    assert (project / "docs/new.md").exists() is opened
    assert ran[0] is opened
