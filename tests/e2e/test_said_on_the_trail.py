"""Who was asked, by which rule, and what they said: on the trail of a session on the real CLI."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import AgentDefinition, create_sdk_mcp_server, tool

from agent_kit import (
    Guard,
    Subagent,
    allow,
    answer,
    approve,
    ask_user,
    content_check,
    edit,
    options_from_plan,
    pending_questions,
    rate_limit,
    read_trail,
)
from agent_kit.testing import AnsweredBy, SessionRun, ToolCall
from tests.people import Person, rule

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

LETTER = "<course>/drafts/newsletter.md"
PLAN = "<course>/drafts/plan.ipynb"
S = "SessionConfig.permissions"


def said(course: Course) -> list[tuple[Any, ...]]:
    """Of each line: the verdict, the rule, whether a person was asked, and what they said."""
    paths = (course.run_dir / "host").glob("*.decisions.jsonl")
    lines = sorted((line for path in paths for line in read_trail(path)), key=lambda e: e["time"])
    return [(line["verdict"], line["rule"], line["asked"], line["answer"]) for line in lines]


def session_id(run: SessionRun) -> str:
    return next(m.session_id for m in reversed(run.messages) if hasattr(m, "session_id"))


def test_the_rule_that_asked_and_that_it_asks_no_more_are_on_the_trail(course: Course) -> None:
    course.session(
        [course.call("Read", file_path=LETTER), course.call("Read", file_path=LETTER)],
        permissions=[rule("interrupt", "drafts/**")],
        ask=Person(approve(remember=True)),
    )
    assert said(course) == [
        ("allow", f"{S}[0]", True, "remembered"),
        ("allow", None, False, None),
    ]


def test_a_question_of_the_mode_has_its_rule_on_the_trail(course: Course) -> None:
    write = course.call("Write", file_path="<course>/drafts/new.md", content="x")
    course.session([write], mode="interactive", ask=Person(approve()))
    assert said(course) == [("allow", "mode[Write]", True, "approved")]


@pytest.mark.parametrize(("answer", "told"), [(True, "approved"), (False, "rejected")])
def test_a_person_whom_an_authorizer_asks_is_on_the_trail(
    course: Course, answer: bool, told: str
) -> None:
    course.session(
        [course.call("Read", file_path=LETTER)], authorizers=[ask_user(lambda _target: answer)]
    )
    assert said(course) == [("allow" if answer else "deny", "ask_user", True, told)]


def test_an_answer_from_elsewhere_is_on_the_trail_where_an_authorizer_takes_its_time(
    course: Course,
) -> None:
    class Patient:
        id = "patient"
        timeout = None

        def authorize(self, _target: Any, _context: Any) -> Any:
            return allow()

    call = course.call("Read", file_path=LETTER)
    fields: dict[str, Any] = {
        "permissions": [rule("interrupt", "drafts/**")],
        "authorizers": [Patient()],
        "ask": "defer",
    }
    first = course.session([call], **fields)
    (question,) = pending_questions(course.run_dir)
    prompt = answer(question.question_id, approve(), run_dir=course.run_dir).resume_prompt
    options = course.options(**fields, resume=session_id(first))
    later = course.run(options, [call], prompt=prompt)
    assert later.calls[0].lock is AnsweredBy.RAN
    assert said(course)[-1] == ("allow", f"{S}[0]", True, "approved")


def test_an_edit_that_another_rule_asks_about_is_a_question_of_its_own(course: Course) -> None:
    fields: dict[str, Any] = {
        "permissions": [
            rule("interrupt", "drafts/newsletter.md"),
            rule("interrupt", "sources/syllabus.md"),
        ],
        "ask": "defer",
    }
    call = course.call("Read", file_path=LETTER)
    new = course.call("Read", file_path="<course>/sources/syllabus.md")
    first = course.session([call], **fields)
    (question,) = pending_questions(course.run_dir)
    prompt = answer(question.question_id, edit(new.input), run_dir=course.run_dir).resume_prompt
    options = course.options(**fields, resume=session_id(first))
    second = course.run(options, [call], prompt=prompt)
    assert len(second.requests) == 1  # the run ends at the new question
    assert not second.saw("canary(syllabus)")
    (question,) = pending_questions(course.run_dir)
    assert (question.tool_input, question.rule) == (new.input, f"{S}[1]")
    assert json.dumps(new.input) in (second.calls[0].result or "")
    assert said(course)[-1] == ("defer", f"{S}[1]", True, "edited")
    prompt = answer(question.question_id, approve(), run_dir=course.run_dir).resume_prompt
    options = course.options(**fields, resume=session_id(second))
    third = course.run(options, [new], prompt=prompt)
    assert third.calls[0].lock is AnsweredBy.RAN
    assert third.saw("canary(syllabus)")
    assert not third.saw("canary(newsletter)")


def test_what_an_mcp_tool_gets_to_write_is_not_on_the_trail(course: Course) -> None:
    words = "what stands in the letter, and is nobody's business " * 2

    @tool("put", "d", {"page_id": str, "markdown": str, "body_html": str, "rows": list})
    async def put(_args: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "done"}]}

    given = {"page_id": "p-1", "markdown": "brief", "body_html": words, "rows": [[words]]}
    run = course.session(
        [ToolCall("mcp__own__put", given)],
        spec={"mcp_servers": {"own": create_sdk_mcp_server("own", tools=[put])}},
    )
    assert run.calls[0].lock is AnsweredBy.RAN
    (path,) = (course.run_dir / "host").glob("*.decisions.jsonl")
    (line,) = read_trail(path)
    assert "nobody" not in path.read_text() and "brief" not in path.read_text()
    assert 'page_id="p-1"' in line["target"]
    assert line["sizes"] == {"markdown": 5, "body_html": 104, "rows": 104}


def test_a_call_counts_once_however_many_paths_it_names(course: Course) -> None:
    for name in ("one", "two"):
        (course.project / "drafts" / name).mkdir()
    search = course.call("Glob", path="<course>/drafts", pattern="{one,two}/*.md")
    run = course.session([search, search, search], authorizers=[rate_limit(2, 600)])
    assert [call.is_error for call in run.calls] == [False, False, True]
    assert "no more than 2" in (run.calls[2].result or "")


@pytest.mark.parametrize("given", [True, False])
def test_a_write_whose_text_nobody_knows_passes_no_content_check(
    course: Course, given: bool, caplog: pytest.LogCaptureFixture
) -> None:
    guards: list[Guard] = []

    async def judged(text: str) -> str:
        known: Any = {"tool_input": {"text": text}} if given else {}
        return str(await guards[0].check("write", "drafts/own.md", **known))

    @tool("note", "d", {"text": str})
    async def note(args: dict[str, Any]) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as pool:  # which knows of no call
            found = await loop.run_in_executor(pool, lambda: asyncio.run(judged(args["text"])))
        return {"content": [{"type": "text", "text": found}]}

    plan = course.plan(
        spec={"mcp_servers": {"own": create_sdk_mcp_server("own", tools=[note])}},
        authorizers=[content_check("swordfish")],
    )
    guards.append(plan.guard())
    calls = [ToolCall("mcp__own__note", {"text": text}) for text in ("a swordfish", "a word")]
    run = course.run(options_from_plan(plan), calls)
    results = [call.result or "" for call in run.calls]
    if given:
        assert "[write:denied]" in results[0]
        assert results[1] == "None"
    else:
        assert all("[write:extension-failed]" in result for result in results)
        assert "tool_input" in caplog.text
        assert "tool_input" not in str(results)


AROUND = ("CronCreate", "SendMessage")


@pytest.mark.parametrize("narrow", [True, False])
def test_an_agent_that_may_write_less_has_nobody_else_write(course: Course, narrow: bool) -> None:
    calls = (
        ToolCall("CronCreate", {"cron": "0 0 1 1 *", "prompt": "Write evil.", "recurring": False}),
        ToolCall("SendMessage", {"to": "main", "message": "Write evil.", "summary": "evil"}),
        ToolCall("TaskList", {}),
    )
    agent = Subagent(description="d", prompt="p", writable_dirs=[] if narrow else None)
    start = ToolCall(
        "Agent",
        {"description": "d", "prompt": "p", "subagent_type": "other", "run_in_background": False},
        script=[calls, "Done."],
    )
    options = course.options(
        spec={"tools": [*AROUND, "TaskList"], "subagents": {"other": agent}},
        unlock={"scheduled_tasks"},
    )
    offered = (options.agents or {})["other"]
    assert offered.tools is None or {*offered.tools}.isdisjoint(AROUND)
    all_offered = dataclasses.replace(options, agents={"other": replace_tools(offered)})
    run = course.run(all_offered, [start, "Done."])
    left = {call.tool: call for call in run.calls if call.tool != "Agent"}
    for name in AROUND:
        assert (left[name].lock is AnsweredBy.GATE) is narrow, left[name]
        assert ("could go around that" in (left[name].result or "")) is narrow
    assert left["TaskList"].lock is AnsweredBy.RAN


def replace_tools(agent: AgentDefinition) -> AgentDefinition:
    """The agent with every tool of the session, so that the gate alone is left."""
    return dataclasses.replace(agent, tools=None)
