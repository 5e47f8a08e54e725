"""retire_source: an original is moved aside with the reason, never removed, and nothing else is."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_kit import (
    AgentSpec,
    FilePermission,
    SessionConfig,
    SessionPlan,
    Subagent,
    ask_user,
    plan_session,
)
from agent_kit.extension import Contribution
from agent_kit.policy.guard import Guard
from agent_kit.policy.policy import Call
from agent_kit.policy.running import RUNNING, Running
from agent_kit.scope import check_file_scope
from agent_kit.store import disk as disk_module
from agent_kit.testing import tree
from agent_kit_knowledge import knowledge
from agent_kit_sources import retiring as retiring_module
from agent_kit_sources import sources

Connect = Callable[[Contribution], Any]
STAMP = re.compile(r"^\.retired/[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}-")
SESSION = "7d4d5e1c-0000-4000-8000-000000000001"

WORLD = (
    "course/sources/a.md=one",
    "course/sources/week1/a.md=two",
    "course/sources/week1/b.md=three",
    "course/sources/secret.key=canary",
    "course/sources/kept/c.md=canary",
    "course/drafts/a.md=a draft",
    "course/knowledge/concept/x.md=canary",
    "out/secret.md=canary",
    "home/",
)


def planned(root: Path, *, spec: dict[str, Any] | None = None, **config: Any) -> SessionPlan:
    config.setdefault("denied_paths", ["sources/kept", "*.key"])
    return plan_session(
        AgentSpec(name="keeper", extensions=[sources(), knowledge()], **(spec or {})),
        SessionConfig(
            project_dir=root / "course",
            run_dir=root / "run",
            session_id=SESSION,
            extra_writable_dirs=["drafts"],
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


def originals(world: Path) -> dict[str, str]:
    """What lies in the folder, the lock and the manifest aside; retired ones without time and number."""
    root = world / "course/sources"
    found: dict[str, str] = {}
    for path in sorted(root.rglob("*")):
        if path.name in (".agent-kit.lock", ".sources.json") or path.is_dir():
            continue
        name = STAMP.sub(".retired/*-", str(path.relative_to(root)))
        found[name if name not in found else f"{name} (2)"] = path.read_text("utf-8", "replace")
    return found


def manifest(world: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((world / "course/sources/.sources.json").read_text())
    return found


BEFORE = {
    "a.md": "one",
    "week1/a.md": "two",
    "week1/b.md": "three",
    "secret.key": "canary",
    "kept/c.md": "canary",
}


async def test_a_retired_original_is_moved_and_written_down(world: Path, call: Any) -> None:
    answer = await call("retire_source", file="sources/week1/a.md", reason=" It was\nwrong. ")
    assert not answer.is_error
    left = {name: text for name, text in BEFORE.items() if name != "week1/a.md"}
    assert originals(world) == {**left, ".retired/*-a.md": "two"}
    ((place, entry),) = manifest(world)["retired"].items()
    assert (world / "course/sources" / place).read_text() == "two"
    assert answer.text == (
        "sources/week1/a.md is retired: it is listed no more, and no tool of yours reads it. A"
        f" person finds it as sources/{place}."
    )
    assert entry.pop("when").endswith("+00:00")
    assert entry == {
        "path": "week1/a.md",
        "why": "It was\nwrong.",
        "by": {"agent": "keeper", "session": SESSION},
        "size": 3,
    }
    assert manifest(world)["files"] == {}


async def test_a_second_name_that_is_still_read_is_told_of(world: Path, call: Any) -> None:
    (world / "course/sources/twin.md").hardlink_to(world / "course/sources/a.md")
    answer = await call("retire_source", file="sources/a.md", reason="old")
    assert "by this name; it has another one" in answer.text


async def test_it_is_listed_no_more_and_neither_extracted_nor_read(world: Path, call: Any) -> None:
    await call("retire_source", file="sources/a.md", reason="old")
    ((place, _),) = manifest(world)["retired"].items()
    listed = (await call("list_sources")).text
    assert "sources/week1/a.md" in listed
    assert "sources/a.md" not in listed
    assert ".retired" not in listed
    assert ".sources.json" not in listed
    assert "No files" in (await call("list_sources", folder=".retired")).text
    for path in ("sources/a.md", f"sources/{place}"):
        assert (await call("extract_text", file=path)).is_error
        assert (await call("save_to_sources", file=path, name="again.md")).is_error
    scope = planned(world).scope
    for path in (f"sources/{place}", "sources/.sources.json"):
        for tool in ("Read", "Write", "Edit"):
            assert check_file_scope(scope, tool, {"file_path": path}) is not None
    assert (await call("retire_source", file=f"sources/{place}", reason="again")).is_error


async def test_what_was_known_of_it_goes_with_it_and_its_name_is_free_again(
    world: Path, call: Any
) -> None:
    await call("save_to_sources", file="drafts/a.md", name="new.md")
    first = manifest(world)["files"]["new.md"]
    await call("retire_source", file="sources/new.md", reason="first")
    await call("save_to_sources", file="drafts/a.md", name="new.md")
    second = manifest(world)["files"]["new.md"]
    await call("retire_source", file="sources/new.md", reason="second")
    held = manifest(world)
    assert held["files"] == {}
    known = {entry["why"]: entry["was"] for entry in held["retired"].values()}
    assert known == {"first": first, "second": second}
    for place in held["retired"]:
        assert (world / "course/sources" / place).read_text() == "a draft"


async def test_two_of_one_name_don_t_overwrite_each_other(world: Path, call: Any) -> None:
    await call("retire_source", file="sources/a.md", reason="x")
    await call("retire_source", file="sources/week1/a.md", reason="y")
    found = originals(world)
    assert sorted(text for name, text in found.items() if ".retired" in name) == ["one", "two"]


@pytest.mark.parametrize("name", ["x" * 252 + ".md", "é" * 126 + ".md", "é.md"])
async def test_a_name_of_any_length_keeps_its_end(world: Path, call: Any, name: str) -> None:
    (world / "course/sources" / name).write_text("long")
    assert not (await call("retire_source", file=f"sources/{name}", reason="x")).is_error
    ((place, entry),) = manifest(world)["retired"].items()
    assert entry["path"] == name
    assert place.endswith(name[-40:])
    assert (world / "course/sources" / place).read_text() == "long"


async def test_a_name_that_is_taken_among_the_retired_is_not_overwritten(
    world: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Clock:
            return cls(2026, 1, 2, 3, 4, 5, tzinfo=tz)

    numbers = iter(["00000001", "00000001", "00000002", "00000001", "00000003"])
    monkeypatch.setattr(retiring_module, "datetime", Clock)
    drawn = SimpleNamespace(token_hex=lambda _bytes: next(numbers))
    monkeypatch.setattr(retiring_module, "secrets", drawn)
    await call("retire_source", file="sources/a.md", reason="x")
    await call("retire_source", file="sources/week1/a.md", reason="y")
    (world / "course/sources/.retired/20260102T030405Z-00000001-a.md").unlink()  # by a person
    tree(world, ["course/sources/a.md=three"])
    await call("retire_source", file="sources/a.md", reason="z")
    held = {
        place[-13:]: (entry["path"], entry["why"])
        for place, entry in manifest(world)["retired"].items()
    }
    assert held == {
        "00000001-a.md": ("a.md", "x"),
        "00000002-a.md": ("week1/a.md", "y"),
        "00000003-a.md": ("a.md", "z"),
    }


async def test_two_at_once_are_one_retirement_and_one_refusal(world: Path) -> None:
    tool = tool_of(planned(world))
    answers: list[Any] = []

    def retire() -> None:
        answers.append(tool.call({"file": "sources/a.md", "reason": "x"}))

    threads = [threading.Thread(target=retire) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer["is_error"] for answer in answers) == [False] + [True] * 7
    assert len(manifest(world)["retired"]) == 1


def tool_of(plan: SessionPlan, name: str = "retire_source") -> Any:
    tools = plan.contributions[0].mcp_servers["sources"].args[1]
    return next(tool for tool in tools if tool.name == name)


# What is named, and what the refusal says.
REFUSED = [
    ("", "Name the original", "no name"),
    ("a\0.md", "Name the original", "a NUL"),
    ("sources", "is no original", "the folder itself"),
    ("sources/", "is no original", "the folder with a slash"),
    ("a.md", "is no original", "relative to the folder, not as it is listed"),
    ("drafts/a.md", "is no original", "a draft"),
    ("../out/secret.md", "is no original", "outside"),
    ("sources/../drafts/a.md", "is no original", "a way out"),
    ("<root>/out/secret.md", "is no original", "outside, absolute"),
    ("knowledge/concept/x.md", "is no original", "another extension's"),
    ("sources/.agent-kit.lock", "is no original", "the lock"),
    ("sources/repo/.git/config", "is no original", "a repository's own"),
    ("sources/absent.md", "There is no", "nothing"),
    ("sources/none/absent.md", "There is no", "nothing in no folder"),
    ("sources/a.md/x", "", "below a file"),
    ("sources/week1", "it is a folder", "a folder"),
    ("sources/secret.key", "off limits", "denied by a pattern"),
    ("sources/SECRET.KEY", "", "denied, in another case"),
    ("sources/kept/c.md", "off limits", "in a denied folder"),
    ("sources/hard.md", "off limits", "a second name of a denied file"),
    ("sources/.sources.json", "off limits", "the manifest"),
    ("sources/.retired/old.md", "off limits", "a retired one"),
    ("sources/.retired/x/older.md", "off limits", "one in a folder among the retired"),
    ("sources/link.md", "it is a link", "a link"),
    ("sources/out.md", "can't be read", "a link that leads out"),
    ("sources/linked/a.md", "is a link", "below a link"),
    ("sources/leads-out/secret.md", "can't be read", "below a link that leads out"),
    ("sources/fifo", "", "a FIFO"),
    ("sources/CLAUDE.md", "can't be written", "a control file"),
]


@pytest.mark.parametrize(
    ("file", "reason"), [row[:2] for row in REFUSED], ids=[row[2] for row in REFUSED]
)
async def test_what_is_no_original_of_the_session_s_is_not_moved(
    world: Path, call: Any, file: str, reason: str
) -> None:
    tree(
        world,
        [
            'course/sources/.sources.json={"files": {}}',
            "course/sources/.agent-kit.lock=",
            "course/sources/.retired/old.md=old",
            "course/sources/.retired/x/older.md=older",
            "course/sources/repo/.git/config=x",
            "course/sources/CLAUDE.md=rules",
            "course/sources/link.md => a.md",
            "course/sources/out.md => ../../out/secret.md",
            "course/sources/linked => week1",
            "course/sources/leads-out => ../../out",
            "course/sources/hard.md == course/sources/kept/c.md",
        ],
    )
    os.mkfifo(world / "course/sources/fifo")
    before = sorted(world.rglob("*"))
    answer = await call("retire_source", file=file.replace("<root>", str(world)), reason="x")
    assert answer.is_error
    assert reason in answer.text
    assert "canary" not in answer.text
    assert str(world) not in answer.text or "<root>" in file
    assert sorted(world.rglob("*")) == before


@pytest.mark.parametrize("reason", ["", " \n", "x" * 1001])
async def test_a_reason_has_one_to_a_thousand_characters(
    world: Path, call: Any, reason: str
) -> None:
    answer = await call("retire_source", file="sources/a.md", reason=reason)
    assert answer.text == "Give the reason in 1 to 1000 characters: a person reads it."
    assert originals(world) == BEFORE


@pytest.mark.parametrize("written", ["sources/a.md", " sources/./week1/../a.md ", "<root>/a.md"])
async def test_a_path_is_taken_as_the_lists_and_read_take_it(
    world: Path, call: Any, written: str
) -> None:
    written = written.replace("<root>", str(world / "course/sources"))
    assert not (await call("retire_source", file=written, reason="x")).is_error
    assert not (world / "course/sources/a.md").exists()


# --- rules, modes, agents ------------------------------------------------------------------------


def rule(mode: str, *paths: str) -> FilePermission:
    return FilePermission(operations=["write"], paths=list(paths), mode=mode)


LIMITS: dict[str, tuple[dict[str, Any], str]] = {
    "a rule that denies": ({"permissions": [rule("deny", "sources/week1/**")]}, "can't be deleted"),
    "a rule that asks": (
        {"permissions": [rule("interrupt", "sources/week1/**")]},
        "Nobody can be asked",
    ),
    "plan mode": ({"mode": "plan"}, "plan mode"),
    "an authorizer": ({"authorizers": [ask_user(lambda _target: False)]}, "did not approve"),
}


@pytest.mark.parametrize("limit", LIMITS)
async def test_what_narrows_the_session_holds(world: Path, caller: Connect, limit: str) -> None:
    config, reason = LIMITS[limit]
    call = caller(planned(world, **config).contributions[0])
    answer = await call("retire_source", file="sources/week1/a.md", reason="x")
    assert answer.is_error
    assert reason in answer.text
    assert originals(world) == BEFORE
    if "permissions" in config:  # the others are as before
        assert not (await call("retire_source", file="sources/a.md", reason="x")).is_error


async def test_what_a_rule_hides_is_off_limits(world: Path, caller: Connect) -> None:
    closed = FilePermission(operations=["read"], paths=["sources/week1/**"], mode="deny")
    call = caller(planned(world, permissions=[closed]).contributions[0])
    answer = await call("retire_source", file="sources/week1/a.md", reason="x")
    assert "off limits" in answer.text
    assert originals(world) == BEFORE


def running(plan: SessionPlan, agent: str | None) -> Any:
    """The plan's guard as a session's, in which this agent makes the call that runs."""
    made = Call(
        tool="mcp__sources__retire_source", tool_input={}, cwd=str(plan.project_dir), agent=agent
    )
    plan.guard.guard = Guard(policy=plan.guard().policy, caller={"use": made}.get)
    return RUNNING.set(Running(use_id="use", arguments={}))


async def test_the_subagent_that_calls_is_written_down(world: Path) -> None:
    plan = planned(world)
    token = running(plan, "helper")
    try:
        answer = await tool_of(plan).handler({"file": "sources/a.md", "reason": "x"})
    finally:
        RUNNING.reset(token)
    assert not answer["is_error"]
    (entry,) = manifest(world)["retired"].values()
    assert entry["by"] == {"agent": "keeper", "session": SESSION, "subagent": "helper"}


async def test_a_subagent_that_may_write_less_retires_nothing(world: Path) -> None:
    plan = planned(
        world,
        spec={"subagents": {"auditor": Subagent(description="d", prompt="p", writable_dirs=[])}},
    )
    token = running(plan, "auditor")
    try:
        answer = await tool_of(plan).handler({"file": "sources/a.md", "reason": "x"})
    finally:
        RUNNING.reset(token)
    assert answer["is_error"]
    assert "may write less" in answer["content"][0]["text"]
    assert originals(world) == BEFORE


# --- before anybody is asked ----------------------------------------------------------------------


def hook(plan: SessionPlan) -> Any:
    ((chained,),) = plan.contributions[0].hooks.values()
    assert chained.wants("mcp__sources__retire_source")
    assert not chained.wants("mcp__sources__list_sources")
    return lambda tool_input: asyncio.run(
        chained({"tool_input": tool_input}, "use", None)  # as the gate calls it
    )


@pytest.mark.parametrize(
    ("tool_input", "reason"),
    [
        ({"file": "sources/absent.md", "reason": "x"}, "There is no"),
        ({"file": "sources/secret.key", "reason": "x"}, "off limits"),
        ({"file": "sources/a.md", "reason": ""}, "Give the reason"),
        ({"file": "sources/a.md"}, "Give the reason"),
        ({"reason": "x"}, "Name the original"),
        ({"file": 7, "reason": 7}, "is no original"),
        ({"file": "sources/" + "x" * 300, "reason": "x"}, "one file or folder"),
        (None, "Give the reason"),
    ],
)
def test_nobody_is_asked_about_what_could_not_be_retired(
    world: Path, tool_input: Any, reason: str
) -> None:
    said = hook(planned(world))(tool_input)["hookSpecificOutput"]
    assert said["permissionDecision"] == "deny"
    assert reason in said["permissionDecisionReason"]


def test_the_hook_has_no_objection_to_an_original_and_moves_nothing(world: Path) -> None:
    assert hook(planned(world))({"file": "sources/a.md", "reason": "x"}) == {}
    assert originals(world) == BEFORE


# --- the disk -----------------------------------------------------------------------------------


async def test_a_retirement_that_fails_leaves_everything_as_it_was(
    world: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await call("save_to_sources", file="drafts/a.md", name="new.md")
    before = manifest(world), originals(world)
    for name, error, said in (
        ("_move", OSError(28, "No space left on device", str(world)), "The disk is full"),
        ("_move", OSError(18, "Invalid cross-device link", str(world)), "on another disk"),
        ("write_manifest", OSError(28, "No space left on device", str(world)), "The disk is full"),
    ):
        with monkeypatch.context() as patch:

            def failing(*_args: object, fault: OSError = error, **_more: object) -> None:
                raise fault

            patch.setattr(retiring_module, name, failing)
            answer = await call("retire_source", file="sources/new.md", reason="x")
        assert answer.is_error
        assert said in answer.text
        assert str(world) not in answer.text
        assert (manifest(world), originals(world)) == before


async def test_a_file_that_was_moved_is_retired_though_the_disk_confirms_nothing(
    world: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = disk_module.sync_folder
    moved: list[bool] = []

    def failing(handle: int) -> None:
        if not (world / "course/sources/a.md").exists() and not moved:
            moved.append(True)
            raise OSError(5, "Input/output error")
        real(handle)

    monkeypatch.setattr(disk_module, "sync_folder", failing)
    answer = await call("retire_source", file="sources/a.md", reason="x")
    assert moved
    assert "The change was made" in answer.text
    (entry,) = manifest(world)["retired"].values()
    assert "moving" not in entry


async def test_a_last_line_that_can_t_be_written_is_mended_by_the_next_writer(
    world: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await call("save_to_sources", file="drafts/a.md", name="new.md")
    real, times = retiring_module.write_manifest, []

    def once(*args: Any, **more: Any) -> None:
        times.append(1)
        if len(times) > 1:
            raise OSError(28, "No space left on device")
        real(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(retiring_module, "write_manifest", once)
        answer = await call("retire_source", file="sources/new.md", reason="x")
    assert not answer.is_error
    (entry,) = manifest(world)["retired"].values()
    assert entry["moving"] is True
    assert "sources/new.md" not in (await call("list_sources")).text
    await call("save_to_sources", file="drafts/a.md", name="other.md")
    (entry,) = manifest(world)["retired"].values()
    assert "moving" not in entry
    assert list(manifest(world)["files"]) == ["other.md"]


async def test_another_program_s_members_of_the_manifest_are_kept(world: Path, call: Any) -> None:
    file = world / "course/sources/.sources.json"
    theirs = {"note": "ours", "files": {"z.md": 3}, "retired": {"x": 3, ".retired/y/z": {}}}
    file.write_text(json.dumps(theirs))
    await call("retire_source", file="sources/a.md", reason="x")
    held = manifest(world)
    assert held["note"] == "ours"
    assert held["files"] == {"z.md": 3}
    assert {"x", ".retired/y/z"} < set(held["retired"])


@pytest.mark.parametrize("retired", ["[]", "3", '"x"', "null"])
async def test_a_manifest_whose_retired_are_none_is_kept_and_nothing_is_moved(
    world: Path, call: Any, retired: str
) -> None:
    file = world / "course/sources/.sources.json"
    file.write_text(f'{{"files": {{}}, "retired": {retired}}}')
    answer = await call("retire_source", file="sources/a.md", reason="x")
    assert "mend or remove .sources.json" in answer.text
    assert originals(world) == BEFORE
    assert retired in file.read_text()


@pytest.mark.parametrize(
    "place",
    ["x", "../../out", ".retired/../secret.md", ".retired/..", ".retired/", ".retired/a/b", "/\0"],
)
async def test_an_unfinished_entry_that_is_not_ours_leads_nowhere(
    world: Path, call: Any, place: str
) -> None:
    file = world / "course/sources/.sources.json"
    entry = {"path": "a.md", "moving": True}
    file.write_text(json.dumps({"files": {"a.md": 3}, "retired": {place: entry}}))
    tree(world, ["course/sources/.retired/"])
    before = sorted(world.rglob("*"))
    await call("save_to_sources", file="drafts/a.md", name="new.md")
    assert manifest(world)["files"]["a.md"] == 3
    assert "retired" not in manifest(world)
    assert sorted({*world.rglob("*")} - {*before}) in (
        [world / "course/sources/new.md"],
        [world / "course/sources/.agent-kit.lock", world / "course/sources/new.md"],
    )


async def test_a_retired_folder_that_is_a_link_is_not_followed(world: Path, call: Any) -> None:
    tree(world, ["course/sources/.retired => ../../out"])
    answer = await call("retire_source", file="sources/a.md", reason="x")
    assert answer.is_error
    assert (world / "course/sources/a.md").read_text() == "one"
    assert sorted(os.listdir(world / "out")) == ["secret.md"]
    assert "retired" not in manifest(world)
