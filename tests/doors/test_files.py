"""Every file name that means something to the CLI, in every folder that a session knows.

The project is loaded ("project" and "local" are sources), so its own instructions may reach the
model. What they import, link to, or ask for may not, and nothing planted below a folder of the
scope is read but by the agent itself. A second session on the same disk is held to the same.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_kit.testing import AnsweredBy, SessionRun, ToolCall
from tests.doors.offer import Offer
from tests.doors.plants import FOLDERS, links, plant, texts
from tests.doors.world import Kept, World

pytestmark = pytest.mark.e2e

TOOLS = ("Agent", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Skill", "Write")
# Folders whose planted files are loaded knowingly: the project's own chain.
LOADED = (0, 1)
PLANTED = [f"canary(planted-{number})" for number in range(len(FOLDERS)) if number not in LOADED]
# A stray link in here leads out: the agent may not follow it.
READABLE = ("sources", "sources/part", "notes", "drafts")
OPEN_FILES = ("sources/syllabus.md", "sources/part/week.md", "notes/a.md", "drafts/news.md")


# Where the CLI notes which plugins there are, when a project names some: none may be there.
NO_PLUGINS = (
    Kept("home/.claude/plugins/installed_plugins.json", "an empty list"),
    Kept("home/.claude/plugins/marketplaces", "an empty folder"),
)


def looking(names: Sequence[str] = ()) -> list[Any]:
    """Calls that read, list and search every folder, and edit where that is allowed.

    ``names`` are written where nothing may be.
    """
    opened = tuple(ToolCall("Read", {"file_path": file}) for file in OPEN_FILES)
    edit = ToolCall(
        "Edit", {"file_path": "drafts/news.md", "old_string": "exam", "new_string": "exam, exam"}
    )
    # No pattern of these is in a planted file: the agent itself doesn't show what is in one.
    listed = tuple(
        ToolCall(tool, {"pattern": pattern, "path": folder})
        for folder in (*READABLE, "private", "knowledge", "closed", ".")
        for tool, pattern in (("Glob", "*.md"), ("Grep", "The exam"))
    )
    closed = tuple(
        ToolCall("Read", {"file_path": f"{folder}/{name}"})
        for folder in ("private", "knowledge", "closed", ".")
        for name in (".env", "CLAUDE.md", ".claude/settings.json", ".claude/agents/planted.md")
    )
    written = tuple(
        ToolCall("Write", {"file_path": f"{folder}/{name}", "content": "canary(written)"})
        for folder in (".", "sources", "closed")
        for name in (*names, "made.md")
    )
    skills = tuple(
        ToolCall("Skill", {"skill": name})
        for name in ("planted", "part:planted", "sources:planted", "sources:cite", "SKILL")
    )
    return [opened, edit, (*listed, *closed, *skills), *([written] if written else [])]


def script(names: Sequence[str]) -> list[Any]:
    return [*looking(names), *map(agent, ("general-purpose", "planted", "isolated")), "Done."]


def agent(kind: str) -> ToolCall:
    """A subagent that does the same. Those that the project defines may not start at all."""
    steps = [*looking(), "Nothing."]
    does = steps if kind == "general-purpose" else lambda turn: steps[min(turn.number, 4)]
    start = {"description": "d", "prompt": f"As {kind}.", "subagent_type": kind}
    return ToolCall("Agent", {**start, "run_in_background": False}, script=does)


class Twice:
    """Two sessions on one disk that was prepared."""

    def __init__(self, root: Path, offer: Offer, *, linked: bool, trusted: bool) -> None:
        self.names = [name for name, _ in (links if linked else texts)(offer.files)]
        with World(root, trusted=trusted) as self.world:
            plant(self.world, offer.files, linked=linked)
            self.world.closed |= {*PLANTED}
            self.before = self.world.snapshot()
            self.runs = [self._session() for _ in range(2)]
            self.leaks = [
                f"session {number}: {leak} in {run.where(leak)[:2]}"
                for number, run in enumerate(self.runs, 1)
                for leak in sorted(self.world.leaks(run))
            ]
            self.changes = self.world.changes(self.before, also=NO_PLUGINS)

    def _session(self) -> SessionRun:
        options = self.world.options(
            spec={"tools": ["Agent"]},
            setting_sources=["project", "local"],
            permission_mode="default",
        )
        return self.world.run(options, script(self.names), timeout=180)


KINDS = {
    "texts, trusted": {"linked": False, "trusted": True},
    "texts, untrusted": {"linked": False, "trusted": False},
    "links, trusted": {"linked": True, "trusted": True},
}


@pytest.fixture(scope="module", params=KINDS)
def twice(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, offer: Offer
) -> Twice:
    return Twice(tmp_path_factory.mktemp("planted"), offer, **KINDS[request.param])


def test_no_planted_file_brings_what_is_closed(twice: Twice) -> None:
    assert not twice.leaks, "\n".join(twice.leaks)


def test_no_planted_file_changes_anything(twice: Twice) -> None:
    assert not twice.changes, "\n".join(twice.changes)
    assert not (twice.world.root / "command-ran").exists()


def test_no_plugin_is_installed(twice: Twice) -> None:
    listed = twice.world.home / ".claude" / "plugins" / "installed_plugins.json"
    assert not listed.exists() or json.loads(listed.read_text())["plugins"] == {}


def test_nobody_else_is_told_anything(twice: Twice) -> None:
    assert twice.world.heard == []


def test_no_tool_writes_a_file_with_such_a_name(twice: Twice) -> None:
    for run in twice.runs:
        calls = [call for call in run.calls if call.agent_id is None]
        written = [call for call in calls if call.tool == "Write"]
        assert len(written) == 3 * (len(twice.names) + 1)
        assert [call.input for call in written if not call.is_error] == []


def test_what_is_open_was_seen_in_both_sessions(twice: Twice) -> None:
    for run in twice.runs:
        assert run.unplayed == ()
        assert all(run.saw(canary) for canary in twice.world.open - {"canary(plan)"})
        reads = [call for call in run.calls if call.input.get("file_path") in OPEN_FILES]
        assert {call.agent_id is None for call in reads if call.lock is AnsweredBy.RAN} == {
            True,
            False,
        }


# --- a file that the agent makes where it may ------------------------------------------------


def test_no_file_that_the_agent_may_write_changes_the_next_session(
    world: World, offer: Offer
) -> None:
    """Every name, written into the writable folder: refused, or without any effect later."""
    names = [(name, world.text(text)) for name, text in texts(offer.files)]
    writes = tuple(
        ToolCall("Write", {"file_path": f"drafts/new/{name}", "content": text})
        for name, text in names
    )
    world.run(world.options(), [writes, "Done."], timeout=120)
    world.closed |= {"canary(planted-<folder>)"}
    before = world.snapshot()
    next_one = [
        ToolCall("Write", {"file_path": "drafts/new/a.md", "content": "x"}),
        ToolCall("Read", {"file_path": "drafts/new/a.md"}),
        ToolCall("Glob", {"pattern": "*", "path": "drafts/new"}),
        "Done.",
    ]
    run = world.run(world.options(spec={"tools": ["Agent"]}), next_one)
    assert run.unplayed == ()
    assert not world.leaks(run)
    assert not world.changes(before)
    assert world.heard == []


# --- that it can find ------------------------------------------------------------------------


def test_the_names_are_found_in_the_cli_s_file(offer: Offer) -> None:
    assert {*offer.files} >= {
        "AGENTS.md",
        "CLAUDE.local.md",
        ".worktreeinclude",
        ".claude/loop.md",
        ".claude/scheduled_tasks.json",
        ".claude/agents",
        ".claude/output-styles",
    }


@pytest.mark.parametrize("linked", [False, True])
def test_without_the_kit_planted_files_bring_and_change_what_is_closed(
    linked: bool, world: World, offer: Offer
) -> None:
    """The control."""
    plant(world, offer.files, linked=linked)
    world.closed |= {*PLANTED}
    # With the settings that close nothing: theirs would send the session to their own server.
    for file in world.root.rglob("settings*.json"):
        if not file.is_symlink() and file.parent.name == ".claude":
            content = json.loads(file.read_text())
            file.write_text(json.dumps({**content, "env": {}, "apiKeyHelper": ""}))
    before = world.snapshot()
    options = world.bare(tools=[*TOOLS], setting_sources=["project", "local"])
    run = world.run(options, script(()), timeout=180)
    leaks = world.leaks(run)
    assert leaks >= {"canary(readme)", "canary(outside)", "canary(letter)"}
    changes = world.changes(before)
    assert any("new: home/work/course/closed/made.md" in each for each in changes)
    if not linked:
        assert (world.root / "command-ran").exists()
        assert world.heard
        assert leaks & {*PLANTED}
