"""Results that are too long: for one message of the SDK, and for the model."""

from __future__ import annotations

import gc
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from claude_agent_sdk import ClaudeAgentOptions, CLIJSONDecodeError

from agent_kit import SessionPlan
from agent_kit.session.options import options_from_plan
from agent_kit.testing import AnsweredBy, Say, SessionRun, ToolCall, Turn, tree

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

LINES = 14_000  # of 100 bytes: 1.4 MB, more than the SDK's own limit of 1 MiB a message
GREP = {"pattern": "row", "path": "sources/big.txt", "output_mode": "content", "head_limit": 0}
STORED = re.compile(r"(/\S+/tool-results/[^\s\"'<>]+)")


@pytest.fixture
def course(course: Course) -> Course:
    rows = "\n".join(f"row {at:06} {'x' * 88}" for at in range(LINES))
    tree(course.root, [f"course/sources/big.txt=canary(big) row\n{rows}\n"])
    return course


def stored_path(text: str) -> str:
    match = STORED.search(text)
    assert match is not None, text[:500]
    return match[1]


def searching(course: Course) -> list[ToolCall | str]:
    return [
        course.call("Grep", **GREP),
        course.call("Read", file_path="sources/syllabus.md"),
        "End.",
    ]


def test_a_session_survives_a_result_of_more_than_a_mebibyte(course: Course) -> None:
    run = course.session(searching(course))
    assert [call.lock for call in run.calls] == [AnsweredBy.RAN] * 2
    assert run.text == "End."
    assert course.seen(run) == {"big", "syllabus"}
    longest = max(len(str(message)) for message in run.messages)
    assert longest > 1024 * 1024  # else this session proves nothing


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_with_the_sdk_s_own_limit_the_same_session_ends(course: Course) -> None:
    options = course.bare()
    options.max_buffer_size = None
    with pytest.raises(CLIJSONDecodeError):
        course.run(options, searching(course))
    gc.collect()  # the SDK leaves pipes behind: they are this test's, not the next one's


# --- what was too long for the model ---------------------------------------------------------


def neighbours(course: Course, plan: SessionPlan) -> dict[str, str]:
    """What lies around this session's stored results, in the CLI's own folder."""
    encoded = re.sub(r"[^A-Za-z0-9]", "-", str(course.project.resolve()))
    project = course.home / ".claude/projects" / encoded
    results = project / plan.session_id / "tool-results"
    files = {
        "another session's result": project / str(uuid.uuid4()) / "tool-results" / "a.txt",
        "another project's result": project.parent / "-x" / plan.session_id / "tool-results/a.txt",
        "a folder whose name begins alike": results.parent / "tool-results2" / "a.txt",
        "this session's transcript": project / f"{plan.session_id}.jsonl.bak",
        "another session's transcript": project / f"{uuid.uuid4()}.jsonl",
        "the runner's memory": project / "memory" / "notes.md",
        "a link out of the results": results / "link.txt",
    }
    entries = [
        f"{path.relative_to(course.root)}=canary(around-{at})"
        for at, path in enumerate(list(files.values())[:-1])
    ]
    link = files["a link out of the results"].relative_to(course.root)
    target = files["another session's transcript"]
    tree(course.root, [*entries, f"{link} => {target}"])
    return {name: str(path) for name, path in files.items()}


def reading_back(course: Course, closed: dict[str, str]) -> ToolCall:
    """A script: a long result, the stored rest of it, and then what lies around."""

    def script(turn: Turn) -> ToolCall | tuple[ToolCall, ...] | Say:
        match turn.number:
            case 0:
                return course.call("Grep", **GREP)
            case 1:
                path = stored_path(turn.results[0].text)
                back = f"{Path(path).parent}/../tool-results/{Path(path).name}"
                return (
                    course.call("Read", file_path=path, offset=2000, limit=3),
                    course.call("Read", file_path=back, offset=3000, limit=3),
                    *(course.call("Read", file_path=each) for each in closed.values()),
                    course.call("Glob", pattern="**", path=str(Path(path).parents[2])),
                    course.call("Grep", pattern="canary", path=str(Path(path).parents[2])),
                    course.call("Write", file_path=f"{Path(path).parent}/new.txt", content="x"),
                )
            case _:
                return Say("End.")

    return script  # type: ignore[return-value]


def check(course: Course, run: SessionRun, closed: int) -> None:
    assert len(run.calls) == 1 + 2 + closed + 3
    _, own, climbing, *rest = run.calls
    assert own.lock is climbing.lock is AnsweredBy.RAN
    assert "row 001" in (own.result or "")
    assert all(call.lock in (AnsweredBy.GATE, AnsweredBy.RULES) for call in rest), rest
    assert course.seen(run) == {"big"}


def test_the_model_reads_its_own_stored_result_and_no_other(course: Course) -> None:
    plan = course.plan()
    closed = neighbours(course, plan)
    run = course.run(options_from_plan(plan), reading_back(course, closed))
    check(course, run, len(closed))


def test_without_the_locks_the_neighbours_are_read(course: Course) -> None:
    """The control of the test before."""
    plan = course.plan()
    closed = neighbours(course, plan)
    options: ClaudeAgentOptions = course.bare(session_id=plan.session_id)
    run = course.run(options, reading_back(course, closed))
    assert course.seen(run) >= {f"around-{at}" for at in range(len(closed) - 1)}


def test_a_resumed_session_keeps_its_stored_results_and_no_other_s(course: Course) -> None:
    first = course.plan()
    paths: list[str] = []

    def storing(turn: Turn) -> ToolCall | Say:
        if turn.number == 0:
            return course.call("Grep", **GREP)
        paths.append(stored_path(turn.results[0].text))
        return Say("Later.")

    course.run(options_from_plan(first), storing)
    again = course.plan(resume=first.session_id)
    assert again.session_id == first.session_id
    closed = neighbours(course, again)
    calls = [course.call("Read", file_path=path) for path in closed.values()]
    run = course.run(
        options_from_plan(again),
        [course.call("Read", file_path=paths[0], offset=2000, limit=3), tuple(calls), "End."],
    )
    own, *rest = run.calls
    assert own.lock is AnsweredBy.RAN
    assert "row 001" in (own.result or "")
    assert all(call.lock in (AnsweredBy.GATE, AnsweredBy.RULES) for call in rest), rest
    assert course.seen(run) == {"big"}


def test_a_new_session_doesn_t_read_the_results_of_the_one_before(course: Course) -> None:
    first = course.plan()
    paths: list[str] = []

    def storing(turn: Turn) -> ToolCall | Say:
        if turn.number == 0:
            return course.call("Grep", **GREP)
        paths.append(stored_path(turn.results[0].text))
        return Say("Later.")

    course.run(options_from_plan(first), storing)
    run = course.session([course.call("Read", file_path=paths[0], offset=1, limit=3), "End."])
    assert run.calls[0].lock in (AnsweredBy.GATE, AnsweredBy.RULES)
    assert course.seen(run) == set()
