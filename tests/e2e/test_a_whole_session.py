"""Approval, audit, and the ways to start a session."""

from __future__ import annotations

import asyncio
import dataclasses
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import ResultMessage, create_sdk_mcp_server, query, tool

from agent_kit import Subagent, UnjudgedCallError, check_calls, open_session
from agent_kit.sdk.gate import GateLog
from agent_kit.session.options import options_from_plan
from agent_kit.testing import AnsweredBy, CallRecord, ScriptedModel, ToolCall, cli_env

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

# --- approval --------------------------------------------------------------------------------

ARGUMENTS: dict[str, Any] = {
    "path": "/etc/../etc/passwd",
    "file_path": " ~/x\u3000",
    "text": 'quotes " and \\ and \u00e9e\u0301 \U0001f600 \u2028 <b> @README.md $HOME\n\ttab',
    "numbers": [0, -1, 1.5, 10**15, True, None],
    "nested": {"a": {"b": [{"c": []}, ""]}, "": "empty name"},
    "empty": "",
}


def echo_server(got: list[dict[str, Any]]) -> Any:
    @tool("echo", "Keeps its arguments.", {"type": "object", "properties": {}, "required": []})
    async def echo(arguments: dict[str, Any]) -> dict[str, Any]:
        got.append(arguments)
        return {"content": [{"type": "text", "text": "kept"}]}

    return create_sdk_mcp_server("echo", tools=[echo])


def test_the_arguments_of_an_mcp_tool_arrive_unchanged(course: Course) -> None:
    got: list[dict[str, Any]] = []
    calls = [ToolCall("mcp__echo__echo", ARGUMENTS), ToolCall("mcp__echo__echo", {})]
    run = course.session([*calls, "Done."], spec={"mcp_servers": {"echo": echo_server(got)}})
    assert [call.lock for call in run.calls] == [AnsweredBy.RAN] * 2
    assert got == [ARGUMENTS, {}]


def test_the_tools_of_the_extensions_run_unasked(course: Course) -> None:
    run = course.session(
        [
            ToolCall("mcp__sources__list_sources", {}),
            ToolCall("mcp__knowledge__knowledge_index", {}),
            ToolCall("mcp__memory__recall", {"query": "x"}),
            "Done.",
        ]
    )
    assert [call.lock for call in run.calls] == [AnsweredBy.RAN] * 3


def test_a_tool_that_nobody_named_is_refused_with_the_kit_s_sentence(course: Course) -> None:
    """It exists here only because it was added to the options behind the kit's back."""
    options = course.options()
    assert isinstance(options.tools, list)
    more = dataclasses.replace(options, tools=[*options.tools, "Bash", "WebFetch"])
    run = course.run(
        more,
        [
            ToolCall("Bash", {"command": "python3 made.py", "description": "d"}),
            ToolCall("WebFetch", {"url": "https://example.org/", "prompt": "p"}),
            "Done.",
        ],
    )
    assert [call.lock for call in run.calls] == [AnsweredBy.RULES] * 2
    assert [call.result for call in run.calls] == [
        f'"{name}" isn\'t an allowed tool in this session.' for name in ("Bash", "WebFetch")
    ]


def test_tools_that_the_session_doesn_t_have_don_t_exist(course: Course) -> None:
    names = ("Bash", "WebFetch", "Monitor", "NotebookEdit", "Workflow", "CronCreate", "Task")
    calls = [
        ToolCall(name, {"command": f"touch {course.project}/made", "description": "d"})
        for name in names
    ]
    run = course.session([tuple(calls), "Done."])
    assert all(call.is_error for call in run.calls), run.calls
    assert not (course.project / "made").exists()


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"subagents": {"helper": Subagent(description="d", prompt="p")}},
        {"tools": ["ToolSearch", "NotebookEdit", "WebFetch"]},
        {"preset": "claude_code"},
    ],
    ids=["plain", "subagents", "tools", "preset"],
)
def test_a_built_session_raises_no_warning_of_the_sdk(spec: dict[str, Any], course: Course) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = course.session(
            [course.call("Read", file_path="sources/syllabus.md"), "Hello."], spec=spec
        )
    assert run.text == "Hello."
    assert course.seen(run) == {"syllabus"}


# --- skills ----------------------------------------------------------------------------------

MENTIONS = {
    "the project": "@README.md",
    "outside": "@<out>/secret.txt please",
    "home": "see @~/secret.txt",
    "denied": "@agent.config.json",
    "tools only": '@"knowledge/index.md"',
    "a folder's names": "@private/",
    "a link": "@sources/link.md",
}


@pytest.fixture(scope="module")
def skilled(new_course: Callable[[], Course]) -> tuple[Course, Any]:
    """A skill of the kit's own, with mentions in the model's words for it."""
    course = new_course()
    (course.project / "sources/link.md").symlink_to("../README.md")
    calls = [course.call("Skill", skill="sources:cite", args=args) for args in MENTIONS.values()]
    good = course.call("Skill", skill="sources:cite", args="@sources/syllabus.md")
    return course, course.session([*calls, good, "Done."])


@pytest.mark.parametrize("name", MENTIONS)
def test_a_mention_in_a_skill_s_arguments_is_judged(
    name: str, skilled: tuple[Course, Any], refused: Callable[[CallRecord], bool]
) -> None:
    _, run = skilled
    assert refused(run.calls[list(MENTIONS).index(name)])


def test_no_closed_file_came_with_a_skill(skilled: tuple[Course, Any]) -> None:
    course, run = skilled
    assert run.calls[-1].lock is AnsweredBy.RAN
    assert course.seen(run) == {"syllabus"}


def test_without_the_gate_a_skill_s_arguments_bring_files(course: Course) -> None:
    options = dataclasses.replace(course.options(), hooks={})
    run = course.run(
        options, [course.call("Skill", skill="sources:cite", args="@README.md"), "Done."]
    )
    assert course.seen(run) == {"readme"}


# --- audit -----------------------------------------------------------------------------------

CALLS = (
    ("Read", {"file_path": "sources/syllabus.md"}),
    ("Read", {"file_path": "README.md"}),
    ("Read", {"file_path": "agent.config.json"}),
    ("Grep", {"pattern": "canary", "path": "drafts"}),
    ("Write", {"file_path": "drafts/new.md", "content": "x"}),
)


def audited(course: Course, **replaced: Any) -> tuple[Any, GateLog]:
    log = GateLog()
    plan = course.plan(spec={"subagents": {"helper": Subagent(description="d", prompt="p")}})
    options = dataclasses.replace(options_from_plan(plan, log=log), **replaced)
    calls = [course.call(name, **fields) for name, fields in CALLS]
    start = {"description": "d", "prompt": "Help.", "subagent_type": "helper"}
    agent = ToolCall("Agent", {**start, "run_in_background": False}, script=[calls[0], "Done."])
    run = course.run(options, [*calls, agent, "Done."])
    assert len(run.calls) == len(CALLS) + 2
    return run, log


def test_the_audit_of_a_guarded_run_passes(course: Course) -> None:
    run, log = audited(course)
    check_calls(run.messages, log)
    assert len(log.seen) >= 4


def test_the_audit_finds_the_calls_of_a_run_that_lost_its_gate(course: Course) -> None:
    run, log = audited(course, hooks={})
    with pytest.raises(UnjudgedCallError, match="Read.*Grep.*Write"):
        check_calls(run.messages, log)


# --- ways to start ---------------------------------------------------------------------------


def closed_calls(course: Course) -> list[ToolCall]:
    return [
        course.call("Read", file_path="README.md"),
        course.call("Read", file_path="<out>/secret.txt"),
        course.call("Read", file_path="agent.config.json"),
        course.call("Grep", pattern="canary", output_mode="content"),
        course.call("Write", file_path="new.txt", content="x"),
    ]


def open_calls(course: Course) -> list[ToolCall]:
    return [
        course.call("Read", file_path="sources/syllabus.md"),
        course.call("Write", file_path="drafts/new.md", content="x"),
        ToolCall("mcp__sources__list_sources", {}),
        ToolCall("mcp__knowledge__knowledge_create", {"title": "A page", "content": "Text."}),
    ]


def check(course: Course, model: ScriptedModel, *, closed: int) -> None:
    assert model.error is None
    assert model.unplayed == ()
    results = [model.results[call.call_id] for call in model.issued]
    assert all(result.is_error for result in results[:closed]), results
    assert results[closed].is_error is False
    assert "created" in results[closed + 1].text
    assert not any(result.is_error for result in results[closed:][:3]), results
    assert any(request.saw("canary(syllabus)") for request in model.requests)
    for name in ("readme", "outside", "config", "letter", "knowledge"):
        assert not model.saw(f"canary({name})")
    assert not (course.project / "new.txt").exists()


async def test_query_with_a_text_holds_the_locks_as_well(course: Course) -> None:
    closed = closed_calls(course)
    with ScriptedModel([*closed, *open_calls(course), "The end."]) as model:
        options = course.options(env=cli_env(model, course.home))
        messages = [message async for message in query(prompt="Go.", options=options)]
    check(course, model, closed=len(closed))
    [result] = [message for message in messages if isinstance(message, ResultMessage)]
    assert result.result == "The end."


async def test_query_with_a_text_blocks_a_mention(course: Course) -> None:
    with ScriptedModel(lambda _: "Well.") as model:
        options = course.options(env=cli_env(model, course.home))
        async for _ in query(prompt="What is in @README.md?", options=options):
            pass
        assert not [request for request in model.requests if not request.side]
        async for _ in query(
            prompt="What is in @sources/syllabus.md?",
            options=course.options(env=cli_env(model, course.home)),
        ):
            pass
    assert model.saw("canary(syllabus)")
    assert not model.saw("canary(readme)")


async def test_open_session_connects_and_cleans_up(course: Course) -> None:
    closed = closed_calls(course)
    many = [f"private/{at:05}.txt" for at in range(400)]  # their rules go to a file
    with ScriptedModel([*closed, *open_calls(course), "The end."]) as model:
        config = course.config(
            env=cli_env(model, course.home), denied_paths=["agent.config.json", *many]
        )
        async with open_session(course.spec(), config) as session:
            path = session.options.settings
            assert path is not None
            assert path.startswith(str(course.run_dir))
            async with asyncio.timeout(60):
                await session.client.query("Go.")
                async for message in session.client.receive_response():
                    last = message
        assert isinstance(last, ResultMessage)
    check(course, model, closed=len(closed))
    left = [path.name for path in course.run_dir.rglob("*") if path.is_file()]
    assert not [name for name in left if "settings" in name or "mcp" in name], left


def test_several_prompts_of_one_session_are_all_guarded(
    course: Course, refused: Callable[[CallRecord], bool]
) -> None:
    read = course.call("Read", file_path="README.md")
    good = course.call("Read", file_path="sources/syllabus.md")
    run = course.session([read, "One.", read, good, "Two."], run={"prompt": ["First.", "Second."]})
    assert [refused(call) for call in run.calls] == [True, True, False]
    assert course.seen(run) == {"syllabus"}
