"""Was every file tool call of a run seen by the gate? A run whose hooks broke is an unguarded one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from claude_agent_sdk import AssistantMessage, ToolResultBlock, ToolUseBlock, UserMessage

from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.sdk.gate import GateLog

__all__ = ["UnjudgedCallError", "check_calls"]


class UnjudgedCallError(RuntimeError):
    """File tool calls ran that the gate has not seen. The message names them."""


def check_calls(messages: Iterable[Any], log: GateLog) -> None:
    """Raise UnjudgedCallError when a file tool call succeeded without the gate.

    ``messages`` are all messages of the run, as the SDK gave them; ``log`` is the gate's. A call
    that a rule of the CLI refused first never reaches the gate: it has an error for a result.
    """
    calls: dict[str, str] = {}
    failed: set[str] = set()
    for message in messages:
        blocks = message.content if isinstance(message, (AssistantMessage, UserMessage)) else ()
        for block in blocks if not isinstance(blocks, str) else ():
            if isinstance(block, ToolUseBlock) and block.name in FILE_TOOLS:
                calls[block.id] = block.name
            elif isinstance(block, ToolResultBlock) and block.is_error:
                failed.add(block.tool_use_id)
    missed = {use_id: name for use_id, name in calls.items() if use_id not in log.seen | failed}
    if missed:
        names = ", ".join(f"{name} ({use_id})" for use_id, name in missed.items())
        raise UnjudgedCallError(f"ran without the gate: {names}")
