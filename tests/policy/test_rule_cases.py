"""The rows of ``tests/cases/permission_rules.json``, as they are and below a folder of the disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy.compiled import RuleList, compile_rules
from agent_kit.policy.delete import check_delete
from agent_kit.policy.evaluate import check_permissions, check_search
from agent_kit.policy.rules import FilePermission

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "permission_rules.json").read_text(encoding="utf-8")
)
OPERATIONS = {"read", "write", "search", "delete-tree", "delete-file"}


def answer(rules: Any, row: dict[str, Any], **where: Any) -> str:
    if row["op"] == "search":
        return check_search(rules, row["path"], row.get("pattern"), cwd=row["cwd"], **where)
    if row["op"] in ("read", "write"):
        return check_permissions(rules, row["op"], row["path"], cwd=row["cwd"], **where)
    assert row["op"] in OPERATIONS
    return check_delete(rules, row["path"], cwd=row["cwd"], **where)


def test_no_row_is_left_out() -> None:
    assert len(ROWS) == 113
    assert {row["op"] for row in ROWS} == OPERATIONS
    assert {row["expect"] for row in ROWS} == {"allow", "deny", "interrupt"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_a_row_gets_its_verdict(row: dict[str, Any]) -> None:
    """Whatever this machine has at its root: no disk is looked at."""
    rules = compile_rules(row["rules"], project_dir="/", native=False)
    assert answer(rules, row) == row["expect"]


def below(root: str, text: str | None) -> str | None:
    return root + text if text is not None and text.startswith("/") else text


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_a_row_gets_its_verdict_below_a_real_folder(row: dict[str, Any], tmp_path: Path) -> None:
    root = str(tmp_path)
    moved = {name: below(root, row.get(name)) for name in ("path", "pattern", "cwd")}
    rules = [
        FilePermission(**rule | {"paths": [below(root, path) for path in rule["paths"]]})
        for rule in row["rules"]
    ]
    assert answer(rules, {**row, **moved}, project_dir=root) == row["expect"]


def test_compiled_rules_and_plain_ones_are_judged_alike(tmp_path: Path) -> None:
    rule = FilePermission(operations=["read"], paths=["a"], mode="deny")
    listed = compile_rules([rule], project_dir=tmp_path)
    assert isinstance(listed, RuleList)
    assert check_permissions(listed, "read", "a") == "deny"
    assert check_permissions([rule], "read", "a", project_dir=tmp_path) == "deny"
    assert check_permissions(listed, "write", "a") == "allow"
