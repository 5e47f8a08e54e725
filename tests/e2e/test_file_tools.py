"""Every file tool that the CLI has, on every spelling of a closed file, at work in every agent.

One session answers the whole table in the main thread, and a subagent answers it again. A third one,
without any lock, is the control: there the same calls reach the files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_kit import Subagent
from agent_kit.testing import AnsweredBy, CallRecord, SessionRun, ToolCall, tree

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

GATE_OR_RULES = (AnsweredBy.GATE, AnsweredBy.RULES)
CLI = (AnsweredBy.TOOL,)  # the CLI's own validation, before any lock

NFC, NFD = "caf\u00e9", "cafe\u0301"

# Beside what every course has.
EXTRA = (
    "course/Sources/notes.md=canary(othercase) old",
    "course/sources/keys/UPPER.PEM=canary(upperpem) old",
    f"course/{NFC}/open.md=canary(nfc) old",
    f"course/{NFD}/closed.md=canary(nfd) old",
    f"course/handouts/{NFD}.txt=canary(nfdfile) old",
    "course/drafts2/x.md=canary(draftstwo) old",
    "course/knowledge/canary(pagename).md=x",
    # links
    "course/sources/link.md => ../README.md",
    "course/sources/out => ../../out",
    "course/sources/up => ..",
    "course/drafts/chain => chain2",
    "course/drafts/chain2 => ../../out/secret.txt",
    "course/drafts/procroot => /proc/self/root",
    "course/drafts/out => ../../out",
    "course/drafts/dangling.txt => ../../out/dangling.txt",
    "course/drafts/through.ipynb => ../grades.ipynb",
    "course/drafts/loop => loop",
    # hard links: the same file under a second name
    "course/drafts/hard.json == course/agent.config.json",
    "course/drafts/hard.md == course/sources/syllabus.md",
    "course/drafts/hardpem.txt == course/sources/keys/exam.pem",
)


def prepare(course: Course) -> Course:
    tree(course.root, EXTRA)
    os.mkfifo(course.project / "drafts/fifo")
    os.mkfifo(course.out / "fifo")
    return course


DENIED_PATHS = ["agent.config.json", "**/.env", "*.pem", f"handouts/{NFC}.txt"]
WRITABLE = ["drafts", NFC]
READABLE = ["handouts"]


@dataclass(frozen=True)
class Row:
    """One call. ``control`` tells that without the locks its result holds a canary."""

    tool: str
    fields: Mapping[str, Any]
    control: bool = True
    target: str = ""  # for a write: what it would change, relative to the world
    answers: tuple[AnsweredBy, ...] = field(default=GATE_OR_RULES)


def read(path: str, *, control: bool = True, **more: Any) -> Row:
    return Row("Read", {"file_path": path}, control, **more)


def glob(pattern: str, *, control: bool = True, **fields: Any) -> Row:
    return Row("Glob", {"pattern": pattern, **fields}, control)


def grep(*, control: bool = True, **fields: Any) -> Row:
    return Row("Grep", {"pattern": "canary", "output_mode": "content", **fields}, control)


def write(path: str, target: str, *, control: bool = True) -> Row:
    return Row("Write", {"file_path": path, "content": "changed"}, control, target)


def edit(path: str, target: str, old: str = "old", **more: Any) -> Row:
    fields = {"file_path": path, "old_string": old, "new_string": "changed"}
    return Row("Edit", fields, target=target, **more)


def notebook(path: str, target: str) -> Row:
    """The CLI wants a Read of the notebook before, which the locks refuse."""
    fields = {"notebook_path": path, "cell_id": "a", "new_source": "changed"}
    return Row("NotebookEdit", fields, target=target, answers=(*GATE_OR_RULES, *CLI))


# A name that the CLI takes literally and that nothing on the disk has: nothing is there to see.
NO = False

READS = {
    "relative": read("README.md"),
    "absolute": read("<course>/README.md"),
    "dot": read("./README.md"),
    "through a readable folder and back": read("sources/../README.md"),
    "through a folder that is not there": read("nothing/../README.md"),
    "up and down": read("../course/README.md"),
    "outside, relative": read("../out/secret.txt"),
    "outside, absolute": read("<out>/secret.txt"),
    "outside, doubled slashes": read("<out>//./secret.txt"),
    "home": read("~/secret.txt"),
    "home, a hidden file": read("~/.bashrc"),
    "home, a key": read("~/.ssh/id_ed25519"),
    "home and out of it": read("~/../out/secret.txt"),
    "another user's home": read("~root/secret.txt", control=NO),
    "a variable": read("$HOME/secret.txt", control=NO),
    "a url": read("file://<out>/secret.txt", control=NO),
    "percent signs": read("sources/%2e%2e/README.md", control=NO, answers=CLI),
    "backslashes": read("sources\\..\\README.md", control=NO),
    "denied": read("agent.config.json"),
    "denied by a pattern": read(".env"),
    "denied by a pattern, in a writable folder": read("drafts/.env"),
    "denied by a pattern, in a readable folder": read("sources/keys/exam.pem"),
    "denied by a pattern, in other letters": read("sources/keys/UPPER.PEM"),
    "denied by a pattern, outside": read("<out>/.env"),
    "denied in the other Unicode form": read(f"handouts/{NFD}.txt"),
    "tools only": read("knowledge/index.md"),
    "tools only, memory": read("memory/me.md"),
    "a notebook": read("grades.ipynb"),
    "a sibling whose name begins alike": read("drafts2/x.md"),
    "a sibling in other letters": read("Sources/notes.md"),
    "a sibling in the other Unicode form": read(f"{NFD}/closed.md"),
    "a link in a readable folder": read("sources/link.md"),
    "a linked folder": read("sources/out/secret.txt"),
    "a linked folder and back": read("sources/out/../out/secret.txt", control=NO),
    "a link to the folder above": read("sources/up/README.md"),
    "a chain of links": read("drafts/chain"),
    "a loop": read("drafts/loop", control=NO),
    "a hard link to a denied file": read("drafts/hard.json"),
    "U+FEFF before": read("\ufeffREADME.md"),
    "U+00A0 around": read("\u00a0README.md\u00a0"),
    "U+3000 before an absolute path": read("\u3000<out>/secret.txt"),
    "spaces and a line break around": read(" \n~/secret.txt \n"),
    "U+0085 before, which is no white space there": read("\x85README.md", control=NO),
    "/proc/self/root": read("/proc/self/root<out>/secret.txt"),
    "/proc/self/cwd": read("/proc/self/cwd/README.md"),
    "/proc/thread-self/root": read("/proc/thread-self/root<out>/secret.txt"),
    "a link to /proc/self/root": read("drafts/procroot<out>/secret.txt"),
    "the environment of the CLI": read("/proc/self/environ", control=NO, answers=CLI),
    "/dev/stdin": read("/dev/stdin", control=NO, answers=CLI),
    "/dev/fd/0": read("/dev/fd/0", control=NO, answers=CLI),
    # CLI 2.1.332 looks before it asks; 2.1.317 asks the gate first.
    "a name that is too long": read(
        "sources/" + "x" * 5000, control=NO, answers=(*CLI, AnsweredBy.GATE)
    ),
}

# Reading these would hang, so they are in no control.
HANGING = {
    "a FIFO in a writable folder": read("drafts/fifo", control=NO),
    "a FIFO outside": read("<out>/fifo", control=NO),
}

GLOBS = {
    "the project": glob("**/*"),
    "the project, named": glob("**/*", path="."),
    "the project, by an empty path": glob("**/*", path=""),
    "the project, an empty pattern": glob("", path="."),
    "a closed folder in the pattern": glob("private/*"),
    "a closed folder": glob("*", path="private"),
    "outside": glob("**", path="<out>"),
    "outside in an absolute pattern": glob("<out>/**"),
    "an absolute pattern wins over the path": glob("<out>/**", path="sources"),
    "an absolute pattern with a class": glob("<root>/[o]ut/**", path="sources"),
    "an absolute pattern with a question mark": glob("<root>/?ut/**", path="sources"),
    "an absolute pattern with alternatives": glob("<root>/{out,x}/**", path="sources"),
    "an absolute pattern that climbs": glob("<course>/sources/../private/*"),
    "an absolute pattern through a link": glob("<course>/sources/out/folder/*"),
    "an absolute pattern through /proc": glob("/proc/self/root<out>/**"),
    "an absolute file": glob("<out>/folder/canary*", path="sources"),
    "above": glob("**", path=".."),
    "climbing": glob("../private/*", path="sources", control=NO),
    "climbing in an alternative": glob("{..,x}/private/*", path="sources", control=NO),
    "climbing in an extended pattern": glob("@(..)/private/*", path="sources", control=NO),
    "home in the path": glob("*", path="~", control=NO),
    "home in the pattern": glob("~/*", control=NO),
    "a linked folder": glob("**", path="sources/out"),
    "a link to the folder above": glob("**", path="drafts/out/..", control=NO),
    "white space around": glob("**", path="\u3000<out>\ufeff"),
    "tools only": glob("*", path="knowledge"),
    "tools only in the pattern": glob("knowledge/*"),
    "/proc": glob("*", path="/proc/self/cwd/private"),
    "a sibling in other letters": glob("*", path="Sources", control=NO),
}

GREPS = {
    "the working folder": grep(),
    "the working folder, named": grep(path="."),
    "the working folder, by an empty path": grep(path=""),
    "a closed file": grep(path="README.md"),
    "a closed folder": grep(path="private"),
    "outside": grep(path="<out>"),
    "outside, one file": grep(path="<out>/secret.txt"),
    "above": grep(path=".."),
    "home": grep(path="~"),
    "through a readable folder and back": grep(path="sources/.."),
    "a narrowing glob": grep(glob="*.md"),
    "a narrowing type": grep(type="md"),
    "a link": grep(path="sources/link.md"),
    "a linked folder": grep(path="sources/out"),
    "a hard link to a denied file": grep(path="drafts/hard.json"),
    "a denied file": grep(path="agent.config.json"),
    "tools only": grep(path="knowledge"),
    "tools only, memory": grep(path="memory/me.md"),
    "white space around": grep(path="\u00a0<out>\u3000"),
    "/proc/self/root": grep(path="/proc/self/root<out>"),
    "/proc/self/cwd": grep(path="/proc/self/cwd"),
    "a sibling whose name begins alike": grep(path="drafts2"),
    "a sibling in other letters": grep(path="Sources"),
    "a sibling in the other Unicode form": grep(path=NFD),
    "a FIFO": grep(path="drafts/fifo", control=NO),
}

WRITES = {
    "a new file in the project": write("new.txt", "course/new.txt"),
    "a new file in a closed folder": write("private/new.txt", "course/private/new.txt"),
    "a new original": write("sources/new.md", "course/sources/new.md"),
    "tools only": write("knowledge/new.md", "course/knowledge/new.md"),
    "outside": write("<out>/new.txt", "out/new.txt"),
    "outside, relative": write("../out/new2.txt", "out/new2.txt"),
    "home": write("~/new.txt", "home/new.txt"),
    "through a writable folder and back": write("drafts/../new3.txt", "course/new3.txt"),
    "white space around": write("\ufeff../out/new4.txt\u3000", "out/new4.txt"),
    "/proc/self/cwd": write("/proc/self/cwd/new5.txt", "course/new5.txt"),
    "a linked folder": write("drafts/out/new6.txt", "out/new6.txt"),
    "a link whose target is not there": write(
        "drafts/dangling.txt", "out/dangling.txt", control=NO
    ),
    "a denied name in a writable folder": write("drafts/sub/.env", "course/drafts/sub/.env"),
    "a sibling whose name begins alike": write("drafts2/new.md", "course/drafts2/new.md"),
    "a sibling in other letters": write("Drafts/new.md", "course/Drafts/new.md"),
    "a sibling in the other Unicode form": write(f"{NFD}/new.md", f"course/{NFD}/new.md"),
    "instructions": write("drafts/CLAUDE.md", "course/drafts/CLAUDE.md"),
    "instructions in other letters": write("drafts/claude.MD", "course/drafts/claude.MD"),
    "instructions for others": write("drafts/sub/AGENTS.md", "course/drafts/sub/AGENTS.md"),
    "servers": write("drafts/.mcp.json", "course/drafts/.mcp.json"),
    "settings": write("drafts/.claude/settings.json", "course/drafts/.claude/settings.json"),
    "a git hook": write("drafts/.git/hooks/pre-commit", "course/drafts/.git/hooks/pre-commit"),
    "a shell's start": write("drafts/.bashrc", "course/drafts/.bashrc"),
    "/dev": write("/dev/shm/../null", "course/nothing", control=NO),
    "Edit in the project": edit("README.md", "course/README.md"),
    "Edit of an original": edit("sources/syllabus.md", "course/sources/syllabus.md", "exam"),
    "Edit of a denied file": edit("agent.config.json", "course/agent.config.json"),
    "Edit through a link": edit("sources/link.md", "course/README.md"),
    "Edit outside": edit("<out>/secret.txt", "out/secret.txt"),
    "Edit in home": edit("~/secret.txt", "home/secret.txt"),
    "Edit through a chain of links": edit(
        "drafts/chain", "out/secret.txt", answers=(*GATE_OR_RULES, *CLI)
    ),
    "Edit of a hard link to a denied file": edit("drafts/hard.json", "course/drafts/hard.json"),
    "Edit of a hard link to an original": edit("drafts/hard.md", "course/drafts/hard.md", "exam"),
    "NotebookEdit in the project": notebook("<course>/grades.ipynb", "course/grades.ipynb"),
    "NotebookEdit outside": notebook("<out>/book.ipynb", "out/book.ipynb"),
    "NotebookEdit through a link": notebook("<course>/drafts/through.ipynb", "course/grades.ipynb"),
}

# Tools of the table that this CLI lacks, and one that nobody knows.
ABSENT_CALLS: dict[str, dict[str, Any]] = {
    "MultiEdit": {"file_path": "README.md", "edits": []},
    "LS": {"path": "."},
    "NotebookRead": {"notebook_path": "grades.ipynb"},
    "FileViewer": {"path": "README.md"},
    "read": {"file_path": "README.md"},
    "mcp__fs__read": {"path": "README.md"},
}
ABSENT = {name: Row(name, fields, control=NO, answers=CLI) for name, fields in ABSENT_CALLS.items()}

CLOSED = {
    f"{group}: {name}": row
    for group, rows in {
        "Read": {**READS, **HANGING},
        "Glob": GLOBS,
        "Grep": GREPS,
        "write": WRITES,
        "absent": ABSENT,
    }.items()
    for name, row in rows.items()
}

# What the locks must leave alone, and a part of the answer.
OPEN = {
    "Read": (read("sources/syllabus.md"), "canary(syllabus)"),
    "Read, absolute": (read("<course>/drafts/newsletter.md"), "canary(newsletter)"),
    "Read, up and down": (read("drafts/../sources/syllabus.md"), "canary(syllabus)"),
    "Read, in the configured Unicode form": (read(f"{NFC}/open.md"), "canary(nfc)"),
    "Read of a notebook": (read("drafts/plan.ipynb"), "canary(plan)"),
    "Glob": (glob("**/*", path="sources"), "canary(sourcename)"),
    "Glob in the pattern": (glob("sources/*.md"), "canary(sourcename)"),
    "Glob, an absolute pattern": (glob("<course>/sources/*"), "canary(sourcename)"),
    "Grep": (grep(path="sources"), "canary(syllabus)"),
    "Grep in one file": (grep(path="drafts/newsletter.md"), "canary(newsletter)"),
    "Write": (write("drafts/deep/new.md", "course/drafts/deep/new.md"), "created"),
    "Edit": (edit("drafts/newsletter.md", "course/drafts/newsletter.md"), "updated"),
    "NotebookEdit": (
        notebook("<course>/drafts/plan.ipynb", "course/drafts/plan.ipynb"),
        "changed",
    ),
}
SEEN = {"syllabus", "newsletter", "nfc", "plan", "sourcename"}


def state(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


@dataclass(frozen=True)
class Outcome:
    """A session over the table: its calls by row, and the files that changed."""

    run: SessionRun
    closed: Mapping[str, CallRecord]
    open: Mapping[str, CallRecord]
    seen: set[str]
    changed: set[str]  # targets of rows


LOAD = ToolCall("ToolSearch", {"query": "select:NotebookEdit"})


def play(course: Course, agent: str) -> Outcome:
    targets = {row.target for row in CLOSED.values() if row.target}
    before = {target: state(course.root / target) for target in targets}
    world = course.snapshot()
    closed = [course.call(row.tool, **row.fields) for row in CLOSED.values()]
    opened = [course.call(row.tool, **row.fields) for row, _ in OPEN.values()]
    steps: list[Any] = [LOAD, tuple(closed), *opened, "Done."]
    script = steps
    if agent == "helper":
        call = {"description": "d", "prompt": "Help.", "subagent_type": "helper"}
        script = [ToolCall("Agent", {**call, "run_in_background": False}, script=steps), "Done."]
    run = course.session(
        script,
        allow_unconfined_commands=True,  # of a tool that nobody knows nobody can tell
        spec={
            "tools": [
                # "read" would be an error: it can only be meant for Read.
                *(row.tool for row in ABSENT.values() if row.tool not in ("mcp__fs__read", "read")),
                "NotebookEdit",
                "ToolSearch",
            ],
            "subagents": {"helper": Subagent(description="Helps.", prompt="You help.")},
        },
        extra_writable_dirs=WRITABLE,
        extra_readable_dirs=READABLE,
        denied_paths=DENIED_PATHS,
    )
    calls = [call for call in run.calls if call.tool not in ("Agent", "ToolSearch")]
    assert {call.agent for call in calls} == {None if agent == "main" else agent}
    assert course.snapshot() == world
    return Outcome(
        run=run,
        closed=dict(zip(CLOSED, calls, strict=False)),
        open=dict(zip(OPEN, calls[len(CLOSED) :], strict=True)),
        seen=course.seen(run),
        changed={target for target in targets if state(course.root / target) != before[target]},
    )


@pytest.fixture(scope="module", params=["main", "helper"])
def guarded(request: pytest.FixtureRequest, new_course: Callable[[], Course]) -> Outcome:
    return play(prepare(new_course()), request.param)


@pytest.fixture(scope="module")
def unguarded(new_course: Callable[[], Course]) -> Outcome:
    """The same calls without the kit, after a Read of what they change."""
    course = prepare(new_course())
    rows = {name: row for name, row in CLOSED.items() if row.control}
    targets = {row.target for row in rows.values() if row.target}
    before = {target: state(course.root / target) for target in targets}
    calls = {name: course.call(row.tool, **row.fields) for name, row in rows.items()}
    first = [
        course.call("Read", file_path=f"<root>/{row.target}")
        for row in rows.values()
        if row.target and before[row.target] is not None
    ]
    reading = [name for name, row in rows.items() if not row.target]
    writing = [name for name, row in rows.items() if row.target]
    steps = [LOAD, tuple(calls[name] for name in reading), tuple(first)]
    run = course.run(course.bare(), [*steps, *(calls[name] for name in writing), "Done."])
    found = [call for call in run.calls if call.tool != "ToolSearch"]
    return Outcome(
        run=run,
        closed={
            **dict(zip(reading, found, strict=False)),
            **dict(zip(writing, found[len(reading) + len(first) :], strict=True)),
        },
        open={},
        seen=course.seen(run),
        changed={target for target in targets if state(course.root / target) != before[target]},
    )


@pytest.mark.parametrize("row", CLOSED)
def test_a_call_on_what_is_closed_is_refused(row: str, guarded: Outcome) -> None:
    call = guarded.closed[row]
    assert call.tool == CLOSED[row].tool
    assert call.is_error
    assert call.lock in CLOSED[row].answers


@pytest.mark.parametrize("row", OPEN)
def test_a_call_on_what_is_open_runs(row: str, guarded: Outcome) -> None:
    call = guarded.open[row]
    assert call.lock is AnsweredBy.RAN
    assert OPEN[row][1] in (call.result or "")


def test_no_canary_of_a_closed_file_or_name_was_in_any_request(guarded: Outcome) -> None:
    assert guarded.seen == SEEN


def test_no_closed_file_was_changed_or_made(guarded: Outcome) -> None:
    assert guarded.changed == set()


@pytest.mark.parametrize("row", [name for name, row in CLOSED.items() if row.control])
def test_without_the_locks_the_same_call_reaches_the_file(row: str, unguarded: Outcome) -> None:
    if target := CLOSED[row].target:
        assert target in unguarded.changed
    else:
        assert "canary(" in (unguarded.closed[row].result or "")
