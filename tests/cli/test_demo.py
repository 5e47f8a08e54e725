"""``agent-kit demo`` on the real CLI: what it promises is so, and it fails when it isn't."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_kit import SessionConfig
from agent_kit.cli import _demo
from agent_kit.cli._course import Course
from agent_kit.cli._screen import Screen
from agent_kit.testing import ScriptedModel, ToolCall, Turn, cli_env

if TYPE_CHECKING:
    from tests.cli.conftest import Ran, Run

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, command_in: Callable[..., Ran]) -> Ran:
    """The demo as a person runs it; the tests look at this one run."""
    return command_in(tmp_path_factory.mktemp("demo"), "demo", "--plain")


def answer_to(ran: Ran, call: str) -> str:
    """What stands below the only line that shows ``call``, up to the next call, on one line."""
    lines = ran.out.splitlines()
    below = lines[ran.line(call) + 1 :]
    end = next(n for n, line in enumerate(below) if re.match(r"\s*\d+  |The |$", line))
    return " ".join(" ".join(below[:end]).split())


def test_the_demo_ends_with_status_0_and_says_that_every_claim_holds(ran: Ran) -> None:
    assert ran.status == 0
    assert ran.out.splitlines()[-1].startswith("Every claim holds. (")
    assert "FAILED" not in ran.out


def test_the_demo_takes_less_than_15_seconds(ran: Ran) -> None:
    assert ran.seconds < 15


def test_the_demo_says_nothing_on_standard_error(ran: Ran) -> None:
    assert ran.err == ""


# The call, as it is shown, and the beginning of its answer.
ANSWERS = [
    ("mcp__sources__list_sources", "allowed: Files 1 to 2 in sources/."),
    ("Read sources/syllabus.md", "allowed: 1 # Ethics of machines"),
    ("  3  Read sources/submissions/ada.md", "allowed: 1 # Can a machine be blamed?"),
    ("Read agent.config.json", "DENIED by lock 2, the rules: "),
    ("Read .env", "DENIED by lock 2, the rules: "),
    ("Read ~/.ssh/id_ed25519", "DENIED by lock 1, the gate: "),
    ('Glob "**/*" in memory', "DENIED by lock 1, the gate: "),
    ("Read memory/fact/health.md", "DENIED by lock 1, the gate: "),
    ('Grep "password" in .', "DENIED by lock 1, the gate: "),
    ("Read README.md", "DENIED by lock 1, the gate: "),
    ("Read sources/answers.md", "DENIED by lock 1, the gate: "),  # a link that points out
    ("Read sources/old-settings.json", "DENIED by lock 1, the gate: "),  # a hard link
    ("Edit sources/syllabus.md", "DENIED by lock 2, the rules: "),
    ("Write drafts/CLAUDE.md", "DENIED by lock 2, the rules: "),
    ("(reviewer) Read sources/submissions/ada.md", "allowed: 1 # Can a machine be blamed?"),
    ("(reviewer) Read ../elsewhere/answers.md", "DENIED by lock 1, the gate: "),
    ("mcp__knowledge__knowledge_search exam", "allowed: 1 page"),
    ("mcp__knowledge__knowledge_read concept/exam", "allowed: id: concept/exam"),
    ("Edit drafts/newsletter.md", "allowed: The file drafts/newsletter.md has been updated"),
    ("mcp__memory__remember Likes short answers.", "allowed: Remembered as preference/"),
    (
        "The person: Is anything missing in @agent.config.json?",
        "BLOCKED by lock 3, the prompt gate: ",
    ),
]


@pytest.mark.parametrize(("call", "answer"), ANSWERS)
def test_each_call_is_shown_with_what_became_of_it_and_by_which_lock(
    ran: Ran, call: str, answer: str
) -> None:
    assert answer_to(ran, call).startswith(answer)


@pytest.mark.parametrize(
    "sentence",
    [
        "<tool_use_error>File is in a directory that is denied by your permission settings.",
        'memory/fact/health.md" is in memory/, which is reached only through its tools: recall,',
        "can't be read: reading is only allowed inside sources/, drafts/ and",
        "old-settings.json\" is off limits: it can't be read.",
    ],
)
def test_a_denial_is_shown_in_the_words_that_the_model_got(ran: Ran, sentence: str) -> None:
    assert sentence in ran.flat


def test_the_subagent_is_shown_between_its_call_and_its_answer(ran: Ran) -> None:
    started, inside = ran.line("15  Agent reviewer"), ran.line("(reviewer) Read ../elsewhere")
    assert started < inside < ran.line("15 Agent: allowed: ")


def test_calls_are_shown_as_they_happen(ran: Ran) -> None:
    first, last = ran.line("Read sources/syllabus.md"), ran.line("mcp__memory__remember")
    assert ran.times[last] - ran.times[first] > 0.3  # seconds; all at once would be no time at all


@pytest.mark.parametrize(
    "claim",
    [
        r"None of the 7 canaries was in any request to the model: \d+ requests, [\d,]{6,} bytes,",
        r"The search can find: canary-\w{16}, in course/sources/syllabus.md, which the agent may learn, was in \d+",
        r"The search can find: canary-\w{16}, in course/knowledge/concept/exam.md, which",
        r"12 of 12 calls that had to be denied were denied by a lock\.",
        r"9 of 9 calls that the agent's work needs ran\.",
        r"Lock 1 and lock 2 each answered",
        r"The prompt that mentions a closed file was blocked by lock 3, and never sent\.",
        r"The 21 answers above are, word for word, in the requests\.",
        r"Nothing was wanted from another host\.",
    ],
)
def test_the_proof_names_what_it_rests_on(ran: Ran, claim: str) -> None:
    assert re.search(rf"\bok {claim}", ran.flat)


@pytest.mark.parametrize(
    "file",
    [
        "course/agent.config.json",
        "course/.env",
        "course/README.md",
        "course/memory/fact/health.md",
        "elsewhere/answers.md",
        "~/.ssh/id_ed25519",
        "~/.claude/CLAUDE.md",
    ],
)
def test_the_proof_lists_each_closed_file_with_its_canary(ran: Ran, file: str) -> None:
    assert re.search(rf"canary-\w{{16}} {re.escape(file)} ", ran.flat)


def test_a_closed_files_canary_stands_nowhere_but_in_the_list(ran: Ran) -> None:
    listed = re.findall(r"^  (canary-\w{16})  ", ran.out, re.MULTILINE)
    assert [ran.out.count(canary) for canary in listed] == [1] * 7


def test_nothing_is_left_behind(ran: Ran) -> None:
    assert list(ran.temporary.iterdir()) == []
    assert list(ran.home.rglob("*")) == []


def test_plain_output_is_ascii_without_escapes_in_88_columns(ran: Ran) -> None:
    assert ran.out.isascii()
    assert "\x1b" not in ran.out
    words = (line.strip() for line in ran.out.splitlines() if len(line) > 88)
    assert [line for line in words if " " in line] == []  # a long path has a line of its own
    assert [line for line in ran.out.splitlines() if line != line.rstrip()] == []


def test_keep_leaves_the_folder_and_names_it(command: Run) -> None:
    ran = command("demo", "--plain", "--keep")
    (folder,) = ran.temporary.iterdir()
    assert ran.flat.endswith(f" The folder stays: {folder}")
    assert (
        (folder / "course" / "drafts" / "newsletter.md").read_text().endswith("Monday 14 June.\n")
    )
    assert ran.status == 0


# --- the demo fails when it should ---------------------------------------------------------------


def weakened(monkeypatch: pytest.MonkeyPatch, change: Callable[[Course], dict[str, Any]]) -> int:
    """Run the demo in this process with a configuration that is changed; its exit status."""
    real = _demo.course_config

    def course_config(course: Course, env: dict[str, str]) -> SessionConfig:
        weak = {"confinement": "off", **change(course)}  # the kernel would hold all the same
        return dataclasses.replace(real(course, env), **weak)

    monkeypatch.setattr(_demo, "course_config", course_config)
    return _demo.run_demo(Screen(plain=True))


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_the_demo_fails_and_names_the_canary_when_a_closed_file_is_readable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = weakened(
        monkeypatch, lambda course: {"extra_readable_dirs": [course.root / "elsewhere"]}
    )
    out = " ".join(capsys.readouterr().out.split())
    assert status == 1
    assert "FAILED None of the 7 canaries was in any request" in out
    assert re.search(r"leaked: canary-\w{16} of elsewhere/answers.md, in #\d+\.messages", out)
    assert "FAILED 10 of 12 calls that had to be denied" in out
    assert "Read {'file_path': 'sources/answers.md'} was answered: ran" in out
    assert "2 of 12 claims do not hold." in out


def test_the_demo_fails_when_a_call_that_had_to_be_denied_runs_though_nothing_leaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = weakened(monkeypatch, lambda _course: {"writable_control_files": True})
    out = " ".join(capsys.readouterr().out.split())
    assert status == 1
    assert "ok None of the 7 canaries" in out
    assert "FAILED 11 of 12 calls that had to be denied" in out
    assert "1 of 12 claims do not hold." in out


def test_the_demo_fails_when_the_prompt_with_the_mention_is_sent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = weakened(monkeypatch, lambda _course: {"prompt_mentions": "any"})
    assert status == 1
    assert "FAILED The prompt that mentions a closed file was blocked" in " ".join(
        capsys.readouterr().out.split()
    )


def test_a_session_that_cannot_start_is_one_sentence_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def broken_cli(course: Course) -> dict[str, Any]:
        program = course.root / "cli"
        program.write_text("#!/bin/sh\nexit 3\n")
        program.chmod(0o755)
        return {"cli_path": program}

    status = weakened(monkeypatch, broken_cli)
    err = capsys.readouterr().err
    assert status == 1
    assert err.startswith("The session failed: ")
    assert len(err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


# --- with a key of one's own: here the "real" endpoint is a scripted one --------------------------


def live(command: Run, script: Any, question: str) -> tuple[Ran, ScriptedModel]:
    with ScriptedModel(script) as model:
        env = {k: v for k, v in cli_env(model, Path("/")).items() if k != "HOME" and v}
        return command("demo", "--plain", "--live", question, env=env), model


def test_a_live_demo_asks_the_endpoint_of_the_persons_key_and_shows_the_answer(
    command: Run,
) -> None:
    script = [
        ToolCall("Read", {"file_path": "sources/syllabus.md"}),
        ToolCall("Read", {"file_path": "agent.config.json"}),
        "On Monday 14 June.",
    ]
    ran, model = live(command, script, "When is the exam?")
    assert ran.status == 0
    assert model.saw("When is the exam?")
    assert "The person: When is the exam?" in ran.out
    assert answer_to(ran, "Read sources/syllabus.md").startswith("allowed: ")
    assert answer_to(ran, "Read agent.config.json").startswith("DENIED by lock 2")
    assert "The model: On Monday 14 June." in ran.out
    assert re.search(
        r"ok None of the 7 canaries is in what the CLI noted down .*\d+ char", ran.flat
    )


def test_a_live_demo_keeps_the_persons_own_home_out_and_leaves_nothing(command: Run) -> None:
    ran, _model = live(command, ["Hello."], "Who are you?")
    assert list(ran.home.rglob("*")) == []
    assert list(ran.temporary.iterdir()) == []


def test_a_live_demo_whose_endpoint_refuses_ends_with_status_1(command: Run) -> None:
    def refuse(_turn: Turn) -> None:
        raise LookupError("no such account")

    ran, _model = live(command, refuse, "Who are you?")
    assert ran.status == 1
    assert "The CLI reports an error: " in ran.out
