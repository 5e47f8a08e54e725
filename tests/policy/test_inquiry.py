"""A tool's own question to a person: one answer, or a sentence why there is none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_kit.policy import sentences
from agent_kit.policy.approval import Approval, Unasked, approve, edit, reject
from agent_kit.policy.guard import Guard
from agent_kit.policy.judged import Judged
from agent_kit.policy.modes import SessionMode
from agent_kit.policy.policy import Call, Policy
from agent_kit.policy.running import RUNNING, Running
from agent_kit.scope import FileScope
from tests.people import Person

TOOL = "mcp__sources__request_file"
GIVEN = {"what": "the form", "file": ""}


class Asked:
    """A session's guard whose ``ask`` is given, and what it wrote down."""

    def __init__(self, ask: Any, mode: str = "guided") -> None:
        self.noted: list[Judged] = []
        policy = Policy(
            scope=FileScope(project_dir="/work"), mode=SessionMode(mode), session_id="s"
        )
        call = Call(
            tool=TOOL,
            tool_input={"what": "as the gate saw it"},
            cwd="/work/drafts",
            agent="helper",
            tool_use_id="use-1",
        )
        self.guard = Guard(
            policy=policy, ask=ask, note=self.noted.append, caller={"use-1": call}.get
        )

    async def __call__(self, tool_input: Any = GIVEN) -> Any:
        token = RUNNING.set(Running(use_id="use-1", arguments={"what": "as it runs"}))
        try:
            return await self.guard.inquire("It asks.", tool_input=tool_input, asks_for="file")
        finally:
            RUNNING.reset(token)

    @property
    def line(self) -> tuple[Any, ...]:
        """The one line of the trail: verdict, lock, code, whether somebody was asked, the answer."""
        (found,) = self.noted
        assert (found.tool, found.tool_use_id, found.agent) == (TOOL, "use-1", "helper")
        assert found.rule == f"answer[{TOOL}]"
        return found.verdict, found.lock, found.code, found.asked, found.answer


async def test_the_person_sees_the_running_call_the_question_and_the_field_to_fill_in() -> None:
    person = Person(reject())
    await Asked(person)()
    assert person.asked == [
        Approval(
            question_id="use-1",
            tool=TOOL,
            tool_input=GIVEN,
            reason="It asks.",
            agent="helper",
            cwd="/work/drafts",
            asks_for="file",
        )
    ]


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (edit({**GIVEN, "file": "/home/ada/f.pdf"}), ("allow", "person", None, True, "edited")),
        (approve(), ("allow", "person", None, True, "approved")),
        (reject("not mine"), ("deny", "person", "rejected", True, "rejected")),
    ],
)
async def test_what_they_say_is_the_answer_and_is_written_down(said: Any, line: Any) -> None:
    asked = Asked(Person(said))
    assert await asked() == said
    assert asked.line == line
    assert "/home/ada" not in str(asked.noted[0].tool_input)


@pytest.mark.parametrize("said", [None, True, "/home/ada/f.pdf", {"file": "x"}, edit, object()])
async def test_what_is_no_answer_is_none(said: Any) -> None:
    asked = Asked(lambda _approval: said)
    assert await asked() == Unasked(message=sentences.no_answer)
    assert asked.line == ("deny", "person", "extension-failed", True, None)


@pytest.mark.parametrize(
    "error", [ValueError("canary"), TimeoutError(), asyncio.CancelledError(), SystemExit(3)]
)
async def test_a_function_that_fails_is_no_answer_and_its_cause_stays_in_the_log(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask(_approval: Approval) -> Any:
        raise error

    asked = Asked(ask)
    assert await asked() == Unasked(message=sentences.no_answer)
    assert asked.line == ("deny", "person", "extension-failed", True, None)
    assert "the function that asks a person failed" in caplog.text


async def test_a_time_limit_of_the_host_s_own_is_no_answer() -> None:
    async def ask(_approval: Approval) -> Any:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()

    asked = Asked(ask)
    assert await asked() == Unasked(message=sentences.no_answer)


async def test_nobody_is_asked_where_nobody_is() -> None:
    asked = Asked(None)
    assert await asked() == Unasked(message="Nobody can be asked in this session.")
    assert asked.line == ("deny", "answer", "nobody-to-ask", False, None)

    person = Person()
    asked = Asked(person, "autonomous")
    assert await asked() == Unasked(message="Nobody is there in this session.")
    assert asked.line == ("deny", "answer", "nobody-to-ask", False, None)
    assert person.asked == []

    asked = Asked(Person(Unasked(message="There is no terminal.")))
    assert await asked() == Unasked(message="There is no terminal.")
    assert asked.line == ("deny", "answer", "nobody-to-ask", True, None)


async def test_a_call_that_is_stopped_has_no_answer_and_the_question_ends() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def ask(_approval: Approval) -> Any:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    asked = Asked(ask)
    waiting = asyncio.ensure_future(asked())
    await began.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.wait_for(ended.wait(), 5)
    assert asked.line == ("deny", "person", "aborted", True, None)


async def test_a_question_of_no_known_call_is_nobody_s_and_can_be_asked() -> None:
    person = Person(approve())
    guard = Guard(
        policy=Policy(scope=FileScope(project_dir="/work"), mode=SessionMode("guided")), ask=person
    )
    assert guard.calling() is None
    assert await guard.inquire("It asks.", tool_input=GIVEN, asks_for="file") == approve()
    (approval,) = person.asked
    assert (approval.tool, approval.agent, approval.question_id) == ("guard", None, "")


async def test_what_the_person_does_with_the_input_changes_no_call() -> None:
    given = {"what": ["the form"], "file": ""}

    def ask(approval: Approval) -> Any:
        approval.tool_input["what"].append("and more")
        return approve()

    await Asked(ask)(given)
    assert given == {"what": ["the form"], "file": ""}


def test_a_tool_learns_which_call_it_runs_for_with_the_arguments_that_it_runs_with() -> None:
    guard = Asked(None).guard
    token = RUNNING.set(Running(use_id="use-1", arguments={"what": "as it runs"}))
    try:
        call = guard.calling()
    finally:
        RUNNING.reset(token)
    assert call is not None
    assert (call.agent, call.tool_input) == ("helper", {"what": "as it runs"})
    assert guard.calling() is None
