"""The examples with a session, on the real CLI and the scripted model."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_kit.cli._agent import course_spec
from agent_kit.testing import (
    AnsweredBy,
    Say,
    ScriptedModel,
    SessionRun,
    ToolCall,
    run_session,
    tree,
)

pytestmark = pytest.mark.e2e

REFUSED = (AnsweredBy.GATE, AnsweredBy.RULES)


def refused(run: SessionRun) -> list[bool]:
    """Of each call whether a lock refused it; ``ValueError`` for one that failed otherwise."""
    answers = [call.lock for call in run.calls]
    if strange := [lock for lock in answers if lock not in (*REFUSED, AnsweredBy.RAN)]:
        raise ValueError(f"{strange}: {[call.result for call in run.calls]}")
    return [lock in REFUSED for lock in answers]


# --- guarded_session.py ----------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tree(
        tmp_path / "folder", ["notes.md=control-notes", ".env=canary-env", "a/.env=canary-a"]
    )


async def test_the_smallest_session_reads_its_folder_and_no_env_file(
    example: Callable[..., Any], session: Callable[..., Any], folder: Path
) -> None:
    script = [
        ToolCall("Read", {"file_path": "notes.md"}),
        ToolCall("Grep", {"pattern": "canary|control", "output_mode": "content"}),
        ToolCall("Read", {"file_path": ".env"}),
        ToolCall("Read", {"file_path": "a/.env"}),
        ToolCall("Read", {"file_path": "../home/.claude.json"}),
        Say("Notes."),
    ]
    run = await session(example("guarded_session"), folder, script, "What is in here?")
    assert refused(run) == [False, False, True, True, True]
    assert "control-notes" in run.calls[1].result
    assert run.saw("control-notes")
    assert not run.saw("canary-")


def test_the_smallest_session_started_by_hand_prints_the_answer(
    by_hand: Callable[..., Any], folder: Path
) -> None:
    script = [ToolCall("Read", {"file_path": ".env"}), Say("There are notes.")]
    with ScriptedModel(script) as model:
        done = by_hand("guarded_session", str(folder), "What is in here?", model=model)
    assert (done.returncode, done.stdout, done.stderr) == (0, "There are notes.\n", "")
    assert model.saw("What is in here?")
    assert model.unplayed == ()
    assert not model.saw("canary-")


# --- guard_existing_options.py ---------------------------------------------------------------------


async def test_options_that_one_has_are_guarded_and_their_hook_still_runs(
    example: Callable[..., Any], folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder.parent / "state"))
    names = ("notes.md", ".env", "a/.env")
    script = [*(ToolCall("Read", {"file_path": str(folder / name)}) for name in names), Say("x")]
    module = example("guard_existing_options")
    home = folder.parent / "home"
    home.mkdir()
    run = await run_session(module.guarded(str(folder)), script, home=home)
    assert refused(run) == [False, True, True]
    assert "[Read]" in capsys.readouterr().out
    assert run.saw("control-notes")
    assert not run.saw("canary-")
    bare = dataclasses.replace(module.OPTIONS, cwd=str(folder))
    assert (await run_session(bare, script, home=home)).saw("canary-env")


def test_guarded_options_started_by_hand_name_their_locks_and_answer(
    by_hand: Callable[..., Any], folder: Path
) -> None:
    script = [
        ToolCall("Read", {"file_path": ".env"}),
        ToolCall("Read", {"file_path": "notes.md"}),
        Say("There are notes."),
    ]
    with ScriptedModel(script) as model:
        done = by_hand("guard_existing_options", str(folder), "What is in here?", model=model)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert lines[0].startswith("locks: gate rules prompts")
    assert lines[1:] == ["[Read]", "There are notes."]
    assert model.unplayed == ()
    assert model.saw("control-notes")
    assert not model.saw("canary-")


# --- course_assistant.py ---------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path: Path) -> Path:
    return tree(
        tmp_path / "course",
        [
            "sources/syllabus.md=The exam is on Monday. control-syllabus",
            "sources/essay.md=An essay. control-essay",
            "drafts/newsletter.md=The exam is on DATE.",
            "agent.config.json=canary-config",
            ".env=canary-env",
            "README.md=canary-readme",
            "memory/fact/health.md=canary-health",
        ],
    )


async def test_the_course_assistant_works_in_its_folders_and_nowhere_else(
    example: Callable[..., Any], session: Callable[..., Any], course: Path
) -> None:
    reviewer = [
        ToolCall("Read", {"file_path": "sources/essay.md"}),
        ToolCall("Read", {"file_path": "README.md"}),
        Say("A sound essay."),
    ]
    page = {"type": "concept", "title": "Exam", "body": "On Monday."}
    script = [
        ToolCall("Read", {"file_path": "sources/syllabus.md"}),
        ToolCall(
            "Edit",
            {"file_path": "drafts/newsletter.md", "old_string": "DATE", "new_string": "Monday"},
        ),
        ToolCall("mcp__knowledge__knowledge_create", {"pages": [page]}),
        ToolCall("mcp__memory__remember", {"note": "Likes Mondays.", "quote": "I like Mondays"}),
        ToolCall(
            "Agent",
            {
                "subagent_type": "reviewer",
                "description": "Review the essay",
                "prompt": "Comment on sources/essay.md.",
                "run_in_background": False,
            },
            script=reviewer,
        ),
        *(
            ToolCall("Read", {"file_path": name})
            for name in ("agent.config.json", ".env", "memory/fact/health.md")
        ),
        ToolCall("Write", {"file_path": "sources/new.md", "content": "x"}),
        ToolCall("Grep", {"pattern": "canary", "path": "."}),
        Say("Done."),
    ]
    run = await session(example("course_assistant"), course, script, "When? I like Mondays.")
    assert run.unplayed == ()
    assert refused(run) == [False] * 6 + [True] * 6
    assert [call.agent for call in run.calls[5:7]] == ["reviewer", "reviewer"]
    assert (course / "drafts/newsletter.md").read_text() == "The exam is on Monday."
    assert (course / "knowledge/concept/exam.md").is_file()
    assert run.saw("control-syllabus")
    assert run.saw("control-essay")
    assert not run.saw("canary-")


def test_the_course_assistant_started_by_hand_names_its_locks_and_answers(
    by_hand: Callable[..., Any], course: Path
) -> None:
    script = [ToolCall("Read", {"file_path": "agent.config.json"}), Say("On Monday.")]
    with ScriptedModel(script) as model:
        done = by_hand("course_assistant", str(course), "When is the exam?", model=model)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == [
        "gate: on",
        "rules: on",
        "prompts: on",
        "kernel: on",
        "On Monday.",
    ]
    assert model.unplayed == ()
    assert not model.saw("canary-")


def test_the_demo_runs_the_course_assistant_itself(example: Callable[..., Any]) -> None:
    assert course_spec() == example("course_assistant").SPEC


# --- my_extension.py -------------------------------------------------------------------------------


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    return tree(
        tmp_path / "marked",
        [
            "marks/essay-1.txt=1.25\n2.25\n3.25\n4.25\n5.25\n",
            "marks/essay-2.txt=1.125\n",
            "secret.txt=9.75\n9.75\n9.75\n9.75\n9.75\n",
            "plan.md=control-plan",
        ],
    )


def average(task: str) -> ToolCall:
    return ToolCall("mcp__marks__average_mark", {"task": task})


async def test_the_extensions_tool_tells_an_average_and_no_file_tool_opens_its_folder(
    example: Callable[..., Any], session: Callable[..., Any], marked: Path
) -> None:
    script = [
        average("essay-1"),
        average("essay-2"),
        average("../secret"),
        ToolCall("Read", {"file_path": "plan.md"}),
        ToolCall("Read", {"file_path": "marks/essay-1.txt"}),
        ToolCall("Glob", {"pattern": "*", "path": "marks"}),
        ToolCall("Grep", {"pattern": "1.25", "path": "."}),
        Say("3.2 on average."),
    ]
    run = await session(example("my_extension"), marked, script, "How did they do?")
    assert refused(run) == [False] * 4 + [True] * 3
    assert [call.result for call in run.calls[:3]] == [
        "3.2",
        "Fewer than five marks: not told.",
        "Fewer than five marks: not told.",
    ]
    assert all("average_mark" in call.result for call in run.calls[4:])
    assert run.saw("control-plan")
    assert [mark for mark in ("2.25", "4.25", "1.125", "9.75") if run.saw(mark)] == []


def test_the_extension_started_by_hand_prints_the_answer(
    by_hand: Callable[..., Any], marked: Path
) -> None:
    with ScriptedModel([average("essay-1"), Say("3.2 on average.")]) as model:
        done = by_hand("my_extension", str(marked), "How did they do?", model=model)
    assert (done.returncode, done.stdout, done.stderr) == (0, "3.2 on average.\n", "")
    assert model.unplayed == ()


async def test_without_its_folder_the_extension_is_inactive_and_says_why(
    example: Callable[..., Any], tmp_path: Path
) -> None:
    from agent_kit import plan_session

    module = example("my_extension")
    plan = plan_session(module.SPEC, module.config(str(tmp_path)))
    assert plan.inactive == {"marks": "there is no folder marks/."}


def test_the_extension_takes_thirty_lines(example: Callable[..., Any]) -> None:
    lines = inspect.getsource(example("my_extension").Marks).splitlines()
    assert len([line for line in lines if line.strip()]) <= 30


# --- all -------------------------------------------------------------------------------------------


def test_every_example_is_tested_and_says_how_to_start_it(example: Callable[..., Any]) -> None:
    files = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
    tests = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    for file in files:
        assert f'by_hand("{file.stem}"' in tests
        assert f"    python examples/{file.name}" in (example(file.stem).__doc__ or "")
    assert len(files) == 7
