"""The rows of ``tests/cases/authorizers.json``, as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy import (
    Action,
    Authorized,
    AuthorizerContext,
    Target,
    allow,
    ask_user,
    deny,
    deny_paths,
    run_authorizers,
    size_ceiling,
)

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "authorizers.json").read_text(encoding="utf-8")
)


def rows(kind: str) -> Any:
    return pytest.mark.parametrize(
        "row", [row for row in ROWS if row["kind"] == kind], ids=lambda row: str(row["id"])
    )


def target(path: str = "/w/a", *, action: str = "read", **more: Any) -> Target:
    return Target(
        action=Action(action),
        requested=path,
        absolute=path,
        resolved=path,
        display_path=path,
        tool="Read",
        **more,
    )


async def run(authorizers: list[Any], about: Target) -> Authorized:
    return await run_authorizers(authorizers, [about], AuthorizerContext(project_dir="/w"))


def verdict(found: Authorized) -> str:
    return "allow" if found.allowed else "deny"


def test_no_row_is_left_out() -> None:
    assert len(ROWS) == 35
    assert {row["kind"] for row in ROWS} == {"deny_paths", "size_ceiling", "ask_user", "chain"}


@rows("deny_paths")
async def test_a_denied_path(row: dict[str, Any]) -> None:
    found = await run([deny_paths(row["patterns"])], target(row["path"]))
    assert verdict(found) == row["expect"]
    if found.refusal:
        assert found.refusal.message == (
            f"{row['path']} was refused by policy (the path matches a denied pattern)."
        )
        assert str(found.refusal) == f"[read:denied] {found.refusal.message}"


@rows("size_ceiling")
async def test_a_ceiling(row: dict[str, Any]) -> None:
    given = {"file_path": "/w/a"} | ({"offset": 1, "limit": 5} if row["ranged"] else {})
    about = target(action=row["action"], size=row["size"], tool_input=given)
    ceiling = size_ceiling(row["max_bytes"], unranged_only=row["unranged_only"])
    assert verdict(await run([ceiling], about)) == row["expect"]


@rows("ask_user")
@pytest.mark.parametrize("waits", [False, True], ids=["sync", "async"])
async def test_a_question(row: dict[str, Any], waits: bool) -> None:
    asked: list[Target] = []

    def question(about: Target) -> Any:
        asked.append(about)
        return json.loads(row["answer"])

    async def later(about: Target) -> Any:
        return question(about)

    about = target(action=row["action"])
    assert verdict(await run([ask_user(later if waits else question)], about)) == row["expect"]
    assert asked == ([] if row["answer"] == "not-asked" else [about])


class Step:
    id = "step"

    def __init__(self, answer: Any, ran: list[Any]) -> None:
        self.answer, self.ran = answer, ran

    def authorize(self, _target: Target, _context: AuthorizerContext) -> Any:
        self.ran.append(self)
        return self.answer


@rows("chain")
async def test_a_chain(row: dict[str, Any]) -> None:
    answers = {"allow": allow(), "deny": deny("no"), "malformed": {"allowed": True}}
    ran: list[Any] = []
    chain = [Step(answers[step], ran) for step in row["steps"]]
    found = await run(chain, target())
    assert verdict(found) == row["expect"]
    assert ran == chain[: row["ran"]]
