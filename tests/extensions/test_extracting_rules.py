"""extract_text obeys the session: a file that Read refuses it refuses, by whatever name."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from agent_kit import AgentSpec, FilePermission, SessionConfig, SessionPlan, plan_session
from agent_kit.scope import check_file_scope
from agent_kit.store import FolderGuard, Tool
from agent_kit.testing import tree
from agent_kit_knowledge import knowledge
from agent_kit_sources import sources
from agent_kit_sources.extracting import Limits, extract_tool, opening
from agent_kit_sources.extracting import tool as tool_module
from agent_kit_sources.origin import OriginReader

WORLD = (
    "course/sources/week1/a.txt=exam",
    "course/sources/.sources.json={}",
    "course/sources/.retired/old.txt=canary",
    "course/sources/key.txt=canary",
    "course/drafts/a.txt=a draft",
    "course/drafts/.env=canary",
    "course/drafts/kept/c.txt=canary",
    "course/README.md=canary",
    "course/knowledge/concept/x.md=canary",
    "out/secret.txt=canary",
    "run/fetched.txt=fetched",
    "run/host/key.json=canary",
    "home/x.txt=canary",
)


@pytest.fixture
def world(tmp_path: Path) -> Path:
    return tree(tmp_path, WORLD)


def planned(root: Path, **config: Any) -> SessionPlan:
    config.setdefault("denied_paths", ["**/.env", "drafts/kept", "sources/key.txt"])
    return plan_session(
        AgentSpec(name="reader", extensions=[sources(), knowledge()]),
        SessionConfig(
            project_dir=root / "course",
            run_dir=root / "run",
            extra_writable_dirs=["drafts"],
            env={"HOME": str(root / "home")},
            **config,
        ),
    )


def tool_of(root: Path, plan: SessionPlan, limits: Limits | None = None) -> Tool:
    guard = FolderGuard(guard=plan.guard)
    reader = OriginReader(
        scope=lambda: plan.scope,
        project_dir=root / "course",
        run_dir=root / "run",
        home=root / "home",
        closed=guard.leaves_out,
    )
    return extract_tool(reader, guard, label="sources/", limits=limits)


def call(tool: Tool, file: str) -> tuple[bool, str]:
    answer = asyncio.run(tool.handler({"file": file}))
    return answer["is_error"], "\n".join(block["text"] for block in answer["content"])


ALLOWED = [
    ("sources/week1/a.txt", "exam"),
    (" sources/./week1/a.txt ", "exam"),
    ("<root>/course/sources/week1/a.txt", "exam"),
    ("drafts/a.txt", "a draft"),
    ("<root>/run/fetched.txt", "fetched"),
    ("sources/link.txt", "exam"),
    ("drafts/link.txt", "exam"),
]

REFUSED = [
    ("sources/key.txt", "off limits", "a denied original"),
    ("sources/KEY.TXT", "", "a denied original in another case"),
    ("sources/.sources.json", "off limits", "the manifest"),
    ("sources/.retired/old.txt", "off limits", "a retired original"),
    ("drafts/.env", "off limits", "denied by a pattern"),
    ("drafts/kept/c.txt", "off limits", "in a denied folder"),
    ("README.md", "can't be read", "closed"),
    ("<root>/out/secret.txt", "can't be read", "outside"),
    ("<root>/out/absent.txt", "can't be read", "nothing, outside: it isn't told"),
    ("~/x.txt", "can't be read", "in the home"),
    ("knowledge/concept/x.md", "knowledge_* tools", "tools only"),
    ("<root>/run/host/key.json", "off limits", "the host's part of the run folder"),
    ("sources/out.txt", "can't be read", "a link that leads out"),
    ("sources/denied.txt", "off limits", "a link to a denied file"),
    ("sources/folder/secret.txt", "can't be read", "below a link that leads out"),
    ("sources/hard.txt", "off limits", "a hard link of a denied file"),
    ("sources/loop.txt", "", "a link to itself"),
    ("/dev/zero", "can't be read", "a device"),
    ("/proc/self/environ", "can't be read", "the host's own environment"),
    ("sources/week1", "", "a folder"),
    ("sources/fifo", "", "a FIFO"),
    ("sources/socket", "", "a socket"),
    ("sources/absent.txt", "isn't there", "nothing"),
    ("", "Name the file", "no name"),
    ("a\0b", "Name the file", "a NUL"),
]


@pytest.fixture
def links(world: Path) -> Path:
    entries = [
        "course/sources/link.txt => week1/a.txt",
        "course/drafts/link.txt => ../sources/week1/a.txt",
        "course/sources/out.txt => ../../out/secret.txt",
        "course/sources/denied.txt => key.txt",
        "course/sources/folder => ../../out",
        "course/sources/loop.txt => loop.txt",
        "course/sources/hard.txt == course/sources/key.txt",
    ]
    tree(world, entries)
    os.mkfifo(world / "course/sources/fifo")
    here = os.getcwd()
    os.chdir(world / "course/sources")  # a socket's name must be short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("socket")
    finally:
        os.chdir(here)
    return world


@pytest.mark.parametrize(("file", "text"), ALLOWED)
def test_what_read_opens_is_extracted(links: Path, file: str, text: str) -> None:
    plan = planned(links)
    written = file.replace("<root>", str(links))
    assert check_file_scope(plan.scope, "Read", {"file_path": written.strip()}) is None
    failed, answer = call(tool_of(links, plan), written)
    assert not failed
    assert answer.endswith(f"\n{text}")


@pytest.mark.parametrize(
    ("file", "reason"), [row[:2] for row in REFUSED], ids=[row[2] for row in REFUSED]
)
def test_what_read_refuses_is_not_extracted(links: Path, file: str, reason: str) -> None:
    failed, answer = call(tool_of(links, planned(links)), file.replace("<root>", str(links)))
    assert failed
    assert reason in answer
    assert "canary" not in answer


def test_the_denied_original_is_read_where_nothing_denies_it(world: Path) -> None:
    failed, answer = call(tool_of(world, planned(world, denied_paths=[])), "sources/key.txt")
    assert not failed
    assert answer.endswith("canary")


@pytest.mark.parametrize(
    ("mode", "allowed"), [("deny", False), ("interrupt", False), ("allow", True)]
)
@pytest.mark.parametrize("file", ["sources/week1/a.txt", "drafts/a.txt"])
def test_a_rule_of_the_session_holds(world: Path, mode: str, allowed: bool, file: str) -> None:
    rule = FilePermission(operations=["read"], paths=[file], mode=mode)  # type: ignore[arg-type]
    failed, answer = call(tool_of(world, planned(world, permissions=[rule])), file)
    assert failed is not allowed
    assert answer.endswith(("exam", "a draft")) is allowed


def test_a_rule_holds_for_the_file_that_a_link_leads_to(links: Path) -> None:
    rule = FilePermission(operations=["read"], paths=["sources/week1/**"], mode="deny")
    failed, answer = call(tool_of(links, planned(links, permissions=[rule])), "drafts/link.txt")
    assert failed
    assert "exam" not in answer


def test_a_link_that_is_put_in_the_way_after_the_judgement_is_not_followed(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = opening._open_plain

    def swapped(path: Path, *rest: Any) -> Any:
        path.unlink()
        path.symlink_to(world / "out/secret.txt")
        return original(path, *rest)

    monkeypatch.setattr(opening, "_open_plain", swapped)
    failed, answer = call(tool_of(world, planned(world)), "sources/week1/a.txt")
    assert failed
    assert "canary" not in answer


def test_a_folder_that_becomes_a_link_after_the_judgement_is_not_followed(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = opening._open_plain
    (world / "out/a.txt").write_text("canary")

    def swapped(path: Path, *rest: Any) -> Any:
        path.parent.rename(path.parent.with_name("moved"))
        path.parent.symlink_to(world / "out")
        return original(path, *rest)

    monkeypatch.setattr(opening, "_open_plain", swapped)
    failed, answer = call(tool_of(world, planned(world)), "sources/week1/a.txt")
    assert failed
    assert "canary" not in answer


def test_another_file_in_the_place_of_the_judged_one_is_not_shown(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = opening._open_plain

    def swapped(path: Path, *rest: Any) -> Any:
        found = original(path, *rest)
        os.replace(world / "course/drafts/a.txt", path)
        return found

    monkeypatch.setattr(opening, "_open_plain", swapped)
    failed, answer = call(tool_of(world, planned(world)), "sources/week1/a.txt")
    assert failed
    assert "was changed while it was read: try once more" in answer


def test_another_folder_in_the_place_of_the_judged_one_is_not_shown(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = opening._open_plain

    def swapped(path: Path, *rest: Any) -> Any:
        found = original(path, *rest)
        path.parent.rename(path.parent.with_name("moved"))
        tree(world, ["course/sources/week1/a.txt=another"])
        return found

    monkeypatch.setattr(opening, "_open_plain", swapped)
    failed, answer = call(tool_of(world, planned(world)), "sources/week1/a.txt")
    assert failed
    assert "was changed while it was read" in answer


def test_a_rule_is_asked_again_when_the_file_is_opened(world: Path) -> None:
    rule = FilePermission(operations=["read"], paths=["drafts/a.txt"], mode="deny")
    tool = tool_of(world, planned(world, permissions=[rule]))
    answer = tool.call({"file": "drafts/a.txt"})  # without what comes before
    assert answer["is_error"]
    assert answer["content"][0]["text"] == '"drafts/a.txt" is closed: it can\'t be read.'


def test_a_file_that_is_written_while_it_is_read_is_not_shown(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = tool_module.extract

    def writing(*args: Any, **named: Any) -> Any:
        found = original(*args, **named)
        (world / "course/sources/week1/a.txt").write_text("longer than it was")
        return found

    monkeypatch.setattr(tool_module, "extract", writing)
    failed, answer = call(tool_of(world, planned(world)), "sources/week1/a.txt")
    assert failed
    assert "was changed while it was read" in answer


def test_a_file_that_is_too_large_is_refused_before_a_process_is_started(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_module, "extract", None)
    tool = tool_of(world, planned(world), Limits(file_bytes=3))
    failed, answer = call(tool, "sources/week1/a.txt")
    assert failed
    assert '"sources/week1/a.txt" has 4 bytes, and documents of at most 3 are read' in answer


def test_no_handle_is_left_open(links: Path) -> None:
    tool = tool_of(links, planned(links))
    call(tool, "sources/week1/a.txt")
    before = sorted(os.listdir("/proc/self/fd"))
    for file in ("sources/week1/a.txt", "sources/fifo", "sources/absent.txt"):
        call(tool, file)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_name_with_hidden_characters_is_shown_in_the_heading(world: Path) -> None:
    tree(world, ["course/sources/x\u202ey.txt=text"])
    failed, answer = call(tool_of(world, planned(world)), "sources/x\u202ey.txt")
    assert not failed
    assert answer.startswith("sources/x\\u202ey.txt: text, 4 characters")
