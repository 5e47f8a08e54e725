"""The disk changes while a session runs: every call is judged on what is there at that moment."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from agent_kit.testing import AnsweredBy, CallRecord, Say, ToolCall, Turn, tree

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

OLD_NEW = {"old_string": "old", "new_string": "changed"}
AFTERWARDS = (
    ("Read", {"file_path": "drafts/swap.txt"}),
    ("Edit", {"file_path": "drafts/swap.txt", **OLD_NEW}),
    ("Write", {"file_path": "drafts/swap.txt", "content": "changed"}),
    ("Read", {"file_path": "drafts/deep/letter.txt"}),
    ("Glob", {"pattern": "*", "path": "drafts/deep"}),
    ("Grep", {"pattern": "canary", "path": "drafts/deep", "output_mode": "content"}),
    ("Write", {"file_path": "drafts/deep/new.txt", "content": "changed"}),
)


def swapping(course: Course) -> Callable[[Turn], ToolCall | tuple[ToolCall, ...] | Say]:
    """Reads two files; then a link stands in the place of each, and the calls come again."""
    tree(course.root, ["course/drafts/swap.txt=first old", "course/drafts/deep/letter.txt=second"])

    def script(turn: Turn) -> ToolCall | tuple[ToolCall, ...] | Say:
        match turn.number:
            case 0:
                return (
                    course.call("Read", file_path="drafts/swap.txt"),
                    course.call("Read", file_path="drafts/deep/letter.txt"),
                )
            case 1:
                (course.project / "drafts/swap.txt").unlink()
                shutil.rmtree(course.project / "drafts/deep")
                tree(
                    course.root,
                    ["course/drafts/swap.txt => ../README.md", "course/drafts/deep => ../private"],
                )
                return tuple(course.call(tool, **fields) for tool, fields in AFTERWARDS)
            case _:
                return Say("Done.")

    return script


def test_a_link_that_is_put_in_between_two_calls_opens_nothing(
    course: Course, refused: Callable[[CallRecord], bool]
) -> None:
    before = course.snapshot()
    run = course.session(swapping(course), run={"prompt": ["Go.", "And now?"]})
    assert [call.lock for call in run.calls[:2]] == [AnsweredBy.RAN] * 2
    assert run.saw("first old")
    assert len(run.calls) == 2 + len(AFTERWARDS)
    for call in run.calls[2:]:
        # An Edit or a Write of a file that changed since its Read is refused by the CLI itself.
        assert refused(call) or "since read" in (call.result or ""), call
    assert course.seen(run) == set()
    assert course.snapshot() == before


def test_without_the_locks_the_link_is_followed(course: Course) -> None:
    run = course.run(course.bare(), swapping(course), prompt=["Go.", "And now?"])
    assert course.seen(run) >= {"readme", "letter", "privatename"}
    assert (course.project / "private/new.txt").exists()
