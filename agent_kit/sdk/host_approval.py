"""A host's own ``can_use_tool`` behind the kit's: it may refuse more, and never opens what is shut."""

from __future__ import annotations

import copy
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final

from claude_agent_sdk import (
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
)

from agent_kit.policy.approval import Approval, approve, edit, reject
from agent_kit.scope import FileScope, check_file_scope
from agent_kit.scope.sentences import INTERNAL_ERROR
from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.sdk.approval import Result, approve_within, is_mcp_tool
from agent_kit.sdk.doors import DOORS
from agent_kit.sdk.policy_gate import PolicyGate

__all__ = ["HostCallback", "approve_with_host", "asked_by"]

_log = logging.getLogger("agent_kit.approval")

HostCallback = Callable[[str, dict[str, Any], Any], Awaitable[Any]]

_NOBODY: Final = "This call needs a person's approval, and nobody can be asked in this session."


def approve_with_host(
    scope: FileScope,
    host: HostCallback | None,
    *,
    cwd: str,
    unasked: Collection[str] = (),
    policy: PolicyGate | None = None,
) -> Callable[[str, dict[str, Any], Any], Awaitable[Result]]:
    """A ``can_use_tool``: what the scope refuses is refused; the host answers for the rest.

    ``unasked`` are the file tools that the host is not asked about. Without a ``host`` file tools
    are as the scope says, and everything else is refused. The host gets a copy of the input; what
    it changes is judged again; its changes of the session's rules are dropped. An answer that is
    none, or an exception, refuses. Never raises.
    """
    kit = approve_within(scope, cwd=cwd, policy=policy)

    async def can_use_tool(tool_name: str, tool_input: dict[str, Any], context: Any) -> Result:
        try:
            asked = policy is not None and policy.waits(getattr(context, "tool_use_id", None))
            first = await kit(tool_name, tool_input, context)
            if asked:  # by a rule: whoever answers has answered
                return first
            if isinstance(first, PermissionResultDeny) and _is_judged(tool_name):
                return first
            if tool_name in unasked or (host is None and tool_name in FILE_TOOLS):
                return first
            if host is None or (policy is not None and policy.is_nobody_there):
                return PermissionResultDeny(message=_NOBODY)
            answer = await host(tool_name, copy.deepcopy(tool_input), context)
            result = _within(scope, cwd, tool_name, tool_input, answer)
            changed = getattr(result, "updated_input", None)
            if policy is None or changed is None:
                return result
            return await policy.changed(tool_name, tool_input, changed, context=context, cwd=cwd)
        except Exception:  # noqa: BLE001 - whatever it is, the call must not run
            _log.exception("a question of the CLI could not be answered")
            return PermissionResultDeny(message=INTERNAL_ERROR)

    return can_use_tool


def asked_by(host: HostCallback) -> Callable[[Approval], Awaitable[Any]]:
    """A host's ``can_use_tool`` as the function that asks a person for a rule."""

    async def ask(approval: Approval) -> Any:
        context = ToolPermissionContext(
            tool_use_id=approval.question_id, decision_reason=approval.reason
        )
        given = copy.deepcopy(dict(approval.tool_input))
        answer = await host(approval.tool, given, context)
        if isinstance(answer, PermissionResultDeny):
            return reject(answer.message)
        if not isinstance(answer, PermissionResultAllow):
            return answer  # no answer, and read as such
        changed = answer.updated_input
        return approve() if changed in (None, approval.tool_input) else edit(changed)

    return ask


def _is_judged(tool_name: str) -> bool:
    return tool_name in FILE_TOOLS or is_mcp_tool(tool_name)


def _within(
    scope: FileScope, cwd: str, tool_name: str, tool_input: dict[str, Any], answer: Any
) -> Result:
    """The host's answer, as far as it may go. An input that it gives back unchanged is no change."""
    if isinstance(answer, PermissionResultDeny):
        return PermissionResultDeny(message=answer.message, interrupt=answer.interrupt)
    if not isinstance(answer, PermissionResultAllow):
        _log.error("can_use_tool answered %r, which is no permission result", type(answer))
        return PermissionResultDeny(message=INTERNAL_ERROR)
    changed = answer.updated_input
    if changed is None or changed == tool_input:
        return PermissionResultAllow()
    reason = _objection(scope, tool_name, changed, cwd)
    if reason is not None:
        return PermissionResultDeny(message=reason)
    return PermissionResultAllow(updated_input=changed)


def _objection(scope: FileScope, tool_name: str, tool_input: Any, cwd: str) -> str | None:
    if not isinstance(tool_input, Mapping):
        return INTERNAL_ERROR
    if tool_name in DOORS:  # judged by the gate alone, on what the model wrote
        return f"{tool_name} can't be changed once it was judged."
    return check_file_scope(scope, tool_name, tool_input, cwd=cwd)
