"""``build_session_options``: a plan turned into ``ClaudeAgentOptions``. Here the SDK is loaded."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
)

from agent_kit.confine.programs import on_path
from agent_kit.policy.modes import SessionMode
from agent_kit.scope import ConfigError, Fault
from agent_kit.sdk.approval import approve_within
from agent_kit.sdk.gate import GateLog, create_file_scope_gate
from agent_kit.sdk.hints import read_only_tools_at_once
from agent_kit.sdk.hooks import chain
from agent_kit.sdk.locations import CliLocations, bundled_cli
from agent_kit.sdk.policy_gate import PolicyGate
from agent_kit.sdk.prompt_gate import create_expansion_gate, create_prompt_gate
from agent_kit.sdk.running import note_running
from agent_kit.session.builtin_commands import BUILTIN_COMMANDS, BUNDLED_SKILLS
from agent_kit.session.check import check_options
from agent_kit.session.config import SessionConfig
from agent_kit.session.environment import fixed_env
from agent_kit.session.flag_settings import BYPASS
from agent_kit.session.launch import describe_launcher
from agent_kit.session.paths import absolute
from agent_kit.session.pins import PROJECT_ENV, SECRET_ENV, pinned_settings
from agent_kit.session.plan import SessionPlan, plan_session
from agent_kit.session.policy import tools_of
from agent_kit.session.policy_gate import close_trail, make_policy_gate, misnamed, unanswered
from agent_kit.session.promise import keep_promise, session_mode
from agent_kit.session.run_folder import (
    close_run_folder,
    open_run_folder,
    remove_old_runs,
    write_private,
    write_program,
)
from agent_kit.session.spec import AgentSpec
from agent_kit.session.start import can_start_literal, literal_start

__all__ = ["Session", "build_session_options", "open_session", "options_from_plan"]

INLINE_CHARACTERS: Final = 30_000  # of settings and prompt: a command line holds them everywhere
BUFFER_SIZE: Final = 64 * 1024 * 1024  # bytes of one message; the SDK's own 1 MiB ends a session


def build_session_options(
    spec: AgentSpec, config: SessionConfig, *, log: GateLog | None = None
) -> ClaudeAgentOptions:
    """The options of one session, for ``ClaudeSDKClient`` or ``query``.

    Makes the run folder. ``log`` notes the calls that the gate sees. Raises what
    :func:`plan_session` raises, and ``PermissionError`` when the run folder is not this user's.
    """
    return options_from_plan(plan_session(spec, config), log=log)


def options_from_plan(plan: SessionPlan, *, log: GateLog | None = None) -> ClaudeAgentOptions:
    """The options of a plan. ``log`` notes the calls that the gate sees.

    Raises ConfigError for a tool that only a person can answer, in a session that reaches nobody, and
    for a tool of a server of this process whose name the config misspells.
    """
    if faults := [*unanswered(plan)]:
        raise ConfigError(faults)
    return built_options(plan, make_policy_gate(plan), log=log)


def built_options(
    plan: SessionPlan, policy: PolicyGate, *, log: GateLog | None = None
) -> ClaudeAgentOptions:
    """As :func:`options_from_plan`, with a policy gate of the caller's.

    Raises ConfigError for an option that the SDK hasn't, and for a misspelt tool of a server of this
    process.
    """
    config = plan.config
    values: dict[str, Any] = dict(_passed_on(plan.spec.options))
    servers = {name: _made(server) for name, server in plan.mcp_servers.items()}
    if faults := [*misnamed(plan, servers)]:
        raise ConfigError(faults)
    host = open_run_folder(plan.run_dir, plan.session_id)
    if config.run_dir is None:
        remove_old_runs(plan.run_dir.parent, config.keep_runs)
    prompt, prompt_arguments = _system_prompt(plan, host)
    in_process, mcp_arguments = _mcp(plan, host, servers)
    settings = _settings(plan, host)
    start = _start(plan, host, _files(settings, prompt, {**prompt_arguments, **mcp_arguments}))
    values.update(
        tools=list(plan.tools.names),
        allowed_tools=[],  # the settings hold them: the SDK warns about a whole tool here
        disallowed_tools=list(plan.tools.disallowed),
        hooks=_hooks(
            plan, policy, log or GateLog(), literal=start is not None and can_start_literal()
        ),
        can_use_tool=approve_within(
            plan.scope,
            cwd=str(plan.project_dir),
            policy=policy,
            narrowed=plan.tools.rules,
        ),
        settings=settings,
        setting_sources=list(plan.setting_sources),
        cwd=str(plan.project_dir),
        env=_env(plan),
        plugins=[{"type": "local", "path": str(folder)} for folder in plan.plugins],
        agents=_agents(plan, in_process) or None,
        skills=list(plan.skills),
        system_prompt=prompt,
        mcp_servers=in_process,
        extra_args={**prompt_arguments, **mcp_arguments},
        max_buffer_size=values.get("max_buffer_size") or BUFFER_SIZE,
        verbatim_prompts=config.prompt_mentions == "off",
        strict_mcp_config=config.strict_mcp_config,
        cli_path=start or _program(plan) or (None if bundled_cli() else _on_path(plan)),
        **_given(plan),
    )
    policy.servers = in_process
    note_running(in_process)
    return keep_promise(plan, ClaudeAgentOptions(**values), policy.policy.mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A connected session: its plan, its options and the SDK's client.

    ``log`` holds the calls that the gate has seen, for :func:`agent_kit.check_calls`. ``mode`` may be
    switched at any time: ``session.mode.set("plan")``.
    """

    plan: SessionPlan
    options: ClaudeAgentOptions
    client: ClaudeSDKClient
    log: GateLog

    @property
    def mode(self) -> SessionMode:
        return session_mode(self.options)


@asynccontextmanager
async def open_session(spec: AgentSpec, config: SessionConfig) -> AsyncIterator[Session]:
    """Plan, build and connect; at the end remove what only the running session needed."""
    plan, log = plan_session(spec, config), GateLog()
    options = options_from_plan(plan, log=log)
    try:
        check_options(options)
        async with ClaudeSDKClient(options) as client:
            yield Session(plan=plan, options=options, client=client, log=log)
    finally:
        await asyncio.to_thread(close_trail, plan)
        close_run_folder(plan.run_dir, plan.session_id)
        if config.run_dir is None:
            remove_old_runs(plan.run_dir.parent, config.keep_runs)


def _made(server: Any | Callable[[], Any]) -> Any:
    return server() if callable(server) else server


def _passed_on(options: Mapping[str, Any]) -> dict[str, Any]:
    """The spec's own SDK options; hooks and settings are merged elsewhere. Raises ConfigError."""
    known = {field.name for field in fields(ClaudeAgentOptions)}
    faults = [
        Fault(field=f"options[{name!r}]", value=value, remedy="the SDK has no such option.")
        for name, value in options.items()
        if name not in known
    ]
    if faults:
        raise ConfigError(faults)
    return {name: value for name, value in options.items() if name not in ("hooks", "settings")}


def _program(plan: SessionPlan) -> Path | None:
    """The CLI that the session names; ``None``: the SDK's own."""
    given = plan.config.cli_path
    return None if given is None else absolute(given, plan.project_dir, plan.home)


def _on_path(plan: SessionPlan) -> str | None:
    """The CLI on ``PATH``. Raises ConfigError when the session could have written it: it runs here."""
    folders = [
        str(absolute(each, plan.project_dir, plan.home)) for each in plan.scope.writable_dirs
    ]
    found = on_path("claude", None, folders)
    if found is None and (other := on_path("claude", None)) is not None:
        remedy = "it lies in a folder that the session may write: install the CLI elsewhere."
        raise ConfigError([Fault(field="cli_path", value=other, remedy=remedy)])
    return found


def _files(settings: str, prompt: Any, arguments: Mapping[str, str | None]) -> list[str]:
    """What the CLI is told to read of the ``host/`` part."""
    given = prompt.get("path") if isinstance(prompt, Mapping) else None
    inline = settings.startswith("{")
    return [path for path in (None if inline else settings, given, *arguments.values()) if path]


def _start(plan: SessionPlan, host: Path, files: list[str]) -> Path | None:
    """What starts the CLI: confined, and so that it runs no foreign slash command.

    ``None``: nothing does either.
    """
    if plan.confinement is not None:
        env = {**os.environ, **_env(plan)}
        words = describe_launcher(plan.confinement, host, plan.session_id, files, env)
    elif program := _program(plan) or bundled_cli() or _on_path(plan):
        words = [str(program)]
    else:  # the SDK says so, when it connects
        return None
    if plan.config.prompt_mentions != "off" and can_start_literal():
        words = literal_start(words, plan.slash_commands)
    elif plan.confinement is None:
        return None
    return write_program(host, f"{plan.session_id}.cli", words)


def _hooks(
    plan: SessionPlan, policy: PolicyGate, log: GateLog, *, literal: bool
) -> dict[Any, list[HookMatcher]]:
    """The gate with everybody's PreToolUse callbacks inside it, the prompt gates, and the rest.

    ``literal``: the CLI is started so that it takes what only looks like a notification as text.
    """
    brought: dict[str, list[Any]] = {}
    for source in (
        *(contribution.hooks for contribution in plan.contributions),
        plan.spec.options.get("hooks") or {},
        plan.config.hooks,
    ):
        for event, hooks in source.items():
            brought.setdefault(event, []).extend(hooks)
    before = chain(brought.pop("PreToolUse", ()))
    found: dict[Any, list[HookMatcher]] = {
        "PreToolUse": [
            create_file_scope_gate(
                plan.scope,
                before=before,
                log=log,
                worktrees=plan.config.allow_worktrees,
                commands=plan.commands,
                policy=policy,
            )
        ]
    }
    judged: dict[str, Any] = {
        "commands": plan.commands,
        "allowed": plan.slash_commands,
        "mentions": plan.config.prompt_mentions == "scope",
        "policy": policy.policy,
    }
    found["UserPromptExpansion"] = [create_expansion_gate(plan.scope, **judged)]
    if plan.config.prompt_mentions != "off":  # there the CLI runs and expands nothing
        found["UserPromptSubmit"] = [
            create_prompt_gate(
                plan.scope,
                log=log,
                literal_notifications=literal,
                reserved=BUILTIN_COMMANDS | BUNDLED_SKILLS,
                **judged,
            )
        ]
    for event, hooks in brought.items():
        found.setdefault(event, []).extend(
            HookMatcher(matcher=getattr(hook, "matcher", None), hooks=[hook])
            if callable(hook)
            else hook
            for hook in hooks
        )
    return found


def _settings(plan: SessionPlan, host: Path) -> str:
    """The flag settings: inline, or in a file.

    A command line holds only so much, and other users can read it: a key, and whatever a person
    set, goes to a file.
    """
    settings, secret = _pinned(plan)
    text = json.dumps(settings, allow_nan=False)
    personal = plan.config.settings or plan.spec.options.get("settings")
    inside = plan.confinement is not None  # there the CLI would copy them to where commands write
    if (
        not (personal or secret or inside)
        and len(text) + len(plan.system_prompt) <= INLINE_CHARACTERS
    ):
        return text
    return str(write_private(host, f"{plan.session_id}.settings.json", text))


def _pinned(plan: SessionPlan) -> tuple[dict[str, Any], bool]:
    """The plan's settings with what a project may not move, and whether a key is among them.

    Read here and not in the plan: a plan is a plain value that people print.
    """
    if PROJECT_ENV in plan.config.unlock:
        return dict(plan.settings), False
    env = {**os.environ, **_env(plan)}
    inside = {} if plan.confinement is None else plan.confinement.env_over(env)
    runners = CliLocations(env).config_dir / "settings.json"
    runners_own = runners if "user" in plan.setting_sources else None
    pins = pinned_settings({**env, **inside}, plan.project_dir, runners_own)
    if plan.confinement is not None:  # commands can read the settings, not the CLI's environment
        key = plan.confinement.made_up_key
        pins["env"] = {name: value for name, value in pins["env"].items() if value != key}
    settings = {**pins, **plan.settings, "env": {**pins["env"], **plan.settings.get("env", {})}}
    return settings, any(pins["env"].get(name) for name in SECRET_ENV)


def _env(plan: SessionPlan) -> dict[str, str]:
    env = {**plan.config.env, **fixed_env(plan.config)}
    if plan.config.config_dir is not None:
        env["CLAUDE_CONFIG_DIR"] = str(
            absolute(plan.config.config_dir, plan.project_dir, plan.home)
        )
    return env


def _agents(plan: SessionPlan, in_process: Mapping[str, Any]) -> dict[str, AgentDefinition]:
    read_only = plan.policy.read_only | read_only_tools_at_once(in_process)
    return {
        name: AgentDefinition(
            description=agent.description,
            prompt=agent.prompt,
            tools=None
            if (tools := tools_of(agent, plan.tools, read_only)) is None
            else list(tools),
            model=agent.model,
        )
        for name, agent in plan.spec.subagents.items()
    }


def _system_prompt(plan: SessionPlan, host: Path) -> tuple[Any, dict[str, str | None]]:
    """The prompt, or where it stands when a command line couldn't hold it, with the CLI's flags."""
    text, preset = plan.system_prompt, plan.spec.preset
    if len(text) <= INLINE_CHARACTERS:
        append = {"type": "preset", "preset": preset, "append": text}
        return (text if preset is None else append), {}
    path = str(write_private(host, f"{plan.session_id}.prompt.md", text))
    if preset is None:
        return {"type": "file", "path": path}, {}
    return {"type": "preset", "preset": preset}, {"append-system-prompt-file": path}


def _mcp(
    plan: SessionPlan, host: Path, servers: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str | None]]:
    """The servers in this process, and where the others' configuration stands.

    Others often have secrets in it, and other users can read a command line.
    """
    others = {name: server for name, server in servers.items() if not _is_in_process(server)}
    if not others:
        return servers, {}
    text = json.dumps({"mcpServers": others}, allow_nan=False)
    path = write_private(host, f"{plan.session_id}.mcp.json", text)
    own = {name: server for name, server in servers.items() if name not in others}
    return own, {"mcp-config": str(path)}


def _is_in_process(server: Any) -> bool:
    return isinstance(server, Mapping) and server.get("type") == "sdk"


def _given(plan: SessionPlan) -> dict[str, Any]:
    """Options that stay unset unless somebody gave them."""
    config: SessionConfig = plan.config
    given = {
        "max_turns": config.max_turns,
        "model": config.model or plan.spec.model,
        # Bypassing stands in the settings: here the SDK warns.
        "permission_mode": None if config.permission_mode == BYPASS else config.permission_mode,
        "resume": config.resume,
        "session_id": None if config.resume else plan.session_id,
    }
    return {name: value for name, value in given.items() if value is not None}
