"""The policy gate of a planned session, and its trail. Here the SDK is loaded."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Final

from agent_kit.policy.deferred import QuestionStore
from agent_kit.policy.guard import Guard
from agent_kit.policy.judged import Judged
from agent_kit.policy.modes import ANSWERED, Mode
from agent_kit.scope import Fault
from agent_kit.sdk.hints import tools_at_once
from agent_kit.sdk.judging import ScopeJudge
from agent_kit.sdk.open_tools import OpenTools
from agent_kit.sdk.policy_gate import Ask, PolicyGate
from agent_kit.session.forks import forks_of
from agent_kit.session.plan import SessionPlan
from agent_kit.session.policy import policy_of
from agent_kit.session.trail import Trail, trail_path

__all__ = ["close_trail", "make_policy_gate", "misnamed", "unanswered"]

_ALIKE: Final = 0.85

# By path: two sessions of one process may have the same id, each in a run folder of its own.
_trails: Final[weakref.WeakValueDictionary[Path, Trail]] = weakref.WeakValueDictionary()


def make_policy_gate(
    plan: SessionPlan, *, ask: Ask | None = None, disallowed: Sequence[str] | None = None
) -> PolicyGate:
    """What judges inside the scope of ``plan``, and the plan's guard with it.

    ``ask`` is used where the config has none. ``disallowed`` are the tools and rules that a host's
    options disallow, in the place of the plan's: there they stand for those not offered, too.
    """
    config = plan.config
    given: Any = ask if config.ask is None else config.ask
    deferred = given == "defer"
    off = plan.tools.disallowed if disallowed is None else disallowed
    denied = plan.settings["permissions"]["deny"]
    note = _trail(plan).note
    policy = policy_of(
        config,
        plan.policy,
        plan.scope,
        plan.tools,
        plan.session_id,
        has_ask=given is not None,
        forks=forks_of(plan.spec, plan.commands, plan.tools, (*off, *denied)),
        # A host's own callback is asked by the CLI.
        answered=ANSWERED if ask is None else frozenset(),
        told=partial(_switched, note, plan.session_id),
    )
    tools = OpenTools(
        whole=frozenset((*plan.tools.allowed, "Skill")),
        rules=plan.tools.rules,
        closed=(*plan.tools.denied, *(rule for rule in disallowed or () if "(" in rule)),
    )
    gate = PolicyGate(
        policy=policy,
        tools=tools,
        scope_judge=ScopeJudge(config.allow_worktrees, plan.commands),
        ask=None if deferred else given,
        questions=QuestionStore(plan.host_dir) if deferred else None,
        note=note,
    )
    plan.guard.guard = Guard(policy=policy, ask=gate.ask, note=gate.note, caller=gate.callers.get)
    return gate


def unanswered(plan: SessionPlan) -> Iterator[Fault]:
    """The tools that only a person can answer, where nobody does while the session runs."""
    if plan.config.ask is None or plan.config.ask == "defer":
        for tool in plan.tools.names:
            if tool in ANSWERED:
                yield Fault(
                    field="tools",
                    value=tool,
                    remedy="only a person can answer it: give a function as SessionConfig.ask, or take"
                    " it out.",
                )


def misnamed(plan: SessionPlan, servers: Mapping[str, Any]) -> Iterator[Fault]:
    """Tools that the config names and that are close to one of their server, where it is of this process.

    ``servers`` are the SDK's configurations. One that resembles none may be listed later.
    """
    fields = ("interrupt_on", "mcp_file_tools")
    names = {
        field: [n for n in getattr(plan.config, field) if n.startswith("mcp__")] for field in fields
    }
    if not any(names.values()):
        return
    listed = tools_at_once(servers)
    known = [f"mcp__{server}__{tool}" for server, tools in listed.items() for tool in tools]
    for field in fields:
        for name in names[field]:
            close = [] if name in known else get_close_matches(name, known, n=1, cutoff=_ALIKE)
            if any(name.startswith(f"mcp__{server}__") for server in listed) and close:
                yield Fault(field=field, value=name, remedy=f"did you mean {close[0]}?")


def _switched(note: Callable[[Judged], None], session_id: str, before: Mode, after: Mode) -> None:
    """The trail's line on a switch of the mode."""
    note(
        Judged(
            session_id=session_id,
            tool="session_mode",
            tool_input={"mode": str(after), "before": str(before)},
            verdict="allow",
            lock="mode",
            code="switched",
        )
    )


def _trail(plan: SessionPlan) -> Trail:
    path = trail_path(plan.host_dir, plan.session_id)
    if (trail := _trails.get(path)) is None:
        trail = _trails[path] = Trail(path)
    return trail


def close_trail(plan: SessionPlan) -> None:
    """Wait until what was recorded of the session is on the disk, a few seconds at most."""
    if (trail := _trails.get(trail_path(plan.host_dir, plan.session_id))) is not None:
        trail.close()
