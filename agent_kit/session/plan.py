"""``plan_session``: a spec and a config become one plain value, without the SDK."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from agent_kit.confine.backend import ConfinementUnavailableError
from agent_kit.confine.control_links import files_led_to
from agent_kit.extension import Contribution, Extension, PlannedGuard, PlannedScope
from agent_kit.scope import ConfigError, Fault, FileScope
from agent_kit.sdk.commands import Commands
from agent_kit.sdk.locations import CliLocations
from agent_kit.sdk.rules import RuleSet
from agent_kit.session.checks import (
    pattern_faults,
    role_faults,
    type_faults,
)
from agent_kit.session.commands import PlannedCommands, command_places, plan_commands
from agent_kit.session.config import SessionConfig, of_a_confinement
from agent_kit.session.confinement import Confinement, SignInExposedError, plan_confinement
from agent_kit.session.extensions import Active, resolve_extensions
from agent_kit.session.flag_settings import memory_not_loaded, plan_settings
from agent_kit.session.folders import Folders, gather_folders
from agent_kit.session.hidden import hide
from agent_kit.session.locks import Lock, plan_locks, unheld_notes
from agent_kit.session.notes import (
    confinement_notes,
    hindered_folders,
    is_offline,
    plan_notes,
    server_notes,
)
from agent_kit.session.paths import absolute
from agent_kit.session.plugin_servers import starting_plugins
from agent_kit.session.policy import (
    PlannedPolicy,
    auditor_notes,
    cli_rules,
    plan_policy,
    policy_faults,
    unbound_guard,
)
from agent_kit.session.prompt import system_prompt
from agent_kit.session.reach import reach_notes, rule_reach_notes
from agent_kit.session.resumed import resume_faults
from agent_kit.session.rule_notes import policy_notes, startable_faults
from agent_kit.session.rules import rules_for
from agent_kit.session.servers import (
    file_tool_faults,
    file_tool_notes,
    gather_servers,
    key_faults,
    other_servers,
    server_faults,
)
from agent_kit.session.spec import AgentSpec
from agent_kit.session.start import NOT_HERE, can_start_literal
from agent_kit.session.surroundings import Surroundings, look_around
from agent_kit.session.tools import (
    Tools,
    choose_tools,
    commands_in,
    narrowed_tools,
)
from agent_kit.session.workspace import code_notes, workspace_faults

__all__ = ["Lock", "SessionPlan", "plan_session"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """One session, worked out. Nothing in it needs the SDK, and building it again is free.

    ``locks`` are ``gate``, ``rules``, ``prompts`` and ``kernel``. ``policy`` holds the rules and
    subagents' scopes inside ``scope``. ``settings`` are the CLI's flag
    settings with ``permissions`` in them. ``skills`` may be called by the model, ``slash_commands``
    by a prompt, and ``commands`` is what is known of their files. ``inactive`` maps the extensions that can't run to the
    reason. ``notes`` say what an operator should know. ``guard()`` judges paths for tools that open
    files themselves. Folders are absolute.
    """

    spec: AgentSpec
    config: SessionConfig
    session_id: str
    project_dir: Path
    run_dir: Path
    home: Path
    scope: FileScope
    policy: PlannedPolicy
    rules: RuleSet
    settings: Mapping[str, Any]
    tools: Tools
    locks: Mapping[str, Lock]
    extensions: tuple[Extension, ...]
    inactive: Mapping[str, str]
    contributions: tuple[Contribution, ...]
    mcp_servers: Mapping[str, Any]
    plugins: tuple[Path, ...]
    skills: tuple[str, ...]
    commands: Commands
    slash_commands: tuple[str, ...]
    setting_sources: tuple[str, ...]
    confinement: Confinement | None
    system_prompt: str
    notes: tuple[str, ...]
    guard: PlannedGuard = field(default_factory=PlannedGuard, repr=False, compare=False)

    @property
    def host_dir(self) -> Path:
        """The part of the run folder that the agent can neither read nor write."""
        return self.run_dir / "host"

    def api(self, name: str) -> object | None:
        """The host's side of an active extension, by its name."""
        for extension, contribution in zip(self.extensions, self.contributions, strict=True):
            if extension.name == name:
                return contribution.api
        return None


def plan_session(spec: AgentSpec, config: SessionConfig) -> SessionPlan:
    """Work out a session. Raises ConfigError with every fault of the two and of the disk.

    Raises ConfinementUnavailableError when ``config`` insists on confinement, or when the session
    could run commands with nothing to confine them.
    """
    if faults := type_faults(("spec", spec, AgentSpec), ("config", config, SessionConfig)):
        raise ConfigError(faults)
    try:
        return _planned(spec, config)
    except ConfinementUnavailableError as error:
        if config.confinement != "auto" or config.confinement_backend:
            raise
        return _unconfined(spec, config, error)


def _unconfined(
    spec: AgentSpec, config: SessionConfig, why: ConfinementUnavailableError
) -> SessionPlan:
    """The session that ``"auto"`` comes to where it can't be confined; ``why`` if it may not be."""
    if of_a_confinement(config):
        raise why
    if isinstance(why, SignInExposedError) and not config.allow_unconfined_commands:
        raise why  # unconfined, they would have it all the more
    try:
        plan = _planned(spec, replace(config, confinement="off"))
    except ConfinementUnavailableError:
        raise why from None
    locks = {**plan.locks, "kernel": Lock(on=False, reason=str(why))}
    return replace(
        plan, config=config, locks=locks, notes=(*unheld_notes(config, locks), *plan.notes)
    )


def _planned(spec: AgentSpec, given: SessionConfig) -> SessionPlan:
    around = look_around(spec, given)
    config, project, places = around.config, around.project, around.places
    planned = PlannedScope()
    active = resolve_extensions(spec, config, project, around.run_dir, places.home, planned)
    folders = gather_folders(
        spec, config, active, project, around.run_dir, places, around.session_id, around.sources
    )
    others = other_servers(spec, config, active, project, places.home, around.sources)
    scope, policy, offered = _judged(around, active, folders, others)
    planned.scope = scope
    tools = choose_tools(spec, folders, active, offered.skills)
    if faults := policy_faults(config, tools):
        raise ConfigError(faults)
    locks = plan_locks(config, tools, around.choice)
    rules, looked_at_all = rules_for(scope, tools)
    of_policy = cli_rules(policy, scope, tools)
    policy = replace(policy, unfiltered=of_policy.unfiltered)
    planned.guard.make = partial(unbound_guard, given, policy, scope, tools, around.session_id)
    deny = tuple(dict.fromkeys((*rules.deny, *of_policy.deny)))
    rules = replace(rules, deny=deny, ask=of_policy.ask)
    hidden = hide(scope, offered.commands)
    if hidden.faults:
        raise ConfigError(hidden.faults)
    excludes = memory_not_loaded(scope, places, around.sources)
    confined = around.choice.backend is not None
    settings = plan_settings(spec, config, rules, tools, excludes, hidden, confined=confined)
    servers = gather_servers(spec, active)
    confinement = _confined(around, scope, folders, servers, tools, others)
    if confinement and confinement.brokered and (faults := key_faults(others)):
        raise ConfigError(faults)
    offline = is_offline(confinement)
    return SessionPlan(
        spec=spec,
        config=given,
        session_id=around.session_id,
        project_dir=project,
        run_dir=around.run_dir,
        home=places.home,
        scope=scope,
        policy=policy,
        rules=rules,
        settings=settings,
        tools=tools,
        locks=locks,
        extensions=active.extensions,
        inactive=active.inactive,
        contributions=active.contributions,
        mcp_servers=servers,
        confinement=confinement,
        plugins=folders.plugins,
        skills=offered.skills,
        commands=offered.commands,
        slash_commands=offered.slash_commands,
        setting_sources=around.sources,
        system_prompt=system_prompt(
            spec,
            config,
            active,
            scope,
            no_network=offline and bool(commands_in(tools)),
            hindered=hindered_folders(project, confinement),
        ),
        notes=(
            *unheld_notes(config, locks),
            *plan_notes(
                around, folders, rules, active.inactive, looked_at_all, tools, offline=offline
            ),
            *file_tool_notes(spec, config, active, others),
            *reach_notes(config, scope),
            *policy_notes(around, tools, folders.plugins),
            *rule_reach_notes(scope, policy.rules, policy.denied),
            *server_notes(servers, confinement),
            *auditor_notes(spec, servers, others),
            *(_LED_TO.format(path) for path in scope.read_only_dirs[len(folders.read_only) :]),
            *confinement_notes(around, confinement, tools),
            *code_notes(folders.own_code),
            *of_policy.notes,
            *offered.notes,
            *hidden.notes,
            *(() if can_start_literal() else (NOT_HERE,)),
            *(confinement.notes if confinement else ()),
        ),
        guard=planned.guard,
    )


def _judged(
    around: Surroundings, active: Active, folders: Folders, others: Collection[str]
) -> tuple[FileScope, PlannedPolicy, PlannedCommands]:
    """The scope, what holds inside it, and what of the commands it lets be called.

    Raises ConfigError with every fault.
    """
    spec, config, project, places = around.spec, around.config, around.project, around.places
    roles = role_faults(config, active, folders, project, around.run_dir, places)
    faults = [
        *active.faults,
        *workspace_faults(config, roles),
        *server_faults(spec, active),
        *file_tool_faults(spec, config, active, others),
        *startable_faults(around, folders.plugins),
        *resume_faults(config.resume, places.config_dir),
    ]
    scope, scope_faults = _scope(config, folders, project, places)
    if scope is not None:
        faults += workspace_faults(config, pattern_faults(scope, project, around.run_dir))
        where = command_places(folders.plugins, project, places, around.sources)
        offered, command_faults = plan_commands(spec, scope, where, narrowed_tools(spec))
        faults += command_faults
        policy, found = _policy(spec, config, active, scope, places)
        faults += found
    if scope is None or policy is None or faults:
        raise ConfigError([*faults, *scope_faults])
    return scope, policy, offered


def _policy(
    spec: AgentSpec, config: SessionConfig, active: Active, scope: FileScope, places: CliLocations
) -> tuple[PlannedPolicy | None, tuple[Fault, ...]]:
    try:
        return plan_policy(spec, config, active, scope, places.home), ()
    except ConfigError as error:
        return None, error.faults


def _confined(
    around: Surroundings,
    scope: FileScope,
    folders: Folders,
    servers: Mapping[str, Any],
    tools: Tools,
    others: Collection[str],
) -> Confinement | None:
    if around.choice.backend is None:
        return None
    return plan_confinement(
        around.choice.backend,
        config=around.config,
        scope=scope,
        project=around.project,
        session_id=around.session_id,
        places=around.places,
        env=around.env,
        sources=around.sources,
        memory_files=folders.memory_files,
        servers=servers,
        commands=commands_in(tools),
        starting=starting_plugins(others, folders.plugins),
    )


_LED_TO = (
    "{} is read-only: a control file of the project leads there, by a link or by git's configuration"
    " (writable_control_files=True lifts that)"
)


def _steering(
    config: SessionConfig, folders: Folders, project: Path, places: CliLocations
) -> tuple[str, ...]:
    """What the project's control files lead to in writable folders: no other name opens it."""
    if config.writable_control_files:
        return ()
    writable = (str(absolute(each, project, places.home)) for each in folders.writable)
    return files_led_to(str(project), writable)


def _scope(
    config: SessionConfig, folders: Folders, project: Path, places: CliLocations
) -> tuple[FileScope | None, tuple[Fault, ...]]:
    try:
        return (
            FileScope(
                project_dir=str(project),
                writable_dirs=folders.writable,
                searchable_dirs=folders.searchable,
                also_readable=folders.also_readable,
                tool_results_dir=folders.tool_results,
                read_only_dirs=(*folders.read_only, *_steering(config, folders, project, places)),
                denied_paths=folders.denied,
                tool_only_dirs=folders.tool_only,
                writable_control_files=config.writable_control_files,
                mcp_file_tools=config.mcp_file_tools,
                home=str(places.home),
            ),
            (),
        )
    except ConfigError as error:
        return None, error.faults
