"""Lock 1, the gate: a PreToolUse hook that refuses what the scope refuses.

It answers deny with a reason, or nothing; an input that another callback rewrote is passed on once
it was judged. With a policy it may also answer ask, or end the run. It never answers allow, never
raises and never returns ``None``. When something unforeseen happens the call is refused and the cause
is logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

from claude_agent_sdk import HookMatcher

from agent_kit.policy.policy import Call, Policy
from agent_kit.policy.rules import RuleVerdict
from agent_kit.scope import FileScope
from agent_kit.scope.disk import Located
from agent_kit.scope.judge import Found, name_plainly, plain_file
from agent_kit.scope.sentences import INTERNAL_ERROR
from agent_kit.sdk.commands import Commands
from agent_kit.sdk.hooks import Chained, run_chain
from agent_kit.sdk.judging import ScopeJudge
from agent_kit.sdk.policy_gate import PolicyGate

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
    policy: PolicyGate | None = None,
) -> HookMatcher:
    """The gate as a ``HookMatcher`` for ``hooks={"PreToolUse": [...]}``.

    ``before`` are other PreToolUse callbacks: they run first, in order, and the gate judges the
    input that they leave. ``timeout`` (seconds) bounds them and the judgement. ``worktrees`` lets
    agents work in copies of the repository. ``commands`` are the session's skills and commands:
    with them Skill calls no other, and their bodies are judged, too; without them its arguments
    alone are. ``policy`` judges what the scope lets through, on the same input. The matcher is for
    every tool, and the CLI blocks the call should the hook itself fail.
    """
    chained = tuple(before)
    hook = _Gate(scope, chained, ScopeJudge(worktrees, commands), policy)

    async def gate(payload: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        limit: asyncio.Timeout | None = None
        started = perf_counter()
        try:
            if log is not None and tool_use_id:
                log.seen.add(tool_use_id)
            scope = hook.scope_for(payload)
            if (known := hook.at_once(payload, tool_use_id, started, scope)) is not None:
                return known
            async with (limit := asyncio.timeout(timeout)):
                return await hook.answer(payload, tool_use_id, context, started, scope)
        except asyncio.CancelledError:
            if _is_cancelled():  # from outside: the session ends
                raise
            _log.exception("a hook before the gate was cancelled")
            return hook.failed(payload, tool_use_id, started, INTERNAL_ERROR)
        except Exception as error:  # noqa: BLE001 - whatever it is, the call must not run
            if isinstance(error, TimeoutError) and limit is not None and limit.expired():
                _log.error("a call could not be judged within %s s", timeout)
                return hook.failed(payload, tool_use_id, started, _TOO_LONG)
            _log.exception("the gate could not judge a call")
            return hook.failed(payload, tool_use_id, started, INTERNAL_ERROR)

    return HookMatcher(
        matcher=None,
        hooks=[gate],  # type: ignore[list-item]  # the SDK's payload types are unions of dicts
        timeout=max(HOOK_TIMEOUT, timeout + 10),
        on_failure="block",
    )


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@dataclass(frozen=True, slots=True)
class _Gate:
    """What the hook judges by. Its methods may raise: the hook answers for that."""

    scope: FileScope
    before: tuple[Chained, ...]
    judge: ScopeJudge
    policy: PolicyGate | None

    def scope_for(self, payload: Any) -> FileScope:
        """The scope of the agent that calls."""
        if self.policy is None:
            return self.scope
        return self.policy.policy.scope_of(self.policy.agent_of(payload))

    def at_once(
        self, payload: Any, use_id: str | None, started: float, scope: FileScope
    ) -> dict[str, Any] | None:
        """The answer to the usual call, for which nobody need be waited for; ``None`` for others."""
        tool = payload["tool_name"]
        if self.before and any(hook.wants(str(tool)) for hook in self.before):
            return None
        cwd, tool_input = payload.get("cwd") or scope.project_dir, payload.get("tool_input")
        if (file := plain_file(scope, tool, tool_input, cwd)) is None:
            return None
        if self.policy is None:
            return {}
        policy, agent = self.policy.policy, payload.get("agent_type")
        if (found := policy.judge_plainly(tool, tool_input, agent)) is None:
            return None
        if found.verdict is RuleVerdict.DENY:
            self._note(payload, use_id, started, "deny", found.part, found.code, found.rule)
            return _deny(found.message)
        if policy.authorizers:
            return self._authorized(policy, payload, file, use_id, started)
        self._note(payload, use_id, started, "allow", "gate", None)
        return {}

    def _authorized(
        self, policy: Policy, payload: Any, file: Located, use_id: str | None, started: float
    ) -> dict[str, Any] | None:
        """What the authorizers say of such a call, if none of them has to be waited for."""
        given = dict(payload["tool_input"])
        agent = payload.get("agent_type")
        done = policy.authorize_plainly(payload["tool_name"], given, file, agent, use_id)
        if done is None:
            return None
        if (refusal := done.refusal) is not None:
            code, rule = str(refusal.code), refusal.authorizer
            self._note(payload, use_id, started, "deny", "authorizers", code, rule)
            return _deny(str(refusal))
        self._note(payload, use_id, started, "allow", "authorizers", None)
        if done.tool_input is given:
            return {}
        return _hook({"updatedInput": dict(done.tool_input)})

    async def answer(
        self, payload: Any, use_id: str | None, context: Any, started: float, scope: FileScope
    ) -> dict[str, Any]:
        """Other callbacks first; what they leave of the input is judged, and passed on if it is new."""
        given = tool_input = payload.get("tool_input")
        question: str | None = None
        if self.before:
            outcome = await run_chain(self.before, payload, use_id, context)
            if outcome.refusal is not None:
                self._note(payload, use_id, started, "deny", "hook", "denied")
                return _deny(outcome.refusal)
            tool_input, question = outcome.tool_input, outcome.question
            if question is not None and self.policy is None:
                return _deny(question)
        tool, cwd = payload["tool_name"], payload.get("cwd") or self.scope.project_dir
        plain = name_plainly(scope, tool, tool_input, cwd)
        # In a thread: a folder of hard links, or a disk that hangs, may take its time.
        reason, named, code = (
            await asyncio.to_thread(self.judge.judge, scope, tool, tool_input, cwd)
            if plain is None
            else Found(None, plain)
        )
        if reason is not None:
            self._note(payload, use_id, started, "deny", "gate", code)
            return _deny(reason)
        if self.policy is None:
            return {} if tool_input is given else _hook({"updatedInput": dict(tool_input)})
        call = self._call(payload, use_id, tool_input, cwd)
        fields = await self.policy.in_hook(call, named, question)
        return _answered(fields, given, tool_input)

    def failed(
        self, payload: Any, use_id: str | None, started: float, reason: str
    ) -> dict[str, Any]:
        """The refusal of a call that could not be judged."""
        try:
            self._note(payload, use_id, started, "deny", "gate", "extension-failed")
        except Exception:  # noqa: BLE001 - the payload may be anything
            _log.exception("a refusal could not be recorded")
        return _deny(reason)

    def _note(
        self,
        payload: Any,
        use_id: str | None,
        started: float,
        verdict: str,
        lock: str,
        code: str | None,
        rule: str | None = None,
    ) -> None:
        if self.policy is not None and self.policy.note is not None:
            cwd = payload.get("cwd") or self.scope.project_dir
            call = self._call(payload, use_id, payload.get("tool_input"), cwd)
            self.policy.record(call, started, verdict, lock, code, rule)

    def _call(self, payload: Any, use_id: str | None, tool_input: Any, cwd: str) -> Call:
        return Call(
            tool=payload["tool_name"],
            tool_input=dict(tool_input) if isinstance(tool_input, Mapping) else {},
            cwd=cwd,
            agent=payload.get("agent_type"),
            agent_id=payload.get("agent_id"),
            tool_use_id=use_id,
        )


def _answered(fields: dict[str, Any], given: Any, tool_input: Any) -> dict[str, Any]:
    """The hook's answer from the policy's; a new input is passed on unless the call is refused."""
    stop = fields.pop("stop", None)
    if tool_input is not given and fields.get("permissionDecision") != "deny":
        fields = {"updatedInput": dict(tool_input), **fields}
    answer = _hook(fields) if fields else {}
    if stop is not None:  # the CLI ends the run once this step's calls are done
        return {**answer, "continue_": False, "stopReason": stop}
    return answer


def _hook(fields: dict[str, Any]) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}


def _deny(reason: str) -> dict[str, Any]:
    return _hook({"permissionDecision": "deny", "permissionDecisionReason": reason})
