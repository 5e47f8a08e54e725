"""Which tools a session has: exactly what its folders, extensions and subagents need."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.session.extensions import Active
from agent_kit.session.folders import Folders
from agent_kit.session.spec import AgentSpec
from agent_kit.session.tool_names import COMMAND_TOOLS, KNOWN_TOOLS, bare

__all__ = [
    "COMMAND_TOOLS",
    "KNOWN_TOOLS",
    "Tools",
    "can_run_commands",
    "choose_tools",
    "commands_in",
    "narrowed_tools",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """``names`` exist at all. ``allowed`` run unasked as a whole; ``rules`` narrow others.

    File tools are in neither: their folders are named by the rules of the scope. ``disallowed`` are
    not there at all, ``denied`` are rules that close a part of a tool.
    """

    names: tuple[str, ...]
    allowed: tuple[str, ...]
    rules: tuple[str, ...]
    disallowed: tuple[str, ...]
    denied: tuple[str, ...]


def choose_tools(
    spec: AgentSpec, folders: Folders, active: Active, skills: Collection[str]
) -> Tools:
    implied = [
        ("Read", bool(folders.searchable or folders.plugins)),
        ("Glob", bool(folders.searchable)),
        ("Grep", bool(folders.searchable)),
        ("Write", bool(folders.writable)),
        ("Edit", bool(folders.writable)),
        ("Skill", bool(skills)),
        ("Agent", bool(spec.subagents)),
    ]
    wanted = [name for name, needed in implied if needed]
    wanted += [tool for contribution in active.contributions for tool in contribution.file_tools]
    wanted += _named(spec)
    names = [name for name in dict.fromkeys(map(bare, wanted)) if name not in spec.disallowed_tools]
    rest = [tool for tool in dict.fromkeys(wanted) if bare(tool) not in FILE_TOOLS]
    narrowed = {bare(tool) for tool in rest if "(" in tool}
    return Tools(
        names=tuple(name for name in names if not name.startswith("mcp__")),
        # Skill is allowed by the names in the options' "skills".
        allowed=tuple(t for t in rest if "(" not in t and t not in narrowed and t != "Skill"),
        rules=tuple(tool for tool in rest if "(" in tool),
        disallowed=tuple(tool for tool in spec.disallowed_tools if "(" not in tool),
        # In the CLI's list of disallowed tools a comma would end a rule.
        denied=tuple(tool for tool in spec.disallowed_tools if "(" in tool),
    )


def narrowed_tools(spec: AgentSpec) -> frozenset[str]:
    """The tools that the session opens in part only."""
    return frozenset(bare(tool) for tool in _named(spec) if "(" in tool)


def _named(spec: AgentSpec) -> list[str]:
    agents = (agent.tools or () for agent in spec.subagents.values())
    return [*spec.tools, *(t for tools in agents for t in tools if not t.startswith("mcp__"))]


def commands_in(tools: Tools) -> tuple[str, ...]:
    """The tools of the session, in the main thread or a subagent, that can run commands."""
    return tuple(filter(can_run_commands, tools.names))


def can_run_commands(name: str) -> bool:
    """Whether a built-in tool can run commands.

    Of one that this version of the kit doesn't know nobody can tell: it counts as one.
    """
    return name in COMMAND_TOOLS or name not in KNOWN_TOOLS
