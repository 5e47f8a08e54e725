"""Variables of the CLI that would open a lock, wherever they come from (measured on CLI 2.1.332).

All of the CLI's variables were tried, each with the value "1": two let a closed file out. The third
keeps a project from submitting prompts, and the fourth other programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from agent_kit.scope import Fault
from agent_kit.session.config import SessionConfig
from agent_kit.session.isolation import PEER_MESSAGES, SCHEDULED_TASKS
from agent_kit.session.spec import AgentSpec

__all__ = ["FIXED", "Fixed", "fixed_env", "fixed_faults"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A variable and the kit's value.

    ``mentions``: only where the prompt gate judges mentions. ``unlock``: the name in
    ``SessionConfig.unlock`` that leaves it out.
    """

    name: str
    value: str
    mentions: bool = False
    unlock: str | None = None
    without: str


FIXED: Final = (
    Fixed(
        name="CLAUDE_CODE_SIMPLE",
        value="",  # not set
        without="the CLI starts without any hook: neither the gate nor the prompt gate is asked",
    ),
    Fixed(
        name="CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS",
        value="300000",  # more than there are characters in the largest file that it reads
        mentions=True,
        without="a mentioned file that may be longer than this is sent to the model's endpoint to"
        " be counted, before the prompt gate is asked",
    ),
    Fixed(
        name="CLAUDE_CODE_DISABLE_CRON",
        value="1",
        unlock=SCHEDULED_TASKS,
        without="what the project's .claude/scheduled_tasks.json holds comes as the person's prompt,"
        " whatever the setting sources and the tools",
    ),
    Fixed(
        name="CLAUDE_CODE_HARBOR_KITE",
        value="0",  # set and not true: no inbox is opened, and what comes to one is refused
        unlock=PEER_MESSAGES,
        without="commands of the session, and any program of the same user, submit prompts through"
        " the socket of the CLI's inbox, and the hooks take them for the person's",
    ),
)
_SCHEDULERS: Final = ("CronCreate", "CronDelete", "CronList", "ScheduleWakeup")


def fixed_env(config: SessionConfig) -> dict[str, str]:
    """The kit's values for a session."""
    return {row.name: row.value for row in _rows(config)}


def fixed_faults(spec: AgentSpec, config: SessionConfig) -> Iterator[Fault]:
    """The variables that are the kit's, and the tools that one of them takes away."""
    for tool in spec.tools:
        if tool in _SCHEDULERS and SCHEDULED_TASKS not in config.unlock:
            remedy = (
                f"the agent would submit prompts to itself: add {SCHEDULED_TASKS!r} to"
                " SessionConfig.unlock to let it, and what the project has scheduled."
            )
            yield Fault(field="tools", value=tool, remedy=remedy)
    for field, env in _given(spec, config).items():
        for row in _rows(config):
            if (given := env.get(row.name, row.value)) != row.value:
                remedy = f"take it out: with another value than the kit's, {row.without}."
                yield Fault(field=field, value={row.name: given}, remedy=remedy)


def _given(spec: AgentSpec, config: SessionConfig) -> dict[str, Mapping[str, str]]:
    given = {"options['settings']": spec.options.get("settings"), "settings": config.settings}
    found = {
        f"{field}['env']": settings["env"]
        for field, settings in given.items()
        if isinstance(settings, Mapping) and isinstance(settings.get("env"), Mapping)
    }
    return {"env": config.env, **found}


def _rows(config: SessionConfig) -> list[Fixed]:
    return [
        row
        for row in FIXED
        if (not row.mentions or config.prompt_mentions == "scope")
        and row.unlock not in config.unlock
    ]
