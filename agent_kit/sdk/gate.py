"""Lock 1, the gate: a PreToolUse hook that refuses what the scope refuses.

It answers deny with a reason, or nothing; an input that another callback rewrote is passed on once
it was judged. It never answers allow or ask, never raises and never returns ``None``. When something unforeseen happens the call is refused and the cause is logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from claude_agent_sdk import HookMatcher

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.scope.judge import is_plainly_allowed
from agent_kit.scope.sentences import INTERNAL_ERROR
from agent_kit.sdk.commands import Commands, refused_skill
from agent_kit.sdk.doors import DOORS, WORKTREES
from agent_kit.sdk.hooks import Chained, run_chain

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
    worktrees: bool = False,
    commands: Commands | None = None,
) -> HookMatcher:
    """The gate as a ``HookMatcher`` for ``hooks={"PreToolUse": [...]}``.

    ``before`` are other PreToolUse callbacks: they run first, in order, and the gate judges the
    input that they leave. ``timeout`` (seconds) bounds them and the judgement. ``worktrees`` lets
    agents work in copies of the repository. ``commands`` are the session's skills and commands:
    with them Skill calls no other, and their bodies are judged, too; without them its arguments
    alone are. The matcher is for every tool, and the CLI blocks the
    call should the hook itself fail.
    """
    chained = tuple(before)

    async def gate(payload: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        limit: asyncio.Timeout | None = None
        try:
            if log is not None and tool_use_id:
                log.seen.add(tool_use_id)
            if not _is_wanted(chained, payload) and _is_plain(scope, payload):
                return {}
            async with (limit := asyncio.timeout(timeout)):
                return await _answer(
                    chained, scope, payload, tool_use_id, context, worktrees, commands
                )
        except asyncio.CancelledError:
            if _is_cancelled():  # from outside: the session ends
                raise
            _log.exception("a hook before the gate was cancelled")
            return _deny(INTERNAL_ERROR)
        except Exception as error:  # noqa: BLE001 - whatever it is, the call must not run
            if isinstance(error, TimeoutError) and limit is not None and limit.expired():
                _log.error("a call could not be judged within %s s", timeout)
                return _deny(_TOO_LONG)
            _log.exception("the gate could not judge a call")
            return _deny(INTERNAL_ERROR)

    return HookMatcher(
        matcher=None,
        hooks=[gate],  # type: ignore[list-item]  # the SDK's payload types are unions of dicts
        timeout=max(HOOK_TIMEOUT, timeout + 10),
        on_failure="block",
    )


def _is_wanted(chained: tuple[Chained, ...], payload: Any) -> bool:
    return any(hook.wants(str(payload["tool_name"])) for hook in chained)


def _is_plain(scope: FileScope, payload: Any) -> bool:
    cwd = payload.get("cwd") or scope.project_dir
    return is_plainly_allowed(scope, payload["tool_name"], payload.get("tool_input"), cwd)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _answer(
    chained: tuple[Chained, ...],
    scope: FileScope,
    payload: Any,
    use_id: Any,
    context: Any,
    worktrees: bool,
    commands: Commands | None,
) -> dict[str, Any]:
    """Other callbacks first; what they leave of the input is judged, and passed on if it is new."""
    given = tool_input = payload.get("tool_input")
    if chained:
        outcome = await run_chain(chained, payload, use_id, context)
        if outcome.refusal is not None:
            return _deny(outcome.refusal)
        tool_input = outcome.tool_input
    tool_name, cwd = payload["tool_name"], payload.get("cwd") or scope.project_dir
    if not is_plainly_allowed(scope, tool_name, tool_input, cwd):
        # In a thread: a folder of hard links, or a disk that hangs, may take its time.
        reason = await asyncio.to_thread(
            _objection, scope, tool_name, tool_input, cwd, worktrees, commands
        )
        if reason is not None:
            return _deny(reason)
    return {} if tool_input is given else _updated(tool_input)


def _objection(
    scope: FileScope,
    tool_name: str,
    tool_input: Any,
    cwd: str,
    worktrees: bool,
    commands: Commands | None,
) -> str | None:
    if tool_name == "Skill" and commands is not None:
        return refused_skill(scope, commands, tool_input, cwd)
    if (door := DOORS.get(tool_name)) is not None and not (worktrees and tool_name in WORKTREES):
        return door(scope, tool_input, cwd)
    return check_file_scope(scope, tool_name, tool_input, cwd=cwd)


def _updated(tool_input: Mapping[str, Any]) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": dict(tool_input)}}


def _deny(reason: str) -> dict[str, Any]:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }
