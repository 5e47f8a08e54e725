"""The rules, questions and subagents of a session, worked out of its spec and config."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_kit.extension import AskedFiles
from agent_kit.policy.modes import STARTS_AGENTS, Mode, stays_narrow
from agent_kit.scope import ConfigError, Fault, FileScope
from agent_kit.scope.text import is_well_formed
from agent_kit.session.config import SessionConfig
from agent_kit.session.extensions import Active
from agent_kit.session.paths import absolute, inside
from agent_kit.session.spec import AgentSpec, Subagent
from agent_kit.session.tool_names import said_as
from agent_kit.session.tools import Tools, can_run_commands, commands_in

if TYPE_CHECKING:
    from agent_kit.policy.guard import Guard
    from agent_kit.policy.policy import Policy
    from agent_kit.policy.rule_sets import RuleSets
    from agent_kit.policy.starts import Forks

__all__ = [
    "PlannedPolicy",
    "auditor_notes",
    "cli_rules",
    "plan_policy",
    "policy_faults",
    "policy_of",
    "tools_of",
    "unbound_guard",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPolicy:
    """``rules`` are compiled, ``None`` when there are none. ``scopes`` are those of subagents that may
    write less. ``read_only`` are MCP tools that are said to change nothing, ``interrupt_on`` what the
    extensions say of their own tools, ``asked_files`` which files those questions are about. ``denied`` are
    the patterns of ``deny_paths``, ``unfiltered`` those whose hits the CLI doesn't leave out of a search.
    ``closes_files``: another authorizer, or a person who is asked about each, may close files to
    reading. ``asks_nothing``: what the CLI would ask about is refused instead."""

    rules: RuleSets | None = None
    scopes: Mapping[str, FileScope] = field(default_factory=dict)
    read_only: frozenset[str] = frozenset()
    interrupt_on: Mapping[str, bool] = field(default_factory=dict)
    asked_files: Mapping[str, AskedFiles] = field(default_factory=dict)
    startable: frozenset[str] | None = None
    denied: tuple[str, ...] = ()
    unfiltered: frozenset[str] = frozenset()
    closes_files: bool = False
    asks_nothing: bool = False


def plan_policy(
    spec: AgentSpec, config: SessionConfig, active: Active, scope: FileScope, home: Path
) -> PlannedPolicy:
    """Raises ConfigError with every fault of all rules and all subagents' folders."""
    faults: list[Fault] = []
    scopes: dict[str, FileScope] = {}
    for name, agent in spec.subagents.items():
        if agent.writable_dirs is not None:
            found = _wider(name, agent, scope, home)
            faults += found
            if not found:
                scopes[name] = replace(scope, writable_dirs=_folders(agent, scope, home))
    rules = None
    try:
        rules = _rules(spec, config, scope)
    except ConfigError as error:
        faults += error.faults
    if faults:
        raise ConfigError(faults)
    brought = (tool for each in active.contributions for tool in each.read_only_tools)
    asking = (each.interrupt_on.items() for each in active.contributions)
    about = (each.asked_files.items() for each in active.contributions)
    startable = config.allowed_subagents
    return PlannedPolicy(
        rules=rules,
        scopes=scopes,
        read_only=frozenset((*spec.read_only_tools, *brought)),
        interrupt_on=dict(chain.from_iterable(asking)),
        asked_files=dict(chain.from_iterable(about)),
        startable=None if startable is None else frozenset(startable),
        denied=_denied(config),
        closes_files=_closes_files(config),
        asks_nothing=config.permission_mode == "dontAsk",
    )


def policy_of(
    config: SessionConfig,
    planned: PlannedPolicy,
    scope: FileScope,
    tools: Tools,
    session_id: str,
    *,
    has_ask: bool = False,
    forks: Forks | None = None,
    answered: frozenset[str] = frozenset(),
    told: Callable[[Mode, Mode], None] | None = None,
) -> Policy:
    """What judges inside the scope of a session. ``has_ask`` says that a person can be reached.

    ``forks`` are the skills that start an agent, ``answered`` the tools whose calls are put to whoever
    is asked. ``told`` hears of a switch of the mode: what it was, and what it is.
    """
    from agent_kit.policy.modes import SessionMode
    from agent_kit.policy.outcome import Messages
    from agent_kit.policy.policy import Policy
    from agent_kit.policy.starts import Forks

    return Policy(
        scope=scope,
        scopes=planned.scopes,
        rules=planned.rules,
        authorizers=tuple(config.authorizers),
        interrupt_on={**planned.interrupt_on, **_interrupt_on(config)},
        asked_files=planned.asked_files,
        read_only=planned.read_only,
        commands=frozenset(commands_in(tools)),
        startable=planned.startable,
        forks=forks or Forks(),
        answered=answered,
        mode=SessionMode(config.mode, told),
        has_ask=has_ask,
        config=config,
        session_id=session_id,
        messages=config.messages or Messages(),
        unfiltered=planned.unfiltered,
    )


def unbound_guard(
    config: SessionConfig, planned: PlannedPolicy, scope: FileScope, tools: Tools, session_id: str
) -> Guard:
    """The guard of a plan that no session was built of yet: it asks nobody and records nothing."""
    from agent_kit.policy.guard import Guard

    return Guard(policy=policy_of(config, planned, scope, tools, session_id))


def _denied(config: SessionConfig) -> tuple[str, ...]:
    if not config.authorizers:
        return ()
    from agent_kit.policy.authorizers import denied_patterns

    return denied_patterns(config.authorizers)


def _closes_files(config: SessionConfig) -> bool:
    if config.interrupt_on.get("Read"):
        return True
    if not config.authorizers:
        return False
    from agent_kit.policy.authorizers import may_close_files

    return may_close_files(config.authorizers)


@dataclass(frozen=True, slots=True, kw_only=True)
class CliRules:
    """What lock 2 says of the rules: ``deny`` and ``ask`` in its language, and ``notes`` on what it
    can't say.

    ``unfiltered`` are the patterns of ``deny_paths`` among that.
    """

    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unfiltered: frozenset[str] = frozenset()


def cli_rules(planned: PlannedPolicy, scope: FileScope, tools: Tools) -> CliRules:
    """The deny rules in the CLI's language. A search is told of those that it has none for."""
    sets = planned.rules
    if sets is None and not planned.denied and not planned.closes_files:
        return CliRules()
    from agent_kit.sdk.permission_rules import permission_rules

    lists, replaceable = [], []
    if sets is not None:
        replaced = bool(sets.subagents)
        lists = [sets.session] if replaced else [sets.session, sets.agent]
        replaceable = [sets.agent, *sets.subagents.values()] if replaced else []
    said = permission_rules(lists, planned.denied, scope, tools.names, replaceable=replaceable)
    for listed in (*lists, *replaceable):
        every = range(len(listed.rules))
        listed.leave_in([n for n in every if f"{listed.field}[{n}]" in said.unfiltered])
    shadows = () if sets is None else sets.shadows
    shadowed = tuple(f"{shadow.field}[{shadow.rule}] " for shadow in shadows)
    ask = ("Read(//**)",) if planned.closes_files and "Edit" in tools.names else said.ask
    return CliRules(
        deny=said.deny,
        ask=() if planned.asks_nothing else ask,
        notes=(
            *map(str, shadows),
            *(
                f"{note} The gate alone holds it."
                for note in said.unsaid
                if not note.startswith(shadowed)  # nothing holds it
            ),
            *((_GUESSED,) if ask and planned.asks_nothing else ()),
        ),
        unfiltered=frozenset(
            pattern
            for number, pattern in enumerate(planned.denied)
            if f"deny_paths[{number}]" in said.unfiltered
        ),
    )


_GUESSED: Final = (
    "with permission_mode='dontAsk' Edit tells whether a text stands in a file that rules or"
    " authorizers close to reading: take another mode, or leave out Edit."
)


def _rules(spec: AgentSpec, config: SessionConfig, scope: FileScope) -> RuleSets | None:
    own = {name: agent.permissions for name, agent in spec.subagents.items()}
    if not (config.permissions or spec.permissions or any(own.values())):
        return None
    from agent_kit.policy.rule_sets import compile_rule_sets

    return compile_rule_sets(
        project_dir=scope.project_dir,
        home=scope.home,
        session=config.permissions,
        agent=spec.permissions,
        subagents=own,
    )


def _folders(agent: Subagent, scope: FileScope, home: Path) -> tuple[str, ...]:
    project = Path(scope.project_dir)
    return tuple(str(absolute(folder, project, home)) for folder in agent.writable_dirs or ())


def _wider(name: str, agent: Subagent, scope: FileScope, home: Path) -> list[Fault]:
    """A subagent's folders that the session itself may not write, and tools that would go around."""
    opened = [os.path.realpath(os.path.join(scope.project_dir, d)) for d in scope.writable_dirs]
    faults = [
        Fault(
            field=f"subagents[{name!r}].writable_dirs",
            value=folder,
            remedy="name a folder inside one that the session may write"
            f" ({', '.join(scope.writable_dirs) or 'there is none'}).",
        )
        for folder in _folders(agent, scope, home)
        if not is_well_formed(folder)
        or not any(inside(os.path.realpath(folder), each) for each in opened)
    ]
    return faults + [
        Fault(
            field=f"subagents[{name!r}].tools",
            value=tool,
            remedy="take it out: writable_dirs would not hold for what it starts.",
        )
        for tool in agent.tools or ()
        if not tool.startswith("mcp__") and _goes_around(tool.partition("(")[0])
    ]


def _goes_around(tool: str) -> bool:
    return not stays_narrow(tool) or can_run_commands(tool)


def tools_of(
    agent: Subagent, tools: Tools, read_only: Collection[str] = ()
) -> tuple[str, ...] | None:
    """What a subagent may call; ``None``: as the session. One that may write less gets no tool that
    would go around it: of MCP tools those that are known to be ``read_only``."""
    if not _is_auditor(agent):
        return agent.tools if agent.tools is None else tuple(agent.tools)
    own = (name for name in tools.names if not _goes_around(name))
    return (*own, *sorted(set(read_only) - set(tools.disallowed)))


def _is_auditor(agent: Subagent) -> bool:
    """Whether it may write less, and the kit chooses its tools."""
    return agent.tools is None and agent.writable_dirs is not None


def auditor_notes(
    spec: AgentSpec, servers: Mapping[str, Any], others: Collection[str]
) -> Iterator[str]:
    """On subagents that may write less, where there are servers that are not of this process.

    ``others`` are the files that may bring some beside the plan's ``servers``.
    """
    programs = [
        name
        for name, server in servers.items()
        if isinstance(server, Mapping) and server.get("type") != "sdk"
    ]
    if not (unknown := [*programs, *others]):
        return
    for name, agent in spec.subagents.items():
        if _is_auditor(agent):
            yield (
                f"the subagent {name!r} may write less than the session, so of MCP tools it has those"
                " of this process that say that they only read, and read_only_tools. To give it tools"
                f" of other servers ({', '.join(unknown)}), name all its tools in Subagent.tools"
            )


def _interrupt_on(config: SessionConfig) -> dict[str, bool]:
    """By the names that the CLI says; of a tool that is there by two names the stricter counts."""
    found: dict[str, bool] = {}
    for tool, asks in config.interrupt_on.items():
        name = said_as(tool)
        found[name] = asks or found.get(name, False)
    return found


def policy_faults(config: SessionConfig, tools: Tools) -> list[Fault]:
    """Tools of ``interrupt_on`` that the session hasn't: a misspelt one would never be asked about.

    Those of MCP servers are looked at by ``file_tool_faults``.
    """
    faults = []
    there = set(map(said_as, tools.names))
    for tool in config.interrupt_on:
        forks = said_as(tool) in STARTS_AGENTS and "Skill" in there  # a skill may start an agent
        if tool.startswith("mcp__") or said_as(tool) in there or forks:
            continue
        close = get_close_matches(tool, tools.names, n=1)
        remedy = f"did you mean {close[0]}?" if close else "this session has no such tool."
        faults.append(Fault(field="interrupt_on", value=tool, remedy=remedy))
    return faults
