"""Which of a session's skills start an agent, and to which types the session closes that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from agent_kit.policy.modes import STARTS_AGENTS
from agent_kit.policy.starts import DEFAULT_AGENT, Forks
from agent_kit.sdk.commands import Commands
from agent_kit.session.builtin_commands import RUN_IN_PLACE
from agent_kit.session.spec import AgentSpec
from agent_kit.session.tools import Tools

__all__ = ["forks_of"]

# Types that every session has, beside its spec's. In the place of one that there is not the CLI starts
# DEFAULT_AGENT (measured on CLI 2.1.332), and a project's may be gone by then.
_ALWAYS: Final = frozenset({DEFAULT_AGENT, "Explore", "Plan"})


def forks_of(spec: AgentSpec, commands: Commands, tools: Tools, disallowed: Sequence[str]) -> Forks:
    """The skills of ``commands`` that start an agent. Of a bundled one nobody can tell which type.

    ``disallowed`` are tools, and rules that close a part of one.
    """
    sure = _ALWAYS | spec.subagents.keys()
    by_skill: dict[str, tuple[str | None, ...]] = {
        name: (None,) for name in commands.builtin if name not in RUN_IN_PLACE
    }
    for name, kinds in commands.forks.items():
        unsure = any(kind is not None and kind not in sure for kind in kinds)
        found = (*kinds, *by_skill.get(name, ()), *((DEFAULT_AGENT,) if unsure else ()))
        by_skill[name] = tuple(dict.fromkeys(found))
    closed = frozenset(_types(disallowed))
    narrowed = frozenset(_types(tools.rules))
    whole = STARTS_AGENTS & {*tools.allowed}
    return Forks(
        by_skill=by_skill,
        off=bool(STARTS_AGENTS & {*disallowed}) or "*" in closed,
        closed=closed,
        only=narrowed if narrowed and not whole else None,
    )


def _types(rules: Iterable[str]) -> Iterator[str]:
    """The agent types that rules of the Agent tool among these name."""
    for rule in rules:
        name, _, rest = rule.partition("(")
        if name in STARTS_AGENTS and rest:
            yield from (kind.strip() for kind in rest.removesuffix(")").split(","))
