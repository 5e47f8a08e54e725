"""What of rules, questions and subagents is likely not meant as it is written."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, Final

from agent_kit.scope import Fault
from agent_kit.session.paths import absolute
from agent_kit.session.spec import AgentSpec
from agent_kit.session.surroundings import Surroundings
from agent_kit.session.tool_names import said_as
from agent_kit.session.tools import Tools, commands_in

__all__ = ["policy_notes", "startable_faults"]

# The types of agents that the CLI brings (2.1.332).
_BUILTIN_AGENTS: Final = (
    "Explore",
    "Plan",
    "claude",
    "claude-code-guide",
    "general-purpose",
    "statusline-setup",
)


def policy_notes(around: Surroundings, tools: Tools, plugins: Collection[Path]) -> Iterator[str]:
    """What an operator should know of the rules, of who is asked, and of the subagents."""
    yield from _unheld_commands(around, tools)
    yield from _nobody_asked(around)
    yield from _folders_not_there(around)
    if _brings_agents(around, plugins):
        for name, meant in _strangers(around):
            yield (
                f"allowed_subagents names {name}, which is none of the spec's and of the CLI's own"
                f"{f' (did you mean {meant}?)' if meant else ''}"
            )
        return
    for name, meant in _strangers(around):
        if meant is None:
            yield f"allowed_subagents names {name}, and there is no such agent"


def startable_faults(around: Surroundings, plugins: Collection[Path]) -> list[Fault]:
    """Agents of ``allowed_subagents`` that there are not, and that are close to one that there is."""
    if _brings_agents(around, plugins):
        return []
    return [
        Fault(field="allowed_subagents", value=name, remedy=f"did you mean {meant!r}?")
        for name, meant in _strangers(around)
        if meant is not None
    ]


def _unheld_commands(around: Surroundings, tools: Tools) -> Iterator[str]:
    config, spec = around.config, around.spec
    if not (config.permissions or config.authorizers or _of_agents(spec)):
        return
    asked = {said_as(tool) for tool, asks in config.interrupt_on.items() if asks}
    if names := [name for name in commands_in(tools) if said_as(name) not in asked]:
        yield (
            f"rules and authorizers hold file tools, and not what {' and '.join(names)} opens: that the"
            f" scope alone holds. Use denied_paths, or interrupt_on={{{names[0]!r}: True}}"
        )


def _of_agents(spec: AgentSpec) -> list[Any]:
    own = (agent.permissions or () for agent in spec.subagents.values())
    return [*spec.permissions, *chain.from_iterable(own)]


def _nobody_asked(around: Surroundings) -> Iterator[str]:
    config = around.config
    if config.ask is not None or config.mode == "autonomous":
        return
    asking = ["mode='interactive'"] if config.mode == "interactive" else []
    asking += ["interrupt_on"] if any(config.interrupt_on.values()) else []
    if any(map(_interrupts, (*config.permissions, *_of_agents(around.spec)))):
        asking.append("a rule with mode='interrupt'")
    if asking:
        yield (
            f"there is no SessionConfig.ask, so nobody is asked: what {' or '.join(asking)} would ask"
            " about is refused"
        )


def _interrupts(rule: Any) -> bool:
    mode = rule["mode"] if isinstance(rule, Mapping) else rule.mode
    return str(mode) == "interrupt"


def _folders_not_there(around: Surroundings) -> Iterator[str]:
    for name, agent in around.spec.subagents.items():
        for text in agent.writable_dirs or ():
            if not os.path.isdir(absolute(text, around.project, around.places.home)):
                yield f"subagents[{name!r}].writable_dirs: there is no folder {text}"


def _strangers(around: Surroundings) -> Iterator[tuple[str, str | None]]:
    """Each name in ``allowed_subagents`` that is unknown, and what may have been meant."""
    known = [*around.spec.subagents, *_BUILTIN_AGENTS]
    for name in around.config.allowed_subagents or ():
        if name not in known:
            yield name, next(iter(get_close_matches(name, known, n=1)), None)


def _brings_agents(around: Surroundings, plugins: Collection[Path]) -> bool:
    """Whether there are folders of agents that the spec doesn't name."""
    found = [folder / "agents" for folder in plugins]
    if "project" in around.sources:
        found += [p / ".claude/agents" for p in (around.project, *around.project.parents)]
    if "user" in around.sources:
        found.append(around.places.config_dir / "agents")
    return any(map(os.path.isdir, found))
