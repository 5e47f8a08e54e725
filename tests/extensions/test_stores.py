"""The extensions on a store that isn't their folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_kit.extension import Contribution, ExtensionContext
from agent_kit.scope import ConfigError
from agent_kit.store import NewPage, postgres_store
from agent_kit_knowledge import knowledge
from agent_kit_memory import memory
from tests.store.postgres_server import running_server

Context = Callable[..., ExtensionContext]
Connect = Callable[[Contribution], Any]


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with running_server() as server:
        yield server.make_database("extensions")


async def test_a_base_in_a_database_has_the_same_tools_and_no_folder(
    context: Context, caller: Connect, project: Path, dsn: str
) -> None:
    made = knowledge(store=postgres_store(dsn)).contribute(context())
    call = caller(made)
    page = {"type": "note", "title": "X", "slug": "x", "body": "权限 needle"}
    assert not (await call("knowledge_create", pages=[page])).is_error
    assert "note/x |" in (await call("knowledge_search", query="权限")).text
    assert "created | note/x" in (await call("knowledge_log")).text
    assert "no page leads to it" in (await call("knowledge_check")).text
    assert made.tool_only_dirs[0].dir == str(project / "knowledge")
    assert not (project / "knowledge").exists()


async def test_what_is_denied_by_name_is_closed_in_a_database_too(
    context: Context, caller: Connect, dsn: str
) -> None:
    store = postgres_store(dsn, base="denied")
    open_to_all = caller(knowledge(store=store).contribute(context()))
    page = {"type": "note", "title": "Pay", "slug": "pay", "body": "canary"}
    await open_to_all("knowledge_create", pages=[page])
    closed = context(denied_paths=("knowledge/note/pay.md",))
    call = caller(knowledge(store=store).contribute(closed))
    for name, arguments in (
        ("knowledge_read", {"id": "note/pay"}),
        ("knowledge_search", {"query": "canary"}),
        ("knowledge_index", {}),
        ("knowledge_log", {}),
    ):
        text = (await call(name, **arguments)).text
        assert "canary" not in text
        assert "note/pay |" not in text


async def test_two_bases_two_agents_and_two_people_never_meet_in_one_database(
    context: Context, caller: Connect, dsn: str
) -> None:
    store = postgres_store(dsn, base="apart")
    one = knowledge(store=store).contribute(context())
    other = knowledge(store=store, name="policies").contribute(context())
    for made, word in ((one, "first"), (other, "second")):
        made.api.create([NewPage(type="n", title=word, body=word)])
    assert [str(known) for known in one.api.list().ids] == ["n/first"]
    assert [str(known) for known in other.api.list().ids] == ["n/second"]

    people = [
        memory(user=user, store=store).contribute(context()) for user in ("ada", "Ada", "bob")
    ]
    for made, word in zip(people, ("a", "A", "b"), strict=True):
        made.api.store.create([NewPage(type="fact", title=word, body=f"tea {word}")])
    for made, word in zip(people, ("a", "A", "b"), strict=True):
        text = (await caller(made)("recall", query="tea")).text
        assert f"tea {word}" in text
        assert text.count("tea ") == 1
    assert people[0].api.store.history().total == 0


def test_a_store_that_is_none_is_a_fault() -> None:
    with pytest.raises(ConfigError) as caught:
        knowledge(store="postgresql://x", own_notes=True)  # type: ignore[arg-type]
    assert [fault.field for fault in caught.value.faults] == ["knowledge.store"]
    with pytest.raises(ConfigError, match=r"memory\.store"):
        memory(user="ada", store="postgresql://x")  # type: ignore[arg-type]


def test_no_base_ends_as_another_one_and_a_name_do(dsn: str) -> None:
    options: dict[str, Any] = {
        "permits": lambda _path: True,
        "shows": lambda _path: True,
        "private": False,
        "read_only": False,
        "by": "",
        "keeps_history": True,
    }
    one, other = (
        postgres_store(dsn, base=base)(Path("/x"), name=name, **options)
        for base, name in (("uni/memory", "ada"), ("uni", "memory/ada"))
    )
    one.create([NewPage(type="note", title="a", slug="a", body="needle")])
    assert one.search("needle").total == 1
    assert other.search("needle").total == 0
