"""Notes that were lost, leaked, corrupted or not found: through the knowledge and memory servers' tools."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_kit import AgentSpec, SessionConfig, plan_session
from agent_kit_knowledge import knowledge
from agent_kit_memory import memory

CANARY = "canary-of-the-outside"
Call = Callable[..., Awaitable[tuple[bool, str]]]


def tools_of(project: Path, extension: Any) -> Call:
    """Calls the tools of a planned session's server; whether that failed, and the text of the answer."""
    plan = plan_session(
        AgentSpec(name="a", extensions=[extension]),
        SessionConfig(project_dir=project, confinement="off"),
    )
    server: Any = plan.mcp_servers[extension.name]
    instance = server()["instance"]

    async def call(name: str, /, **arguments: Any) -> tuple[bool, str]:
        from mcp import Client

        async with Client(instance) as client:
            result = await client.call_tool(name, arguments)
        return bool(result.is_error), "\n".join(block.text for block in result.content)

    return call


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "knowledge"
    (folder / "note").mkdir(parents=True)
    (tmp_path / "outside.md").write_text(f"{CANARY} needle", encoding="utf-8")
    return folder


@pytest.fixture
def call(base: Path) -> Call:
    return tools_of(base.parent, knowledge())


def page(slug: str, body: str = "text") -> dict[str, Any]:
    return {"type": "note", "title": f"T {slug}"[:100], "slug": slug, "body": body}


def ids_in(text: str) -> list[str]:
    return re.findall(r"^(note/\S+) \|", text, re.MULTILINE)


def version_in(text: str) -> str:
    found = re.search(r"version: ([0-9a-f]{16})\b", text)
    assert found, text
    return found.group(1)


@pytest.mark.report(96)
async def test_twenty_calls_in_one_turn_are_all_there(call: Call) -> None:
    done = await asyncio.gather(
        *(call("knowledge_create", pages=[page(f"p{number}")]) for number in range(20))
    )
    assert not any(failed for failed, _ in done)
    assert len(ids_in((await call("knowledge_index"))[1])) == 20


@pytest.mark.report(97, 109)
@pytest.mark.parametrize(
    "data",
    [b"\xff\xfe", "needle".encode("utf-16"), b"\x00\xff", b"a\xc3"],
    ids=["no text", "UTF-16", "NUL", "cut"],
)
async def test_one_file_that_is_no_text_is_named_and_stops_no_other(
    call: Call, base: Path, data: bytes
) -> None:
    (base / "note" / "bad.md").write_bytes(data)
    (base / "note" / "bom.md").write_bytes(b"\xef\xbb\xbfneedle")
    await call("knowledge_create", pages=[page("good", "needle")])
    failed, text = await call("knowledge_search", query="needle")
    assert (failed, ids_in(text)) == (False, ["note/bom", "note/good"])
    assert "Not a page: note/bad (" in text
    assert not (await call("knowledge_index"))[0]


@pytest.mark.report(102)
@pytest.mark.parametrize("name", ["NUL", "con.md", "COM1", "a:b", "x.", "x ", "aux", "a?b", "a<b"])
async def test_a_name_that_windows_changes_is_refused_with_a_reason(
    call: Call, base: Path, name: str
) -> None:
    failed, text = await call("knowledge_create", pages=[page(name)])
    assert failed
    assert "can't be a slug:" in text
    assert list((base / "note").iterdir()) == []


@pytest.mark.report(103, 104, 105)
@pytest.mark.parametrize(
    "name", ["../out", "/abs", "a/../../b", "..", "foo/..", "../../x", "a\\..\\b"]
)
@pytest.mark.parametrize("how", ["slug", "type", "id"])
async def test_a_name_never_leads_out_of_the_folder(
    call: Call, base: Path, name: str, how: str
) -> None:
    if how == "id":
        failed, text = await call("knowledge_read", id=f"note/{name}")
    else:
        failed, text = await call("knowledge_create", pages=[page("x") | {how: name}])
    assert failed
    assert CANARY not in text
    assert [path for path in base.rglob("*") if path.is_file()] == []
    assert sorted(os.listdir(base.parent.parent)) == ["outside.md", "project"]


@pytest.mark.report(103)
async def test_an_empty_name_is_made_from_the_title(call: Call, base: Path) -> None:
    failed, _ = await call("knowledge_create", pages=[page("") | {"title": "Über uns"}])
    assert not failed
    assert [path.name for path in (base / "note").iterdir()] == ["über-uns.md"]


@pytest.mark.report(106, 107)
@pytest.mark.parametrize("link", ["file", "folder"])
async def test_a_link_is_not_searched_listed_or_read(call: Call, base: Path, link: str) -> None:
    if link == "file":
        (base / "note" / "x.md").symlink_to(base.parent.parent / "outside.md")
    else:
        (base / "linked").symlink_to(base.parent.parent)
    for name, arguments in (
        ("knowledge_search", {"query": "needle"}),
        ("knowledge_index", {}),
        ("knowledge_read", {"id": "note/x"}),
        ("knowledge_read", {"id": "linked/outside"}),
    ):
        _, text = await call(name, **arguments)
        assert CANARY not in text
        assert ids_in(text) == []


@pytest.mark.report(110, 111)
@pytest.mark.parametrize(
    "head",
    [
        "title: a: b",
        "title:\tx\n\ty: z",
        "a: 1\na: 2",
        "**bold**",
        "- list",
        "!!python/object:x y",
        "{",
    ],
)
async def test_front_matter_that_is_none_is_a_page_with_that_text(
    call: Call, base: Path, head: str
) -> None:
    (base / "note" / "odd.md").write_text(f"---\n{head}\n---\nneedle\n", encoding="utf-8")
    _, found = await call("knowledge_search", query="needle")
    assert ids_in(found) == ["note/odd"]
    failed, text = await call("knowledge_read", id="note/odd")
    assert (failed, head in text) == (False, True)


@pytest.mark.report(112)
async def test_reading_and_writing_keeps_every_byte_of_what_wasnt_touched(
    call: Call, base: Path
) -> None:
    data = "---\ntags: [a,  b]   # mine\nown: {x: 1}\n---\r\n\r\nold text\r\n\ttab \r\n"
    (base / "note" / "x.md").write_bytes(data.encode())
    _, read = await call("knowledge_read", id="note/x")
    failed, _ = await call(
        "knowledge_edit", id="note/x", version=version_in(read), old_text="old", new_text="new"
    )
    assert not failed
    assert (base / "note" / "x.md").read_bytes() == data.replace("old", "new").encode()
    broken = b"---\ntitle: a: b\n---\ntext"
    (base / "note" / "x.md").write_bytes(broken)
    _, read = await call("knowledge_read", id="note/x")
    failed, _ = await call(
        "knowledge_retire", id="note/x", version=version_in(read), reason="no second block"
    )
    assert failed
    assert (base / "note" / "x.md").read_bytes() == broken


@pytest.mark.report(113, 114)
@pytest.mark.parametrize("size", [40_000, 3_000_000])
async def test_a_huge_line_comes_in_parts_with_the_way_to_the_next(
    call: Call, base: Path, size: int
) -> None:
    (base / "note" / "x.md").write_text("x" * size)
    _, first = await call("knowledge_read", id="note/x")
    assert len(first) < 21_000
    offset = re.search(r"call again with offset (\d+)", first)
    assert offset
    _, second = await call("knowledge_read", id="note/x", offset=int(offset.group(1)))
    assert len(second) > 15_000


QUERIES = [
    "KB-42",
    "a:b",
    "3.14",
    "*",
    "AND",
    '"',
    "it's",
    "it’s",
    "(a",
    "x*",
    "NEAR(",
    "-x",
    "^",
    "\\",
]


@pytest.mark.report(115, 116)
@pytest.mark.parametrize("query", QUERIES)
async def test_a_query_is_text(call: Call, query: str) -> None:
    await call("knowledge_create", pages=[page("x", " ".join(QUERIES)), page("y", "nothing of it")])
    failed, text = await call("knowledge_search", query=query)
    assert (failed, ids_in(text)[:1]) == (False, ["note/x"])


@pytest.mark.report(115)
async def test_an_empty_query_finds_nothing(call: Call) -> None:
    await call("knowledge_create", pages=[page("x")])
    assert ids_in((await call("knowledge_search", query=""))[1]) == []


@pytest.mark.report(117)
@pytest.mark.parametrize(
    ("body", "query"),
    [
        ("我们的知识库权限由管理员设置", "权限"),
        ("我们的知识库权限由管理员设置", "知识库"),
        ("検索はデータベースで行います", "検索"),
        ("文書の検索機能", "索機"),
        ("한국어검색은 어렵습니다", "검색"),
    ],
)
async def test_a_word_inside_a_run_of_characters_is_found(
    call: Call, body: str, query: str
) -> None:
    await call("knowledge_create", pages=[page("x", body), page("y", "无关 関係ない 무관")])
    assert ids_in((await call("knowledge_search", query=query))[1]) == ["note/x"]


@pytest.mark.report(119)
async def test_an_expression_that_hangs_is_only_text(call: Call) -> None:
    await call("knowledge_create", pages=[page("x", "a" * 40 + "!"), page("y", "say (a+)+$ here")])
    async with asyncio.timeout(10):
        _, text = await call("knowledge_search", query="(a+)+$")
    assert ids_in(text) == ["note/y"]


@pytest.mark.report(120)
async def test_the_search_agrees_with_the_disk_at_each_step(call: Call, base: Path) -> None:
    async def found(query: str) -> list[str]:
        return ids_in((await call("knowledge_search", query=query))[1])

    _, made = await call("knowledge_create", pages=[page("x", "first")])
    assert await found("first") == ["note/x"]
    await call(
        "knowledge_edit",
        id="note/x",
        version=version_in(made),
        old_text="first",
        new_text="second",
    )
    assert (await found("first"), await found("second")) == ([], ["note/x"])
    (base / "note" / "x.md").write_text("third")
    assert (await found("second"), await found("third")) == ([], ["note/x"])
    (base / "note" / "x.md").rename(base / "note" / "y.md")
    assert await found("third") == ["note/y"]
    (base / "note" / "y.md").unlink()
    assert await found("third") == []


@pytest.mark.report(121)
@pytest.mark.parametrize("how", ["a file in a folder's place", "no root", "no rights"])
async def test_an_error_of_the_disk_names_no_path(call: Call, base: Path, how: str) -> None:
    (base / "file.md").write_text("x")
    if how == "no root":
        base.rename(base.parent / "moved")
    elif how == "no rights":
        (base / "note" / "x.md").mkdir()
    answers = [
        await call("knowledge_read", id="file.md/x"),
        await call("knowledge_read", id="note/x"),
        await call("knowledge_search", query="x"),
        await call("knowledge_edit", id="note/x", version="v", old_text="a", new_text="b"),
        await call("knowledge_create", pages=[page("x") | {"type": "file.md"}]),
    ]
    for _, text in answers:
        assert str(base.parent) not in text
        assert "Errno" not in text


READER = """
import asyncio, sys
from pathlib import Path
from agent_kit.store import MarkdownStore, NewPage
store = MarkdownStore(Path(sys.argv[1]))
body = "Ёжик 🚀 知识"
store.create([NewPage(type="note", title=body, slug="Ёж", body=body)])
assert store.read("note/ёж").body.strip() == body
assert store.search("知识").total == 1
"""


@pytest.mark.report(122)
def test_no_text_is_read_or_written_in_what_the_machine_prefers(tmp_path: Path) -> None:
    """Python warns wherever an encoding is left to the machine: here that is an error."""
    program = tmp_path / "program.py"
    program.write_text(READER, encoding="utf-8")
    words = (sys.executable, "-X", "warn_default_encoding", "-W", "error::EncodingWarning")
    env = {**os.environ, "PYTHONUTF8": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    base = tmp_path / "base"
    done = subprocess.run(
        (*words, str(program), str(base)), env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "知识" in (base / "note" / "Ёж.md").read_text(encoding="utf-8")


@pytest.mark.report(96, 97)
async def test_a_persons_notes_survive_a_bad_one_and_calls_at_once(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    call = tools_of(tmp_path / "project", memory(dir=str(tmp_path / "project" / "me")))
    (tmp_path / "project" / "me" / "fact").mkdir(parents=True)
    (tmp_path / "project" / "me" / "fact" / "bad.md").write_bytes(b"\xff")
    (tmp_path / "project" / "me" / "fact" / "good.md").write_text("likes tea")
    answers = await asyncio.gather(*(call("recall", query="tea") for _ in range(10)))
    assert all("likes tea" in text and not failed for failed, text in answers)
