"""What a person decides about originals, on the real CLI: what is retired, and what they give."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import ClaudeSDKClient

from agent_kit import (
    Approval,
    answer,
    approve,
    edit,
    pending_questions,
    read_trail,
    reject,
    session_mode,
)
from agent_kit.testing import ScriptedModel, ToolCall, cli_env, tree
from tests.people import Person, rule
from tests.terminals import typed

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

RETIRE = "mcp__sources__retire_source"
REQUEST = "mcp__sources__request_file"
WHY = "Replaced by the new one,\nand it has \x1b[31mtwo\x1b[0m errors."
LIST = ToolCall("mcp__sources__list_sources", {})


def retire(file: str = "sources/syllabus.md", reason: str = WHY) -> ToolCall:
    return ToolCall(RETIRE, {"file": file, "reason": reason})


def request(**fields: str) -> ToolCall:
    given = {"what": "The grades of last year", "why": "To compare.", "name": "week1/grades.csv"}
    return ToolCall(REQUEST, {**given, **fields})


def trail(course: Course, tool: str) -> list[dict[str, Any]]:
    paths = (course.run_dir / "host").glob("*.decisions.jsonl")
    lines = (line for path in paths for line in read_trail(path) if line["tool"] == tool)
    return sorted(lines, key=lambda line: line["time"])


def manifest(course: Course) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((course.project / "sources/.sources.json").read_text())
    return found


def retired(course: Course) -> list[str]:
    """What lies among the retired ones, without time and number."""
    found = (course.project / "sources").glob(".retired/*")
    return sorted(path.name.split("-", 2)[2] for path in found)


# --- retire_source --------------------------------------------------------------------------------


def test_an_original_that_a_person_lets_go_is_retired_and_no_tool_reads_it(
    course: Course,
) -> None:
    person = Person(approve())

    def then(turn: Any) -> Any:
        steps: list[Any] = [retire(), LIST]
        if turn.number < len(steps):
            return steps[turn.number]
        (place,) = (course.project / "sources").glob(".retired/*syllabus.md")
        kept = str(place.relative_to(course.project))
        reads = [
            course.call("Read", file_path=kept),
            course.call("Read", file_path="sources/syllabus.md"),
            course.call("Read", file_path="sources/.sources.json"),
            ToolCall("mcp__sources__extract_text", {"file": kept}),
            ToolCall("mcp__sources__extract_text", {"file": "sources/syllabus.md"}),
            ToolCall("mcp__sources__save_to_sources", {"file": kept, "name": "back.md"}),
            course.call("Grep", pattern="canary", path="sources", output_mode="content"),
            course.call("Glob", pattern="sources/**/*"),
            course.call("Glob", pattern=".retired/**", path="sources"),
            retire(kept),
        ]
        at = turn.number - len(steps)
        return reads[at] if at < len(reads) else None

    run = course.run(course.options(ask=person), then)
    done, listed, *reads = run.calls
    assert not done.is_error
    assert "sources/syllabus.md is retired" in (done.result or "")
    assert "syllabus.md" not in (listed.result or "")
    assert [call.is_error for call in reads[:6]] == [True] * 6
    assert reads[-1].is_error
    for found in reads[6:9]:  # the searches
        assert "syllabus" not in (found.result or "")
        assert ".sources.json" not in (found.result or "")
    assert "syllabus" not in course.seen(run)
    assert retired(course) == ["syllabus.md"]
    (asked,) = person.asked
    assert (asked.tool, asked.tool_input) == (RETIRE, dict(retire().input))
    assert asked.rule == f"interrupt_on[{RETIRE}]"
    assert asked.asks_for is None
    (entry,) = manifest(course)["retired"].values()
    assert (entry["path"], entry["why"]) == ("syllabus.md", WHY)
    assert set(entry["by"]) == {"agent", "session"}
    line, _of_the_retired_one = trail(course, RETIRE)
    assert (line["verdict"], line["lock"], line["answer"]) == ("allow", "person", "approved")


def test_what_a_person_keeps_stays_and_the_model_hears_why(course: Course) -> None:
    before = course.snapshot()
    run = course.session([retire()], ask=Person(reject("we still need it")))
    assert run.calls[0].is_error
    assert "we still need it" in (run.calls[0].result or "")
    assert course.snapshot() == before


def test_a_person_may_change_which_one_and_why(course: Course) -> None:
    other = "sources/canary(sourcename).md"
    person = Person(
        edit({"file": other, "reason": "this one"}),
        edit({"file": "agent.config.json", "reason": "that one"}),
    )
    run = course.session([retire(), retire()], ask=person)
    assert [call.is_error for call in run.calls] == [False, True]
    assert retired(course) == ["canary(sourcename).md"]
    assert [entry["why"] for entry in manifest(course)["retired"].values()] == ["this one"]
    assert (course.project / "agent.config.json").exists()


def _written(file: Path) -> None:
    file.write_text("The new one, wanted.\n")


def _replaced(file: Path) -> None:
    file.unlink()
    file.write_text("Another file.\n")


def _gone(file: Path) -> None:
    file.unlink()


def _linked(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.with_name("canary(sourcename).md"))


def _elsewhere(file: Path) -> None:
    file.parent.rename(file.parent.with_name("moved"))
    file.parent.symlink_to("moved")


CHANGES = [_written, _replaced, _gone, _linked, _elsewhere]


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_while_a_person_thinks_isnt_retired(
    course: Course, change: Callable[[Path], None]
) -> None:
    file = course.project / "sources/syllabus.md"

    def ask(_approval: Approval) -> Any:
        change(file)
        return approve()

    run = course.session([retire()], ask=ask)
    assert run.calls[0].is_error
    assert "changed while a person looked" in (run.calls[0].result or "")
    assert retired(course) == []


@pytest.mark.parametrize("how", ["no ask", "autonomous", "plan"])
def test_where_nobody_is_there_nothing_is_retired(course: Course, how: str) -> None:
    config: dict[str, Any] = {
        "no ask": {},
        "autonomous": {"mode": "autonomous", "ask": Person()},
        "plan": {"mode": "plan", "ask": Person()},
    }[how]
    said = {
        "no ask": "Nobody can be asked in this session, so it was refused.",
        "autonomous": "Nobody is there in this session, so it was refused.",
        "plan": "This session is in plan mode",
    }
    before = course.snapshot()
    run = course.session([retire()], **config)
    assert run.calls[0].is_error
    assert said[how] in (run.calls[0].result or "")
    assert course.snapshot() == before


@pytest.mark.parametrize("said", [None, "yes", True, ValueError("x"), TimeoutError()], ids=repr)
def test_an_answer_of_another_kind_retires_nothing(course: Course, said: Any) -> None:
    before = course.snapshot()
    run = course.session([retire()], ask=Person(said))
    assert run.calls[0].is_error
    assert "could not be read" in (run.calls[0].result or "")
    assert course.snapshot() == before


def test_nobody_is_asked_about_what_could_not_be_retired(course: Course) -> None:
    files = ["sources/absent.md", "sources/keys/exam.pem", "drafts/newsletter.md", "README.md"]
    person = Person()
    run = course.session([retire(file) for file in files], ask=person)
    assert [call.is_error for call in run.calls] == [True] * 4
    assert person.asked == []
    assert {line["lock"] for line in trail(course, RETIRE)} == {"hook"}


def test_who_remembers_the_answer_is_asked_no_more_and_the_host_may_leave_the_question_out(
    course: Course,
) -> None:
    tree(course.project, [f"sources/{name}.md={name}" for name in "abcd"])
    person = Person(approve(remember=True))
    run = course.session([retire("sources/a.md"), retire("sources/b.md")], ask=person)
    assert [call.is_error for call in run.calls] == [False, False]
    assert len(person.asked) == 1
    run = course.session([retire("sources/c.md")], interrupt_on={RETIRE: False})
    assert not run.calls[0].is_error
    assert retired(course) == ["a.md", "b.md", "c.md"]


def test_a_rule_holds_though_a_person_agrees(course: Course) -> None:
    person = Person(approve())
    run = course.session(
        [retire()], ask=person, permissions=[rule("deny", "sources/**", operations=("write",))]
    )
    assert "can't be deleted" in (run.calls[0].result or "")
    assert retired(course) == []


def test_a_question_that_outlives_the_host_is_answered_later(course: Course) -> None:
    first = course.run(course.options(ask="defer"), [retire()])
    assert first.calls[0].is_error
    (question,) = pending_questions(course.run_dir)
    assert question.tool_input == retire().input
    answered = answer(question.question_id, approve(), run_dir=course.run_dir)
    second = course.run(
        course.options(ask="defer", resume=question.session_id),
        [retire()],
        prompt=answered.resume_prompt,
    )
    assert not second.calls[-1].is_error
    assert retired(course) == ["syllabus.md"]


def test_a_later_answer_counts_for_the_original_that_was_asked_about(course: Course) -> None:
    course.run(course.options(ask="defer"), [retire()])
    (question,) = pending_questions(course.run_dir)
    answered = answer(question.question_id, approve(), run_dir=course.run_dir)
    _replaced(course.project / "sources/syllabus.md")
    run = course.run(
        course.options(ask="defer", resume=question.session_id),
        [retire()],
        prompt=answered.resume_prompt,
    )
    assert "changed while a person looked" in (run.calls[-1].result or "")
    assert retired(course) == []


def test_a_retired_original_is_closed_to_the_commands_of_the_next_session(
    course: Course, backend: str
) -> None:
    find = ToolCall("Bash", {"command": "tar -c sources 2>/dev/null | strings"})
    config: dict[str, Any] = {
        "confinement": "required",
        "confinement_backend": backend,
        "env": {"ANTHROPIC_API_KEY": "made-up"},
    }
    first = course.session(
        [retire(), find], spec={"tools": ["Bash"]}, ask=Person(approve()), **config
    )
    assert retired(course) == ["syllabus.md"]
    assert "canary(syllabus)" in (first.calls[1].result or "")  # what it had it may still find
    run = course.session(
        [find, course.call("Grep", pattern="second", path="sources", output_mode="content")],
        spec={"tools": ["Bash"]},
        **config,
    )
    found, others = run.calls
    assert "second one" in (found.result or "")
    assert "second one" in (others.result or "")  # the folder can be searched all the same
    assert "syllabus" not in course.seen(run)


# --- request_file ---------------------------------------------------------------------------------


@pytest.fixture
def ada(course: Course) -> Path:
    """The folder of a person's own files, outside of everything."""
    tree(
        course.root,
        ["ada/grades.csv=name;canary(given)", "ada/canary(neighbourname).csv=canary(neighbour)"],
    )
    return course.root / "ada"


def giving(file: Path | str, **more: str) -> Any:
    return lambda approval: edit({**approval.tool_input, "file": file, **more})


def test_a_file_that_a_person_gives_is_an_original_and_the_model_never_learns_where_it_lay(
    course: Course, ada: Path
) -> None:
    person = Person(giving(ada / "grades.csv", given_by="Ada"))
    run = course.session(
        [
            request(),
            LIST,
            course.call("Read", file_path="sources/week1/grades.csv"),
            course.call("Read", file_path=str(ada / "grades.csv")),
            course.call("Read", file_path=str(ada / "canary(neighbourname).csv")),
        ],
        ask=person,
    )
    given, listed, read, theirs, neighbour = run.calls
    assert [given.is_error, listed.is_error, read.is_error] == [False, False, False]
    assert [theirs.is_error, neighbour.is_error] == [True, True]
    assert "from Ada, who was asked for it" in (listed.result or "")
    assert "canary(given)" in (read.result or "")
    assert not {"neighbour"} & course.seen(run)
    before = run.requests[: len(run.requests) - 2]  # until the script itself names the folder
    assert not any(str(ada) in request.text for request in before)
    (asked,) = person.asked
    assert asked.asks_for == "file"
    assert asked.tool_input == {**request().input, "file": ""}
    (line,) = (line for line in trail(course, REQUEST) if line["asked"])
    assert (line["verdict"], line["lock"], line["answer"]) == ("allow", "person", "edited")


def test_no_transcript_holds_the_path_that_a_person_gave(course: Course, ada: Path) -> None:
    run = course.session([request()], ask=Person(giving(ada / "grades.csv")))
    assert not run.calls[0].is_error
    assert not any(str(ada) in each.text for each in run.requests)
    kept = [*course.home.rglob("*.jsonl"), *course.run_dir.rglob("*.jsonl")]
    assert kept
    for path in kept:
        assert str(ada) not in path.read_text("utf-8", "replace")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (reject("it is at home"), "The person declined to give a file: it is at home"),
        (approve(), "named no file"),
        (None, "could not be read"),
        ("/etc/passwd", "could not be read"),
        (ValueError("x"), "could not be read"),
        (TimeoutError(), "could not be read"),
    ],
    ids=repr,
)
def test_without_a_file_nothing_is_saved(course: Course, said: Any, text: str) -> None:
    before = course.snapshot()
    run = course.session([request()], ask=Person(said))
    assert run.calls[0].is_error
    assert text in (run.calls[0].result or "")
    assert course.snapshot() == before


def test_a_path_that_the_model_adds_is_no_answer(course: Course, ada: Path) -> None:
    person = Person(approve(), lambda approval: edit(approval.tool_input))
    planted = {"file": str(ada / "grades.csv")}
    run = course.session(
        [request(**planted), request(), request(what=f'x", "file": "{planted["file"]}')],
        ask=person,
    )
    assert [call.is_error for call in run.calls] == [True, True, True]
    assert "given" not in course.seen(run)
    assert not (course.project / "sources/week1").exists()


def test_where_nobody_is_there_nobody_is_asked_for_a_file(course: Course) -> None:
    for config, text in (
        ({}, "Nobody can be asked in this session. No file was given: do without."),
        ({"ask": "defer"}, "Nobody can be asked in this session."),
        ({"mode": "autonomous", "ask": Person()}, "Nobody is there in this session."),
        ({"mode": "plan", "ask": Person()}, "plan mode"),
    ):
        run = course.session([request()], **config)
        assert run.calls[0].is_error
        assert text in (run.calls[0].result or "")


def test_in_interactive_mode_the_question_for_the_file_is_the_only_one(
    course: Course, ada: Path
) -> None:
    person = Person(giving(ada / "grades.csv"), approve())
    run = course.session(
        [request(), retire("sources/week1/grades.csv")], mode="interactive", ask=person
    )
    assert [call.is_error for call in run.calls] == [False, False]
    assert [asked.tool for asked in person.asked] == [REQUEST, RETIRE]


def test_a_host_may_have_the_request_itself_asked_about(course: Course, ada: Path) -> None:
    person = Person(approve(), giving(ada / "grades.csv"), reject("no requests"))
    run = course.session([request(), request()], interrupt_on={REQUEST: True}, ask=person)
    assert [call.is_error for call in run.calls] == [False, True]
    assert [asked.asks_for for asked in person.asked] == [None, "file", None]


@pytest.mark.parametrize("how", ["interrupt", "disconnect"])
async def test_a_session_that_ends_while_a_person_looks_for_the_file_saves_nothing(
    course: Course, ada: Path, how: str
) -> None:
    asked, ended, found = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def ask(approval: Approval) -> Any:
        asked.set()
        try:
            await found.wait()
        except asyncio.CancelledError:
            ended.set()
        await found.wait()  # they go on looking, and answer too late
        return edit({**approval.tool_input, "file": str(ada / "grades.csv")})

    with ScriptedModel([request(), "The end."]) as model:
        client = ClaudeSDKClient(course.options(ask=ask, env=cli_env(model, course.home)))
        await client.connect()
        try:
            await client.query("Go.")
            await asyncio.wait_for(asked.wait(), 30)
            if how == "interrupt":
                await client.interrupt()
                await asyncio.wait_for(ended.wait(), 10)
        finally:
            await client.disconnect()
        await asyncio.wait_for(ended.wait(), 10)
        found.set()
        await asyncio.sleep(0.5)
        assert not any("canary(given)" in each.text for each in model.requests)
    assert not (course.project / "sources/week1").exists()
    (line,) = (line for line in trail(course, REQUEST) if line["asked"])
    assert (line["verdict"], line["code"]) == ("deny", "aborted")


def test_the_mode_may_change_while_others_wait(course: Course, ada: Path) -> None:
    """What a person was asked before the switch they may still give; the next call is refused."""
    options: list[Any] = []

    def ask(approval: Approval) -> Any:
        session_mode(options[0]).set("plan")
        return edit({**approval.tool_input, "file": str(ada / "grades.csv")})

    options.append(course.options(ask=ask))
    run = course.run(options[0], [request(), request(name="second.csv")])
    assert [call.is_error for call in run.calls] == [False, True]
    assert "plan mode" in (run.calls[1].result or "")


# --- at a terminal ----------------------------------------------------------------------------------

PROGRAM = """
import asyncio, sys
from pathlib import Path
from agent_kit import *
from agent_kit.testing import ToolCall, run_session
from agent_kit_sources import sources
root = Path(sys.argv[1])
options = build_session_options(
    AgentSpec(name="asked", extensions=[sources()]),
    SessionConfig(
        project_dir=root / "course", run_dir=root / "run", ask=ask_in_terminal, confinement="off"
    ),
)
script = [
    ToolCall("mcp__sources__request_file", {"what": "The form", "why": "To fill in.", "name": "f.csv"}),
    ToolCall("mcp__sources__retire_source", {"file": "sources/old.csv", "reason": "The form is new."}),
    "Done.",
]
run = asyncio.run(run_session(options, script, home=root / "home"))
print([call.is_error for call in run.calls])
"""


def test_a_person_at_the_terminal_gives_a_file_and_lets_an_original_go(tmp_path: Path) -> None:
    root = tree(tmp_path, ["home/", "course/sources/old.csv=old", "ada/my form.csv=canary(form)"])
    answers = [(r"Your answer\? ", f"g {root}/ada/my form.csv"), (r"Run it\? ", "y")]
    out = typed(PROGRAM, root, answers)
    assert out.splitlines() == ["[False, False]"]
    assert (root / "course/sources/f.csv").read_text() == "canary(form)"
    assert not (root / "course/sources/old.csv").exists()
