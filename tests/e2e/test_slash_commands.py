"""Slash commands in a prompt: only those of the session run, whatever the CLI has of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_kit.testing import AnsweredBy, SessionRun, tree

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

# A confined CLI may not reach what they write: the prompt gate has to hold by itself.
ALONE: dict[str, Any] = {"confinement": "off"}

# They run before any hook is asked, and change something that outlives the session.
WRITERS = {"/config theme=dark": "settings.json", "/heapdump": "*.heapsnapshot"}
# They ask the hooks, and put texts into the conversation or read other sessions.
BUILTIN = ("/init", "/insights", "/security-review", "/simplify", "/goal finish", "/debug")
# Local ones without a trace: their answer tells that they ran.
LOCAL = ("/usage", "/cost", "/rename x", "/color red", "/model sonnet", "/clear", "/help", "/mcp")

HEAD = "---\ndescription: d\n---\n"  # without it, the model is shown how the body begins
PROJECTS = (
    f"course/.claude/commands/hello.md={HEAD}Hello $ARGUMENTS canary(hello) @<root>/out/secret.txt",
    f"course/.claude/commands/a/b.md={HEAD}canary(nested) @<root>/out/secret.txt",
    f"course/.claude/commands/caf\u00e9.md={HEAD}canary(accent) @<root>/out/secret.txt",
    # Called by its name in the front matter, as a path would be.
    "course/.claude/skills/sk/SKILL.md="
    + HEAD.replace("---\n", "---\nname: srv/data\n", 1)
    + "canary(path) @<root>/out/secret.txt",
    f"course/.claude/commands/safe.md={HEAD}canary(safe) $ARGUMENTS",
    f"course/.claude/commands/plain.md={HEAD}canary(plain) $ARGUMENTS",
)


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


# A prompt that runs a command of the project, and the canary in its body.
RUN: dict[str, tuple[Any, str]] = {
    "a command": ("/hello x", "hello"),
    "white space of another kind": ("/hello\u3000x", "hello"),
    "a line break": ("/hello\nx", "hello"),
    "nested": ("/a:b", "nested"),
    "nested, in two words": ("/a b", "nested"),
    "an accent": ("/caf\u00e9", "accent"),
    "like a path": ("/srv/data is broken", "path"),
    "a block": ([text("/hello x")], "hello"),
    "the last block, like a path": ([text("First."), text("/srv/data x")], "path"),
}
# The prompt gate can't tell it from the same two lines of text: it is passed on word for word.
LAST_BLOCK = [text("First."), text("/hello x")]
# The CLI takes these as text, and so does the kit.
TEXT: dict[str, Any] = {
    "a path": "/srv/data/x.csv is broken",
    "a file": "/etc/hosts",
    "a folder that exists": "/tmp is full",
    "two slashes": "//hello",
    "a slash alone": "/ hello",
    "a comment": "/* hello */",
    "another slash": "\uff0fhello",
    "in the middle": "please /hello x",
    "on a later line": "please\n/hello x",
}
# Text to the CLI that the kit blocks none the less: another version might trim it.
TRIMMED = ("  /hello x", "\n/hello x", "\ufeff/hello", [text("/hello x"), text("last")])


def prepare(course: Course) -> Course:
    tree(course.root, [course.text(entry) for entry in PROJECTS])
    return course


def well(_turn: object) -> str:
    return "Well."


def written(home: Path) -> list[str]:
    """What a built-in command left in the runner's home."""
    patterns = ("*.heapsnapshot", ".claude/settings.json")
    return sorted(str(path) for pattern in patterns for path in home.glob(pattern))


# --- the CLI's own -------------------------------------------------------------------------------


def test_without_the_kit_a_prompt_writes_the_runners_settings_and_into_home(
    course: Course,
) -> None:
    run = course.run(course.bare(), well, prompt=list(WRITERS))
    assert [record.blocked for record in run.prompts] == [None, None]
    assert len(written(course.home)) == 2
    assert not [request for request in run.requests if not request.side]


@pytest.fixture(scope="module")
def own(new_course: Callable[[], Course]) -> tuple[Course, SessionRun, tuple[str, ...]]:
    """A session that is asked for every command that this version of the CLI lists, and more."""
    course = new_course()
    first = course.session(well, **ALONE)
    [listed] = [
        message.data["slash_commands"]
        for message in first.messages
        if getattr(message, "subtype", "") == "init"
    ]
    allowed = set(course.plan().slash_commands)
    prompts = (
        *WRITERS,
        *BUILTIN,
        *LOCAL,
        *(f"/{name}" for name in listed if name not in allowed),
    )
    course.run_dir = course.root / "second"
    return course, course.session(well, run={"prompt": prompts}, **ALONE), prompts


def test_no_command_of_the_cli_runs(own: tuple[Course, SessionRun, tuple[str, ...]]) -> None:
    course, run, prompts = own
    assert len(prompts) > 40
    for record in run.prompts:
        assert record.lock is AnsweredBy.PROMPT_GATE, record
        assert str(record.prompt).split()[0] in (record.blocked or "")
        assert "/sources:cite" in (record.blocked or "")
    assert not run.requests
    assert written(course.home) == []


@pytest.mark.parametrize("mentions", ["any", "off"])
def test_nor_does_one_when_mentions_are_not_judged(course: Course, mentions: str) -> None:
    prompts = [*WRITERS, "/usage", "/init"]
    run = course.session(well, run={"prompt": prompts}, **ALONE, prompt_mentions=mentions)
    # Taken word for word, a command is a text like any other.
    assert {record.text for record in run.prompts} == ({"Well."} if mentions == "off" else {""})
    assert all((record.blocked is None) is (mentions == "off") for record in run.prompts)
    assert written(course.home) == []


def test_one_that_the_agent_names_runs(course: Course) -> None:
    prompts = ["/usage", "/cost", "/sources:cite x"]
    run = course.session(well, run={"prompt": prompts}, **ALONE, spec={"commands": ["usage"]})
    assert "cost" in run.prompts[0].text.casefold()
    assert [record.blocked is None for record in run.prompts] == [True, False, False]
    assert "It may run /usage." in (run.prompts[1].blocked or "")


# --- the project's -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def control(new_course: Callable[[], Course]) -> tuple[Course, dict[str, SessionRun]]:
    course = prepare(new_course())
    bare = course.bare(setting_sources=["project"])
    return course, {
        form: course.run(bare, well, prompt=[prompt])
        for form, prompt in [*((form, row[0]) for form, row in RUN.items()), ("last", LAST_BLOCK)]
    }


@pytest.mark.parametrize("form", [*RUN, "last"])
def test_without_the_kit_the_body_is_expanded(
    form: str, control: tuple[Course, dict[str, SessionRun]]
) -> None:
    course, runs = control
    canary = RUN[form][1] if form in RUN else "hello"
    assert course.seen(runs[form]) >= {canary, "outside"}


@pytest.fixture(scope="module")
def kept(new_course: Callable[[], Course]) -> tuple[Course, SessionRun]:
    course = prepare(new_course())
    prompts = [*(prompt for prompt, _ in RUN.values()), *TEXT.values(), *TRIMMED, LAST_BLOCK]
    return course, course.session(well, run={"prompt": prompts}, **ALONE)


@pytest.mark.parametrize("form", RUN)
def test_a_command_of_the_project_does_not_run_unless_the_agent_names_it(
    form: str, kept: tuple[Course, SessionRun]
) -> None:
    record = kept[1].prompts[list(RUN).index(form)]
    if "disabled via skillOverrides" in record.text:  # the CLI refuses what isn't offered, first
        assert "like a path" in form
        return
    assert record.lock is AnsweredBy.PROMPT_GATE
    assert "which this agent may not run" in (record.blocked or "")


@pytest.mark.parametrize("form", TEXT)
def test_text_that_begins_with_a_slash_reaches_the_model(
    form: str, kept: tuple[Course, SessionRun]
) -> None:
    assert kept[1].prompts[len(RUN) + list(TEXT).index(form)].text == "Well."


@pytest.mark.parametrize("at", range(len(TRIMMED)))
def test_what_another_cli_may_read_as_a_command_is_blocked_too(
    at: int, kept: tuple[Course, SessionRun]
) -> None:
    assert kept[1].prompts[len(RUN) + len(TEXT) + at].lock is AnsweredBy.PROMPT_GATE


def test_a_command_in_the_last_of_several_blocks_is_text(kept: tuple[Course, SessionRun]) -> None:
    assert kept[1].prompts[-1].text == "Well."


def test_nothing_of_a_body_was_seen(kept: tuple[Course, SessionRun]) -> None:
    course, run = kept
    assert course.seen(run) == set()


def test_a_named_command_of_the_project_runs_and_its_arguments_are_judged(course: Course) -> None:
    prepare(course)
    prompts = [
        "/safe x",
        "/safe @sources/syllabus.md",
        "/safe @README.md",
        [text("/safe"), text("/safe @README.md")],
        "/plain x",
    ]
    run = course.session(well, run={"prompt": prompts}, **ALONE, spec={"commands": ["safe"]})
    assert [record.blocked is None for record in run.prompts] == [True, True, False, False, False]
    assert "README.md" in (run.prompts[2].blocked or "")
    assert "README.md" in (run.prompts[3].blocked or "")
    assert course.seen(run) == {"safe", "syllabus"}


def test_an_extensions_own_command_runs(course: Course) -> None:
    run = course.session(well, run={"prompt": "/sources:cite the syllabus"}, **ALONE)
    body = "<command-name>/sources:cite</command-name>"
    assert run.prompts[0].text == "Well."
    assert run.saw(body)
