"""A hook of the host's that wants a person to be asked, on the real CLI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_kit import approve, edit, reject
from tests.people import Person

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

LETTER = "<course>/drafts/newsletter.md"
NEW = {"file_path": "<course>/sources/syllabus.md"}


async def asks(_payload: Any, _use_id: Any, _context: Any) -> dict[str, Any]:
    specific = {"permissionDecision": "ask", "permissionDecisionReason": "The host wonders."}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **specific}}


@pytest.mark.parametrize(
    ("said", "mode", "seen"),
    [
        (approve(), "guided", "newsletter"),
        ("edit", "guided", "syllabus"),
        (reject("no"), "guided", None),
        (None, "guided", None),
        (approve(), "autonomous", None),
    ],
)
def test_a_hooks_question_reaches_the_person(
    course: Course, said: Any, mode: str, seen: str | None
) -> None:
    if said == "edit":
        said = edit({"file_path": course.text(NEW["file_path"])})
    person = Person(said) if said is not None else None
    run = course.session(
        [course.call("Read", file_path=LETTER)],
        hooks={"PreToolUse": [asks]},
        ask=person,
        mode=mode,
    )
    for name in ("newsletter", "syllabus"):
        assert run.saw(f"canary({name})") is (name == seen)
    if person is not None:
        assert [each.reason for each in person.asked] == ["The host wonders."] * (mode == "guided")
