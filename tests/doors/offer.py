"""What a CLI offers: its tools with their schemas, its slash commands, its agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import SystemMessage

from agent_kit.policy.approval import PersonsAnswer, approve
from agent_kit.session.tools import COMMAND_TOOLS
from agent_kit.testing import SessionRun
from tests.doors.binary import cli_path, names_in

if TYPE_CHECKING:
    from tests.doors.world import World

__all__ = ["EVERYTHING", "Offer", "find_offer"]

# Switches of the CLI that bring tools which a session doesn't have otherwise (found by setting each
# of its variables, on CLI 2.1.332). A later CLI that doesn't know one of them ignores it.
SWITCHES: Sequence[Mapping[str, str]] = (
    {},
    {
        "CLAUDE_CODE_ATTACHMENTS_BY_PATH": "1",  # SendUserFile
        "CLAUDE_CODE_USE_POWERSHELL_TOOL": "1",  # PowerShell
        "CLAUDE_PROJECT_UUID": "1",  # Projects
    },
    {"CLAUDE_CODE_REMOTE": "1"},  # ReadNotifications, ShowOnboardingRolePicker
    {
        "CLAUDE_CODE_BRIEF": "1",  # SendUserMessage, with attachments
        "CLAUDE_CODE_ENABLE_TASKS": "0",  # TodoWrite in place of the four Task tools
    },
)


def _yes(_asked: object) -> PersonsAnswer:
    return approve()


# What a host has to say before the kit offers every tool. The person approves whatever is asked.
EVERYTHING: Mapping[str, Any] = {
    "ask": _yes,
    "allow_unconfined_commands": True,
    "unlock": ("scheduled_tasks",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """``schemas``: tool to input schema. ``switches``: tool to the variables that bring it."""

    version: str
    schemas: Mapping[str, Mapping[str, Any]]
    switches: Mapping[str, Mapping[str, str]]
    commands: tuple[str, ...]
    agents: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def built_in(self) -> tuple[str, ...]:
        return tuple(name for name in self.schemas if not name.startswith("mcp__"))


def find_offer(world: World) -> Offer:
    """Asks the CLI for every tool whose name it knows, in sessions of the kit.

    The names are those that a session has by itself and those that the CLI's file holds.
    """
    names = names_in(cli_path())
    assert names.is_readable, f"The CLI's file holds its names in another form: {names}"
    first = _init(world.run(world.bare(tools=_PRESET, allowed_tools=["Glob", "Grep"]), ["Hi."]))
    asked = sorted({*first["tools"], *names.tools, *COMMAND_TOOLS})
    schemas: dict[str, Mapping[str, Any]] = {}
    switched: dict[str, Mapping[str, str]] = {}
    commands, agents = set(names.commands), set(first["agents"])
    for switches in SWITCHES:
        run = world.run(world.options(spec={"tools": asked}, env=switches, **EVERYTHING), ["Hi."])
        init = _init(run)
        commands |= {*init["slash_commands"], *init.get("terminal_slash_commands", ())}
        agents |= set(init["agents"])
        for name, schema in _schemas(run):
            schemas.setdefault(name, schema)
            switched.setdefault(name, switches)
        _assert_complete(init["tools"], schemas)
    return Offer(
        version=first["claude_code_version"],
        schemas=schemas,
        switches=switched,
        commands=tuple(sorted(commands | set(first["slash_commands"]))),
        agents=tuple(sorted(agents)),
        files=names.files,
    )


_PRESET: Any = {"type": "preset", "preset": "claude_code"}
_OTHER_NAMES = {"Task": "Agent"}  # what the list of tools calls one, and what the model does


def _init(run: SessionRun) -> Mapping[str, Any]:
    return next(
        message.data
        for message in run.messages
        if isinstance(message, SystemMessage) and message.subtype == "init"
    )


def _schemas(run: SessionRun) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for request in run.requests:
        for tool in request.body.get("tools") or ():
            yield tool["name"], tool.get("input_schema") or {}


def _assert_complete(tools: Iterable[str], schemas: Mapping[str, object]) -> None:
    missing = {_OTHER_NAMES.get(name, name) for name in tools} - {*schemas}
    assert not missing, f"Tools whose schema didn't come with the request: {sorted(missing)}"
