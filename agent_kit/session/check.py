"""``check_options``: which locks a set of options really holds.

``ClaudeAgentOptions`` are a plain value that anybody may change: one ``dataclasses.replace`` with
new ``hooks`` and the gate is gone, without a word from the SDK or the CLI. One function a field says
which locks a change of that field takes away.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from claude_agent_sdk import ClaudeAgentOptions

from agent_kit.sdk.gate import create_file_scope_gate
from agent_kit.sdk.hooks import EVENTS
from agent_kit.sdk.prompt_gate import create_prompt_gate
from agent_kit.session.check_settings import file_tools_in, lost_settings
from agent_kit.session.flags import is_harmless
from agent_kit.session.host_rules import AGENT_PARTS
from agent_kit.session.locks import Lock
from agent_kit.session.promise import (
    Promise,
    SettingsUnreadable,
    all_callbacks,
    is_file_name,
    plugin_marks,
    promise_behind,
    promise_of,
    read_settings,
    server_marks,
    watched_env,
)
from agent_kit.session.tools import COMMAND_TOOLS, can_run_commands

__all__ = ["LockLostError", "LostLock", "check_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LostLock:
    """A lock that the plan promised and the options don't hold: by which field, and why."""

    lock: str
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.lock}, by {self.field}: {self.reason}"


class LockLostError(RuntimeError):
    """Options that don't hold what their plan promised. ``lost`` has each lock with its field."""

    def __init__(self, lost: tuple[LostLock, ...]) -> None:
        self.lost = lost
        super().__init__(
            "\n".join(["these options don't hold what was promised:", *map(str, lost)])
        )


def check_options(options: ClaudeAgentOptions) -> Mapping[str, Lock]:
    """Which of the four locks these options hold, each with the reason.

    Raises LockLostError when the kit built them, or those that they were made from, and a lock that
    it promised is gone. Settings in a file are read. Options that the kit never touched have every
    lock off, but for a gate or a prompt gate that somebody put there. Raises TypeError for anything
    but options.
    """
    if not isinstance(options, ClaudeAgentOptions):
        raise TypeError(f"give the ClaudeAgentOptions, not {type(options).__name__}.")
    promise = promise_of(options)
    if promise is None:
        return _untouched(options)
    found = [lost for check in _CHECKS for lost in check(promise, options)]
    lost = tuple(
        dict.fromkeys(
            one for one in found if one.lock in promise.locks and promise.locks[one.lock].on
        )
    )
    if lost:
        raise LockLostError(lost)
    return dict(promise.locks)


_Losses = Iterator[LostLock]
_ALL: Final = ("gate", "rules", "prompts", "kernel")


def _lost(field: str, reason: str, *locks: str) -> _Losses:
    for lock in locks:
        yield LostLock(lock=lock, field=field, reason=reason)


def _hooks(promise: Promise, options: ClaudeAgentOptions) -> _Losses:
    gates = promise.own_hooks["PreToolUse"]
    why = _why_no_gate(options, lambda each: _is_for(promise, each), gates)
    if why is not None:
        yield from _lost("hooks", why, "gate")
    for event in options.hooks or {}:
        if event not in EVENTS and event not in promise.own_hooks:
            reason = f"a hook of {event!r} could answer in place of the kit"
            yield from _lost("hooks", reason, "rules")


def _is_for(promise: Promise, callback: object) -> bool:
    found = promise_behind(callback)
    return found is not None and (found.session_id, found.scope) == (
        promise.session_id,
        promise.scope,
    )


def _why_no_gate(
    options: ClaudeAgentOptions, is_gate: Callable[[object], bool], gates: int
) -> str | None:
    callbacks = all_callbacks(options, "PreToolUse")
    own = [each for each in callbacks if is_gate(each)]
    if len(own) < gates:
        return "there is no gate among its PreToolUse hooks"
    if len(own) < len(callbacks):
        return "a PreToolUse hook beside the gate could rewrite an input that was judged"
    matchers = (options.hooks or {}).get("PreToolUse", ())
    return next((why for each in matchers if (why := _why_not_whole(each)) is not None), None)


def _why_not_whole(matcher: Any) -> str | None:
    """Why a matcher with the kit's callback is no lock."""
    if getattr(matcher, "matcher", None) not in (None, "", "*"):
        return "the hook is called for some of the tools only"
    if getattr(matcher, "on_failure", None) != "block":
        return "the call would run when the hook fails (on_failure)"
    return None


def _prompts(promise: Promise, options: ClaudeAgentOptions) -> _Losses:
    if promise.prompt_mentions == "off" and not options.verbatim_prompts:
        yield from _lost("verbatim_prompts", "mentions in prompts are expanded", "prompts")
    if options.verbatim_prompts:  # nothing is expanded or run
        return
    for event, count in promise.own_hooks.items():
        if event == "PreToolUse" or not count:
            continue
        why = _why_no_prompt_gate(options, event, lambda each: _is_for(promise, each), count)
        if why is not None:
            yield from _lost("hooks", why, "prompts")


def _why_no_prompt_gate(
    options: ClaudeAgentOptions, event: str, is_gate: Callable[[object], bool], count: int = 1
) -> str | None:
    matchers: list[Any] = list((options.hooks or {}).get(event, ()))  # type: ignore[call-overload]
    own = [each for each in matchers if any(map(is_gate, getattr(each, "hooks", ())))]
    if len(own) < count:
        return f"there is no prompt gate among its {event} hooks"
    return next((why for each in own if (why := _why_not_whole(each)) is not None), None)


def _approval(promise: Promise, options: ClaudeAgentOptions) -> _Losses:
    if not _is_for(promise, options.can_use_tool):
        reason = "what the CLI asks about is not judged by the scope"
        yield from _lost("can_use_tool", reason, "rules")
    if options.permission_prompt_tool_name is not None:
        reason = "it takes the CLI's questions away from the kit"
        yield from _lost("permission_prompt_tool_name", reason, "rules")
    if options.permission_mode in _LOOSER and options.permission_mode != promise.permission_mode:
        reason = f"in the mode {options.permission_mode!r} the CLI asks less than was planned"
        yield from _lost("permission_mode", reason, "rules")


_LOOSER: Final = ("acceptEdits", "auto", "bypassPermissions")


def _settings(promise: Promise, options: ClaudeAgentOptions) -> _Losses:
    try:
        found = read_settings(options)
    except SettingsUnreadable as why:
        yield from _lost("settings", str(why), "rules")
        return
    for reason in lost_settings(promise, found):
        yield from _lost("settings", reason, "rules")
    if options.sandbox is not None:
        yield from _lost("sandbox", "it rewrites the settings that hold the rules", "rules")


def _tools(promise: Promise, options: ClaudeAgentOptions) -> _Losses:
    for entry in options.allowed_tools:
        if file_tools_in(str(entry)) or str(entry).strip() == "*":
            reason = f"{entry!r} lets the CLI open more than the scope does"
            yield from _lost("allowed_tools", reason, "rules")
    off = {*map(str, options.disallowed_tools)}
    for name in _named_tools(options) - promise.tools - off:
        if can_run_commands(name):
            yield from _lost("tools", _why_no_tool(name), "gate", "rules")


def _why_no_tool(name: str) -> str:
    if name == _EVERY:
        return "it offers every tool, those that run commands among them"
    if name in COMMAND_TOOLS:
        return f"{name} runs commands, which no hook and no rule sees into"
    return f"{name} may run commands: this version of the kit doesn't know it"


_EVERY: Final = "default"


def _named_tools(options: ClaudeAgentOptions) -> set[str]:
    if not isinstance(options.tools, (list, tuple)):
        return {_EVERY}
    parts = {part.strip() for entry in options.tools for part in str(entry).split(",")}
    names = {part for part in parts if part and not part.startswith("mcp__")}  # the built-in ones
    return {_EVERY if name.casefold() == _EVERY else name.partition("(")[0] for name in names}


def _loaded(promise: Promise, options: ClaudeAgentOptions) -> _Losses:
    """What the CLI loads, and where it works."""
    sources = options.setting_sources
    if sources is None or not promise.setting_sources >= {*sources}:
        reason = "settings are loaded that were not planned, with allow rules of their own"
        yield from _lost("setting_sources", reason, "rules")
    skills = options.skills
    if skills is None or isinstance(skills, str) or not promise.skills >= {*skills}:
        reason = "skills are offered that are none of the session's"
        yield from _lost("skills", reason, "rules")
    if promise.strict_mcp_config and not options.strict_mcp_config:
        reason = "the servers of the project are started"
        yield from _lost("strict_mcp_config", reason, "rules")
    if options.add_dirs:
        reason = f"{', '.join(map(str, options.add_dirs))}: opened beside the scope"
        yield from _lost("add_dirs", reason, "rules")
    if os.path.realpath(options.cwd or "") != os.path.realpath(promise.cwd):
        reason = f"the session was planned for {promise.cwd}"
        yield from _lost("cwd", reason, "gate", "rules")
    for name, agent in (options.agents or {}).items():
        for part, row in AGENT_PARTS.items():
            if getattr(agent, part, None) is not None:
                yield from _lost("agents", f"{part} of {name!r}: {row.remedy}", row.lock)
    yield from _brought(promise, options)


def _brought(promise: Promise, options: ClaudeAgentOptions) -> _Losses:
    """What brings tools, hooks and commands of its own. That some of it is gone takes no lock."""
    for plugin in plugin_marks(options):
        if plugin not in promise.plugins:
            reason = f"{plugin['path']} was not planned: it may bring hooks, servers and commands"
            yield from _lost("plugins", reason, "gate", "rules")
    for name, server in server_marks(options).items():
        if name not in promise.mcp_servers or promise.mcp_servers[name] != server:
            shown = repr(name) if is_file_name(str(name)) else "a text"
            reason = f"{shown} is another server than was planned, and may open any file"
            yield from _lost("mcp_servers", reason, "gate", "rules")


def _started(promise: Promise, options: ClaudeAgentOptions) -> _Losses:
    """Which program is started, with what."""
    found = None if options.cli_path is None else str(options.cli_path)
    if found != promise.cli_path:
        yield from _lost("cli_path", "another program is started than was planned", *_ALL)
    for flag, value in options.extra_args.items():
        planned = flag in promise.extra_args and promise.extra_args[flag] == value
        if not planned and not is_harmless(flag, value):
            yield from _lost("extra_args", f"--{flag} could undo any lock", *_ALL)
    env = watched_env(options)
    for name in dict.fromkeys((*promise.env, *env)):
        if (env.get(name) or None) != (promise.env.get(name) or None):
            locks = _ENV_LOCKS.get(name, _ALL)
            yield from _lost("env", f"{name} is another than was planned", *locks)
    if env.get("CLAUDE_CONFIG_DIR") == "":
        reason = "CLAUDE_CONFIG_DIR is empty: the CLI takes its working folder"
        yield from _lost("env", reason, "gate", "rules")


_ENV_LOCKS: Final[Mapping[str, tuple[str, ...]]] = {
    "HOME": ("gate", "rules"),  # the account's files lie elsewhere then
    "CLAUDE_CONFIG_DIR": ("gate", "rules"),
    "CLAUDE_CODE_TMPDIR": ("gate", "rules"),
    "CLAUDE_CODE_SIMPLE": ("gate", "prompts"),  # no hook is asked
    "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS": ("prompts",),  # a mentioned file is sent first
    "CLAUDE_CODE_DISABLE_CRON": ("prompts",),  # the project submits prompts
    "CLAUDE_CODE_HARBOR_KITE": ("prompts",),  # other programs submit prompts
}

_CHECKS: Final[tuple[Callable[[Promise, ClaudeAgentOptions], _Losses], ...]] = (
    _hooks,
    _prompts,
    _approval,
    _settings,
    _tools,
    _loaded,
    _started,
)


def _untouched(options: ClaudeAgentOptions) -> dict[str, Lock]:
    unhooked = _why_no_hook_runs(options)
    gate = unhooked or _why_no_gate(options, _is_made_by(create_file_scope_gate), 1)
    if options.verbatim_prompts:
        prompts = None
    else:
        is_gate = _is_made_by(create_prompt_gate)
        prompts = unhooked or _why_no_prompt_gate(options, "UserPromptSubmit", is_gate)
    return {
        "gate": _lock(gate, "a PreToolUse hook judges every file tool call."),
        "rules": Lock(on=False, reason="agent-kit has not written the rules of these options."),
        "prompts": _lock(prompts, "mentions are judged, or none is expanded."),
        "kernel": Lock(on=False, reason="the CLI starts unconfined."),
    }


def _lock(why_not: str | None, reason: str) -> Lock:
    return Lock(on=True, reason=reason) if why_not is None else Lock(on=False, reason=f"{why_not}.")


def _why_no_hook_runs(options: ClaudeAgentOptions) -> str | None:
    for flag, value in options.extra_args.items():
        if not is_harmless(flag, value):
            return f"--{flag} could undo it"
    if watched_env(options).get("CLAUDE_CODE_SIMPLE"):
        return "with CLAUDE_CODE_SIMPLE the CLI asks no hook"
    return None


def _is_made_by(maker: Callable[..., Any]) -> Callable[[object], bool]:
    """Whether a callback is one of ``maker``'s module, and nothing that is wrapped around it."""
    return lambda each: _file_of(each) == maker.__code__.co_filename


def _file_of(callback: object) -> str | None:
    code = getattr(callback, "__code__", None)
    return None if code is None else str(code.co_filename)
