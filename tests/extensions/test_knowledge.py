"""knowledge(): a base of pages behind its tools."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_kit.extension import Contribution, ExtensionContext
from agent_kit.scope import ConfigError, FileScope, check_file_scope
from agent_kit.store import PAGE_SIZE, MarkdownStore
from agent_kit_knowledge import knowledge

Context = Callable[..., ExtensionContext]
Connect = Callable[[Contribution], Any]
Listed = Callable[[Contribution], Awaitable[Any]]


@pytest.fixture
def call(context: Context, caller: Connect) -> Any:
    return caller(knowledge().contribute(context()))


@pytest.fixture
def base(project: Path) -> Path:
    return project / "knowledge"


def page(slug: str, body: str = "text", **fields: Any) -> dict[str, Any]:
    return {"type": "concept", "title": f"The {slug}", "slug": slug, "body": body, **fields}


def version_in(text: str) -> str:
    found = re.search(r"version: ([0-9a-f]{16})\b", text)
    assert found
    return found.group(1)


# Who may do what


async def test_the_tools_are_those_that_the_options_give(context: Context, listed: Listed) -> None:
    reading = ["index", "search", "read", "log", "check"]
    writing = ["create", "edit", "rewrite", "supersede", "retire"]
    reading, writing = ([f"knowledge_{name}" for name in names] for names in (reading, writing))
    whole = [*reading, *writing]
    assert [tool.name for tool in await listed(knowledge().contribute(context()))] == whole
    made = knowledge(read_only=True).contribute(context())
    assert [tool.name for tool in await listed(made)] == reading


def test_the_file_tools_get_the_sentence_that_names_the_tools(
    context: Context, project: Path
) -> None:
    made = knowledge().contribute(context())
    scope = FileScope(project_dir=str(project), tool_only_dirs=made.tool_only_dirs)
    assert check_file_scope(scope, "Write", {"file_path": "knowledge/index.md"}) == (
        '"knowledge/index.md" is in knowledge/, which is reached only through the knowledge_* '
        "tools, not the file tools."
    )


def test_own_notes_are_a_writable_folder_without_tools(context: Context, project: Path) -> None:
    made = knowledge(dir="notes", own_notes=True).contribute(context())
    assert made.writable_dirs == (str(project / "notes"),)
    assert (made.tool_only_dirs, made.mcp_servers, made.read_only_tools) == ((), {}, ())
    assert made.prompt_section is not None
    assert "knowledge_" not in made.prompt_section
    assert "notes/ is yours" in made.prompt_section
    assert (project / "notes").is_dir()


def test_a_base_that_is_written_is_made_and_a_read_only_one_must_be_there(
    context: Context, project: Path, base: Path
) -> None:
    shared = knowledge(read_only=True)
    assert shared.missing(context()) == (
        "the folder knowledge/ doesn't exist, and a read-only base isn't made: create it."
    )
    assert knowledge().missing(context()) is None
    assert not base.exists()
    knowledge().contribute(context())
    assert base.is_dir()
    assert shared.missing(context()) is None


async def test_a_read_only_base_is_left_without_a_trace(
    context: Context, base: Path, caller: Connect
) -> None:
    (base / "concept").mkdir(parents=True)
    (base / "concept" / "x.md").write_text("needle")
    call = caller(knowledge(read_only=True).contribute(context()))
    assert "concept/x" in (await call("knowledge_search", query="needle")).text
    assert (await call("knowledge_create", pages=[page("y")])).is_error
    assert [path.name for path in base.rglob("*")] == ["concept", "x.md"]


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"dir": ""}, ["knowledge.dir"]),
        ({"own_notes": True, "read_only": True}, ["knowledge.read_only"]),
        ({"name": "a b"}, ["knowledge.name"]),
        (
            {"dir": None, "own_notes": True, "read_only": True, "name": ""},
            ["knowledge.dir", "knowledge.read_only", "knowledge.name"],
        ),
    ],
)
def test_every_faulty_option_is_named_at_once(options: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        knowledge(**options)
    assert [fault.field for fault in caught.value.faults] == fields


def test_a_file_where_the_folder_belongs_is_a_fault(context: Context, base: Path) -> None:
    base.write_text("x")
    with pytest.raises(ConfigError, match=r"knowledge\.dir"):
        knowledge().contribute(context())


async def test_two_bases_have_two_servers(context: Context, project: Path) -> None:
    (project / "policies").mkdir()
    shared = knowledge(dir="policies", read_only=True, name="policies").contribute(context())
    assert list(shared.mcp_servers) == ["policies"]
    assert shared.read_only_tools[0] == "mcp__policies__knowledge_index"


async def test_a_denied_page_is_closed_to_the_tools_too(
    context: Context, base: Path, caller: Connect
) -> None:
    (base / "concept").mkdir(parents=True)
    (base / "concept" / "pay.md").write_text("canary")
    call = caller(knowledge().contribute(context(denied_paths=("knowledge/concept/pay.md",))))
    answers = [
        await call("knowledge_index"),
        await call("knowledge_search", query="canary"),
        await call("knowledge_read", id="concept/pay"),
        await call("knowledge_read", id="concept/PAY"),
        await call("knowledge_create", pages=[page("pay")]),
        await call("knowledge_edit", id="concept/pay", version="x", old_text="canary", new_text=""),
    ]
    for answer in answers[:2]:
        assert "concept/pay" not in answer.text
    assert all("canary" not in answer.text for answer in answers)
    assert (base / "concept" / "pay.md").read_text() == "canary"


# Making, reading, changing


async def test_a_page_is_made_found_read_and_changed(call: Any, base: Path) -> None:
    made = await call(
        "knowledge_create", pages=[page("leaf", "Green. See [[concept/sun]].", aliases=["Blatt"])]
    )
    assert not made.is_error
    found = await call("knowledge_search", query="blatt")
    assert found.text.splitlines() == [
        "1 page found, 1 to 1 shown.",
        "concept/leaf | The leaf",
        "    Green. See [[concept/sun]].",
    ]
    head, text = (await call("knowledge_read", id="concept/leaf")).blocks
    assert version_in(head) == version_in(made.text)
    assert text == (base / "concept" / "leaf.md").read_text(encoding="utf-8")
    assert text.startswith("---\ntitle: The leaf\ntype: concept\nupdated: ")
    changed = await call(
        "knowledge_edit",
        id="concept/leaf",
        version=version_in(head),
        old_text="Green",
        new_text="Red",
    )
    assert not changed.is_error
    after = await call("knowledge_read", id="concept/leaf")
    assert after.blocks[1] == text.replace("Green", "Red")
    assert version_in(after.text) == version_in(changed.text)


async def test_a_stale_edit_gets_the_current_text_and_version(call: Any) -> None:
    made = await call("knowledge_create", pages=[page("x", "one two")])
    old = version_in(made.text)
    await call("knowledge_edit", id="concept/x", version=old, old_text="one", new_text="1")
    refused = await call(
        "knowledge_edit", id="concept/x", version=old, old_text="two", new_text="2"
    )
    assert refused.is_error
    assert "was changed since that version: nothing was written" in refused.blocks[0]
    assert "1 two" in refused.blocks[2]
    again = await call(
        "knowledge_edit",
        id="concept/x",
        version=version_in(refused.blocks[1]),
        old_text="two",
        new_text="2",
    )
    assert not again.is_error


async def test_pages_that_cant_all_be_made_are_none(call: Any, base: Path) -> None:
    answer = await call("knowledge_create", pages=[page("a"), page("b", type="../x"), page("c")])
    assert answer.is_error
    assert list(base.rglob("*.md")) == []
    assert list(base.parent.rglob("x*")) == []


async def test_twenty_writes_in_one_turn_are_all_there(call: Any, base: Path) -> None:
    answers = await asyncio.gather(
        *(call("knowledge_create", pages=[page(f"p{n}", f"body {n}")]) for n in range(20))
    )
    assert not [answer.text for answer in answers if answer.is_error]
    index = (await call("knowledge_index")).text
    assert index.startswith("20 pages, 1 to 20 shown.")
    assert [path.name for path in base.rglob(".tmp-*")] == []


async def test_twenty_edits_of_one_page_in_one_turn_lose_none(call: Any) -> None:
    made = await call("knowledge_create", pages=[page("log", "start")])

    async def add(number: int) -> None:
        version = version_in(made.text)
        while True:
            answer = await call(
                "knowledge_edit",
                id="concept/log",
                version=version,
                old_text="start",
                new_text=f"start\n- {number}",
            )
            if not answer.is_error:
                return
            version = version_in(answer.blocks[1])

    await asyncio.gather(*map(add, range(20)))
    text = (await call("knowledge_read", id="concept/log")).blocks[1]
    assert sorted(int(n) for n in re.findall(r"^- (\d+)$", text, re.MULTILINE)) == list(range(20))


# Bounds


@pytest.mark.parametrize("text", ["x" * 3_000_000, "知" * 41_000, "🎉\r\n" * 9_000, "a\n" * 30_000])
async def test_a_huge_page_comes_in_parts_that_together_are_the_page(
    call: Any, base: Path, text: str
) -> None:
    (base / "concept").mkdir(parents=True)
    (base / "concept" / "huge.md").write_bytes(text.encode())
    parts, offset = [], 0
    while offset is not None and len(parts) < 4:
        head, part = (await call("knowledge_read", id="concept/huge", offset=offset)).blocks
        assert len(part) <= PAGE_SIZE
        assert len(head) < 400
        parts.append(part)
        more = re.search(r"call again with offset (\d+)", head)
        offset = int(more.group(1)) if more else None
    assert text.startswith("".join(parts))
    assert offset is not None or "".join(parts) == text


async def test_an_offset_past_the_end_says_how_long_the_page_is(call: Any) -> None:
    await call("knowledge_create", pages=[page("x")])
    answer = await call("knowledge_read", id="concept/x", offset=99_999)
    assert answer.is_error
    assert "the text has" in answer.text


async def test_the_index_and_the_search_come_in_parts_that_together_are_all(call: Any) -> None:
    for start in range(0, 250, 50):
        await call(
            "knowledge_create",
            pages=[page(f"p{n:03}", "needle", title="T" * 150) for n in range(start, start + 50)],
        )
    for name, arguments in (("knowledge_index", {}), ("knowledge_search", {"query": "needle"})):
        seen: list[str] = []
        offset = 0
        while offset is not None:
            answer = await call(name, offset=offset, **arguments)
            assert len(answer.text) < PAGE_SIZE + 500
            seen += re.findall(r"^concept/p\d+", answer.text, re.MULTILINE)
            more = re.search(r"call again with offset (\d+)", answer.text)
            offset = int(more.group(1)) if more else None
        assert len(seen) == len(set(seen)) == 250


async def test_the_index_can_be_kept_to_one_type(call: Any) -> None:
    await call("knowledge_create", pages=[page("a"), page("b", type="person")])
    answer = await call("knowledge_index", type="person")
    assert answer.text.startswith("1 page, 1 to 1 shown.\nperson/b | The b | ")


@pytest.mark.parametrize("query", ["", "  ", "\n"])
async def test_an_empty_query_is_no_error_and_finds_nothing(call: Any, query: str) -> None:
    await call("knowledge_create", pages=[page("a")])
    answer = await call("knowledge_search", query=query)
    assert (answer.is_error, answer.text) == (
        False,
        "Nothing was searched: give one or more words.",
    )


async def test_what_is_no_page_is_named_and_not_more_than_some(call: Any, base: Path) -> None:
    await call("knowledge_create", pages=[page("a")])
    for number in range(30):
        (base / "concept" / f"bad{number:02}.md").write_bytes(b"\xff")
    answer = await call("knowledge_search", query="text")
    assert "Not a page: concept/bad00 (it is not UTF-8 text)" in answer.text
    assert "Not pages: 20 more files" in answer.text
    assert "bad10" not in answer.text


# Bad input

BAD_CALLS = [
    ("knowledge_read", {"id": "../out"}),
    ("knowledge_read", {"id": "concept/none"}),
    ("knowledge_read", {"id": "a.md/x"}),
    ("knowledge_read", {"id": "concept/\ud800"}),
    ("knowledge_read", {"id": 3}),
    ("knowledge_read", {}),
    ("knowledge_read", {"id": "concept/a", "offset": -1}),
    ("knowledge_read", {"id": "concept/" + "x" * 5000}),
    ("knowledge_index", {"offset": "all"}),
    ("knowledge_search", {"query": None}),
    ("knowledge_search", {"query": "x", "unknown": 1}),
    ("knowledge_create", {"pages": []}),
    ("knowledge_create", {"pages": [page("a")] * 2}),
    ("knowledge_create", {"pages": [page("x")] * 51}),
    ("knowledge_create", {"pages": ["text"]}),
    ("knowledge_create", {"pages": [{"type": "concept"}]}),
    ("knowledge_create", {"pages": [page("x", aliases=["a\nb"])]}),
    ("knowledge_edit", {"id": "concept/a", "version": "", "old_text": "a", "new_text": "b"}),
]


@pytest.mark.parametrize(("name", "arguments"), BAD_CALLS)
async def test_a_bad_call_gets_one_short_error_without_paths_or_traces(
    call: Any, base: Path, name: str, arguments: dict[str, Any]
) -> None:
    base.mkdir(exist_ok=True)
    (base / "a.md").write_text("a file where a type's folder belongs")
    answer = await call(name, **arguments)
    assert answer.is_error
    assert "Traceback" not in answer.text
    assert str(base.parent) not in answer.text
    assert len(answer.blocks[0]) < 12_000
    assert sorted(path.name for path in base.rglob("*.md")) == ["a.md"]


async def test_a_base_that_was_moved_away_gives_errors_without_paths(call: Any, base: Path) -> None:
    await call("knowledge_create", pages=[page("a")])
    base.rename(base.parent / "moved")
    base.write_text("a file now")
    for name, arguments in (
        ("knowledge_index", {}),
        ("knowledge_read", {"id": "concept/a"}),
        ("knowledge_search", {"query": "x"}),
        ("knowledge_create", {"pages": [page("b")]}),
    ):
        answer = await call(name, **arguments)
        assert answer.is_error
        assert str(base.parent) not in answer.text


def test_the_host_gets_the_store(context: Context, base: Path) -> None:
    api = knowledge().contribute(context()).api
    assert isinstance(api, MarkdownStore)
    assert api.root == base


# Pages that change


async def test_a_page_is_rewritten_with_its_fields_kept(call: Any, base: Path) -> None:
    made = await call("knowledge_create", pages=[page("a", "old", aliases=["Ay"])])
    version = version_in(made.text)
    for bad in ("---\ntitle: x\n---\n", "a\0b"):
        refused = await call("knowledge_rewrite", id="concept/a", version=version, body=bad)
        assert refused.is_error
    done = await call(
        "knowledge_rewrite", id="concept/a", version=version, body="new\n", title="A better name"
    )
    text = (base / "concept" / "a.md").read_text()
    assert "A better name" in text
    assert "aliases:\n- Ay" in text
    assert text.endswith("---\n\nnew\n")
    assert version_in(done.text) != version
    stale = await call("knowledge_rewrite", id="concept/a", version=version, body="mine")
    assert (stale.is_error, "was changed since" in stale.text) == (True, True)
    assert "new" in stale.text


async def test_a_page_is_superseded_and_named_by_the_old_one(call: Any, base: Path) -> None:
    made = await call("knowledge_create", pages=[page("old", "needle")])
    done = await call(
        "knowledge_supersede",
        id="concept/old",
        version=version_in(made.text),
        page=page("new", "needle, better"),
    )
    assert "It takes the place of concept/old" in done.text
    found = await call("knowledge_search", query="needle")
    assert ("concept/new |" in found.text, "concept/old |" in found.text) == (True, False)
    with_retired = await call("knowledge_search", query="needle", retired=True)
    assert "concept/old |" in with_retired.text
    assert "superseded_by: concept/new" in (await call("knowledge_read", id="concept/old")).text
    assert "| superseded" in (await call("knowledge_index")).text


async def test_a_retired_page_says_why_and_is_retired_once(call: Any) -> None:
    made = await call("knowledge_create", pages=[page("a", "needle")])
    done = await call(
        "knowledge_retire", id="concept/a", version=version_in(made.text), reason="It: was\nwrong"
    )
    assert not done.is_error
    read = await call("knowledge_read", id="concept/a")
    assert "reason: 'It: was wrong'" in read.text
    assert (await call("knowledge_search", query="needle")).text.startswith("0 pages found")
    again = await call(
        "knowledge_retire", id="concept/a", version=version_in(read.text), reason="x"
    )
    assert "is retired already" in again.text


async def test_front_matter_that_cant_be_changed_safely_is_left_alone(
    call: Any, base: Path
) -> None:
    await call("knowledge_create", pages=[page("a")])
    for text in ("---\n**bold**\n---\nx", "---\nstatus: |\n  two\n  lines\n---\nx"):
        (base / "concept" / "a.md").write_text(text)
        version = version_in((await call("knowledge_read", id="concept/a")).text)
        refused = await call("knowledge_retire", id="concept/a", version=version, reason="r")
        assert "can't be changed safely" in refused.text
        assert (base / "concept" / "a.md").read_text() == text


async def test_the_log_tells_who_did_what_and_comes_in_parts(
    context: Context, caller: Connect
) -> None:
    call = caller(knowledge().contribute(context()))
    made = await call("knowledge_create", pages=[page("a"), page("b")])
    await call("knowledge_retire", id="concept/a", version=version_in(made.text), reason="r")
    lines = (await call("knowledge_log")).text.splitlines()
    assert lines[0] == "3 changes, 1 to 3 shown."
    assert [line.split(" | ")[1:3] for line in lines[1:]] == [
        ["retired", "concept/a"],
        ["created", "concept/b"],
        ["created", "concept/a"],
    ]
    one = await call("knowledge_log", id="CONCEPT/b")
    assert one.text.splitlines()[0] == "1 change, 1 to 1 shown."
    assert (await call("knowledge_log", offset=2)).text.count("created") == 1


async def test_a_check_names_links_that_lead_nowhere_and_pages_that_nothing_leads_to(
    call: Any,
) -> None:
    made = await call(
        "knowledge_create",
        pages=[
            page("a", "[[concept/b|text]], [[CONCEPT/b#part]], [[concept/none]], `[[concept/x]]`"),
            page("b", "```\n[[concept/y]]\n```\n[[concept/c]] [[../out]]"),
            page("c", "[[concept/c]]"),
        ],
    )
    versions = dict(re.findall(r"id: (\S+) \| version: (\S+)", made.text))
    await call("knowledge_retire", id="concept/c", version=versions["concept/c"], reason="r")
    answer = (await call("knowledge_check")).text.splitlines()
    assert answer == [
        "3 pages looked at. 4 findings, 1 to 4 shown.",
        "concept/a: [[concept/none]] leads nowhere",
        "concept/b: [[../out]] leads nowhere",
        "concept/b: [[concept/c]] is no longer valid",
        "concept/a: no page leads to it",
    ]
    assert (await call("knowledge_check", offset=3)).text.splitlines()[1:] == answer[4:]
