"""The table of the example scope, row for row, on the real CLI."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from agent_kit.testing import AnsweredBy, CallRecord, SessionRun

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

GATE_OR_RULES = (AnsweredBy.GATE, AnsweredBy.RULES)
OLD_NEW = {"old_string": "old", "new_string": "new"}

# call, fields, allowed; a part of the sentence where only the gate can have refused
ROWS: dict[str, tuple[tuple[str, dict[str, str]], str | None]] = {
    "Write knowledge/index.md": (
        ("Write", {"file_path": "knowledge/index.md", "content": "x"}),
        None,
    ),
    "Edit drafts/newsletter.md": (
        ("Edit", {"file_path": "drafts/newsletter.md", **OLD_NEW}),
        "has been updated",
    ),
    "Edit sources/syllabus.md": (
        ("Edit", {"file_path": "sources/syllabus.md", "old_string": "exam", "new_string": "x"}),
        None,
    ),
    "Write README.md": (("Write", {"file_path": "README.md", "content": "x"}), None),
    "Read sources/syllabus.md": (("Read", {"file_path": "sources/syllabus.md"}), "exam on Monday"),
    "Read README.md": (("Read", {"file_path": "README.md"}), None),
    "Read agent.config.json": (("Read", {"file_path": "agent.config.json"}), None),
    'Grep "exam" in sources/': (
        ("Grep", {"pattern": "exam", "path": "sources/"}),
        "sources/syllabus.md",
    ),
    'Grep "exam" (no path)': (("Grep", {"pattern": "exam"}), None),
    'Grep "password" in .': (("Grep", {"pattern": "password", "path": "."}), None),
}
DENIED = [name for name, (_, answer) in ROWS.items() if answer is None]
ALLOWED = [name for name, (_, answer) in ROWS.items() if answer is not None]

# Where the gate answers, the model hears its sentence. (Writes are refused by the rules before.)
SENTENCES = {
    "Read README.md": (
        "can't be read: reading is only allowed inside sources/, drafts/ and your own plugins and"
        " run folder."
    ),
    'Grep "exam" (no path)': (
        '"." contains knowledge/, which is reached only through the knowledge_* tools, not the file'
        " tools."
    ),
    'Grep "password" in .': (
        '"." contains knowledge/, which is reached only through the knowledge_* tools, not the file'
        " tools."
    ),
}


@pytest.fixture(scope="module")
def before(shared_course: Course) -> dict[str, object]:
    return shared_course.snapshot()


@pytest.fixture(scope="module")
def run(shared_course: Course, before: dict[str, object]) -> SessionRun:
    calls = [shared_course.call(tool, **fields) for (tool, fields), _ in ROWS.values()]
    return shared_course.session(calls)


@pytest.fixture(scope="module")
def calls(run: SessionRun) -> dict[str, CallRecord]:
    return dict(zip(ROWS, run.calls, strict=True))


@pytest.mark.parametrize("row", DENIED)
def test_a_denied_row_is_refused(row: str, calls: dict[str, CallRecord]) -> None:
    assert calls[row].lock in GATE_OR_RULES
    assert calls[row].is_error


@pytest.mark.parametrize("row", ALLOWED)
def test_an_allowed_row_runs(row: str, calls: dict[str, CallRecord]) -> None:
    assert calls[row].lock is AnsweredBy.RAN
    assert (ROWS[row][1] or row) in (calls[row].result or "")


@pytest.mark.parametrize("row", SENTENCES)
def test_the_gate_s_refusal_reaches_the_model_word_for_word(
    row: str, calls: dict[str, CallRecord]
) -> None:
    assert calls[row].lock is AnsweredBy.GATE
    assert (calls[row].result or "").endswith(SENTENCES[row])


def test_only_the_allowed_file_was_seen_and_only_the_draft_was_changed(
    shared_course: Course, run: SessionRun, before: dict[str, object]
) -> None:
    assert shared_course.seen(run) == {"syllabus"}
    assert shared_course.snapshot() == before
    assert "new" in (shared_course.project / "drafts/newsletter.md").read_text("utf-8")


def test_without_the_locks_the_same_calls_reach_the_files(
    new_course: Callable[[], Course],
) -> None:
    course = new_course()
    rows = [ROWS[row] for row in ROWS if row != "Write README.md"]
    calls = [course.call(tool, **fields) for (tool, fields), _ in rows]
    run = course.run(course.bare(), calls)
    assert course.seen(run) >= {"config", "syllabus", "readme"}
    assert [call.lock for call in run.calls] == [AnsweredBy.RAN] * len(rows)
