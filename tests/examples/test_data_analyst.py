"""The data analyst: its Python works on the sources, and a closed table stays closed to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_kit import build_session_options
from agent_kit.confine.backend import ConfinementUnavailableError
from agent_kit.confine.choice import BACKENDS
from agent_kit.testing import (
    AnsweredBy,
    Say,
    ScriptedModel,
    SessionRun,
    ToolCall,
    run_session,
    tree,
)

pytestmark = pytest.mark.e2e

ANALYSIS = """\
import csv, collections
months = collections.Counter()
with open("sources/tickets.csv") as table:
    for row in csv.DictReader(table):
        months[row["month"]] += int(row["tickets"])
with open("drafts/report.md", "w") as report:
    report.writelines(f"- {month}: {count}\\n" for month, count in months.items())
print("counted", sum(months.values()))
"""
# Every way that comes to mind in one: each line says what it came to.
SPYING = """\
import os, shutil, subprocess
def attempt(name, do):
    try:
        print(name, "->", do())
    except Exception as error:
        print(name, "->", type(error).__name__)
attempt("open", lambda: open("sources/salaries.csv").read())
attempt("absolute", lambda: open(os.path.abspath("sources/salaries.csv")).read())
attempt("copy", lambda: shutil.copy("sources/salaries.csv", "drafts/copy.csv"))
attempt("link", lambda: os.link("sources/salaries.csv", "drafts/hard.csv"))
attempt("hard", lambda: open("drafts/hard.csv").read())
attempt("cat", lambda: subprocess.check_output(["cat", "sources/salaries.csv"]))
attempt("change", lambda: open("sources/tickets.csv", "a"))
attempt("readme", lambda: open("README.md").read())
print("tried everything")
"""
REPORT = "- May: 12\n- June: 5\n"
TICKETS = "month,tickets\nMay,3\nJune,5\nMay,9\n"


def python(text: str) -> ToolCall:
    return ToolCall("Bash", {"command": f"python3 - <<'END'\n{text}END\n"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tree(
        tmp_path / "tickets of a year",
        [
            f"sources/tickets.csv={TICKETS}",
            "sources/salaries.csv=name,salary\ncanary-name,canary-salary\n",
            "README.md=canary-readme",
            "drafts/",
        ],
    )


@pytest.fixture
def analyst(example: Callable[..., Any], folder: Path, tmp_path: Path) -> Callable[..., Any]:
    """Runs the example's session with these fields of its config changed."""

    async def run(*calls: ToolCall, **changed: Any) -> SessionRun:
        module, home = example("data_analyst"), tmp_path / "home"
        home.mkdir(exist_ok=True)
        config = dataclasses.replace(
            module.config(str(folder)),
            run_dir=tmp_path / "run",
            env={"HOME": str(home), "ANTHROPIC_API_KEY": "sk-made-up"},
            **changed,
        )
        options = build_session_options(module.SPEC, config)
        return await run_session(options, [*calls, Say("Done.")], home=home)

    return run


@pytest.mark.parametrize("backend", ["bubblewrap", "landlock"])
async def test_python_reads_the_sources_and_writes_a_report_and_the_closed_table_stays_closed(
    analyst: Callable[..., Any], folder: Path, backend: str
) -> None:
    run = await analyst(python(ANALYSIS), python(SPYING), confinement_backend=backend)
    assert [call.lock for call in run.calls] == [AnsweredBy.RAN, AnsweredBy.RAN]
    assert "counted 17" in run.calls[0].result
    assert (folder / "drafts/report.md").read_text() == REPORT
    assert "tried everything" in run.calls[1].result
    assert not run.saw("canary-")
    assert (folder / "sources/tickets.csv").read_text() == TICKETS
    assert [path.name for path in (folder / "drafts").iterdir() if path.stat().st_size] == [
        "report.md"
    ]


async def test_unconfined_the_same_python_would_have_read_the_closed_table(
    analyst: Callable[..., Any],
) -> None:
    run = await analyst(
        python(SPYING), confinement="off", confined_tools=(), allow_unconfined_commands=True
    )
    assert run.saw("canary-salary")
    assert run.saw("canary-readme")


def test_where_nothing_confines_commands_no_session_is_built(
    example: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for backend in BACKENDS.values():
        monkeypatch.setattr(type(backend), "available", lambda _: "not here.")
    module = example("data_analyst")
    with pytest.raises(ConfinementUnavailableError, match="Bash can run commands"):
        build_session_options(module.SPEC, module.config(str(folder)))


def test_the_analyst_started_by_hand_writes_the_report_and_prints_the_answer(
    by_hand: Callable[..., Any], folder: Path
) -> None:
    script = [python(ANALYSIS), python(SPYING), Say("Most came in May.")]
    with ScriptedModel(script) as model:
        done = by_hand("data_analyst", str(folder), "How many a month?", model=model)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Most came in May.\n", "")
    assert model.unplayed == ()
    assert (folder / "drafts/report.md").read_text() == REPORT
    assert model.saw("tried everything")
    assert not model.saw("canary-")
