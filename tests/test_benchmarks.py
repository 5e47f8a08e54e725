"""The benchmarks run, and say what they should say. Nothing here depends on how fast anything is."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]

# The figures that are promised, with what they are promised to be.
BOUNDS = {
    "decision.file": 0.6,
    "decision.missing": 0.8,
    "decision.new": 0.8,
    "literals.near.judge": 1.1,
    "literals.none.judge": 1.1,
    "literals.near.build": 20,
    "literals.none.build": 20,
    **{
        f"patterns.{family}.{figure}": bound
        for family in (
            "extension",
            "name",
            "head",
            "tail",
            "leading",
            "relative",
            "mixed",
            "middle",
            "class",
            "crowded",
        )
        for figure, bound in (("judge", 2), ("build", 20))
    },
    "patterns.loose.build": 20,
    "dispatch.gate": 0.5,
    "import.kit": 40,
    "import.kit.foreign": 0,
    "import.scope.foreign": 0,
    "import.plan.foreign": 0,
    "plan.warm": 10,
    "plan.cold": 10,
}
REPORTED = {
    "decision.write",
    "decision.deeper",
    "decision.grep",
    "decision.glob",
    "decision.link",
    "decision.unicode",
    "decision.two-names",
    "decision.outside",
    "decision.pattern",
    "decision.no-patterns",
    "decision.handle",
    "patterns.loose.judge",
    "dispatch.denied",
    "import.scope",
    "import.plan",
}


def run(tmp_path: Path, *arguments: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """What ``python -m benchmarks --fast`` prints, and its rows by key."""
    file = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--fast", "--json", str(file), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(file.read_text("utf-8"))["rows"]
    assert len({row["key"] for row in rows}) == len(rows)
    return done.stdout, {row["key"]: row for row in rows}


def check_each_is_a_figure(printed: str, rows: dict[str, dict[str, Any]]) -> None:
    for row in rows.values():
        assert row["what"] in printed
        assert math.isfinite(row["value"])
        assert row["low"] <= row["high"]
        assert row["samples"] >= 1
        assert row["verdict"] == (
            "" if row["bound"] is None else "ok" if row["value"] <= row["bound"] else "over"
        )


Printed = tuple[str, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """Everything but the sessions."""
    parts = ("decisions", "entries", "dispatch", "imports", "plans")
    return run(tmp_path_factory.mktemp("bench"), *(f"--only={part}" for part in parts))


def test_every_promised_figure_is_measured_and_printed(measured: Printed) -> None:
    printed, rows = measured
    assert {k: r["bound"] for k, r in rows.items() if r["bound"] is not None} == BOUNDS
    assert {k for k, r in rows.items() if r["bound"] is None} == REPORTED
    check_each_is_a_figure(printed, rows)


def test_importing_the_kit_loads_no_module_of_the_sdk_or_mcp(measured: Printed) -> None:
    found = {key: row["value"] for key, row in measured[1].items() if key.endswith(".foreign")}
    assert found == {"import.kit.foreign": 0, "import.scope.foreign": 0, "import.plan.foreign": 0}


@pytest.mark.e2e
def test_sessions_with_and_without_the_locks_run_the_same_calls(tmp_path: Path) -> None:
    printed, rows = run(tmp_path, "--only=sessions")
    assert {key: row["bound"] for key, row in rows.items()} == {
        "session.hook": None,
        "session.locks": 1.05,
        "session.kit": None,
    }
    check_each_is_a_figure(printed, rows)


@pytest.mark.e2e
def test_the_cost_of_the_broker_is_measured_from_its_import_to_a_session(tmp_path: Path) -> None:
    printed, rows = run(tmp_path, "--only=broker")
    assert {key: row["bound"] for key, row in rows.items()} == dict.fromkeys(
        ("broker.import", "broker.request", "broker.stream", "broker.session")
    )
    check_each_is_a_figure(printed, rows)


@pytest.mark.e2e
def test_the_cost_of_a_confinement_is_measured_with_each_backend(tmp_path: Path) -> None:
    printed, rows = run(tmp_path, "--only=confined")
    bounds = {"plan": None, "start": 50, "calls": 1.05, "session": None, "commands": None}
    assert {key: row["bound"] for key, row in rows.items()} == {
        f"confined.{backend}.{figure}": bound
        for backend in ("bubblewrap", "landlock")
        for figure, bound in bounds.items()
    }
    check_each_is_a_figure(printed, rows)


def test_the_cost_of_a_base_of_pages_is_measured(tmp_path: Path) -> None:
    printed, rows = run(tmp_path, "--only=stores")
    figures = ("rare", "common", "zh", "ja", "ko", "edit", "look", "open", "memory")
    assert set(rows) == {f"store.1000.{name}" for name in figures}
    check_each_is_a_figure(printed, rows)


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import measure

    return measure


def test_a_figure_above_its_bound_is_over_and_one_at_it_is_ok(measure: ModuleType) -> None:
    figure = measure.figure
    assert figure("k", "w", "×", [1.0, 2.0, 3.0], bound=2.0).verdict == "ok"
    assert figure("k", "w", "×", [1.0, 2.1, 3.0], bound=2.0).verdict == "over"
    assert figure("k", "w", "×", [9.0]).verdict == ""


def test_a_ratio_is_the_median_over_the_pairs_and_not_of_the_sides(measure: ModuleType) -> None:
    # The machine was ten times slower for the second pair: the ratios don't show it.
    samples = measure.Samples((1.0, 10.0, 1.0), (2.0, 20.0, 3.0))
    row = samples.ratio("k", "w")
    assert (row.value, row.low, row.high) == (2.0, 2.0, 2.5)
    assert samples.added("k", "w").value == 1.0


def test_each_side_is_measured_once_in_each_pair_and_now_this_one_first_now_that(
    measure: ModuleType,
) -> None:
    order: list[str] = []

    def side(name: str, seconds: float) -> float:
        order.append(name)
        return seconds

    samples = measure.take_turns(lambda: side("r", 1.0), lambda: side("c", 2.0), 40)
    assert samples.reference == (1.0,) * 40
    assert samples.candidate == (2.0,) * 40
    pairs = {"".join(order[at : at + 2]) for at in range(0, 80, 2)}
    assert pairs == {"rc", "cr"}


def test_how_many_calls_fill_a_block_is_told_by_the_quickest_of_several_blocks(
    measure: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = itertools.cycle([9.0, 1e-6, 2e-6])  # the first one was held up
    monkeypatch.setattr(measure, "_block", lambda action, loops: next(taken))
    assert measure._loops(lambda: None, 5e-4) == 500


def test_a_block_calls_its_action_as_often_as_it_says(measure: ModuleType) -> None:
    calls: list[None] = []
    assert measure._block(lambda: calls.append(None), 17) > 0
    assert len(calls) == 17


def test_the_check_fails_when_a_bound_is_missed(
    measure: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from benchmarks import __main__ as program
    from benchmarks import plans

    for value, code in ((5.0, 0), (15.0, 1)):
        row = measure.figure("k", "w", "ms", [value], bound=10)
        monkeypatch.setattr(plans, "measure", lambda effort, row=row: iter([row]))
        assert program.main(["--only", "plans", "--check"]) == code
        assert program.main(["--only", "plans"]) == 0
    assert "over" in capsys.readouterr().out
