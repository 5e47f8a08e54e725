"""The research team: three subagents on one base, in the folder and, with a DSN, in a database."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_kit import build_session_options
from agent_kit.store import DocumentStore, MarkdownStore, NewPage
from agent_kit.store.postgres import PostgresStore
from agent_kit.testing import (
    AnsweredBy,
    Say,
    ScriptedModel,
    SessionRun,
    ToolCall,
    Turn,
    run_session,
    tree,
)
from tests.store.postgres_server import running_server

pytestmark = pytest.mark.e2e

BASE = "mcp__knowledge__knowledge_"
PAGE = {
    "type": "concept",
    "title": "Sleep",
    "slug": "sleep",
    "body": "Adults need 5 hours. (sources/a.md)",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tree(
        tmp_path / "team",
        ["sources/a.md=Adults need 7 hours of sleep.\n", "drafts/", "closed.md=canary"],
    )


def version_in(turn: Turn) -> str:
    found = re.search(r"version: ([0-9a-f]{16})\b", turn.results[-1].text)
    assert found, turn.results
    return found.group(1)


def team() -> dict[str, Any]:
    """What each of the three does; each also tries what isn't its business."""

    def checker(turn: Turn) -> Any:
        steps: list[Callable[[], Any]] = [
            lambda: ToolCall(f"{BASE}read", {"id": "concept/sleep"}),
            lambda: ToolCall(
                f"{BASE}edit",
                {
                    "id": "concept/sleep",
                    "version": version_in(turn),
                    "old_text": "5 hours",
                    "new_text": "7 hours",
                },
            ),
            lambda: ToolCall("Write", {"file_path": "drafts/mine.md", "content": "x"}),
            lambda: Say("Corrected concept/sleep."),
        ]
        return steps[turn.number]()

    return {
        "reader": [
            ToolCall("Read", {"file_path": "sources/a.md"}),
            ToolCall(f"{BASE}create", {"pages": [PAGE]}),
            ToolCall("Read", {"file_path": "knowledge/concept/sleep.md"}),
            Say("Made concept/sleep."),
        ],
        "checker": checker,
        "writer": [
            ToolCall(f"{BASE}search", {"query": "hours of sleep"}),
            ToolCall(
                "Write", {"file_path": "drafts/answer.md", "content": "7 hours (concept/sleep)"}
            ),
            ToolCall("Write", {"file_path": "sources/a.md", "content": "x"}),
            Say("Written."),
        ],
    }


def lead(*types: str) -> list[Any]:
    calls = [
        ToolCall(
            "Agent",
            {
                "subagent_type": kind,
                "description": kind,
                "prompt": f"Do your part, {kind}.",
                "run_in_background": False,
            },
        )
        for kind in types
    ]
    return [*calls, Say("Done.")]


@pytest.fixture
def run(example: Callable[[str], Any], folder: Path, tmp_path: Path) -> Callable[..., Any]:
    module = example("research_team")

    async def session(name: str, *types: str, dsn: str | None = None) -> SessionRun:
        home = tmp_path / name
        home.mkdir()
        config = dataclasses.replace(
            module.config(str(folder)),
            run_dir=tmp_path / f"run-{name}",
            env={"HOME": str(home), "ANTHROPIC_API_KEY": "sk-made-up"},
        )
        options = build_session_options(module.spec(dsn), config)
        return await run_session(options, lead(*types), subagents=team(), home=home)

    return session


def check(store: DocumentStore, folder: Path) -> None:
    assert "Adults need 7 hours" in store.read("concept/sleep").body
    assert [change.kind for change in store.history().changes] == ["edited", "created"]
    assert (folder / "drafts" / "answer.md").read_text() == "7 hours (concept/sleep)"
    assert (folder / "sources" / "a.md").read_text() == "Adults need 7 hours of sleep.\n"
    assert not (folder / "drafts" / "mine.md").exists()


async def test_three_subagents_share_one_base_and_keep_to_their_parts(
    run: Callable[..., Any], folder: Path
) -> None:
    done = await run("one", "reader", "checker", "writer")
    refused = [
        (call.agent, call.tool, call.input.get("file_path"))
        for call in done.calls
        if call.lock is not AnsweredBy.RAN
    ]
    assert refused == [
        ("reader", "Read", "knowledge/concept/sleep.md"),
        ("checker", "Write", "drafts/mine.md"),
        ("writer", "Write", "sources/a.md"),
    ]
    check(MarkdownStore(folder / "knowledge"), folder)
    assert not done.saw("canary")


@pytest.fixture
def dsn() -> Iterator[str]:
    with running_server() as server:
        yield server.make_database("team")


async def test_with_a_dsn_the_team_has_its_base_in_the_database(
    run: Callable[..., Any], folder: Path, dsn: str
) -> None:
    await run("one", "reader", "checker", "writer", dsn=dsn)
    check(PostgresStore(dsn, base="research/knowledge"), folder)
    assert not (folder / "knowledge").exists()


def notes(name: str) -> Callable[[Turn], Any]:
    """Adds five lines to one page; a refused change starts from the version that the refusal tells."""

    def script(turn: Turn) -> Any:
        if turn.number == 0:
            return ToolCall(f"{BASE}read", {"id": "concept/log"})
        text = turn.results[-1].text
        done.extend([name] if "was changed." in text else [])
        if len(done) == 5:
            return Say(f"{name} is done.")
        change = {"old_text": "start", "new_text": f"start {name}{len(done)}"}
        version = version_in(turn)
        return ToolCall(f"{BASE}edit", {"id": "concept/log", "version": version, **change})

    done: list[str] = []
    return script


async def test_two_programs_on_one_database_lose_no_update(
    by_hand: Callable[..., Any], folder: Path, dsn: str
) -> None:
    store = PostgresStore(dsn, base="research/knowledge")
    store.create([NewPage(type="concept", title="log", body="start")])

    def program(name: str) -> Any:
        with ScriptedModel(notes(name)) as model:
            return by_hand("research_team", str(folder), "Go.", dsn, model=model)

    for done in await asyncio.gather(*(asyncio.to_thread(program, name) for name in "ab")):
        assert done.returncode == 0, done.stderr
        assert "is done." in done.stdout
    words = store.read("concept/log").body.split()
    assert sorted(words) == sorted(["start", *(f"{name}{at}" for name in "ab" for at in range(5))])
    assert store.history().total == 11
