"""``plan_session``: a spec and a config become one plain value, without the SDK."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from agent_kit.confine.backend import ConfinementUnavailableError
from agent_kit.confine.choice import Choice, choose
from agent_kit.extension import Contribution, Extension, PlannedScope
from agent_kit.scope import ConfigError, Fault, FileScope
from agent_kit.scope.patterns import is_pattern
from agent_kit.sdk.commands import Commands
from agent_kit.sdk.locations import CliLocations, OwnFolder
from agent_kit.sdk.rules import RuleSet
from agent_kit.session.checks import (
    disk_faults,
    environment_faults,
    pattern_faults,
    role_faults,
    type_faults,
)
from agent_kit.session.commands import command_places, plan_commands
from agent_kit.session.config import SessionConfig
from agent_kit.session.confinement import Confinement, own_folder, plan_confinement
from agent_kit.session.environment import fixed_env, fixed_faults
from agent_kit.session.extensions import resolve_extensions
from agent_kit.session.folders import Folders, gather_folders
from agent_kit.session.hidden import Hidden, hide
from agent_kit.session.isolation import isolated_settings, unlock_faults
from agent_kit.session.memory_chain import closed_chain_files
from agent_kit.session.nested_memory import literal, memory_excludes
from agent_kit.session.paths import absolute
from agent_kit.session.prompt import system_prompt
from agent_kit.session.rules import rules_for
from agent_kit.session.sdk_options import option_faults
from agent_kit.session.servers import gather_servers, server_faults
from agent_kit.session.settings import UNCHECKED_SETTINGS, given_settings_faults, merged_settings
from agent_kit.session.spec import AgentSpec
from agent_kit.session.start import NOT_HERE, can_start_literal
from agent_kit.session.tools import (
    COMMAND_TOOLS,
    KNOWN_TOOLS,
    Tools,
    choose_tools,
    commands_in,
    narrowed_tools,
)
from agent_kit.session.workspace import code_notes, opened, workspace_faults

__all__ = ["Lock", "SessionPlan", "plan_session"]

BYPASS: Final = "bypassPermissions"
MAX_SETTINGS: Final = 2_000_000  # bytes: the CLI refuses a settings file over 2 MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """Whether a lock is on, and why it is or isn't."""

    on: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """One session, worked out. Nothing in it needs the SDK, and building it again is free.

    ``locks`` are ``gate``, ``rules``, ``prompts`` and ``kernel``. ``settings`` are the CLI's flag
    settings with ``permissions`` in them. ``skills`` may be called by the model, ``slash_commands``
    by a prompt, and ``commands`` is what is known of their files. ``inactive`` maps the extensions that can't run to the
    reason. ``notes`` say what an operator should know. Folders are absolute.
    """

    spec: AgentSpec
    config: SessionConfig
    session_id: str
    project_dir: Path
    run_dir: Path
    home: Path
    scope: FileScope
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
    try:
        plan = _planned(spec, replace(config, confinement="off"))
    except ConfinementUnavailableError:
        raise why from None
    locks = {**plan.locks, "kernel": Lock(on=False, reason=str(why))}
    return replace(plan, config=config, locks=locks)


def _planned(spec: AgentSpec, config: SessionConfig) -> SessionPlan:
    given, config = config, opened(config)
    session_id = config.resume or config.session_id or str(uuid.uuid4())
    env = {**os.environ, **config.env}
    home = CliLocations(env).home
    assert config.project_dir is not None, "a config has one, or a workspace"
    project = Path(os.path.abspath(absolute(config.project_dir, Path(), home)))
    if config.config_dir is not None:
        env["CLAUDE_CONFIG_DIR"] = str(absolute(config.config_dir, project, home))
    faults = [
        *disk_faults(spec, config, project, home),
        *environment_faults(env),
        *fixed_faults(spec, config),
        *unlock_faults(config.unlock),
        *option_faults(spec),
        *_given_faults(spec, config),
    ]
    if faults:
        raise ConfigError(faults)
    if env.get("CLAUDE_CONFIG_DIR"):  # as the CLI takes it: its working folder is the project
        env["CLAUDE_CONFIG_DIR"] = str(project / env["CLAUDE_CONFIG_DIR"])
    choice = choose(config.confinement, config.confinement_backend)
    own = OwnFolder(own_folder(session_id)) if choice.backend else None
    places = CliLocations(env, own=own, own_tmp=bool(choice.backend and choice.backend.own_tmp))
    run_dir = _run_dir(spec, config, project, session_id, home)
    planned = PlannedScope()
    active = resolve_extensions(spec, config, project, run_dir, home, planned)
    sources = spec.setting_sources if config.setting_sources is None else config.setting_sources
    folders = gather_folders(spec, config, active, project, run_dir, places, session_id, sources)
    faults = [
        *active.faults,
        *workspace_faults(config, role_faults(spec, config, active, project, run_dir, places)),
        *server_faults(spec, active),
    ]
    scope, scope_faults = _scope(config, folders, project, places)
    if scope is not None:
        faults += workspace_faults(config, pattern_faults(scope, project, run_dir))
        where = command_places(folders.plugins, project, places, sources)
        offered, command_faults = plan_commands(spec, scope, where, narrowed_tools(spec))
        faults += command_faults
    if scope is None or faults:
        raise ConfigError([*faults, *scope_faults])
    planned.scope = scope
    tools = choose_tools(spec, folders, active, offered.skills)
    locks = _locks(config, tools, choice)
    rules, looked_at_all = rules_for(scope, tools)
    runners = _runners_folders(places)
    # "user" is the runner's own configuration, knowingly: their instructions come whole.
    kept = [*runners, str(places.session_config_dir)] if "user" in sources else []
    excludes = _memory_excludes(scope, runners, kept)
    hidden = hide(scope, offered.commands)
    if hidden.faults:
        raise ConfigError(hidden.faults)
    plan_settings = _settings(spec, config, rules, tools, excludes, hidden)
    servers = gather_servers(spec, active)
    confinement = None
    if choice.backend is not None:
        confinement = plan_confinement(
            choice.backend,
            config=config,
            scope=scope,
            project=project,
            session_id=session_id,
            places=places,
            env=env,
            sources=sources,
            memory_files=folders.memory_files,
            servers=servers,
            commands=commands_in(tools),
        )
    return SessionPlan(
        spec=spec,
        config=given,
        session_id=session_id,
        project_dir=project,
        run_dir=run_dir,
        home=places.home,
        scope=scope,
        rules=rules,
        settings=plan_settings,
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
        setting_sources=tuple(sources),
        system_prompt=system_prompt(spec, config, active, scope),
        notes=(
            *_notes(
                config, folders, rules, active.inactive, looked_at_all, tools, project, sources
            ),
            *code_notes(spec, config, project),
            *offered.notes,
            *hidden.notes,
            *(() if can_start_literal() else (NOT_HERE,)),
            *(confinement.notes if confinement else ()),
        ),
    )


def _run_dir(
    spec: AgentSpec, config: SessionConfig, project: Path, session_id: str, home: Path
) -> Path:
    if config.run_dir is not None:
        return absolute(config.run_dir, project, home)
    import platformdirs  # here, not at import: it takes 18 ms

    return platformdirs.user_state_path("agent-kit") / spec.name / "runs" / session_id


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
                read_only_dirs=folders.read_only,
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


def _locks(config: SessionConfig, tools: Tools, choice: Choice) -> dict[str, Lock]:
    commands = commands_in(tools)
    held = choice.backend is not None or config.confinement == "external"
    if commands and not held and not config.allow_unconfined_commands:
        raise ConfinementUnavailableError(
            f"{', '.join(map(_named, commands))} can run commands, and nothing confines them:"
            f" {choice.reason} Set confinement='auto' (agent-kit doctor says what works here), take"
            " the tool out, or set allow_unconfined_commands=True knowingly."
        )
    return {
        "gate": Lock(on=True, reason="a PreToolUse hook judges every file tool call."),
        "rules": Lock(on=True, reason="the CLI's own rules say the same once more."),
        "prompts": _PROMPT_LOCKS[config.prompt_mentions],
        "kernel": Lock(on=choice.backend is not None, reason=choice.reason),
    }


def _named(tool: str) -> str:
    """A tool as the sentence names it: of one that nobody knows, what may have been meant."""
    if tool in COMMAND_TOOLS:
        return tool
    close = get_close_matches(tool, KNOWN_TOOLS, n=1)
    meant = f", did you mean {close[0]}?" if close else ""
    return f"{tool} (a tool that this version of the kit doesn't know{meant})"


_PROMPT_LOCKS: Final[Mapping[str, Lock]] = {
    "scope": Lock(on=True, reason="prompts with closed files or foreign commands are blocked."),
    "off": Lock(on=True, reason="prompts are taken as they are: nothing is expanded or run."),
    "any": Lock(
        on=False,
        reason="prompt_mentions='any' lets every mention through; foreign commands are blocked.",
    ),
}


def _given_faults(spec: AgentSpec, config: SessionConfig) -> list[Fault]:
    faults = given_settings_faults(spec, config)
    if config.resume is not None and spec.options.get("session_store") is not None:
        remedy = (
            "with a session_store the SDK resumes in a config folder of its own, with copies of the"
            " account's files: leave the store out."
        )
        faults.append(Fault(field="resume", value=config.resume, remedy=remedy))
    return faults


def _settings(
    spec: AgentSpec,
    config: SessionConfig,
    rules: RuleSet,
    tools: Tools,
    excludes: list[str],
    hidden: Hidden,
) -> dict[str, Any]:
    given = merged_settings(spec, config)
    given["env"] = {**given.get("env", {}), **fixed_env(config)}  # a project's may not win
    permissions: dict[str, Any] = given["permissions"]
    added = {
        "deny": (*rules.deny, *tools.denied, *hidden.rules),
        # A whole tool stands here and not in the options' "allowed_tools": there the SDK warns.
        "allow": (*rules.allow, *tools.allowed),
    }
    for name, own in added.items():
        permissions[name] = list(dict.fromkeys([*own, *permissions.get(name, ())]))
    if config.permission_mode == BYPASS:
        permissions["defaultMode"] = BYPASS  # in the options, the SDK warns
    if hidden.skills:
        off = dict.fromkeys(hidden.skills, "off")
        given["skillOverrides"] = {**given.get("skillOverrides", {}), **off}
    settings = isolated_settings({**given, "permissions": permissions}, config.unlock, excludes)
    size = len(json.dumps(settings).encode())
    if size > MAX_SETTINGS:
        raise ConfigError(
            [
                Fault(
                    field="denied_paths",
                    value=f"{len(config.denied_paths):,} entries",
                    remedy=f"their rules take {size:,} bytes and the CLI reads at most"
                    f" {MAX_SETTINGS:,}: deny a folder or a pattern instead of its files.",
                )
            ]
        )
    return settings


def _runners_folders(places: CliLocations) -> list[str]:
    folders = map(str, (places.config_dir, places.home / ".claude"))
    return list(dict.fromkeys(form for path in folders for form in (path, os.path.realpath(path))))


def _memory_excludes(scope: FileScope, runners: list[str], kept: list[str]) -> list[str]:
    compiled = scope._compiled
    projects = tuple(dict.fromkeys((compiled.project, os.path.realpath(compiled.project))))
    closed = closed_chain_files(scope, projects, runners)
    spelled = [literal(file) + end for file in closed for end in _ENDS]
    return [*memory_excludes(projects, runners, kept), *spelled]


_ENDS: Final = ("", "/**")  # of a file, and of a folder with rules


def _notes(
    config: SessionConfig,
    folders: Folders,
    rules: RuleSet,
    inactive: Mapping[str, str],
    looked_at_all: bool,
    tools: Tools,
    project: Path,
    sources: tuple[str, ...] | Any,
) -> tuple[str, ...]:
    notes = [
        f"the rule language can't spell {name!r}: the gate alone holds it"
        for name in rules.unspellable
    ]
    notes += [
        f"the rule language can't name {name!r} alone: the CLI asks, and the scope answers"
        for name in rules.inexact
    ]
    notes += [f"the extension {name} does not run: {why}" for name, why in inactive.items()]
    if UNCHECKED_SETTINGS in config.unlock:
        notes.append("settings are not checked: a malformed one makes the CLI drop every rule")
    notes += [
        f"denied_paths={text!r} names one path, which doesn't exist: write '**/{text}' for the name"
        " anywhere"
        for text in map(str, config.denied_paths)
        if "/" not in text and not is_pattern(text) and not os.path.lexists(project / text)
    ]
    if not looked_at_all:
        notes.append("not every name in the writable folders was looked at for links that lead out")
    notes += [
        f"{part} is a link: name its target in extra_readable_dirs to let the agent read it"
        for part in folders.linked_parts
    ]
    if "project" in sources:
        notes += [
            f"{file} is loaded: 'project' is a setting source" for file in folders.memory_files
        ]
        servers = project / ".mcp.json"
        if servers.exists() and not config.strict_mcp_config:
            notes.append(f"the servers of {servers} are started: 'project' is a setting source")
    notes += [
        f"{name} is a way out for what the agent has read"
        for name in ("WebFetch", "WebSearch")
        if name in tools.names
    ]
    return tuple(notes)
