"""An extension's tools, its folder and the session's guard."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_kit.extension import PlannedGuard
from agent_kit.policy import FilePermission
from agent_kit.policy.guard import guard
from agent_kit.scope import FileScope, ToolOnlyDir
from agent_kit.store import (
    FolderGuard,
    MarkdownStore,
    NewPage,
    StoreCode,
    StoreError,
    Tool,
    permits_for,
)
from agent_kit.store.folder import narrowing
from agent_kit.store.tools import schema
from agent_kit.testing import tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path.resolve(), ("base/t/One.md=one", "base/t/two.md=two", "base/t/three.md=3"))


def planned(root: Path) -> PlannedGuard:
    scope = FileScope(
        project_dir=str(root),
        denied_paths=["base/t/three.md"],
        tool_only_dirs=[ToolOnlyDir(dir="base", instead="its tools")],
    )
    rules = [
        FilePermission(operations=["read"], paths=["base/t/One.md"], mode="interrupt"),
        FilePermission(operations=["read"], paths=["base/t/two.md"], mode="deny"),
    ]
    return PlannedGuard(make=lambda: guard(scope, rules=rules))


async def test_before_the_session_is_planned_nothing_is_refused(root: Path) -> None:
    own = FolderGuard(guard=PlannedGuard(), root=root / "base")
    await own.require("read", root / "base/t/two.md", label="t/two")
    assert not own.closes(root / "base/t/two.md")
    assert not own.leaves_out(root / "base/t/two.md")


async def test_rules_refuse_with_the_pages_name_and_the_scopes_part_is_left_to_the_extension(
    root: Path,
) -> None:
    own = FolderGuard(guard=planned(root), root=root / "base")
    with pytest.raises(StoreError, match='"t/two" can\'t be read') as caught:
        await own.require("read", root / "base/t/two.md", label="t/two")
    assert caught.value.code is StoreCode.DENIED
    await own.require("read", root / "base/t/three.md", label="t/three")


def test_what_asks_is_there_but_is_neither_listed_nor_read(root: Path) -> None:
    own = FolderGuard(guard=planned(root), root=root / "base")
    store = MarkdownStore(
        root / "base",
        permits=own.permits(lambda _path: True),
        shows=own.shows(lambda _path: True),
    )
    assert [str(known) for known in store.list().ids] == []
    assert store.path_of("t/ONE") == root / "base/t/One.md"
    with pytest.raises(StoreError) as caught:
        store.read("t/one")
    assert caught.value.code is StoreCode.DENIED
    with pytest.raises(StoreError):
        store.path_of("t/two")
    assert store.new_path(NewPage(type="t", title="A b", body="")) == root / "base/t/a-b.md"


def test_what_is_no_page_is_named_only_where_it_is_open(root: Path) -> None:
    for name in ("canary", "open"):
        (root / "base" / name).symlink_to("t")
    store = MarkdownStore(root / "base", permits=lambda path: path.name != "canary")
    for told in (store.list().unusable, store.search("one").unusable):
        assert [file.name for file in told] == ["open"]


def test_a_page_of_a_folder_that_isnt_there_has_no_path(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        MarkdownStore(tmp_path / "none").path_of("t/one")


@pytest.mark.parametrize("error", [StoreError("No.", code=StoreCode.DENIED), OSError(28, "x")])
async def test_what_is_raised_before_a_tool_runs_is_its_answer(error: Exception) -> None:
    ran: list[Any] = []

    async def before(_arguments: Any) -> None:
        raise error

    tool = Tool(
        name="probe",
        description="d",
        schema=schema(),
        run=lambda arguments: ran.append(arguments) or ("x",),  # type: ignore[func-returns-value]
        read_only=True,
        before=before,
    )
    result = await tool.handler({})
    assert result["is_error"]
    assert ran == []


# What is asked about each page of a search: only where something may be closed.
NARROWS = [
    ((), False),
    (("other/secret.md",), False),
    (("**/.env",), False),  # no page is hidden
    (("**/.claude/worktrees",), False),
    (("~/.local/*/x",), False),
    (("base/t/One.md",), True),
    (("base",), True),
    (("base/t",), True),
    (("**/two.md",), True),
    (("*.md",), True),
    (("base/t/[T]*",), True),
    (("**/.?*/two.md",), True),
]


@pytest.mark.parametrize(("denied", "narrows"), NARROWS)
def test_it_is_said_whether_anything_may_be_closed(
    root: Path, denied: tuple[str, ...], narrows: bool
) -> None:
    permits = permits_for(root / "base", project_dir=root, denied_paths=denied)
    assert narrowing(permits) is narrows
    if not narrows:
        assert all(map(permits, (root / "base" / "t").iterdir()))


def test_a_hidden_name_narrows_where_the_base_lies_in_a_hidden_folder(root: Path) -> None:
    (root / "base").rename(root / ".base")
    permits = permits_for(root / ".base", project_dir=root, denied_paths=["**/.base/t/two.md"])
    assert narrowing(permits)
    assert not permits(root / ".base" / "t" / "two.md")


def test_what_the_planned_session_closes_narrows(root: Path) -> None:
    scope = FileScope(project_dir=str(root), denied_paths=["base/t/three.md"])
    session: list[FileScope] = []

    def asked() -> FileScope:
        if not session:
            raise LookupError
        return session[0]

    permits = permits_for(root / "base", project_dir=root, scope=asked)
    assert not narrowing(permits)
    session.append(scope)
    assert narrowing(permits)


def test_a_guard_that_narrows_says_so(root: Path) -> None:
    permits = permits_for(root / "base", project_dir=root)
    for guard_, narrows in ((PlannedGuard(), False), (planned(root), True)):
        own = FolderGuard(guard=guard_, root=root / "base")
        assert narrowing(own.permits(permits)) is narrows
        assert narrowing(own.shows()) is narrows
