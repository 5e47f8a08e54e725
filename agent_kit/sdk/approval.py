"""The second half of lock 2: what the CLI asks about is judged by the scope once more."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny

from agent_kit.scope import FileScope
from agent_kit.scope.judge import judge_whole
from agent_kit.scope.sentences import INTERNAL_ERROR
from agent_kit.scope.text import shown
from agent_kit.scope.tools import FILE_TOOLS

if TYPE_CHECKING:
    from agent_kit.sdk.policy_gate import PolicyGate

__all__ = ["Objection", "answer_raised", "approve_within", "is_mcp_tool", "objection", "record"]

_log = logging.getLogger("agent_kit.approval")

Result = PermissionResultAllow | PermissionResultDeny


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """Why a call that the CLI asks about is refused: ``code`` and ``lock`` are for the trail."""

    message: str
    code: str
    lock: str = "approval"


def approve_within(
    scope: FileScope,
    *,
    cwd: str,
    policy: PolicyGate | None = None,
    narrowed: Sequence[str] = (),
) -> Callable[[str, dict[str, Any], Any], Awaitable[Result]]:
    """A ``can_use_tool``: file tools as the scope says, MCP tools yes, everything else no.

    ``cwd`` is what relative paths are relative to (the question doesn't say where the call stood).
    ``narrowed`` are the rules by which tools are open in part, for the refusal of the rest.
    What the hook of ``policy`` has raised is answered by it; else an approval leaves the input as it
    is. A refusal is in the trail of ``policy``. Never raises.
    """

    async def can_use_tool(tool_name: str, tool_input: dict[str, Any], context: Any) -> Result:
        if policy is not None and policy.waits(getattr(context, "tool_use_id", None)):
            return await answer_raised(policy, tool_name, tool_input, context)
        started = perf_counter()
        try:
            found = objection(
                scope, tool_name, tool_input, context, cwd=cwd, policy=policy, narrowed=narrowed
            )
        except Exception:  # noqa: BLE001 - whatever it is, the call must not run
            _log.exception("a question of the CLI could not be judged")
            found = Objection(message=INTERNAL_ERROR, code="internal-error")
        record(policy, tool_name, tool_input, context, cwd, started, found)
        return PermissionResultAllow() if found is None else _deny(found)

    return can_use_tool


async def answer_raised(
    policy: PolicyGate, tool_name: str, tool_input: dict[str, Any], context: Any
) -> Result:
    """The answer to a question that the hook of ``policy`` has raised, which records it."""
    try:
        return await policy.answer(tool_name, tool_input, context)
    except Exception:  # noqa: BLE001 - whatever it is, the call must not run
        _log.exception("a question of the CLI could not be judged")
        return PermissionResultDeny(message=INTERNAL_ERROR)


def record(
    policy: PolicyGate | None,
    tool_name: str,
    tool_input: Any,
    context: Any,
    cwd: str,
    started: float,
    found: Objection | None,
) -> None:
    """Write the trail's line on a question that no hook has raised. Never raises."""
    if policy is None:
        return
    try:
        call = policy.call_of(tool_name, tool_input, context, cwd)
        lock, code = ("approval", None) if found is None else (found.lock, found.code)
        policy.record_answer(call, started, lock, code)
    except Exception:  # noqa: BLE001 - the answer counts, whatever becomes of its line
        _log.exception("an answer could not be recorded")


def objection(
    scope: FileScope,
    tool_name: str,
    tool_input: Any,
    context: Any,
    *,
    cwd: str,
    policy: PolicyGate | None = None,
    narrowed: Sequence[str] = (),
) -> Objection | None:
    """What is held against a call that no hook has raised a question about."""
    if policy is not None:
        agent = policy.agents.get(getattr(context, "agent_id", None) or "")
        scope = policy.policy.scope_of(agent)
    if tool_name in FILE_TOOLS or is_mcp_tool(tool_name):
        found = judge_whole(scope, tool_name, tool_input, cwd)
        return (
            None if found.reason is None else Objection(message=found.reason, code=str(found.code))
        )
    message = f'"{shown(tool_name)}" isn\'t an allowed tool in this session.'
    if rules := [rule for rule in narrowed if rule.startswith(f"{tool_name}(")]:
        message = f'"{shown(tool_name)}" is allowed in this session only as {", ".join(rules)}.'
    return Objection(message=message, code="not-allowed")


def _deny(found: Objection) -> PermissionResultDeny:
    return PermissionResultDeny(message=found.message)


def is_mcp_tool(tool_name: str) -> bool:
    """Whether a name is ``mcp__<server>__<tool>``, both parts there."""
    server, _, tool = tool_name.removeprefix("mcp__").partition("__")
    return tool_name.startswith("mcp__") and bool(server and tool)
