"""Each claim of the proof can fail: one that can't proves nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest
from claude_agent_sdk import AssistantMessage, ToolUseBlock

from agent_kit.cli import _proof
from agent_kit.cli._course import Canary, Course
from agent_kit.cli._play import Played
from agent_kit.cli._proof import Check, prove, prove_live
from agent_kit.cli._story import STORY, Story
from agent_kit.sdk.gate import GateLog
from agent_kit.testing import AnsweredBy, CallRecord, ScriptedModel


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as running:
        yield running


def ask(model: ScriptedModel, text: str) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": text}], "tools": [{}]}).encode()
    urlopen(Request(f"{model.url}/v1/messages", data=body, method="POST")).close()


def claim(checks: tuple[Check, ...], beginning: str) -> Check:
    (found,) = [check for check in checks if check.text.startswith(beginning)]
    return found


def proof(course: Course, model: ScriptedModel, played: Played | None = None) -> tuple[Check, ...]:
    return prove(course, STORY, model, played or Played(), GateLog())


def test_a_session_that_never_came_about_proves_nothing(
    course: Course, model: ScriptedModel
) -> None:
    holds = [check.text for check in proof(course, model) if check.ok]
    # With no call and no request only these are true, and they are not about the model.
    assert [text.split(" ")[0] for text in holds] == ["The", "The", "Every", "The", "Nothing"]
    assert not claim(proof(course, model), "None of the 7 canaries").ok


@pytest.mark.parametrize("number", range(7))
def test_a_canary_of_any_closed_file_in_a_request_is_a_leak_that_is_named(
    course: Course, model: ScriptedModel, number: int
) -> None:
    canary = course.closed[number]
    ask(model, f"I read: {canary.text}")
    check = claim(proof(course, model), "None of the 7 canaries")
    assert not check.ok
    assert check.details == (f"leaked: {canary.text} of {canary.name}, in #0.messages[0].content",)


def test_requests_without_a_canary_are_no_leak(course: Course, model: ScriptedModel) -> None:
    ask(model, "I read: nothing")
    assert claim(proof(course, model), "None of the 7 canaries").ok


def test_a_control_that_was_not_seen_fails(course: Course, model: ScriptedModel) -> None:
    ask(model, course.controls[0].text)
    found = [check.ok for check in proof(course, model) if check.text.startswith("The search")]
    assert found == [True, False]


def test_a_changed_original_and_a_removed_closed_file_are_named(
    course: Course, model: ScriptedModel
) -> None:
    (course.project / "sources" / "syllabus.md").write_text("The exam is on Friday.")
    (course.project / ".env").unlink()
    check = claim(proof(course, model), "The originals")
    assert not check.ok
    assert sorted(check.details) == ["changed: course/.env", "changed: course/sources/syllabus.md"]


def test_a_file_tool_call_that_the_gate_has_not_seen_is_named(
    course: Course, model: ScriptedModel
) -> None:
    call = ToolUseBlock(id="toolu_1", name="Read", input={"file_path": "x"})
    played = Played(messages=[AssistantMessage(content=[call], model="m")])
    check = claim(proof(course, model, played), "Every file tool call")
    assert not check.ok
    assert "toolu_1" in check.details[0]


def record(lock: AnsweredBy, result: str = "x") -> CallRecord:
    return CallRecord(
        call_id="toolu_1", tool="Read", input={}, result=result, is_error=True, lock=lock
    )


def test_an_answer_that_was_shown_but_not_sent_fails(course: Course, model: ScriptedModel) -> None:
    played = Played(calls={"toolu_1": record(AnsweredBy.GATE)})
    check = claim(proof(course, model, played), "The 1 answers above")
    assert (check.ok, len(check.details)) == (False, 1)


def test_one_lock_that_answers_everything_is_not_two(course: Course, model: ScriptedModel) -> None:
    played = Played(calls={"toolu_1": record(AnsweredBy.GATE)})
    assert claim(proof(course, model, played), "Lock 1 and lock 2").details == (
        "never answered: rules",
    )


def test_a_script_that_was_not_played_to_its_end_fails(course: Course) -> None:
    with ScriptedModel(STORY.script) as model:
        check = claim(prove(course, STORY, model, Played(), GateLog()), "The script was played")
    assert not check.ok
    assert len(check.details) == len(STORY.script)


def test_a_call_that_a_tool_refused_by_itself_was_not_denied_by_a_lock(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Story(prompts=(), script=(), scenes=tuple(s for s in STORY.scenes if s.refused)[:1])
    monkeypatch.setattr(_proof, "_record", lambda *_: record(AnsweredBy.TOOL))
    with ScriptedModel() as model:
        check = claim(prove(course, one, model, Played(), GateLog()), "0 of 1 calls that had to be")
    assert not check.ok
    assert check.details[0].endswith("was answered: tool")


def test_a_wish_for_another_host_fails(course: Course, model: ScriptedModel) -> None:
    request = Request("http://example.org/x")
    request.set_proxy(model.url.removeprefix("http://"), "http")
    with pytest.raises(OSError, match="403"):
        urlopen(request)
    check = claim(proof(course, model), "Nothing was wanted")
    assert check.details == ("wanted: http://example.org/x",)


# --- live ------------------------------------------------------------------------------------------


def transcript(course: Course, text: str) -> None:
    folder = course.home / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    (folder / "session.jsonl").write_text(text)


def test_a_live_session_of_which_nothing_is_known_proves_nothing(course: Course) -> None:
    assert not claim(prove_live(course, Played(), GateLog()), "None of the").ok


def test_a_live_session_without_a_canary_is_no_leak(course: Course) -> None:
    transcript(course, "hello")
    assert claim(prove_live(course, Played(), GateLog()), "None of the").ok


@pytest.mark.parametrize("number", range(7))
def test_a_canary_in_a_live_transcript_is_a_leak_that_is_named(course: Course, number: int) -> None:
    canary: Canary = course.closed[number]
    transcript(course, f'{{"text": "{canary.text}"}}')
    check = claim(prove_live(course, Played(), GateLog()), "None of the")
    assert check.details == (f"leaked: {canary.text} of {canary.name}",)


def test_a_canary_in_a_live_result_is_a_leak(course: Course) -> None:
    transcript(course, "hello")
    played = Played(calls={"toolu_1": record(AnsweredBy.RAN, course.closed[0].text)})
    assert not claim(prove_live(course, played, GateLog()), "None of the").ok
