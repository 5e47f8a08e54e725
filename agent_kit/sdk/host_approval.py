"""A host's own ``can_use_tool`` behind the kit's: it may refuse more, and never opens what is shut."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Final

from claude_agent_sdk import (
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

from agent_kit.policy.approval import Approval, approve, edit, reject
from agent_kit.policy.modes import ANSWERED
from agent_kit.policy.policy import Call
from agent_kit.scope import FileScope, check_file_scope
from agent_kit.scope.sentences import INTERNAL_ERROR
from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.sdk.approval import (
    Objection,
    Result,
    answer_raised,
    is_mcp_tool,
    objection,
    record,
)
from agent_kit.sdk.course import Stopped
from agent_kit.sdk.doors import NO_FILE_TOOLS
from agent_kit.sdk.open_tools import OpenTools
from agent_kit.sdk.policy_gate import PolicyGate

__all__ = ["HostCallback", "approve_with_host", "asked_by"]

_log = logging.getLogger("agent_kit.approval")

HostCallback = Callable[[str, dict[str, Any], Any], Awaitable[Any]]

_ABORTED: Final = Objection(message="", code="aborted", lock="host")
_NOBODY: Final = "This call needs a person's approval, and nobody can be asked in this session."


def approve_with_host(
    scope: FileScope,
    host: HostCallback | None,
    *,
    cwd: str,
    unasked: Collection[str] = (),
    allowed: Collection[str] = (),
    policy: PolicyGate | None = None,
) -> Callable[[str, dict[str, Any], Any], Awaitable[Result]]:
    """A ``can_use_tool``: what the scope refuses is refused; the host answers for the rest.

    ``unasked`` are the file tools that the host is not asked about, ``allowed`` the other tools, and
    rules, by which the CLI asks nobody (for the trail). Without a ``host`` file tools
    are as the scope says, and everything else is refused. The host gets a copy of the input; what
    it changes is judged again; its changes of the session's rules are dropped. An answer that is
    none, or an exception, refuses. A refusal is in the trail of ``policy``. Never raises.
    """
    if policy is not None:
        silent = {*unasked} if host is not None else FILE_TOOLS.keys()
        policy.is_left = partial(_is_left, silent, _open(allowed))
        if isinstance(policy.ask, _HostAsk):
            policy.ask.agent_id_of = policy.agent_id_of

    async def can_use_tool(tool_name: str, tool_input: dict[str, Any], context: Any) -> Result:
        use_id = getattr(context, "tool_use_id", None)
        if policy is not None and policy.waits(use_id):  # by a rule: whoever answers has answered
            return await answer_raised(policy, tool_name, tool_input, context)
        started = perf_counter()
        result: Result | Objection
        try:
            result = await answer(tool_name, tool_input, context)
        except asyncio.CancelledError:
            record(policy, tool_name, tool_input, context, cwd, started, _ABORTED)
            raise
        except Exception:  # noqa: BLE001 - whatever it is, the call must not run
            _log.exception("a question of the CLI could not be answered")
            result = Objection(message=INTERNAL_ERROR, code="extension-failed", lock="host")
        changed = getattr(result, "updated_input", None)
        if policy is not None and changed is not None:
            return await _judged(policy, tool_name, tool_input, changed, context, cwd)
        record(policy, tool_name, tool_input, context, cwd, started, _found(result))
        if isinstance(result, Objection):
            return PermissionResultDeny(message=result.message)
        return result

    async def answer(
        tool_name: str, tool_input: dict[str, Any], context: Any
    ) -> Result | Objection:
        first = objection(scope, tool_name, tool_input, context, cwd=cwd, policy=policy)
        if first is not None and _is_judged(tool_name):
            return first
        if tool_name in unasked or (host is None and tool_name in FILE_TOOLS):
            return first or PermissionResultAllow()
        if host is None or (tool_name in ANSWERED and _is_nobody_there(policy)):
            return Objection(message=_NOBODY, code="nobody-to-ask")
        said = await host(tool_name, copy.deepcopy(tool_input), context)
        return _within(scope, cwd, tool_name, tool_input, said)

    return can_use_tool


async def _judged(
    policy: PolicyGate, tool_name: str, given: Any, changed: Any, context: Any, cwd: str
) -> Result:
    """The answer about an input that the host has changed, which is recorded."""
    try:
        return await policy.changed(tool_name, given, changed, context=context, cwd=cwd)
    except Exception:  # noqa: BLE001 - whatever it is, the call must not run
        _log.exception("an input that can_use_tool has changed could not be judged")
        return PermissionResultDeny(message=INTERNAL_ERROR)


def _found(result: Result | Objection) -> Objection | None:
    """What the trail says of an answer."""
    if isinstance(result, PermissionResultDeny):
        return Objection(message=result.message, code="denied", lock="host")
    return result if isinstance(result, Objection) else None


def _open(allowed: Collection[str]) -> OpenTools:
    """What the CLI runs without asking, beside file tools."""
    rules = tuple(rule for rule in allowed if "(" in rule)
    return OpenTools(whole=frozenset((*allowed, "Skill")) - {*rules}, rules=rules)


def _is_left(silent: Collection[str], open_tools: OpenTools, call: Call) -> bool:
    """Whether the CLI may ask about a call to which the hook has no objection."""
    if call.tool in FILE_TOOLS:
        return call.tool not in silent
    if is_mcp_tool(call.tool):
        server = "__".join(call.tool.split("__")[:2])
        return open_tools.whole.isdisjoint((call.tool, server, f"{server}__*"))
    return open_tools.objection(call.tool, call.tool_input) is not None


def asked_by(host: HostCallback) -> Callable[[Approval], Awaitable[Any]]:
    """A host's ``can_use_tool`` as the function that asks a person for a rule.

    It hears which subagent calls once :func:`approve_with_host` has the gate that asks by it.
    """
    return _HostAsk(host)


@dataclass(slots=True, eq=False)
class _HostAsk:
    host: HostCallback
    agent_id_of: Callable[[str], str | None] | None = None

    async def __call__(self, approval: Approval) -> Any:
        agent_id = self.agent_id_of and self.agent_id_of(approval.question_id)
        context = ToolPermissionContext(
            tool_use_id=approval.question_id, agent_id=agent_id, decision_reason=approval.reason
        )
        given = copy.deepcopy(dict(approval.tool_input))
        answer = await self.host(approval.tool, given, context)
        if isinstance(answer, PermissionResultDeny):
            said = reject(answer.message)
            return Stopped(message=said.message) if answer.interrupt else said
        if not isinstance(answer, PermissionResultAllow):
            return answer  # no answer, and read as such
        changed = answer.updated_input
        return approve() if changed in (None, approval.tool_input) else edit(changed)


def _is_nobody_there(policy: PolicyGate | None) -> bool:
    return policy is not None and policy.is_nobody_there


def _is_judged(tool_name: str) -> bool:
    return tool_name in FILE_TOOLS or is_mcp_tool(tool_name)


def _within(
    scope: FileScope, cwd: str, tool_name: str, tool_input: dict[str, Any], answer: Any
) -> Result | Objection:
    """The host's answer, as far as it may go. An input that it gives back unchanged is no change."""
    if isinstance(answer, PermissionResultDeny):
        return PermissionResultDeny(message=answer.message, interrupt=answer.interrupt)
    if not isinstance(answer, PermissionResultAllow):
        _log.error("can_use_tool answered %r, which is no permission result", type(answer))
        return Objection(message=INTERNAL_ERROR, code="extension-failed", lock="host")
    changed = answer.updated_input
    if changed is None or changed == tool_input:
        return PermissionResultAllow()
    reason = _objection(scope, tool_name, changed, cwd)
    if reason is not None:
        return Objection(message=reason, code="denied")
    return PermissionResultAllow(updated_input=changed)


def _objection(scope: FileScope, tool_name: str, tool_input: Any, cwd: str) -> str | None:
    if not isinstance(tool_input, Mapping):
        return INTERNAL_ERROR
    if tool_name in NO_FILE_TOOLS:  # judged by the gate alone, on what the model wrote
        return f"{tool_name} can't be changed once it was judged."
    return check_file_scope(scope, tool_name, tool_input, cwd=cwd)
