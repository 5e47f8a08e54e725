"""Which of the four locks a session has, and why it has not the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from agent_kit.confine.backend import ConfinementUnavailableError
from agent_kit.confine.choice import Choice
from agent_kit.session.config import SessionConfig, of_a_confinement
from agent_kit.session.tool_names import is_unknown
from agent_kit.session.tools import Tools, commands_in

__all__ = ["Lock", "named", "plan_locks", "unheld_notes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """Whether a lock is on, and why it is or isn't."""

    on: bool
    reason: str


def plan_locks(config: SessionConfig, tools: Tools, choice: Choice) -> dict[str, Lock]:
    """The locks by name.

    Raises ConfinementUnavailableError for commands that nothing confines, and for fields that ask
    something of a confinement that ``"auto"`` can't have here.
    """
    commands = commands_in(tools)
    held = choice.backend is not None or config.confinement == "external"
    if commands and not held and not config.allow_unconfined_commands:
        raise ConfinementUnavailableError(
            f"{', '.join(map(named, commands))} can run commands, and nothing confines them:"
            f" {choice.reason} {_CONFINE[config.confinement == 'off']}, take the tool out, or set"
            " allow_unconfined_commands=True knowingly."
        )
    if config.confinement == "auto" and choice.backend is None:
        _judge_wishes(config, choice.reason)
    return {
        "gate": Lock(on=True, reason="a PreToolUse hook judges every file tool call."),
        "rules": Lock(on=True, reason="the CLI's own rules say the same once more."),
        "prompts": _PROMPT_LOCKS[config.prompt_mentions],
        "kernel": Lock(on=choice.backend is not None, reason=choice.reason),
    }


def unheld_notes(config: SessionConfig, locks: Mapping[str, Lock]) -> Iterator[str]:
    """What ``"auto"`` does without: the other lock that may be off was switched off by name."""
    if config.confinement == "auto" and not locks["kernel"].on:
        yield f"lock 4, the kernel, is off: {locks['kernel'].reason}"


def _judge_wishes(config: SessionConfig, reason: str) -> None:
    if names := of_a_confinement(config):
        raise ConfinementUnavailableError(
            f"{', '.join(names)} can't be had: {reason} Do what is said there (agent-kit doctor says"
            f" it, too), or leave {'it' if len(names) == 1 else 'them'} out."
        )


_CONFINE: Final = {
    True: "Set confinement='auto' (agent-kit doctor says what works here)",
    False: "Do what is said there (agent-kit doctor says it, too), set confinement='external' if a"
    " container around the host is the boundary",
}


def named(tool: str) -> str:
    """A tool as the sentence names it."""
    return (
        f"{tool} (a tool that this version of the kit doesn't know)" if is_unknown(tool) else tool
    )


_PROMPT_LOCKS: Final[Mapping[str, Lock]] = {
    "scope": Lock(on=True, reason="prompts with closed files or foreign commands are blocked."),
    "off": Lock(on=True, reason="prompts are taken as they are: nothing is expanded or run."),
    "any": Lock(
        on=False,
        reason="prompt_mentions='any' lets every mention through; foreign commands are blocked.",
    ),
}
