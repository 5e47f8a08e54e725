"""``build_session_options``: a plan turned into ``ClaudeAgentOptions``. Here the SDK is loaded."""

from __future__ import annotations

import json
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

from agent_kit.scope import ConfigError, Fault
from agent_kit.sdk.approval import approve_within
from agent_kit.sdk.gate import GateLog, create_file_scope_gate
from agent_kit.sdk.hooks import chain
from agent_kit.sdk.prompt_gate import create_prompt_gate
from agent_kit.session.config import SessionConfig
from agent_kit.session.plan import SessionPlan, plan_session
from agent_kit.session.run_folder import (
    close_run_folder,
    open_run_folder,
    remove_old_runs,
    write_private,
)
from agent_kit.session.spec import AgentSpec

__all__ = ["Session", "build_session_options", "open_session", "options_from_plan"]

INLINE_SETTINGS: Final = 30_000  # characters: what a command line holds on every platform
BUFFER_SIZE: Final = 64 * 1024 * 1024  # bytes of one message; the SDK's own 1 MiB ends a session


def build_session_options(spec: AgentSpec, config: SessionConfig) -> ClaudeAgentOptions:
    """The options of one session, for ``ClaudeSDKClient`` or ``query``.

    Makes the run folder. Raises what :func:`plan_session` raises.
    """
    return options_from_plan(plan_session(spec, config))


def options_from_plan(plan: SessionPlan, *, log: GateLog | None = None) -> ClaudeAgentOptions:
    """The options of a plan. ``log`` notes the calls that the gate sees."""
    config = plan.config
    if config.run_dir is None:
        remove_old_runs(plan.run_dir.parent, config.keep_runs)
    host = open_run_folder(plan.run_dir)
    servers = {name: _made(server) for name, server in plan.mcp_servers.items()}
    values: dict[str, Any] = dict(_passed_on(plan.spec.options))
    values.update(
        tools=list(plan.tools.names),
        allowed_tools=list(plan.tools.allowed),
        disallowed_tools=list(plan.tools.disallowed),
        hooks=_hooks(plan, log),
        can_use_tool=approve_within(plan.scope, cwd=str(plan.project_dir)),
        settings=_settings(plan, host),
        setting_sources=list(plan.setting_sources),
        cwd=str(plan.project_dir),
        env={**values.get("env", {}), **_env(plan)},
        plugins=[{"type": "local", "path": str(folder)} for folder in plan.plugins],
        agents=_agents(plan) or None,
        skills=list(plan.skills),
        system_prompt=_system_prompt(plan),
        max_buffer_size=values.get("max_buffer_size", BUFFER_SIZE),
        verbatim_prompts=config.prompt_mentions == "off",
        strict_mcp_config=config.strict_mcp_config,
        **_mcp(servers, host, values),
        **_given(plan),
    )
    known = {field.name for field in fields(ClaudeAgentOptions)}
    if unknown := [name for name in values if name not in known]:
        raise ConfigError(
            Fault(
                field=f"options[{name!r}]", value=values[name], remedy="the SDK has no such option."
            )
            for name in unknown
        )
    return ClaudeAgentOptions(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A connected session: its plan, its options and the SDK's client."""

    plan: SessionPlan
    options: ClaudeAgentOptions
    client: ClaudeSDKClient


@asynccontextmanager
async def open_session(spec: AgentSpec, config: SessionConfig) -> AsyncIterator[Session]:
    """Plan, build and connect; at the end remove what only the running session needed."""
    plan = plan_session(spec, config)
    options = options_from_plan(plan)
    try:
        async with ClaudeSDKClient(options) as client:
            yield Session(plan=plan, options=options, client=client)
    finally:
        close_run_folder(plan.run_dir)


def _made(server: Any | Callable[[], Any]) -> Any:
    return server() if callable(server) else server


def _passed_on(options: Mapping[str, Any]) -> dict[str, Any]:
    """The spec's own SDK options; hooks and settings are merged elsewhere."""
    return {name: value for name, value in options.items() if name not in ("hooks", "settings")}


def _hooks(plan: SessionPlan, log: GateLog | None) -> dict[Any, list[HookMatcher]]:
    """The gate with everybody's PreToolUse callbacks inside it, the prompt gate, and the rest."""
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
        "PreToolUse": [create_file_scope_gate(plan.scope, before=before, log=log)]
    }
    if plan.config.prompt_mentions == "scope":
        found["UserPromptSubmit"] = [create_prompt_gate(plan.scope)]
    for event, hooks in brought.items():
        found.setdefault(event, []).extend(
            HookMatcher(hooks=[hook]) if callable(hook) else hook for hook in hooks
        )
    return found


def _settings(plan: SessionPlan, host: Path) -> str:
    """The flag settings, inline, or in a file when a command line couldn't hold them."""
    text = json.dumps(plan.settings)
    if len(text) <= INLINE_SETTINGS:
        return text
    return str(write_private(host, "settings.json", plan.settings))


def _env(plan: SessionPlan) -> dict[str, str]:
    env = dict(plan.config.env)
    if plan.config.config_dir is not None:
        env["CLAUDE_CONFIG_DIR"] = str(plan.project_dir / plan.config.config_dir)
    return env


def _agents(plan: SessionPlan) -> dict[str, AgentDefinition]:
    return {
        name: AgentDefinition(
            description=agent.description,
            prompt=agent.prompt,
            tools=None if agent.tools is None else list(agent.tools),
            model=agent.model,
        )
        for name, agent in plan.spec.subagents.items()
    }


def _system_prompt(plan: SessionPlan) -> Any:
    if plan.spec.preset is None:
        return plan.system_prompt
    return {"type": "preset", "preset": plan.spec.preset, "append": plan.system_prompt}


def _mcp(servers: dict[str, Any], host: Path, values: dict[str, Any]) -> dict[str, Any]:
    """Servers with secrets go to the CLI in a file: a command line can be read by other users."""
    secret = {name: server for name, server in servers.items() if _has_secret(server)}
    if not secret:
        return {"mcp_servers": servers}
    path = write_private(host, "mcp.json", {"mcpServers": secret})
    return {
        "mcp_servers": {name: server for name, server in servers.items() if name not in secret},
        "extra_args": {**values.get("extra_args", {}), "mcp-config": str(path)},
    }


def _has_secret(server: Any) -> bool:
    return isinstance(server, Mapping) and bool(server.get("env") or server.get("headers"))


def _given(plan: SessionPlan) -> dict[str, Any]:
    """Options that stay unset unless somebody gave them."""
    config: SessionConfig = plan.config
    given = {
        "cli_path": config.cli_path,
        "max_turns": config.max_turns,
        "model": config.model or plan.spec.model,
        "permission_mode": config.permission_mode,
        "resume": config.resume,
        "session_id": None if config.resume else plan.session_id,
    }
    return {name: value for name, value in given.items() if value is not None}
