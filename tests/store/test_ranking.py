"""The page that any person would call the obvious one comes first, in both stores.

The pages and the judged queries are in ``ranking.json``. ``within`` 1: the one obvious page is first.
``within`` 3: several are equally obvious, and each is among the first three. ``missed``: the stores are
known not to do it; ``docs/pages.md`` says so.
"""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from agent_kit.store import DocumentStore, MarkdownStore, NewPage
from agent_kit.store.postgres import PostgresStore

JUDGED: dict[str, list[dict[str, Any]]] = json.loads(
    Path(__file__).with_name("ranking.json").read_text("utf-8")
)
PAGES, QUERIES = JUDGED["pages"], JUDGED["queries"]
SCRIPTS = ("LATIN", "CYRILLIC", "GREEK", "ARABIC", "CJK", "HIRAGANA", "HANGUL")


@pytest.fixture(scope="module", params=["folder", "postgres"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> DocumentStore:
    made: DocumentStore
    if request.param == "folder":
        made = MarkdownStore(tmp_path_factory.mktemp("base"))
    else:
        made = PostgresStore(request.getfixturevalue("shared"), base="ranking")
    for at in range(0, len(PAGES), 20):
        made.create([_new(page) for page in PAGES[at : at + 20]])
    return made


def _new(page: dict[str, Any]) -> NewPage:
    kind, slug = page["id"].split("/")
    return NewPage(
        type=kind, slug=slug, title=page["title"], body=page["body"], aliases=tuple(page["aliases"])
    )


@pytest.mark.parametrize("row", QUERIES, ids=lambda row: row["query"])
def test_the_obvious_page_is_first(store: DocumentStore, row: dict[str, Any]) -> None:
    found = [str(hit.id) for hit in store.search(row["query"], limit=10).hits]
    is_there = {*row["obvious"]} <= {*found[: row["within"]]}
    assert is_there is not row.get("missed", False), (row["why"], found)


def test_few_rows_are_missed() -> None:
    assert sum(row.get("missed", False) for row in QUERIES) == 2


def test_the_set_is_worth_something() -> None:
    ids = {page["id"] for page in PAGES}
    assert len(ids) == len(PAGES) >= 60
    assert len({row["query"] for row in QUERIES}) == len(QUERIES) >= 40
    for row in QUERIES:
        assert row["why"]
        assert ids >= {*row["obvious"]}
        assert row["within"] == (1 if len(row["obvious"]) == 1 else 3)
    for script in SCRIPTS:
        rows = [row for row in QUERIES if any(_in(script, char) for char in row["query"])]
        assert len(rows) >= 3, script


def _in(script: str, char: str) -> bool:
    return bool(re.match(script, unicodedata.name(char, "")))


def test_a_page_is_first_for_its_own_title(store: DocumentStore) -> None:
    first = {page["id"]: str(store.search(page["title"], limit=1).hits[0].id) for page in PAGES}
    assert {page: found for page, found in first.items() if found != page} == {}
