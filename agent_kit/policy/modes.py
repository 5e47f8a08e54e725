"""How much a session may do by itself, and what each tool changes."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from agent_kit.scope.errors import ConfigError, Fault
from agent_kit.scope.tools import FILE_TOOLS

__all__ = [
    "ANSWERED",
    "READ_ONLY_TOOLS",
    "STARTS_AGENTS",
    "Mode",
    "SessionMode",
    "stays_narrow",
]


class Mode(StrEnum):
    """Who decides. The scope and the rules hold in each of them."""

    GUIDED = "guided"  # the agent works, and a rule that interrupts asks a person
    INTERACTIVE = "interactive"  # each call that changes something asks first
    PLAN = "plan"  # nothing is changed
    AUTONOMOUS = "autonomous"  # nobody is there: whatever would ask is denied


# Built-in tools that change nothing that outlasts the session (CLI 2.1.332). What an agent does, and
# what a skill leads to, is judged call by call.
READ_ONLY_TOOLS: Final = frozenset(
    {
        "Agent",  # but for one in a copy of the repository
        "AskUserQuestion",
        "BashOutput",  # what a command that was allowed has said since
        "CronList",
        "EnterPlanMode",
        "ExitPlanMode",
        "Glob",
        "Grep",
        "LS",
        "ListAgents",
        "NotebookRead",
        "Read",
        "ReadNotifications",
        "ReportFindings",
        "SendMessage",  # to an agent of this session
        "Skill",
        "Task",
        "TaskCreate",
        "TaskGet",
        "TaskList",
        "TaskOutput",
        "TaskStop",
        "TaskUpdate",
        "TodoWrite",
        "ToolSearch",
        "WebFetch",  # asks a server: a way out, but no change
        "WebSearch",
    }
)


# What only a person can answer: the CLI asks the host for each call, whatever its rules allow.
ANSWERED: Final = frozenset({"AskUserQuestion", "ExitPlanMode"})
STARTS_AGENTS: Final = frozenset({"Agent", "Task"})
# The built-in tools of an agent with a narrower scope, beside file tools, which the gate judges by it.
# Any other may have somebody else do what this agent may not: another agent, a command, a later session.
_STAYS_NARROW: Final = frozenset(
    {
        "BashOutput",  # it reads what a command has said
        "CronList",
        "ListAgents",
        "ReadNotifications",
        "ReportFindings",
        "TaskCreate",  # an entry of the task list
        "TaskGet",
        "TaskList",
        "TaskOutput",
        "TaskUpdate",
        "TodoWrite",
        "ToolSearch",
        "WebFetch",
        "WebSearch",
    }
)


def stays_narrow(tool: str) -> bool:
    """Whether an agent with a narrower scope may call a tool: file tools, and those that only read or
    keep its task list. MCP tools are judged by themselves.

    >>> [stays_narrow(tool) for tool in ("Write", "mcp__mail__send", "SendMessage", "Skill")]
    [True, True, False, False]
    """
    return tool in FILE_TOOLS or tool in _STAYS_NARROW or tool.startswith("mcp__")


class SessionMode:
    """The mode of a running session, which may be switched; the next call is judged by the new one.

    >>> mode = SessionMode("guided")
    >>> mode.set("plan")
    >>> str(mode.current)
    'plan'
    """

    __slots__ = ("_current", "_told")

    def __init__(self, mode: str, told: Callable[[Mode, Mode], None] | None = None) -> None:
        self._current = Mode(mode)
        self._told = told

    def __str__(self) -> str:
        return str(self._current)

    def __repr__(self) -> str:
        return f"SessionMode({str(self)!r})"

    @property
    def current(self) -> Mode:
        return self._current

    def set(self, mode: str) -> None:
        """Switch. Raises ConfigError for a mode that there is not."""
        if not isinstance(mode, str) or mode not in tuple(Mode):
            remedy = f"choose from {', '.join(map(repr, map(str, Mode)))}."
            raise ConfigError([Fault(field="mode", value=mode, remedy=remedy)])
        before, self._current = self._current, Mode(mode)
        if self._told is not None:
            self._told(before, self._current)
