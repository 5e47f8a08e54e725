"""The calls of one tool, and a session that makes them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_kit.testing import ToolCall, Turn
from tests.doors.fields import inputs
from tests.doors.values import MENTIONS, chief, values

if TYPE_CHECKING:
    from tests.doors.offer import Offer
    from tests.doors.world import World

__all__ = ["COMMAND_FIELDS", "NOT_CALLED", "Played", "calls_of"]

AT_ONCE = 40  # calls in one answer of the model

# Commands are the business of the lock that confines them: a field that holds one gets the values
# as a comment of its language. The other fields of these tools are tried like everybody's.
COMMAND_FIELDS: Mapping[str, Mapping[str, str]] = {
    "Bash": {"command": "# {}"},  # a shell's line
    "Monitor": {"command": "# {}"},  # the same
    "PowerShell": {"command": "# {}"},  # the same, on Windows
    "Workflow": {  # a program that starts agents
        "script": "export const meta = {{name: 'a', description: 'b', phases: []}}\n/* {} */"
    },
}

# Not called at all.
NOT_CALLED: Mapping[str, str] = {
    "self_hosted_runner_spawn_local": "it starts a process that goes on when the session is over",
}

# Not filled. Like what a command does, it is the business of the lock that confines them.
NOT_FILLED: Mapping[tuple[str, str], str] = {
    ("Workflow", "scriptPath"): "the CLI reads the file, and quotes it, before any hook is asked",
}

# What a field must hold so that the rest of a call is looked at.
PLAUSIBLE: Mapping[str, Any] = {
    "command": "true",
    "content": "x",
    "cron": "59 23 31 12 *",
    "delaySeconds": 3600,
    "file_path": "<course>/drafts/news.md",
    "new_string": "exam, exam",
    "notebook_path": "<course>/drafts/plan.ipynb",
    "old_string": "exam",
    "output_mode": "content",
    "pattern": "canary|old",
    "prompt": "Say that you are done.",
    "skill": "sources:cite",
    "to": "main",
    "url": "<url>/page",
}
ALWAYS: Mapping[str, Mapping[str, Any]] = {
    "Agent": {"run_in_background": False},  # what it learns comes back before the session ends
    "Grep": {"output_mode": "content"},
}


def calls_of(world: World, offer: Offer, tool: str, *, short: bool = False) -> list[ToolCall]:
    """Every call to make of ``tool``; with ``short`` the chief values alone."""
    texts = chief(world) if short else values(world)
    plausible = {
        name: world.text(value) if isinstance(value, str) else value
        for name, value in PLAUSIBLE.items()
    }
    made = inputs(
        offer.schemas[tool],
        texts,
        () if short else chief(world),
        plausible,
        ALWAYS.get(tool, {}),
    )
    found = [*made, *_by_name(world, offer, tool)]
    return [ToolCall(tool, _without_commands(tool, each, plausible)) for each in found]


class Played:
    """A script: the calls, many at once, those ``inside`` by a subagent, then "Done.".

    The CLI has questions of its own to the model, without the session's tools: a search, a summary
    of a page. They get a plain answer and are no turn of the script.
    """

    def __init__(self, calls: Sequence[ToolCall], inside: Sequence[ToolCall] = ()) -> None:
        self._tools = {call.name for call in (*FIRST, *calls)}
        self._steps: list[Any] = [FIRST, *_batches(calls)]
        if inside:
            script = Played((*FIRST, *inside)).inside
            self._steps.append(ToolCall("Agent", INSIDE, script=script))

    def __call__(self, turn: Turn) -> Any:
        return self._next(turn) if turn.agent is None else None

    def inside(self, turn: Turn) -> Any:
        """The same for a subagent."""
        return self._next(turn)

    def _next(self, turn: Turn) -> Any:
        offered = {tool.get("name") for tool in turn.body.get("tools") or ()}
        if not self._tools & offered:
            return "Nothing found."
        return self._steps.pop(0) if self._steps else None


INSIDE = {
    "description": "d",
    "prompt": "Try it from inside.",
    "subagent_type": "general-purpose",
    "run_in_background": False,
}
# What must have been read before it may be edited.
FIRST = (
    ToolCall("Read", {"file_path": "drafts/news.md"}),
    ToolCall("Read", {"file_path": "drafts/plan.ipynb"}),
)


def _batches(calls: Sequence[ToolCall]) -> Iterator[tuple[ToolCall, ...]]:
    return (tuple(calls[at : at + AT_ONCE]) for at in range(0, len(calls), AT_ONCE))


def _by_name(world: World, offer: Offer, tool: str) -> Iterator[dict[str, Any]]:
    """Calls of what has a name: each slash command as a skill, each kind of agent."""
    mention = world.text(MENTIONS)
    if tool == "Skill":
        for command in offer.commands:
            yield {"skill": command}
            yield {"skill": command, "args": mention}
    if tool == "Agent":
        for agent in offer.agents:
            yield {"description": "d", "prompt": mention, "subagent_type": agent}


def _without_commands(
    tool: str, tool_input: dict[str, Any], plausible: Mapping[str, Any]
) -> dict[str, Any]:
    made = dict(tool_input)
    for owner, field in NOT_FILLED:
        if owner == tool:
            made.pop(field, None)
    for field, form in COMMAND_FIELDS.get(tool, {}).items():
        if field in made and made[field] != plausible.get(field):
            made[field] = form.format(made[field])
    return made
