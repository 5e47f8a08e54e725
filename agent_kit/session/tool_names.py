"""The built-in tools that this version of the kit knows, and what a misspelt name was meant for."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Final

from agent_kit.scope.tools import FILE_TOOLS, NAMED_FIELD_TOOLS, NO_PATH_TOOLS

__all__ = ["COMMAND_TOOLS", "KNOWN_TOOLS", "bare", "is_unknown", "meant", "said_as"]

# Tools that run commands (CLI 2.1.332), and their aliases.
COMMAND_TOOLS: Final = frozenset(
    {
        "Bash",
        "Monitor",
        "PowerShell",
        "RunWorkflow",
        "Shell",
        "Workflow",
        # Not offered unless named. One of them starts processes that outlive the session, another
        # reads whatever file it is told to.
        *(
            f"self_hosted_runner_{what}"
            for what in (
                "get_pool",
                "list_runners",
                "list_secrets",
                "list_sessions",
                "read_health",
                "read_metrics",
                "requeue_session",
                "spawn_local",
                "tail_log",
            )
        ),
    }
)

KNOWN_TOOLS: Final = FILE_TOOLS.keys() | NO_PATH_TOOLS | NAMED_FIELD_TOOLS | {"EnterWorktree"}

# Other names of a tool (CLI 2.1.332). The CLI takes them, and says its own to hooks.
_ALIASES: Final[Mapping[str, str]] = {
    "Brief": "SendUserMessage",
    "KillBash": "TaskStop",
    "KillShell": "TaskStop",
    "ListMcpResources": "ListMcpResourcesTool",
    "ListPeers": "ListAgents",
    "ProposeGoal": "SetGoal",
    "ReadMcpResource": "ReadMcpResourceTool",
    "ReadMcpResourceDir": "ReadMcpResourceDirTool",
    "RunWorkflow": "Workflow",
    "Task": "Agent",
}

_ALL: Final = KNOWN_TOOLS | COMMAND_TOOLS
_FOLDED: Final = {name.casefold(): name for name in sorted(_ALL)}
_LONG: Final = 7  # letters
# About one wrong letter. Less alike, and tools that a later CLI may have would pass for misspelt
# ones: TeamCreate resembles TaskCreate by 0.8.
_ALIKE: Final = {False: 0.75, True: 0.85}
_SHORTEST: Final = 4  # letters of a name that is meant: LSP is no misspelt LS


def bare(tool: str) -> str:
    """The name in front of a rule that narrows."""
    return tool.partition("(")[0]


def said_as(tool: str) -> str:
    """The name by which the CLI says a call of this tool.

    >>> said_as("Task"), said_as("Read")
    ('Agent', 'Read')
    """
    return _ALIASES.get(tool, tool)


def is_unknown(tool: str) -> bool:
    """Whether this version of the kit knows no built-in tool of this name."""
    return bare(tool) not in _ALL and not tool.startswith("mcp__")


@cache
def meant(tool: str) -> str | None:
    """The tool that an unknown name is close to; ``None`` for one that resembles nothing.

    >>> [meant(name) for name in ("bash", "WebFetsh(domain:a.example)", "TeamCreate", "Bash")]
    ['Bash', 'WebFetch', None, None]
    """
    if not is_unknown(tool):
        return None
    name = bare(tool).casefold()
    if (same := _FOLDED.get(name)) is not None:
        return same
    close = get_close_matches(
        name,
        [each for each in _FOLDED if _is_candidate(each, name)],
        n=1,
        cutoff=_ALIKE[len(name) >= _LONG],
    )
    return _FOLDED[close[0]] if close else None


def _is_candidate(known: str, name: str) -> bool:
    """Without this a REPL would be a misspelt Grep, and a Delete a CronDelete."""
    return len(known) >= _SHORTEST and known[0] == name[0] and abs(len(known) - len(name)) <= 1
