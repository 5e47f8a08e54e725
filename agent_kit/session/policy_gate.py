"""The policy gate of a planned session, and its trail. Here the SDK is loaded."""

from __future__ import annotations

import weakref
from typing import Any, Final

from agent_kit.policy.deferred import QuestionStore
from agent_kit.policy.guard import Guard
from agent_kit.sdk.judging import ScopeJudge
from agent_kit.sdk.open_tools import OpenTools
from agent_kit.sdk.policy_gate import Ask, PolicyGate
from agent_kit.session.plan import SessionPlan
from agent_kit.session.policy import policy_of
from agent_kit.session.trail import Trail, trail_path

__all__ = ["close_trail", "make_policy_gate"]

_trails: Final[weakref.WeakValueDictionary[str, Trail]] = weakref.WeakValueDictionary()


def make_policy_gate(plan: SessionPlan, *, ask: Ask | None = None) -> PolicyGate:
    """What judges inside the scope of ``plan``, and the plan's guard with it.

    ``ask`` is used where the config has none.
    """
    config = plan.config
    given: Any = ask if config.ask is None else config.ask
    deferred = given == "defer"
    policy = policy_of(
        config, plan.policy, plan.scope, plan.tools, plan.session_id, has_ask=given is not None
    )
    tools = OpenTools(
        whole=frozenset((*plan.tools.allowed, "Skill")),
        rules=plan.tools.rules,
        closed=plan.tools.denied,
    )
    gate = PolicyGate(
        policy=policy,
        tools=tools,
        scope_judge=ScopeJudge(config.allow_worktrees, plan.commands),
        ask=None if deferred else given,
        questions=QuestionStore(plan.host_dir) if deferred else None,
        note=_trail(plan).note,
    )
    plan.guard.guard = Guard(policy=policy, ask=gate.ask, note=gate.note, caller=gate.callers.get)
    return gate


def _trail(plan: SessionPlan) -> Trail:
    trail = _trails.get(plan.session_id)
    if trail is None:
        trail = _trails[plan.session_id] = Trail(trail_path(plan.host_dir, plan.session_id))
    return trail


def close_trail(plan: SessionPlan) -> None:
    """Wait until what was recorded of the session is on the disk, a few seconds at most."""
    if (trail := _trails.get(plan.session_id)) is not None:
        trail.close()
