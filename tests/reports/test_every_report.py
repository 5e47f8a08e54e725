"""No report is left out: each has a test that carries its number."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REPORTS: list[dict[str, Any]] = json.loads(
    (HERE.parent / "cases" / "bug_reports.json").read_text(encoding="utf-8")
)

# Kind of report to the file with its tests.
FILES = {
    "A deny-rule form": "test_deny_rule_forms.py",
    "B path containment": "test_containment.py",
    "C uncovered tool/input": "test_uncovered_tools.py",
    "D hook fails open": "test_failing_hooks.py",
    "E settings/isolation": "test_settings.py",
    "F notes store": "test_notes_store.py",
    "G SDK specifics": "test_sdk.py",
}


def marked(file: str) -> Iterator[int]:
    """The numbers in the ``pytest.mark.report(…)`` of a file's tests."""
    for test in ast.parse((HERE / file).read_text(encoding="utf-8")).body:
        if isinstance(test, (ast.FunctionDef, ast.AsyncFunctionDef)) and test.name.startswith(
            "test_"
        ):
            for mark in test.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.report":
                    yield from (ast.literal_eval(argument) for argument in mark.args)


def test_every_kind_has_a_file() -> None:
    assert {report["kind"] for report in REPORTS} == set(FILES)


def test_every_report_of_a_kind_has_a_test_in_that_kinds_file() -> None:
    for kind, file in FILES.items():
        numbers = {report["n"] for report in REPORTS if report["kind"] == kind}
        assert set(marked(file)) == numbers, file


def test_no_report_was_lost() -> None:
    numbers = [report["n"] for report in REPORTS]
    assert len(numbers) == len(set(numbers)) == 95
