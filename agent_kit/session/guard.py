"""``guard_options``: the locks for ``ClaudeAgentOptions`` that one already has.

No second way to build a session: the options are read as a spec and a config, those are planned, and
the plan makes the options. What the two have no words for is put back afterwards. A field that can't
be kept without undoing a lock is a fault.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

from claude_agent_sdk import ClaudeAgentOptions

from agent_kit.scope import ConfigError, Fault
from agent_kit.sdk.gate import GateLog
from agent_kit.sdk.host_approval import approve_with_host, asked_by
from agent_kit.sdk.policy_gate import PolicyGate
from agent_kit.session.checks import type_faults
from agent_kit.session.config import SessionConfig
from agent_kit.session.host_rules import host_rules, is_plain, named_skills, unasked
from agent_kit.session.options import built_options
from agent_kit.session.plan import SessionPlan, plan_session
from agent_kit.session.policy_gate import make_policy_gate
from agent_kit.session.promise import keep_promise, promises_in
from agent_kit.session.reading import Reading, plan_fault, shown
from agent_kit.session.spec import AgentSpec

__all__ = ["guard_options"]

_READERS: Final = ("Read", "Glob", "Grep", "NotebookRead", "LS")
_WRITERS: Final = ("Write", "Edit", "MultiEdit", "NotebookEdit")


def guard_options(
    options: ClaudeAgentOptions, config: SessionConfig, *, log: GateLog | None = None
) -> ClaudeAgentOptions:
    """``options`` with the locks of ``config`` around them; ``options`` itself stays as it is.

    The folders are the config's. Callbacks, prompt, model, servers, agents, plugins and settings are
    the options': PreToolUse hooks run inside the gate, ``can_use_tool`` is asked after the kit's, and
    for the rules that interrupt where the config has no ``ask``.
    Whole-tool allows of file tools become the scope's rules, and no tool is added. ``tools`` left
    open becomes what the folders need and ``allowed_tools`` names. ``log`` as in
    :func:`~agent_kit.build_session_options`.

    Raises ConfigError with everything that can't be kept, and what :func:`plan_session` raises. No
    value of ``env``, ``settings``, ``mcp_servers`` or ``extra_args`` that may be a key is shown.
    """
    wanted = (("options", options, ClaudeAgentOptions), ("config", config, SessionConfig))
    if faults := type_faults(*wanted) or _guarded_faults(options):
        raise ConfigError(faults)
    read = Reading(options, config)
    spec, merged = read.spec(), read.config()
    plan = _planned(read, spec, merged)
    host: Callable[..., Any] | None = options.can_use_tool
    policy = make_policy_gate(
        plan, ask=None if host is None else asked_by(host), disallowed=options.disallowed_tools
    )
    built = built_options(_as_allowed(plan, options), policy, log=log)
    put_back = _put_back(plan, policy, options, built)
    return keep_promise(plan, dataclasses.replace(built, **put_back), policy.policy.mode)


def _guarded_faults(options: ClaudeAgentOptions) -> list[Fault]:
    """Of options that the kit made this alone is said: what they hold is the kit's own."""
    if not promises_in(options):
        return []
    remedy = "give the options that you had before: these have the kit's locks already."
    return [Fault(field="options", value=options.session_id, remedy=remedy)]


def _planned(read: Reading, spec: AgentSpec | None, config: SessionConfig | None) -> SessionPlan:
    """The plan, or every fault of the options, the config and the disk together."""
    try:
        plan = plan_session(spec or read.part(), config or read.given)
    except ConfigError as error:
        read.faults += (read.of_option(plan_fault(fault)) for fault in error.faults)
    except Exception:
        if not read.faults:  # those come first
            raise
    if read.faults:
        raise ConfigError(map(shown, read.faults))
    return plan


def _as_allowed(plan: SessionPlan, options: ClaudeAgentOptions) -> SessionPlan:
    """The plan without what the host's options did not allow unasked.

    A plan allows every tool that the spec names. Where the host has a ``can_use_tool`` it goes on
    being asked about what it was asked about: reading and writing in the scope, too.
    """
    allowed = {*host_rules(options)}
    silent = unasked(options)
    permissions = plan.settings["permissions"]
    drop = {tool for tool in plan.tools.allowed if tool not in allowed}
    if options.can_use_tool is not None:
        for kind, rule in ((_READERS, "Read("), (_WRITERS, "Edit(")):
            if not silent >= {name for name in plan.tools.names if name in kind}:
                drop |= {each for each in plan.rules.allow if each.startswith(rule)}
    kept = [rule for rule in permissions["allow"] if rule not in drop]
    settings = {**plan.settings, "permissions": {**permissions, "allow": kept}}
    return dataclasses.replace(plan, settings=settings)


def _put_back(
    plan: SessionPlan, policy: PolicyGate, options: ClaudeAgentOptions, built: ClaudeAgentOptions
) -> dict[str, Any]:
    """What the options say and a spec has no words for."""
    host: Callable[..., Any] | None = options.can_use_tool
    cwd = str(plan.project_dir)
    rules = [rule for rule in options.disallowed_tools if not is_plain(rule)]
    found: dict[str, Any] = {
        "can_use_tool": approve_with_host(
            plan.scope,
            host,
            cwd=cwd,
            unasked=unasked(options),
            allowed=host_rules(options),
            policy=policy,
        ),
        "agents": options.agents and dict(options.agents),
        "disallowed_tools": [*built.disallowed_tools, *rules],
        "extra_args": {**options.extra_args, **built.extra_args},
    }
    if isinstance(options.skills, list):  # no more of a plugin's than were offered
        offered = {*map(str, options.skills), *named_skills(options)}
        found["skills"] = [name for name in built.skills or () if name in offered]
    if isinstance(options.system_prompt, Mapping):
        found["system_prompt"] = _with_form(options.system_prompt, built.system_prompt)
    return found


def _with_form(given: Mapping[str, Any], made: Any) -> Any:
    """The prompt that was made, with the switches of the form that was given."""
    switches = {
        name: value
        for name, value in given.items()
        if name not in ("type", "preset", "append", "prompt", "path")
    }
    if isinstance(made, str):
        return {"type": "custom", "prompt": made, **switches} if switches else made
    return {**made, **switches} if made.get("type") == given.get("type") else made
