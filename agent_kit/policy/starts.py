"""Skills that start an agent when they are called, and what closes that.

A skill or command whose front matter says so runs in an agent of its own, without a call of the Agent
tool (measured on CLI 2.1.332). Here such a call counts as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agent_kit.scope.text import JS_SPACE

__all__ = ["DEFAULT_AGENT", "Forks", "canonical_name"]

DEFAULT_AGENT: Final = (
    "general-purpose"  # what the CLI starts when no type is named, or an unknown one
)


def canonical_name(name: str) -> str:
    """A skill's name as the CLI looks it up: without white space around it and one slash before it.

    >>> canonical_name(" /plugin:skill ")
    'plugin:skill'
    """
    return name.strip(JS_SPACE).removeprefix("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forks:
    """``by_skill`` maps every name of a skill that starts an agent to the types that it may be; ``None``
    among them stands for any.

    ``off`` says that no agent may be started by a tool, ``closed`` are types that may not be, ``only``
    those that alone may be (``None``: all).
    """

    by_skill: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    off: bool = False
    closed: frozenset[str] = frozenset()
    only: frozenset[str] | None = None

    def started_by(self, tool: str, tool_input: Mapping[str, Any]) -> tuple[str | None, ...]:
        """The types of agent that this call may start; none: it starts none."""
        name = tool_input.get("skill") if tool == "Skill" else None
        return self.by_skill.get(canonical_name(name), ()) if isinstance(name, str) else ()

    def closed_by(self, agent: str | None, startable: frozenset[str] | None) -> str | None:
        """The name of what closes a type to skills, or ``None``. ``startable`` as in the policy."""
        if self.off or agent in self.closed or (agent is None and self.closed):
            return "AgentSpec.disallowed_tools"
        if self.only is not None and agent not in self.only:
            return "AgentSpec.tools"
        if startable is not None and agent not in startable:
            return "SessionConfig.allowed_subagents"
        return None
