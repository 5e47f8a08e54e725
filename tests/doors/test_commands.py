"""Every slash command that the CLI has, typed into a prompt, bare and with what is closed.

The commands are those that a session lists and those that the CLI's file names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_kit.testing import AnsweredBy, SessionRun
from tests.doors.values import MENTIONS

if TYPE_CHECKING:
    from tests.doors.offer import Offer
    from tests.doors.world import World

pytestmark = pytest.mark.e2e

ARGUMENTS = ("", "<course>/README.md", "<out>/new.md", MENTIONS, '"@<out>/secret.txt"', "a=b")
# Each of these ends a session, or the conversation that shows what it learned.
LAST = ("clear", "compact", "exit", "logout", "restart", "resume", "rewind")


def prompts(world: World, commands: tuple[str, ...]) -> list[str]:
    ordered = sorted(commands, key=lambda command: (command in LAST, command))
    return [
        f"/{command} {world.text(arguments)}".rstrip()
        for command in ordered
        for arguments in ARGUMENTS
    ]


def run(world: World, options: Any, asked: list[str]) -> SessionRun:
    return world.run(options, lambda _turn: None, prompt=asked, timeout=300)


def own_commands(offer: Offer) -> tuple[str, ...]:
    """Those of the CLI itself: an extension's are in the session's list."""
    return tuple(name for name in offer.commands if ":" not in name)


@pytest.mark.parametrize("permission_mode", ["default", "bypassPermissions"])
def test_no_slash_command_opens_or_changes_what_is_closed(
    permission_mode: str, world: World, offer: Offer
) -> None:
    before = world.snapshot()
    options = world.options(permission_mode=permission_mode)
    asked = prompts(world, offer.commands)
    result = run(world, options, asked)
    assert len(result.prompts) == len(asked)
    assert not world.leaks(result)
    assert not world.changes(before)


def test_every_command_of_the_cli_s_own_is_stopped(world: World, offer: Offer) -> None:
    asked = [f"/{command}" for command in own_commands(offer)]
    result = run(world, world.options(), asked)
    let = [each.prompt for each in result.prompts if each.lock is not AnsweredBy.PROMPT_GATE]
    assert let == []


def test_what_is_no_command_is_not_stopped(world: World) -> None:
    """A session that stops everything would pass, too."""
    result = run(world, world.options(), ["Hello.", "Is this and/or that?", "/memory:list"])
    assert [each.lock for each in result.prompts] == [AnsweredBy.RAN] * 3


# --- that it can find ------------------------------------------------------------------------


def test_the_known_commands_are_found(offer: Offer) -> None:
    assert {*offer.commands} >= {"init", "insights", "heapdump", "config", "add-dir", "compact"}
    assert len(own_commands(offer)) > 80


def test_without_the_kit_commands_bring_and_change_what_is_closed(world: World) -> None:
    """The control."""
    before = world.snapshot()
    some = prompts(world, ("config", "insights", "unknown-to-the-cli"))
    asked = [*some, "/config theme=light", "/heapdump"]
    result = run(world, world.bare(), asked)
    assert {"canary(readme)", "canary(outside)", "canary(transcript)"} <= world.leaks(result)
    changed = world.changes(before)
    assert any("new: home/" in each and "heapsnapshot" in each for each in changed)
    assert any("changed: home/.claude/settings.json" in each for each in changed)
