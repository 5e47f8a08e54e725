"""What the CLI answers before any hook runs tells nothing about a file that is closed.

The CLI validates an Edit first, and says whether the old text stands in the file: so a closed file
could be guessed at, letter by letter. Every answer about a closed file has to be the same, whether
the text is in it or not, and whether the file is there or not.
"""

from __future__ import annotations

import os
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_kit import (
    AgentSpec,
    SessionConfig,
    approve,
    ask_user,
    build_session_options,
    deny_paths,
    reject,
)
from agent_kit.testing import AnsweredBy, CallRecord, ToolCall, tree
from tests.people import rule

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

LOCKED = (AnsweredBy.GATE, AnsweredBy.RULES)

# A closed file, and one beside it that is not there.
CLOSED = {
    "in the project": ("README.md", "MISSING.md"),
    "in the project, absolute": ("<course>/README.md", "<course>/MISSING.md"),
    "in a closed folder": ("private/letter.txt", "private/missing.txt"),
    "through a writable folder": ("drafts/../README.md", "drafts/../MISSING.md"),
    "denied": ("agent.config.json", ".env.missing/.env"),
    "denied, in a writable folder": ("drafts/.env", "drafts/sub/.env"),
    "an original": ("sources/syllabus.md", "sources/missing.md"),
    "tools only": ("knowledge/index.md", "knowledge/missing.md"),
    "memory": ("memory/me.md", "memory/missing.md"),
    "outside": ("<out>/secret.txt", "<out>/missing.txt"),
    "outside, relative": ("../out/secret.txt", "../out/missing.txt"),
    "home": ("~/secret.txt", "~/missing.txt"),
    "a folder whose name goes on": ("drafts2/x.md", "drafts2/missing.md"),
    "a folder whose name goes on with a dot": ("drafts.bak/x.md", "drafts.bak/missing.md"),
    "a folder whose name stops short": ("draft/x.md", "draft/missing.md"),
    "a folder of one letter": ("d/x.md", "d/missing.md"),
    "a folder that begins otherwise": ("é/x.md", "é/missing.md"),
    "a file whose name stops short": ("draf", "dra"),
}
MADE = (
    "course/drafts2/x.md=canary(a) old",
    "course/drafts.bak/x.md=canary(b) old",
    "course/draft/x.md=canary(c) old",
    "course/d/x.md=canary(d) old",
    "course/é/x.md=canary(e) old",
    "course/draf=canary(f) old",
)


def guesses(course: Course, path: str, missing: str) -> tuple[ToolCall, ...]:
    """Right and wrong old texts, one that would make a file, and the same for a missing one."""
    return tuple(
        course.call("Edit", file_path=name, old_string=old, new_string="changed")
        for name, old in (
            (path, "canary("),
            (path, "exam"),
            (path, "old"),
            (path, "certainly not in there"),
            (path, ""),
            (missing, "old"),
            (missing, ""),
        )
    )


@pytest.fixture(scope="module")
def answers(shared_course: Course) -> dict[str, list[CallRecord]]:
    course = shared_course
    tree(course.root, MADE)
    before = course.snapshot()
    steps = [call for pair in CLOSED.values() for call in guesses(course, *pair)]
    run = course.session([tuple(steps), "Done."])
    assert course.seen(run) == set()
    assert course.snapshot() == before
    size = len(steps) // len(CLOSED)
    return {name: list(run.calls[at * size : (at + 1) * size]) for at, name in enumerate(CLOSED)}


@pytest.mark.parametrize("place", CLOSED)
def test_a_right_guess_and_a_wrong_one_are_answered_alike(
    place: str, answers: dict[str, list[CallRecord]]
) -> None:
    calls = answers[place]
    assert all(call.lock in LOCKED for call in calls)
    assert len({call.result for call in calls}) == 1


def test_every_closed_place_answers_alike(answers: dict[str, list[CallRecord]]) -> None:
    assert len({call.result for calls in answers.values() for call in calls}) == 1


def test_without_the_locks_a_guess_is_answered(course: Course) -> None:
    run = course.run(course.bare(), [guesses(course, "README.md", "MISSING.md"), "Done."])
    assert len({call.result for call in run.calls}) > 2


def test_in_a_writable_folder_edits_work_and_mistakes_are_told(course: Course) -> None:
    edit = {"file_path": "drafts/newsletter.md", "new_string": "changed"}
    run = course.session(
        [
            course.call("Edit", **edit, old_string="certainly not in there"),
            course.call("Edit", **edit, old_string="old"),
            course.call("Write", file_path="drafts/a/b/c.md", content="x"),
            "Done.",
        ]
    )
    assert [call.lock for call in run.calls] == [AnsweredBy.TOOL, AnsweredBy.RAN, AnsweredBy.RAN]
    assert "not found" in (run.calls[0].result or "")


# --- a second name of a closed file, inside a writable folder --------------------------------

SECOND_NAMES = {
    "a link": ("link.md => ../README.md", "drafts/link.md"),
    "an absolute link": ("abs.md => <course>/README.md", "drafts/abs.md"),
    "a link to a denied file": ("config => ../agent.config.json", "drafts/config"),
    "a link to an original": ("original.md => ../sources/syllabus.md", "drafts/original.md"),
    "a link to a tools-only file": ("page.md => ../knowledge/index.md", "drafts/page.md"),
    "a link to a file outside": ("outside.txt => ../../out/secret.txt", "drafts/outside.txt"),
    "a linked folder": ("private => ../private", "drafts/private/letter.txt"),
    "a link to the folder above": ("up => ..", "drafts/up/README.md"),
    "a chain of links": ("chain => link.md", "drafts/chain"),
    "a link in a deeper folder": ("deep/er/link => ../../../README.md", "drafts/deep/er/link"),
    "a hard link to a denied file": ("hard.json == course/agent.config.json", "drafts/hard.json"),
    "a hard link to an original": ("hard.md == course/sources/syllabus.md", "drafts/hard.md"),
}


@pytest.fixture(scope="module")
def second_names(new_course: Callable[[], Course]) -> dict[str, list[CallRecord]]:
    course = new_course()
    tree(course.root, [f"course/drafts/{course.text(made)}" for made, _ in SECOND_NAMES.values()])
    steps = [
        course.call("Edit", file_path=path, old_string=old, new_string="changed")
        for _, path in SECOND_NAMES.values()
        for old in ("canary(", "certainly not in there")
    ]
    run = course.session([tuple(steps), "Done."])
    assert course.seen(run) == set()
    return {name: list(run.calls[2 * at : 2 * at + 2]) for at, name in enumerate(SECOND_NAMES)}


@pytest.mark.parametrize("name", SECOND_NAMES)
def test_a_second_name_of_a_closed_file_tells_nothing_of_it(
    name: str, second_names: dict[str, list[CallRecord]]
) -> None:
    right, wrong = second_names[name]
    assert right.is_error
    assert right.result == wrong.result


# --- odd names -------------------------------------------------------------------------------

ODD = [
    *(f"w{char}x" for char in string.punctuation if char != "/"),
    *"?*[!\\-",
    "w x",
    " leading",
    "two  spaces",
    "[a] {b,c} (d)",
    "!not",
    "#note",
    "a*b?c[d]",
    "**",
    "\u00e9t\u00e9",
    "e\u0301te\u0301",
    "\u65e5\u672c\u8a9e",
    "\U0001f600 notes",
    "-rf",
    "$HOME",
    "UPPER",
]


def neighbours(name: str) -> Iterator[str]:
    """Names that differ from ``name`` in one place."""
    yield name + "2"
    yield name[:-1]
    yield name[:1] + "\u00fc" + name[2:]
    if name.swapcase() != name:
        yield name.swapcase()


def odd_session(root: Path, project: Path, names: list[str], home: Path) -> Any:
    for name in names:
        (project / name).mkdir(parents=True)
        (project / name / "old.md").write_text("old", encoding="utf-8")
    return build_session_options(
        AgentSpec(name="odd", system_prompt="x"),
        SessionConfig(
            project_dir=project,
            extra_writable_dirs=[f"./{name}" for name in names],
            run_dir=str(root / "run"),
            env={"HOME": str(home)},
            confinement="off",
        ),
    )


def odd_calls(project: Path, names: list[str]) -> tuple[list[ToolCall], list[ToolCall]]:
    inside = [
        call
        for name in names
        for call in (
            ToolCall("Write", {"file_path": f"{project}/{name}/new.md", "content": "x"}),
            ToolCall(
                "Edit",
                {"file_path": f"{project}/{name}/old.md", "old_string": "old", "new_string": "x"},
            ),
        )
    ]
    beside = {
        other
        for name in names
        for other in neighbours(name)
        if other not in (*names, "", ".", "..") and other.strip() and not other[-1:].isspace()
    }
    outside = [
        ToolCall("Write", {"file_path": f"{project}/{other}/new.md", "content": "x"})
        for other in sorted(beside)
    ]
    return inside, outside


def check_odd(course: Course, options: Any, project: Path, names: list[str]) -> None:
    before = {path for path in project.iterdir()}
    inside, outside = odd_calls(project, names)
    run = course.run(options, [tuple(inside), tuple(outside), "Done."])
    opened, closed = run.calls[: len(inside)], run.calls[len(inside) :]
    assert len(closed) == len(outside) > len(names)
    assert [c.input["file_path"] for c in opened if c.lock is not AnsweredBy.RAN] == []
    assert [c.input["file_path"] for c in closed if c.lock not in LOCKED] == []
    assert {path for path in project.iterdir()} == before


def test_writable_folders_of_any_name_stay_writable_and_their_neighbours_closed(
    course: Course,
) -> None:
    project = course.root / "odd"
    check_odd(course, odd_session(course.root, project, ODD, course.home), project, ODD)


@pytest.mark.parametrize("names", [["?", "ab"], ["a?c", "abd"], ["a\\c", "abd"], ["a?", "ab", "a"]])
def test_a_name_that_rules_can_t_spell_leaves_its_neighbour_writable(
    names: list[str], course: Course
) -> None:
    project = course.root / "odd"
    options = odd_session(course.root, project, names, course.home)
    inside, _ = odd_calls(project, names)
    run = course.run(options, [tuple(inside), "Done."])
    assert [c.input["file_path"] for c in run.calls if c.lock is not AnsweredBy.RAN] == []


@pytest.mark.parametrize("name", ["a[b]*c", "w?x", "back\\slash", "\U0001f600", "{a,b}", "w!x"])
def test_one_writable_folder_of_an_odd_name_stays_alone(name: str, course: Course) -> None:
    project = course.root / "odd"
    check_odd(course, odd_session(course.root, project, [name], course.home), project, [name])


def test_a_project_of_an_odd_name_has_the_same_locks(course: Course) -> None:
    project = course.root / "c[o]u*r?s\\e {v2} !\u00e9 \U0001f600 $x"
    os.rename(course.project, project)
    course.project = project
    rows = [course.call("Write", file_path="drafts/new.md", content="x")]
    rows += [course.call("Read", file_path="sources/syllabus.md")]
    closed = [
        course.call("Write", file_path="new.md", content="x"),
        course.call("Write", file_path=f"{course.root}/course/drafts/new.md", content="x"),
        course.call("Edit", file_path="sources/syllabus.md", old_string="exam", new_string="x"),
        course.call("Edit", file_path="README.md", old_string="old", new_string="x"),
        course.call("Edit", file_path="README.md", old_string="nope", new_string="x"),
        course.call("Read", file_path="README.md"),
        course.call("Read", file_path="agent.config.json"),
        course.call("Read", file_path="drafts/.env"),
    ]
    run = course.session([tuple(rows), tuple(closed), "Done."])
    assert [call.lock for call in run.calls[:2]] == [AnsweredBy.RAN] * 2
    assert [c.input["file_path"] for c in run.calls[2:] if c.lock not in LOCKED] == []
    assert course.seen(run) == {"syllabus"}


# --- what rules and authorizers close in a writable folder -----------------------------------

LETTER = "drafts/newsletter.md"
KEPT: dict[str, dict[str, Any]] = {
    "a deny rule that the gate alone holds": {
        "permissions": [rule("allow", "drafts/y*"), rule("deny", "drafts/**")]
    },
    "against reading": {"permissions": [rule("deny", "drafts/**", operations=("read",))]},
    "by name": {"permissions": [rule("interrupt", "*letter.md")]},
    "what the CLI can't spell": {"permissions": [rule("interrupt", "drafts/new[!x]*")]},
    "nobody to ask": {"permissions": [rule("interrupt", "drafts/**")]},
    "a person who says no": {
        "permissions": [rule("interrupt", "drafts/**")],
        "ask": lambda _approval: reject("no"),
    },
    "an authorizer that asks": {"authorizers": [ask_user(lambda _target: False)]},
    "deny_paths that the CLI can't spell": {"authorizers": [deny_paths(["drafts/new[!x]*"])]},
    "a tool that asks": {"interrupt_on": {"Read": True}},
}


@pytest.mark.parametrize("how", KEPT)
def test_edit_tells_nothing_of_what_rules_close(how: str, course: Course) -> None:
    tree(course.root, ["course/drafts/way.md => newsletter.md"])
    steps = [
        course.call("Edit", file_path=path, old_string=old, new_string="changed")
        for path in (LETTER, f"<course>/{LETTER}", "drafts/way.md")
        for old in ("canary(", "certainly not in there")
    ]
    run = course.session(
        [course.call("Read", file_path=LETTER), tuple(steps), "Done."], **KEPT[how]
    )
    assert "newsletter" not in course.seen(run)
    for at in range(1, len(steps), 2):
        right, wrong = run.calls[at : at + 2]
        assert right.is_error
        assert right.result == wrong.result
    assert (course.project / LETTER).read_text() == "canary(newsletter) old"


def test_what_a_person_lets_be_read_can_be_edited_and_mistakes_are_told(course: Course) -> None:
    run = course.session(
        [
            course.call("Read", file_path=LETTER),
            course.call("Edit", file_path=LETTER, old_string="not there", new_string="x"),
            course.call("Edit", file_path=LETTER, old_string="old", new_string="new"),
            course.call("Write", file_path="drafts/another.md", content="x"),
            "Done.",
        ],
        permissions=[rule("interrupt", "drafts/**")],
        ask=lambda _approval: approve(),
    )
    assert [call.lock for call in run.calls] == [
        AnsweredBy.RAN,
        AnsweredBy.TOOL,
        AnsweredBy.RAN,
        AnsweredBy.RAN,
    ]
    assert "not found" in (run.calls[1].result or "")
