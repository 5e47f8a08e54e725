"""The rows of ``tests/cases/file_scope.json``, as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_kit.scope import FileScope, ToolOnlyDir, check_file_scope, explain_file_scope

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "file_scope.json").read_text(encoding="utf-8")
)


def scope_of(row: dict[str, Any]) -> FileScope:
    fields = dict(row["scope"])
    fields["tool_only_dirs"] = [ToolOnlyDir(**entry) for entry in fields["tool_only_dirs"]]
    return FileScope(platform=row["platform"], **fields)


def test_no_row_is_left_out() -> None:
    assert len(ROWS) == 157
    assert {row["expect"] for row in ROWS} == {"allow", "deny"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_a_row_gets_its_verdict(row: dict[str, Any]) -> None:
    scope = scope_of(row)
    decision = explain_file_scope(scope, row["tool"], row["input"])
    assert decision.verdict == row["expect"], decision
    assert check_file_scope(scope, row["tool"], row["input"]) == decision.message
    assert (decision.message is None) == (row["expect"] == "allow")
