"""Which skills and commands a session has: what is found on disk, and what its bodies would open.

A plugin is named by the agent's author: a body in it that mentions something closed is a mistake of
theirs, and a fault. A project's file is not: it is left out, and a note says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agent_kit.policy.starts import canonical_name
from agent_kit.scope import ConfigError, Fault, FileScope
from agent_kit.sdk.catalogue import find_commands, plugin_name
from agent_kit.sdk.commands import Command, Commands, Place, refused_command
from agent_kit.sdk.locations import CliLocations
from agent_kit.session.builtin_commands import BUILTIN_COMMANDS, BUNDLED_SKILLS
from agent_kit.session.paths import resolved
from agent_kit.session.skills import skill_faults
from agent_kit.session.spec import AgentSpec, is_skill

__all__ = ["PlannedCommands", "command_places", "plan_commands"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCommands:
    """``skills`` may be called by the model, ``slash_commands`` by a prompt."""

    commands: Commands
    skills: tuple[str, ...]
    slash_commands: tuple[str, ...]
    notes: tuple[str, ...]


def command_places(
    plugins: Sequence[Path], project: Path, places: CliLocations, sources: Collection[str]
) -> tuple[Place, ...]:
    """Where the session's CLI looks: plugins, the project and the folders above it, the runner's.

    Raises ConfigError for a plugin whose manifest has no end.
    """
    found = [
        Place(folder=str(folder), plugin=plugin_name(str(folder)), trusted=True)
        for folder in plugins
    ]
    runners = {resolved(folder) for folder in (places.config_dir, places.home / ".claude")}
    if "project" in sources:
        for folder in (project, *project.parents):
            own = folder == project and resolved(folder / ".claude") not in runners
            if own or resolved(folder / ".claude") not in runners:
                found.append(Place(folder=str(folder / ".claude"), own=own))
    if "user" in sources:
        found.append(Place(folder=str(places.config_dir), trusted=True, own=False))
    return tuple(found)


def plan_commands(
    spec: AgentSpec, scope: FileScope, where: Sequence[Place], narrowed: Collection[str]
) -> tuple[PlannedCommands, list[Fault]]:
    """What the session offers of these places, and the faults of the spec and of its plugins.

    ``narrowed`` are the tools that the session opens in part only. Where a place holds more than
    can be looked at, nothing is offered and the faults say so.
    """
    found, too_much = _found(where)
    if too_much:
        nothing = PlannedCommands(commands=Commands(), skills=(), slash_commands=(), notes=())
        return nothing, too_much
    owner: dict[str, Place] = {}
    for each in found:
        owner.setdefault(each.name, each.place)
    asked = (*spec.skills, *(spec.commands or ()))
    known = {name: place for name, place in owner.items() if place.own or name in asked}
    draft = Commands(offered=frozenset(known), found=found, narrowed=frozenset(narrowed))
    refused = dict(_refused(scope, draft, known))
    offered = [name for name in known if name not in refused]
    own = [name for name in offered if owner[name].own]
    bundled = [name for name in spec.skills if name in BUNDLED_SKILLS and name not in known]
    plugins = [name for name in own if owner[name].plugin]
    skills = (*own, *(name for name in spec.skills if name in offered), *bundled)
    if (only := _only(spec)) is not None:
        skills = tuple(name for name in skills if name in only)
    slash = tuple(plugins) if spec.commands is None else tuple(spec.commands)
    commands = replace(
        draft,
        offered=frozenset(offered),
        builtin=frozenset({*bundled, *(name for name in slash if name not in known)}),
        skills=frozenset(skills),
        places=tuple(where),
    )
    faults = [*_faults(spec, known, refused), *_shadowed(spec, where, plugins)]
    faults += [
        Fault(field="tools", value=f"Skill({name})", remedy=_NO_SKILL)
        for name in only or ()
        if name not in skills and name not in refused
    ]
    planned = PlannedCommands(
        commands=commands,
        skills=tuple(dict.fromkeys(skills)),
        slash_commands=tuple(dict.fromkeys(slash)),
        notes=tuple(_notes(refused, known)),
    )
    return planned, faults


def _only(spec: AgentSpec) -> frozenset[str] | None:
    """The skills that ``tools`` narrows Skill to (``Skill(sums)``); ``None``: it doesn't."""
    rules = [tool for tool in spec.tools if tool.startswith("Skill(")]
    if not rules or "Skill" in spec.tools:
        return None
    return frozenset(canonical_name(rule[len("Skill(") : -1]) for rule in rules)


def _found(where: Sequence[Place]) -> tuple[tuple[Command, ...], list[Fault]]:
    found: list[Command] = []
    faults: list[Fault] = []
    for place in where:
        try:
            found += find_commands([place])
        except ConfigError as error:
            faults += error.faults
    return tuple(found), faults


def _refused(
    scope: FileScope, commands: Commands, known: Mapping[str, Place]
) -> Iterator[tuple[str, str]]:
    for name in known:
        if not is_skill(name):
            yield name, "its name has no place in the CLI's list of skills."
            continue
        reason = refused_command(scope, commands, name, "", scope.project_dir)
        if reason is not None:
            yield name, reason


def _faults(
    spec: AgentSpec, known: Mapping[str, Place], refused: Mapping[str, str]
) -> Iterator[Fault]:
    rows = [("skills", name, BUNDLED_SKILLS) for name in spec.skills]
    rows += [("commands", name, BUNDLED_SKILLS | BUILTIN_COMMANDS) for name in spec.commands or ()]
    for field, name, builtin in rows:
        if name in refused:
            yield Fault(field=field, value=name, remedy=f"{refused[name]} {_MEND}")
        elif name not in known and name not in builtin:
            yield Fault(field=field, value=name, remedy=_NOWHERE)
    for name, reason in refused.items():
        if known[name].plugin and is_skill(name):
            yield Fault(field="plugins", value=name, remedy=f"{reason} {_MEND}")


_MEND = "Take the mention out of its file, or open what it mentions to the agent."
_NO_SKILL = "the model may call no skill of this name: name one of the session's, or take it out."
_NOWHERE = (
    "no plugin, no project that is loaded (setting_sources) and not the CLI itself has one of this"
    " name: write it as '<plugin>:<name>', or as the file of the project is called."
)


def _shadowed(spec: AgentSpec, where: Sequence[Place], plugins: Sequence[str]) -> Iterator[Fault]:
    """Files of a project that take the name of a plugin's, or of a built-in one that is asked for."""
    built_in = {*spec.skills, *(spec.commands or ())} & (BUNDLED_SKILLS | BUILTIN_COMMANDS)
    taken = [Path(place.folder) for place in where if not place.plugin]
    yield from skill_faults([*(n for n in plugins if ":" in n), *sorted(built_in)], taken)


def _notes(refused: Mapping[str, str], known: Mapping[str, Place]) -> Iterator[str]:
    for name, reason in refused.items():
        if not known[name].plugin or not is_skill(name):
            yield f"the skill or command {name!r} is not offered: {reason}"
    folders = sorted({p.folder for n, p in known.items() if n not in refused and not p.plugin})
    for folder in folders:
        yield f"the skills and commands of {folder} are offered: it is loaded (setting_sources)"
