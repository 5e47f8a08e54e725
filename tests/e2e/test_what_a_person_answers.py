"""Tools that only a person can answer, on the real CLI: AskUserQuestion and ExitPlanMode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, PermissionResultAllow

from agent_kit import Approval, approve, edit, guard_options, reject
from agent_kit.scope import ConfigError
from agent_kit.testing import AnsweredBy, ToolCall
from tests.people import Person

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

OPTIONS = [{"label": "red", "description": "r"}, {"label": "blue", "description": "b"}]
QUESTION = {"question": "Which?", "header": "Colour", "options": OPTIONS, "multiSelect": False}
ASKS = ToolCall("AskUserQuestion", {"questions": [QUESTION]})
PLANS = ToolCall("ExitPlanMode", {"plan": "Write the letter."})


def answered(approval: Approval) -> Any:
    return edit({**approval.tool_input, "answers": {"Which?": "blue"}})


@pytest.mark.parametrize("mode", ["guided", "plan", "interactive"])
def test_a_question_reaches_the_person_and_the_answer_the_model(mode: str, course: Course) -> None:
    person = Person(answered, approve(remember=True), reject("later"), answered)
    run = course.session(
        [ASKS, ASKS, ASKS, ASKS, "Done."],
        spec={"tools": ["AskUserQuestion"]},
        ask=person,
        mode=mode,
    )
    assert [call.lock is AnsweredBy.RAN for call in run.calls] == [True, True, False, True]
    assert "blue" in (run.calls[0].result or "")
    assert "later" in (run.calls[2].result or "")
    assert [asked.rule for asked in person.asked] == ["answer[AskUserQuestion]"] * 4


def test_a_plan_is_shown_to_the_person(course: Course) -> None:
    person = Person(reject("shorter"), approve())
    run = course.session(
        [PLANS, PLANS, "Done."],
        spec={"tools": ["ExitPlanMode"]},
        ask=person,
        permission_mode="plan",
    )
    assert [asked.tool for asked in person.asked] == ["ExitPlanMode"] * 2
    assert "shorter" in (run.calls[0].result or "")
    assert run.calls[1].lock is AnsweredBy.RAN


def test_a_hosts_own_callback_answers_in_a_guarded_session(course: Course) -> None:
    asked: list[str] = []

    async def host(tool: str, given: dict[str, Any], _context: Any) -> Any:
        asked.append(tool)
        return PermissionResultAllow(updated_input={**given, "answers": {"Which?": "blue"}})

    options = ClaudeAgentOptions(tools=["AskUserQuestion"], can_use_tool=host)
    run = course.run(guard_options(options, course.config()), [ASKS, "Done."])
    assert "blue" in (run.calls[0].result or "")
    assert asked == ["AskUserQuestion"]


def test_in_an_autonomous_session_nobody_is_asked(course: Course) -> None:
    person = Person()
    run = course.session(
        [ASKS, "Done."], spec={"tools": ["AskUserQuestion"]}, ask=person, mode="autonomous"
    )
    assert run.calls[0].is_error
    assert "Nobody is there" in (run.calls[0].result or "")
    assert person.asked == []


@pytest.mark.parametrize("tool", ["AskUserQuestion", "ExitPlanMode"])
@pytest.mark.parametrize("ask", [None, "defer"])
def test_where_nobody_answers_the_session_isnt_built(tool: str, ask: Any, course: Course) -> None:
    with pytest.raises(ConfigError, match="only a person can answer it"):
        course.options(spec={"tools": [tool]}, ask=ask)
