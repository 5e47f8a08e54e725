"""Every tool that the CLI offers, every string field of it, every way to name what is closed.

The tools and their fields come from the CLI, so a later one brings its own into these tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agent_kit.scope.tools import FILE_TOOLS, NAMED_FIELD_TOOLS, NO_PATH_TOOLS
from agent_kit.sdk.doors import NO_FILE_TOOLS
from agent_kit.session.tools import COMMAND_TOOLS
from agent_kit.testing import AnsweredBy, SessionRun
from tests.doors.calls import COMMAND_FIELDS, NOT_CALLED, Played, calls_of
from tests.doors.fields import string_fields
from tests.doors.offer import EVERYTHING, Offer
from tests.doors.world import Kept, World

pytestmark = pytest.mark.e2e

PARTS = 4

# The tools of extensions write their own folders and show what is in them.
STORES = ("knowledge", "memory")
STORE_FILES = tuple(
    Kept(f"home/work/course/{name}*", "an extension's own folder", old=True)
    for name in (*STORES, "sources")
)


@dataclass(frozen=True, slots=True)
class Tried:
    run: SessionRun
    leaks: set[str]
    changes: list[str]

    def findings(self, tool: str) -> list[str]:
        """A line for each door that is open, with the answers that brought a canary."""
        brought = [
            f"  {call.input} -> {(call.result or '')[:200]}"
            for call in self.run.calls
            if any(leak in (call.result or "") for leak in self.leaks)
        ]
        unanswered = [call.input for call in self.run.calls if call.result is None]
        found = [f"{tool} brought {sorted(self.leaks)}", *brought[:5]] if self.leaks else []
        found += [f"{tool}: {change}" for change in self.changes]
        return found + [f"{tool} had no answer to {each}" for each in unanswered[:5]]


def try_tools(
    world: World, offer: Offer, tools: Sequence[str], options: Any, *, but: Sequence[str] = ()
) -> Tried:
    """Every call of some tools, in the main conversation and, the chief ones, in a subagent.

    ``but``: stores of extensions, which their own tools read and write.
    """
    before = world.snapshot()
    calls = [call for tool in tools for call in calls_of(world, offer, tool)]
    inside = [call for tool in tools for call in calls_of(world, offer, tool, short=True)]
    run = world.run(options, Played(calls, inside), timeout=180)
    also = STORE_FILES if but else ()
    return Tried(run, world.leaks(run, but=but), world.changes(before, also=also))


def of_the_kit(world: World, offer: Offer, tool: str) -> Any:
    return world.options(spec={"tools": offer.built_in}, env=offer.switches[tool], **EVERYTHING)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_field_of_a_built_in_tool_opens_or_changes_what_is_closed(
    part: int, world: World, offer: Offer
) -> None:
    """Each part has every fourth tool: the tools aren't known before the CLI was asked."""
    findings = []
    for tool in sorted({*offer.built_in} - {*NOT_CALLED})[part::PARTS]:
        tried = try_tools(world, offer, [tool], of_the_kit(world, offer, tool))
        findings += tried.findings(tool)
    assert not findings, "\n".join(findings)


def test_no_field_of_an_extension_s_tool_opens_or_changes_what_is_closed(
    world: World, offer: Offer
) -> None:
    tools = sorted({*offer.schemas} - {*offer.built_in})
    assert len(tools) >= 10
    tried = try_tools(world, offer, tools, of_the_kit(world, offer, "Read"), but=STORES)
    assert not tried.findings("an extension"), "\n".join(tried.findings("an extension"))


# --- what the kit knows ----------------------------------------------------------------------


def test_every_tool_is_in_the_kit_s_tables(offer: Offer) -> None:
    known = {*FILE_TOOLS, *NAMED_FIELD_TOOLS, *NO_PATH_TOOLS, *COMMAND_TOOLS, *NO_FILE_TOOLS}
    unknown = {*offer.built_in} - known
    assert not unknown, (
        f"CLI {offer.version} offers tools that the kit doesn't know: {sorted(unknown)}. Look at"
        " each one's schema: does a field name a file or a folder (FILE_TOOLS in"
        " agent_kit/scope/tools.py), does it run commands (COMMAND_TOOLS in"
        " agent_kit/session/tools.py, and COMMAND_FIELDS in tests/doors/calls.py), does it bring or"
        " copy files some other way (DOORS in agent_kit/sdk/doors.py)? If none of it: NO_PATH_TOOLS."
        " NAMED_FIELD_TOOLS are judged by the names of their fields."
    )


def test_every_command_tool_has_its_command_fields_named(offer: Offer) -> None:
    offered = {*offer.built_in} & {*COMMAND_TOOLS} - {*NOT_CALLED}
    offered -= {tool for tool in offered if tool.startswith("self_hosted_runner_")}  # no field
    assert offered <= {*COMMAND_FIELDS}, (
        f"Tools that run commands: {sorted(offered - {*COMMAND_FIELDS})}. Name the fields that hold"
        " them in COMMAND_FIELDS of tests/doors/calls.py."
    )
    for tool in offered:
        assert {*COMMAND_FIELDS[tool]} <= {*offer.schemas[tool]["properties"]}


# --- that it can find ------------------------------------------------------------------------


def test_the_usual_tools_are_offered_and_their_fields_are_found(offer: Offer) -> None:
    assert {*offer.built_in} >= {
        *("Agent", "Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "Skill", "Write"),
        *("CronCreate", "EnterWorktree", "Monitor", "SendMessage", "WebFetch", "WebSearch"),
    }
    fields = {tool: set(string_fields(schema)) for tool, schema in offer.schemas.items()}
    assert fields["Read"] >= {("file_path",)}
    assert fields["Grep"] >= {("pattern",), ("path",), ("glob",)}
    assert fields["Skill"] == {("skill",), ("args",)}
    assert fields["Monitor"] >= {("command",), ("ws", "url"), ("ws", "protocols", 0)}
    assert fields["ReportFindings"] >= {("findings", 0, "file")}


@pytest.mark.parametrize(
    ("tool", "brought"),
    [
        ("Read", {"readme", "letter", "outside", "home", "ssh", "transcript", "knowledge"}),
        ("Grep", {"readme", "outside", "outfolder"}),
        ("Glob", {"privatename", "outname"}),
        ("Skill", {"readme", "outside"}),
    ],
)
def test_without_the_kit_a_tool_brings_what_is_closed(
    tool: str, brought: set[str], world: World, offer: Offer
) -> None:
    """The control."""
    options = world.bare(tools=[*offer.built_in], env=offer.switches[tool])
    tried = try_tools(world, offer, [tool], options)
    assert tried.leaks >= {f"canary({name})" for name in brought}
    assert tried.findings(tool)


@pytest.mark.parametrize(
    ("tool", "changed"),
    [
        ("Write", {"changed: home/work/course/README.md", "new: out/new.md"}),
        ("EnterWorktree", {"new: home/work/course/.claude/worktrees"}),
    ],
)
def test_without_the_kit_a_tool_changes_what_is_closed(
    tool: str, changed: set[str], world: World, offer: Offer
) -> None:
    """The control."""
    options = world.bare(tools=[*offer.built_in], env=offer.switches[tool])
    changes = try_tools(world, offer, [tool], options).changes
    assert changed <= {":".join(change.split(":")[:2]) for change in changes}


def test_without_the_gate_a_tool_of_the_kit_s_session_brings_what_is_closed(
    world: World, offer: Offer
) -> None:
    """The control: the rules alone close what is denied, not what is merely in no folder."""
    options = replace(of_the_kit(world, offer, "Read"), hooks={})
    leaks = try_tools(world, offer, ["Read"], options).leaks
    assert {"canary(readme)", "canary(outside)"} <= leaks
    assert "canary(letter)" not in leaks


def test_what_is_open_can_be_read_and_written_beside_all_this(world: World, offer: Offer) -> None:
    """A session in which nothing works would leak nothing."""
    script = Played(calls_of(world, offer, "Write"), calls_of(world, offer, "Read", short=True))
    run = world.run(of_the_kit(world, offer, "Write"), script)
    written = [
        call.input["content"]
        for call in run.calls
        if call.lock is AnsweredBy.RAN and call.tool == "Write"
    ]
    assert "README.md" in written
    assert run.saw("canary(news)")
