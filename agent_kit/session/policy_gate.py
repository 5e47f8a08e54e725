"""The policy gate of a planned session, and its trail. Here the SDK is loaded."""

from __future__ import annotations

import weakref
from typing import Any, Final

from agent_kit.policy.deferred import QuestionStore
from agent_kit.policy.modes import SessionMode
from agent_kit.policy.outcome import Messages
from agent_kit.policy.policy import Policy
from agent_kit.sdk.judging import ScopeJudge
from agent_kit.sdk.open_tools import OpenTools
from agent_kit.sdk.policy_gate import Ask, PolicyGate
from agent_kit.session.plan import SessionPlan
from agent_kit.session.tools import commands_in
from agent_kit.session.trail import Trail, trail_path

__all__ = ["close_trail", "make_policy_gate"]

_trails: Final[weakref.WeakValueDictionary[str, Trail]] = weakref.WeakValueDictionary()


def make_policy_gate(plan: SessionPlan, *, ask: Ask | None = None) -> PolicyGate:
    """What judges inside the scope of ``plan``. ``ask`` is used where the config has none."""
    config, planned = plan.config, plan.policy
    given: Any = ask if config.ask is None else config.ask
    deferred = given == "defer"
    policy = Policy(
        scope=plan.scope,
        scopes=planned.scopes,
        rules=planned.rules,
        authorizers=tuple(config.authorizers),
        interrupt_on=dict(config.interrupt_on),
        read_only=planned.read_only,
        commands=frozenset(commands_in(plan.tools)),
        startable=planned.startable,
        mode=SessionMode(config.mode),
        has_ask=given is not None,
        config=config,
        session_id=plan.session_id,
        messages=config.messages or Messages(),
        unfiltered=planned.unfiltered,
    )
    tools = OpenTools(
        whole=frozenset((*plan.tools.allowed, "Skill")),
        rules=plan.tools.rules,
        closed=plan.tools.denied,
    )
    return PolicyGate(
        policy=policy,
        tools=tools,
        scope_judge=ScopeJudge(config.allow_worktrees, plan.commands),
        ask=None if deferred else given,
        questions=QuestionStore(plan.host_dir) if deferred else None,
        note=_trail(plan).note,
    )


def _trail(plan: SessionPlan) -> Trail:
    trail = _trails.get(plan.session_id)
    if trail is None:
        trail = _trails[plan.session_id] = Trail(trail_path(plan.host_dir, plan.session_id))
    return trail


def close_trail(plan: SessionPlan) -> None:
    """Wait until what was recorded of the session is on the disk, a few seconds at most."""
    if (trail := _trails.get(plan.session_id)) is not None:
        trail.close()
