"""A host's permission mode changes none of the locks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from agent_kit.testing import AnsweredBy, CallRecord

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

CLOSED = (
    ("Read", {"file_path": "README.md"}),
    ("Read", {"file_path": "<out>/secret.txt"}),
    ("Read", {"file_path": "agent.config.json"}),
    ("Read", {"file_path": "drafts/.env"}),
    ("Read", {"file_path": "knowledge/index.md"}),
    ("Glob", {"pattern": "<out>/**"}),
    ("Grep", {"pattern": "canary", "output_mode": "content"}),
    ("Write", {"file_path": "new.txt", "content": "x"}),
    ("Write", {"file_path": "<out>/new.txt", "content": "x"}),
    ("Write", {"file_path": "drafts/CLAUDE.md", "content": "x"}),
    ("Write", {"file_path": "drafts/.claude/settings.json", "content": "{}"}),
    ("Edit", {"file_path": "README.md", "old_string": "old", "new_string": "x"}),
    ("Edit", {"file_path": "sources/syllabus.md", "old_string": "exam", "new_string": "x"}),
)
READING = (
    ("Read", {"file_path": "sources/syllabus.md"}),
    ("Grep", {"pattern": "canary", "output_mode": "content", "path": "drafts"}),
)
WRITING = (
    ("Write", {"file_path": "drafts/new.md", "content": "x"}),
    ("Edit", {"file_path": "drafts/newsletter.md", "old_string": "old", "new_string": "new"}),
)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "dontAsk", "bypassPermissions", "plan"])
def test_the_locks_hold_in_every_permission_mode(
    mode: str, course: Course, refused: Callable[[CallRecord], bool]
) -> None:
    before = course.snapshot()
    rows = (*CLOSED, *READING, *WRITING)
    run = course.session(
        [tuple(course.call(tool, **fields) for tool, fields in rows), "Done."],
        permission_mode=mode,
        env={"IS_SANDBOX": "1"},  # else root may not bypass
    )
    closed, opened = run.calls[: len(CLOSED)], run.calls[len(CLOSED) :]
    for call in closed:
        assert refused(call), call
    # The CLI's own plan mode writes nothing but its plan.
    if mode != "plan":
        assert [call.lock for call in opened] == [AnsweredBy.RAN] * (len(READING) + len(WRITING))
    assert course.seen(run) == {"syllabus", "newsletter", "plan"}
    assert course.snapshot() == before
    assert not (course.project / "drafts/CLAUDE.md").exists()
