"""save_to_sources: a file that the agent may read and write becomes an original, and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import threading
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_kit import AgentSpec, SessionConfig, SessionPlan, plan_session
from agent_kit.extension import Contribution, ExtensionContext
from agent_kit.scope import check_file_scope
from agent_kit.scope.control import CONTROL_NAMES
from agent_kit.store import StoreCode, StoreError
from agent_kit.testing import tree
from agent_kit_knowledge import knowledge
from agent_kit_sources import SourceFolder, sources
from agent_kit_sources import origin as origin_module
from agent_kit_sources import saving as saving_module
from agent_kit_sources.origin import MAX_ORIGINAL, OriginReader

Connect = Callable[[Contribution], Any]

WORLD = (
    "course/sources/syllabus.md=exam",
    "course/drafts/a.md=a draft",
    "course/drafts/sub/b.md=deep",
    "course/drafts/.env=canary",
    "course/drafts/kept/c.md=canary",
    "course/notes/own.md=a note of its own",
    "course/README.md=canary",
    "course/knowledge/concept/x.md=canary",
    "out/secret.md=canary",
    "run/fetched.md=fetched",
    "run/host/key.json=canary",
    "home/",
)


def planned(root: Path, **config: Any) -> SessionPlan:
    config.setdefault("denied_paths", ["**/.env", "drafts/kept", "*.key"])
    config.setdefault("extra_writable_dirs", ["drafts"])
    notes = knowledge(dir="notes", own_notes=True, name="notes")  # writable by another extension
    return plan_session(
        AgentSpec(name="saver", extensions=[sources(), knowledge(), notes]),
        SessionConfig(
            project_dir=root / "course",
            run_dir=root / "run",
            env={"HOME": str(root / "home")},
            **config,
        ),
    )


@pytest.fixture
def world(tmp_path: Path) -> Path:
    return tree(tmp_path, WORLD)


@pytest.fixture
def call(world: Path, caller: Connect) -> Any:
    return caller(planned(world).contributions[0])


def folder_state(world: Path) -> dict[str, str]:
    """What lies in the folder of originals, the lock aside."""
    root = world / "course/sources"
    return {
        str(path.relative_to(root)): path.read_text("utf-8", "replace") if path.is_file() else "/"
        for path in root.rglob("*")
        if path.name != ".agent-kit.lock"
    }


ORIGINALS = {"syllabus.md": "exam"}

# What is written, and what it becomes.
SAVED = [
    ("drafts/a.md", None, "a.md", "a draft", "drafts/a.md"),
    (" drafts/sub/../a.md ", "week1/x.md", "week1/x.md", "a draft", "drafts/a.md"),
    ("drafts/sub/b.md", "sources/b.md", "b.md", "deep", "drafts/sub/b.md"),
    ("notes/own.md", "知识/ノート.md", "知识/ノート.md", "a note of its own", "notes/own.md"),
    ("<root>/run/fetched.md", None, "fetched.md", "fetched", "<root>/run/fetched.md"),
    ("<root>/course/drafts/a.md", "[1] #2.md", "[1] #2.md", "a draft", "drafts/a.md"),
]


@pytest.mark.parametrize(("file", "name", "path", "text", "origin"), SAVED)
async def test_a_file_of_the_agent_s_own_becomes_an_original_with_its_provenance(
    world: Path, call: Any, file: str, name: str | None, path: str, text: str, origin: str
) -> None:
    given = {} if name is None else {"name": name}
    answer = await call("save_to_sources", file=file.replace("<root>", str(world)), **given)
    digest = hashlib.sha256(text.encode()).hexdigest()
    size = len(text.encode())
    assert answer.text == f"Saved as sources/{path}: {size} bytes, SHA-256 {digest}."
    assert (world / "course/sources" / path).read_text(encoding="utf-8") == text
    manifest = json.loads((world / "course/sources/.sources.json").read_text(encoding="utf-8"))
    entry = manifest["files"].pop(path)
    origin = origin.replace("<root>", str(world))
    assert manifest == {"files": {}}
    assert {"from": origin, "when": entry["when"], "size": size, "sha256": digest} == entry
    listed = (await call("list_sources")).text
    (line,) = (line for line in listed.splitlines() if line.startswith(f"sources/{path} | "))
    assert line.endswith(f" UTC from {origin}, SHA-256 {digest}")
    assert "agent-kit" not in listed
    assert ".sources.json" not in listed


REFUSED = [
    ("drafts/.env", "off limits", "denied by a pattern"),
    ("drafts/kept/c.md", "off limits", "in a denied folder"),
    ("README.md", "can't be read", "closed"),
    ("../out/secret.md", "can't be read", "outside"),
    ("<root>/out/secret.md", "can't be read", "outside, absolute"),
    ("~/x", "can't be read", "in the home"),
    ("knowledge/concept/x.md", "knowledge_* tools", "tools only"),
    ("<root>/run/host/key.json", "off limits", "the host's part of the run folder"),
    ("sources/syllabus.md", "isn't in a folder that you write in", "readable, not writable"),
    ("drafts/link-out.md", "can't be read", "a link to a closed file"),
    ("drafts/link-in.md", "it is a link", "a link to an open one"),
    ("drafts/folder-out/secret.md", "can't be read", "below a link that leads out"),
    ("drafts/hard-denied.md", "off limits", "a hard link of a denied file"),
    ("drafts/hard-closed.md", "a hard link", "a hard link of a closed file"),
    ("drafts/fifo", "", "a FIFO"),
    ("drafts/socket", "", "a socket"),
    ("drafts", "it is no file", "a folder"),
    ("drafts/nothing.md", "isn't there", "nothing"),
    ("/dev/zero", "can't be read", "a device"),
    ("/proc/self/environ", "can't be read", "the host's own environment"),
    ("", "Name the file", "no name"),
    ("drafts/a\0.md", "Name the file", "a NUL"),
    ("drafts/huge.bin", f"at most {MAX_ORIGINAL} are saved", "a huge file"),
    ("drafts/CLAUDE.md", "later session", "a control file"),
]


@pytest.mark.parametrize(
    ("file", "reason"), [row[:2] for row in REFUSED], ids=[row[2] for row in REFUSED]
)
async def test_a_file_that_the_agent_could_not_have_read_and_written_is_refused(
    world: Path, call: Any, file: str, reason: str
) -> None:
    entries = [
        "course/drafts/link-out.md => ../README.md",
        "course/drafts/link-in.md => a.md",
        "course/drafts/folder-out => ../../out",
        "course/drafts/hard-denied.md == course/drafts/kept/c.md",
        "course/drafts/hard-closed.md == course/README.md",
        "course/drafts/CLAUDE.md=canary",
    ]
    tree(world, entries)
    os.mkfifo(world / "course/drafts/fifo")
    with (world / "course/drafts/huge.bin").open("wb") as huge:
        huge.truncate(MAX_ORIGINAL + 1)
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(world / "course/drafts")  # a socket's name must be short
        try:
            server.bind("socket")
        finally:
            os.chdir(here)
        name = {} if "CLAUDE" in file else {"name": "x.md"}
        answer = await call("save_to_sources", file=file.replace("<root>", str(world)), **name)
    assert answer.is_error
    assert reason in answer.text
    assert "canary" not in answer.text
    assert folder_state(world) == ORIGINALS


async def test_an_origin_s_own_control_name_is_no_way_in_nor_another_name_a_way_round(
    world: Path, call: Any
) -> None:
    tree(world, ["course/drafts/CLAUDE.md=canary"])
    answer = await call("save_to_sources", file="drafts/CLAUDE.md", name="rules.md")
    assert answer.is_error  # the agent can't have written it
    assert folder_state(world) == ORIGINALS


NAMES = [
    ("..", "begins with"),
    ("../out.md", "begins with"),
    ("week1/../../x.md", "begins with"),
    ("/etc/x.md", "it is empty"),
    ("week1//x.md", "it is empty"),
    ("x.md/", "it is empty"),
    ("a\\b.md", "on Windows"),
    ("x.md.", "ends with a dot"),
    ("x\u202e.md", "invisible"),
    ("x\n.md", "control character"),
    ("x" * 201, "200 bytes"),
    ("/".join("a" * 10), "more than 8 folders"),
    (".sources.json", "begins with"),
    (".retired/x.md", "begins with"),
    (".tmp-0123456789abcdef", "begins with"),
    ("nul.md", "a device"),
    ("secret.key", "off limits"),
    ("syllabus.md", "is there already"),
    ("SYLLABUS.MD", "is there already"),
    ("syllabus\ufe0f.md", "is there already"),
    ("ｓyllabus.md", "is there already"),
    ("syllabus.md/x.md", "is there already"),
    ("WEEK1/x.md", "is there already"),
    ("week1", "is there already"),
    ("caf\u00e9.md", "is there already"),
    ("linked/x.md", "can't be written"),
    ("dangling.md", "can't be written"),
]


@pytest.mark.parametrize(("name", "reason"), NAMES)
async def test_a_new_name_stays_in_the_folder_and_meets_no_other(
    world: Path, call: Any, name: str, reason: str
) -> None:
    tree(
        world,
        [
            "course/sources/week1/y.md=y",
            f"course/sources/{unicodedata.normalize('NFD', 'café.md')}=nfd",
            "course/sources/linked => ../../out",
            "course/sources/dangling.md => ../../out/new.md",
        ],
    )
    before = folder_state(world)
    answer = await call("save_to_sources", file="drafts/a.md", name=name)
    assert answer.is_error
    assert reason in answer.text
    assert folder_state(world) == before
    assert not (world / "out/new.md").exists()
    assert not (world / "out/x.md").exists()


async def test_no_original_gets_the_name_of_a_control_file(world: Path, call: Any) -> None:
    for name in CONTROL_NAMES:
        for written in (name, name.upper(), f"week1/{name}", f"{name}/x.md", f"{name}\u200d"):
            answer = await call("save_to_sources", file="drafts/a.md", name=written)
            assert answer.is_error
            assert "a later session would take it for its instructions or settings" in answer.text
            suggested = answer.text.split("such as ")[1].strip('".')
            assert suggested.startswith("copy-of-")
    assert folder_state(world) == ORIGINALS


async def test_no_bare_repository_grows_in_the_folder(world: Path, call: Any) -> None:
    """git runs what the configuration of one says, wherever it is called below it."""
    for name in ("r/HEAD", "r/objects/x"):
        assert not (await call("save_to_sources", file="drafts/a.md", name=name)).is_error
    answer = await call("save_to_sources", file="drafts/a.md", name="r/refs/x")
    assert answer.is_error
    assert not (world / "course/sources/r/refs").exists()


async def test_the_manifest_and_retired_files_are_closed_to_the_file_tools(
    world: Path, call: Any
) -> None:
    await call("save_to_sources", file="drafts/a.md")
    tree(world, ["course/sources/.retired/old.md=canary"])
    scope = planned(world).scope
    for path in ("sources/.sources.json", "sources/.retired/old.md"):
        for tool in ("Read", "Write", "Edit"):
            assert check_file_scope(scope, tool, {"file_path": path}) is not None
    assert check_file_scope(scope, "Read", {"file_path": "sources/a.md"}) is None
    assert check_file_scope(scope, "Write", {"file_path": "sources/a.md"}) is not None
    assert check_file_scope(scope, "Grep", {"pattern": "x", "path": "sources"}) is None


SWAPS: dict[str, Callable[[Path], None]] = {
    "for a link": lambda file: (file.unlink(), file.symlink_to("../README.md"))[0],
    "for another file": lambda file: file.with_name("z.md").replace(file),
    "for a hard link of a closed file": lambda file: (
        file.unlink(),
        file.hardlink_to(file.parent.parent / "README.md"),
    )[0],
    "for a folder": lambda file: (file.unlink(), file.mkdir())[0],
    "for nothing": lambda file: file.unlink(),
    "by writing into it": lambda file: None if file.write_text("another text") else None,
}


@pytest.mark.parametrize("when", ["before it is opened", "while it is read"])
@pytest.mark.parametrize("swap", SWAPS)
async def test_a_file_that_is_swapped_meanwhile_is_not_saved(
    world: Path, call: Any, swap: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(world, ["course/drafts/z.md=another file"])
    file, done = world / "course/drafts/a.md", []

    def once() -> None:
        if not done:
            done.append(True)
            SWAPS[swap](file)

    name = "read_plain" if when == "before it is opened" else "_all_of"
    real = getattr(origin_module, name)

    def swapped(*args: Any) -> Any:
        if name == "read_plain":
            once()
            return real(*args)
        data = real(*args)
        once()
        return data

    monkeypatch.setattr(origin_module, name, swapped)
    answer = await call("save_to_sources", file="drafts/a.md")
    assert done
    if when == "before it is opened" and swap in ("for another file", "by writing into it"):
        assert not answer.is_error  # it is the agent's own file, and whole
        assert (world / "course/sources/a.md").read_text(encoding="utf-8").startswith("another")
        return
    assert answer.is_error
    assert folder_state(world) == ORIGINALS


async def test_a_file_whose_folder_is_another_when_it_was_read_is_not_saved(
    world: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = origin_module._all_of

    def swapped(*args: Any) -> Any:
        data = real(*args)
        (world / "course/drafts/sub").rename(world / "course/drafts/was")
        tree(world, ["course/drafts/sub/b.md=deep"])
        return data

    monkeypatch.setattr(origin_module, "_all_of", swapped)
    answer = await call("save_to_sources", file="drafts/sub/b.md")
    assert "was changed while it was read" in answer.text
    assert folder_state(world) == ORIGINALS


def test_a_folder_on_the_way_that_is_swapped_for_a_link_is_not_entered(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(world, ["out/sub/b.md=canary"])
    plan = planned(world)
    reader = OriginReader(
        scope=lambda: plan.scope,
        project_dir=plan.project_dir,
        run_dir=plan.run_dir,
        home=plan.home,
    )
    real = origin_module.read_plain

    def swapped(*args: Any) -> Any:
        (world / "course/drafts/sub").rename(world / "course/drafts/was")
        (world / "course/drafts/sub").symlink_to("../../out/sub")
        return real(*args)

    monkeypatch.setattr(origin_module, "read_plain", swapped)
    with pytest.raises(StoreError) as caught:
        reader.read(world / "course/drafts/sub/b.md")
    assert caught.value.code is StoreCode.UNREADABLE


@pytest.mark.parametrize(
    "manifest",
    ["not json", "[]", '{"files": []}', "[" * 100_000, "\x00"],
    ids=["text", "list", "no files", "deep", "nul"],
)
async def test_a_manifest_that_is_none_is_kept_and_stops_nothing_but_saving(
    world: Path, call: Any, manifest: str
) -> None:
    file = world / "course/sources/.sources.json"
    file.write_text(manifest)
    assert "syllabus.md | md | 4 bytes" in (await call("list_sources")).text
    answer = await call("save_to_sources", file="drafts/a.md")
    assert answer.is_error
    assert "mend or remove .sources.json" in answer.text
    assert file.read_text() == manifest
    assert not (world / "course/sources/a.md").exists()


async def test_a_manifest_that_is_a_link_is_not_followed(world: Path, call: Any) -> None:
    tree(world, ["out/m.json={}", "course/sources/.sources.json => ../../out/m.json"])
    assert (await call("save_to_sources", file="drafts/a.md")).is_error
    assert (world / "out/m.json").read_text() == "{}"


ENTRIES = [
    3,
    {},
    {"from": 1, "when": "2026-01-01T00:00:00+00:00", "size": 4, "sha256": "0" * 64},
    {"from": "x", "when": "yesterday", "size": 4, "sha256": "0" * 64},
    {"from": "x", "when": "2026-01-01T00:00:00", "size": 4, "sha256": "0" * 64},
    {"from": "x", "when": "2999-01-01T00:00:00+00:00", "size": True, "sha256": "0" * 64},
    {"from": "x", "when": "2999-01-01T00:00:00+00:00", "size": 5, "sha256": "0" * 64},
    {"from": "x", "when": "2001-01-01T00:00:00+00:00", "size": 4, "sha256": "0" * 64},
    {"from": "x", "when": "2999-01-01T00:00:00+00:00", "size": 4, "sha256": "| forged"},
]


@pytest.mark.parametrize("entry", ENTRIES)
async def test_an_entry_that_doesn_t_fit_the_file_is_not_shown(
    world: Path, call: Any, entry: object
) -> None:
    file = world / "course/sources/.sources.json"
    file.write_text(json.dumps({"files": {"syllabus.md": entry}}))
    assert " saved " not in (await call("list_sources")).text


async def test_what_a_manifest_says_stays_on_its_line(world: Path, call: Any) -> None:
    entry = {
        "from": "x\ny" * 999,
        "when": "2999-01-01T00:00:00+00:00",
        "size": 4,
        "sha256": "0" * 64,
    }
    (world / "course/sources/.sources.json").write_text(
        json.dumps({"files": {"syllabus.md": entry}})
    )
    text = (await call("list_sources")).text
    assert "from x\\ny" in text
    assert len(text.splitlines()) == 2
    assert len(text) < 1000


def test_the_host_sees_the_provenance(world: Path, caller: Connect) -> None:
    plan = planned(world)
    (tool,) = (t for t in _tools(plan) if t.name == "save_to_sources")
    assert not tool.call({"file": "drafts/a.md"})["is_error"]
    folder = plan.api("sources")
    assert isinstance(folder, SourceFolder)
    found = {str(item.path): item.provenance for item in folder.originals()}
    assert found["syllabus.md"] is None
    assert found["a.md"] is not None
    assert found["a.md"].origin == "drafts/a.md"


def _tools(plan: SessionPlan) -> Any:
    return plan.contributions[0].mcp_servers["sources"].args[1]


@pytest.mark.parametrize("name", ["publish_new", "write_manifest"])
async def test_a_save_that_fails_leaves_no_part_of_a_file(
    world: Path, call: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_args: object, **_more: object) -> None:
        raise OSError(28, "No space left on device", str(world))

    monkeypatch.setattr(saving_module, name, full)
    answer = await call("save_to_sources", file="drafts/a.md", name="week1/a.md")
    assert answer.text == (
        "The disk is full: nothing was changed. Tell the person who runs this session."
    )
    assert folder_state(world) == ORIGINALS


async def test_what_a_killed_save_left_is_removed_by_the_next_and_a_person_s_file_never(
    world: Path, call: Any
) -> None:
    tree(world, ["course/sources/.tmp-0123456789abcdef=half", "course/sources/.tmp-mine=kept"])
    await call("save_to_sources", file="drafts/a.md")
    left = folder_state(world)
    assert ".tmp-0123456789abcdef" not in left
    assert left[".tmp-mine"] == "kept"


async def test_many_saves_at_once_lose_nothing(world: Path, caller: Connect) -> None:
    tools = [t for t in _tools(planned(world)) if t.name == "save_to_sources"]
    answers: list[Any] = []

    def save(number: int) -> None:
        answers.append(tools[0].call({"file": "drafts/a.md", "name": f"w/{number % 8}.md"}))

    threads = [threading.Thread(target=save, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer["is_error"] for answer in answers) == [False] * 8 + [True] * 8
    manifest = json.loads((world / "course/sources/.sources.json").read_text(encoding="utf-8"))
    assert sorted(manifest["files"]) == [f"w/{number}.md" for number in range(8)]


def test_a_context_s_scope_is_known_once_the_session_is_planned(world: Path) -> None:
    context = ExtensionContext(
        config=None, spec=None, project_dir=world, run_dir=world / "run", mode="guided"
    )
    with pytest.raises(LookupError, match="once the session is planned"):
        context.scope()
