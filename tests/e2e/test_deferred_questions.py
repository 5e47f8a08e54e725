"""``ask="defer"``: the run ends at the question, and a later one, in another process, has the answer."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import HookMatcher

from agent_kit import ConfigError, FilePermission, Question, pending_questions
from agent_kit.testing import AnsweredBy, SessionRun

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

LETTER = "<course>/drafts/newsletter.md"
RULES = [FilePermission(operations=["read", "write"], paths=["drafts/**"], mode="interrupt")]


def paused(course: Course, call: Any) -> tuple[SessionRun, Question]:
    """The run that ends with a question, and the question."""
    options = course.options(permissions=RULES, ask="defer")
    first = course.run(options, [call])
    (question,) = pending_questions(course.run_dir)
    return first, question


def answered_elsewhere(course: Course, question: Question, said: str) -> str:
    """Answer in a process that knows the run folder and the question's id alone."""
    code = (
        "import sys\nfrom agent_kit import answer, approve, edit, reject\n"
        f"print(answer(sys.argv[1], {said}, run_dir=sys.argv[2]).resume_prompt)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, question.question_id, str(course.run_dir)],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def resumed(course: Course, first: SessionRun, prompt: str, *steps: Any) -> SessionRun:
    session = next(m.session_id for m in reversed(first.messages) if hasattr(m, "session_id"))
    options = course.options(permissions=RULES, ask="defer", resume=session)
    return course.run(options, list(steps), prompt=prompt)


def test_the_run_ends_with_the_question_and_nothing_of_the_file_is_seen(course: Course) -> None:
    first, question = paused(course, course.call("Read", file_path=LETTER))
    assert len(first.requests) == 1  # the model isn't asked what to do instead
    assert first.calls[0].is_error
    assert not first.saw("canary(newsletter)")
    assert question.tool == "Read"
    assert question.tool_input == {"file_path": course.text(LETTER)}
    assert question.rule == "SessionConfig.permissions[0]"


def test_an_approval_from_another_process_lets_the_same_call_run_once(course: Course) -> None:
    call = course.call("Read", file_path=LETTER)
    first, question = paused(course, call)
    prompt = answered_elsewhere(course, question, "approve()")
    later = resumed(course, first, prompt, call)
    assert later.calls[0].lock is AnsweredBy.RAN
    assert later.saw("canary(newsletter)")
    assert pending_questions(course.run_dir) == ()
    third = resumed(course, first, "Again.", call)
    assert third.calls[0].is_error
    assert len(pending_questions(course.run_dir)) == 1


def test_a_rejection_is_told_to_the_model(course: Course) -> None:
    call = course.call("Read", file_path=LETTER)
    first, question = paused(course, call)
    prompt = answered_elsewhere(course, question, "reject('it is private')")
    assert prompt.endswith("Go on without it. They say: it is private")
    later = resumed(course, first, prompt, call)
    assert "it is private" in (later.calls[0].result or "")
    assert not later.saw("canary(newsletter)")


@pytest.mark.parametrize(
    ("path", "seen"), [("sources/syllabus.md", "syllabus"), ("private/letter.txt", None)]
)
def test_an_edit_is_judged_from_the_start(course: Course, path: str, seen: str | None) -> None:
    call = course.call("Read", file_path=LETTER)
    first, question = paused(course, call)
    new = json.dumps({"file_path": str(course.project / path)})
    later = resumed(course, first, answered_elsewhere(course, question, f"edit({new})"), call)
    assert later.calls[0].is_error is (seen is None)
    for name in ("newsletter", "syllabus", "letter"):
        assert later.saw(f"canary({name})") is (name == seen)


def test_a_file_that_changed_meanwhile_is_not_what_was_approved(course: Course) -> None:
    call = course.call("Read", file_path=LETTER)
    first, question = paused(course, call)
    (course.project / "drafts/newsletter.md").write_text("canary(swapped)")
    prompt = answered_elsewhere(course, question, "approve()")
    later = resumed(course, first, prompt, call)
    assert later.calls[0].is_error
    assert not later.saw("canary(swapped)")


@pytest.mark.parametrize("said", ["edit({})", None])
def test_an_edit_of_a_file_that_changed_meanwhile_and_an_empty_one_are_refused(
    course: Course, said: str | None
) -> None:
    call = course.call("Read", file_path=LETTER)
    first, question = paused(course, call)
    if said is None:
        said = f"edit({json.dumps({'file_path': course.text(LETTER), 'limit': 5})})"
        (course.project / "drafts/newsletter.md").write_text("canary(swapped)")
    later = resumed(course, first, answered_elsewhere(course, question, said), call)
    assert later.calls[0].is_error
    assert not later.saw("canary(swapped)")
    assert not later.saw("canary(newsletter)")


def test_an_answer_is_for_the_call_that_was_asked_about(course: Course) -> None:
    first, question = paused(course, course.call("Read", file_path=LETTER))
    prompt = answered_elsewhere(course, question, "approve()")
    other = course.call("Read", file_path="<course>/drafts/plan.ipynb")
    later = resumed(course, first, prompt, other)
    assert later.calls[0].is_error
    assert not later.saw("canary(plan)")


def test_a_session_whose_last_call_the_cli_would_run_unasked_is_not_resumed(course: Course) -> None:
    """A hook that is not the kit's defers a call; the CLI runs it at the resume before any hook."""

    async def defer(payload: Any, _use_id: Any, _context: Any) -> Any:
        specific = {"hookEventName": payload["hook_event_name"], "permissionDecision": "defer"}
        return {"hookSpecificOutput": specific}

    bare = course.bare(hooks={"PreToolUse": [HookMatcher(hooks=[defer])]})
    first = course.run(bare, [course.call("Read", file_path="<out>/secret.txt")])
    session = next(m.session_id for m in reversed(first.messages) if hasattr(m, "session_id"))
    with pytest.raises(ConfigError, match="a hook deferred") as error:
        course.options(resume=session)
    assert error.value.faults[0].field == "resume"
