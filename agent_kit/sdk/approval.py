"""The second half of lock 2: what the CLI asks about is judged by the scope once more."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.scope.sentences import INTERNAL_ERROR
from agent_kit.scope.text import shown
from agent_kit.scope.tools import FILE_TOOLS

if TYPE_CHECKING:
    from agent_kit.sdk.policy_gate import PolicyGate

__all__ = ["approve_within"]

_log = logging.getLogger("agent_kit.approval")

Result = PermissionResultAllow | PermissionResultDeny


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
    is. Never raises.
    """

    async def can_use_tool(tool_name: str, tool_input: dict[str, Any], context: Any) -> Result:
        try:
            if policy is not None:
                if policy.waits(use_id := getattr(context, "tool_use_id", None)):
                    return await policy.answer(tool_name, tool_input, use_id)
                agent = policy.agents.get(getattr(context, "agent_id", None) or "")
                reason = _objection(
                    policy.policy.scope_of(agent), tool_name, tool_input, cwd, narrowed
                )
            else:
                reason = _objection(scope, tool_name, tool_input, cwd, narrowed)
        except Exception:  # noqa: BLE001 - whatever it is, the call must not run
            _log.exception("a question of the CLI could not be judged")
            reason = INTERNAL_ERROR
        if reason is None:
            return PermissionResultAllow()
        return PermissionResultDeny(message=reason)

    return can_use_tool


def _objection(
    scope: FileScope, tool_name: str, tool_input: Any, cwd: str, narrowed: Sequence[str]
) -> str | None:
    if tool_name in FILE_TOOLS or is_mcp_tool(tool_name):
        return check_file_scope(scope, tool_name, tool_input, cwd=cwd)
    if rules := [rule for rule in narrowed if rule.startswith(f"{tool_name}(")]:
        return f'"{shown(tool_name)}" is allowed in this session only as {", ".join(rules)}.'
    return f'"{shown(tool_name)}" isn\'t an allowed tool in this session.'


def is_mcp_tool(tool_name: str) -> bool:
    """Whether a name is ``mcp__<server>__<tool>``, both parts there."""
    server, _, tool = tool_name.removeprefix("mcp__").partition("__")
    return tool_name.startswith("mcp__") and bool(server and tool)
