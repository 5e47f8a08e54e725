"""Lock 1, the gate: a PreToolUse hook that refuses what the scope refuses.

It answers deny with a reason, or nothing. It never answers allow or ask, never raises and never
returns ``None``. When something unforeseen happens the call is refused and the cause is logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from claude_agent_sdk import HookMatcher

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.scope.sentences import INTERNAL_ERROR
from agent_kit.sdk.hooks import Chained, run_chain
from agent_kit.sdk.mentions import refused_mention

__all__ = ["GATE_TIMEOUT", "HOOK_TIMEOUT", "GateLog", "create_file_scope_gate"]

_log = logging.getLogger("agent_kit.gate")

HOOK_TIMEOUT: Final = 30.0  # seconds until the CLI gives up on the hook and blocks the call
GATE_TIMEOUT: Final = 20.0  # seconds until the gate itself refuses, with its own sentence

_TOO_LONG: Final = "This call took too long to check, so it was refused. Try again later."


class GateLog:
    """The tool use ids that the gate has seen, for :func:`agent_kit.sdk.audit.check_calls`."""

    __slots__ = ("seen",)

    def __init__(self) -> None:
        self.seen: set[str] = set()


def create_file_scope_gate(
    scope: FileScope,
    *,
    before: Iterable[Chained] = (),
    log: GateLog | None = None,
    timeout: float = GATE_TIMEOUT,
) -> HookMatcher:
    """The gate as a ``HookMatcher`` for ``hooks={"PreToolUse": [...]}``.

    ``before`` are other PreToolUse callbacks: they run first, in order, and the gate judges the
    input that they leave. ``timeout`` (seconds) bounds them. The matcher is for every tool, and the
    CLI blocks the call should the hook itself fail.
    """
    chained = tuple(before)

    async def gate(payload: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        if log is not None and tool_use_id:
            log.seen.add(tool_use_id)
        limit: asyncio.Timeout | None = None
        try:
            if not chained:
                return _judged(scope, payload, payload.get("tool_input"))
            async with (limit := asyncio.timeout(timeout)):
                return await _after(chained, scope, payload, tool_use_id, context)
        except asyncio.CancelledError:
            if _is_cancelled():  # from outside: the session ends
                raise
            _log.exception("a hook before the gate was cancelled")
            return _deny(INTERNAL_ERROR)
        except Exception as error:  # noqa: BLE001 - whatever it is, the call must not run
            if isinstance(error, TimeoutError) and limit is not None and limit.expired():
                _log.error("a hook before the gate took longer than %s s", timeout)
                return _deny(_TOO_LONG)
            _log.exception("the gate could not judge a call")
            return _deny(INTERNAL_ERROR)

    return HookMatcher(
        matcher=None,
        hooks=[gate],  # type: ignore[list-item]  # the SDK's payload types are unions of dicts
        timeout=max(HOOK_TIMEOUT, timeout + 10),
        on_failure="block",
    )


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _after(
    chained: tuple[Chained, ...], scope: FileScope, payload: Any, use_id: Any, context: Any
) -> dict[str, Any]:
    before = payload.get("tool_input")
    outcome = await run_chain(chained, payload, use_id, context)
    if outcome.refusal is not None:
        return _deny(outcome.refusal)
    answer = _judged(scope, payload, outcome.tool_input)
    if answer or outcome.tool_input is before:
        return answer
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "updatedInput": dict(outcome.tool_input),
        }
    }


def _judged(scope: FileScope, payload: Mapping[str, Any], tool_input: Any) -> dict[str, Any]:
    tool_name, cwd = payload["tool_name"], payload.get("cwd") or scope.project_dir
    if tool_name == "Skill":
        reason = _skill(scope, tool_input, cwd)
    else:
        reason = check_file_scope(scope, tool_name, tool_input, cwd=cwd)
    return {} if reason is None else _deny(reason)


def _skill(scope: FileScope, tool_input: Mapping[str, Any], cwd: str) -> str | None:
    """A skill's arguments are the model's words, and the CLI attaches the files they mention."""
    texts = [text for text in tool_input.values() if isinstance(text, str)]
    return next((r for text in texts if (r := refused_mention(scope, text, cwd)) is not None), None)


def _deny(reason: str) -> dict[str, Any]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }
