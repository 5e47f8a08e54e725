"""Rules, modes, questions and authorizers on the CLI: what is judged once the scope has no objection.

The hook refuses, narrows or says "ask"; the waiting for a person happens in ``can_use_tool``, which
the CLI then calls whatever the tool and the permission mode (measured on CLI 2.1.332). What a person
approves there runs without any rule of the CLI being looked at again, so here everything is judged
anew: the scope, the rules, and whether the file is still the one that was asked about.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Final

from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny

from agent_kit.policy import sentences
from agent_kit.policy.approval import Approved, Edited, Rejected
from agent_kit.policy.asking import Ask, ask_person
from agent_kit.policy.deferred import Question, QuestionStore
from agent_kit.policy.judged import Judged
from agent_kit.policy.modes import Mode
from agent_kit.policy.policy import Call, Judgement, Policy
from agent_kit.policy.rules import RuleVerdict
from agent_kit.policy.target import prints_of, targets_of
from agent_kit.scope.judge import NamedPath
from agent_kit.scope.sentences import INTERNAL_ERROR
from agent_kit.scope.text import shown
from agent_kit.sdk.hints import read_only_tools
from agent_kit.sdk.judging import ScopeJudge
from agent_kit.sdk.open_tools import OpenTools

__all__ = ["Ask", "PolicyGate"]

_log = logging.getLogger("agent_kit.approval")

Result = PermissionResultAllow | PermissionResultDeny
_CHECKED: Final = "This call is checked further before it runs."
# In the place of an empty input the CLI runs the one that it asked about (measured on CLI 2.1.332).
_EMPTY: Final = "A person left nothing of this call's input, so it was refused."
_MAX_WAITING: Final = 10_000  # with those that the CLI never asked about


@dataclass(slots=True)
class _Waiting:
    """A call for which the hook has said "ask". ``agreed``: a person has said yes already. ``void``:
    another call has the same id, so nobody could tell whose question it is."""

    call: Call
    agreed: bool = False
    void: bool = False


@dataclass(slots=True)
class _Course:
    """What became of one call so far, for the trail."""

    started: float
    asked: bool = False
    answer: str | None = None
    agreed: bool = False
    rules: set[str] = field(default_factory=set)  # those whose question an edit has answered


@dataclass(slots=True, eq=False)
class PolicyGate:
    """One session's. ``ask`` reaches a person (``None``: nobody), ``questions`` keeps questions for
    later instead. ``note`` gets one record a call. ``tools`` are those that may run at all."""

    policy: Policy
    tools: OpenTools
    scope_judge: ScopeJudge
    ask: Ask | None = None
    questions: QuestionStore | None = None
    note: Callable[[Judged], None] | None = None
    servers: Mapping[str, Any] = field(default_factory=dict)  # in this process, by name
    agents: dict[str, str] = field(default_factory=dict)  # an agent's id to its type
    callers: dict[str, Call] = field(default_factory=dict)  # of MCP tools, by tool use id
    _has_hints: bool = False
    _waiting: dict[str, _Waiting] = field(default_factory=dict)
    _raised: dict[str, None] = field(default_factory=dict)  # every question, answered or not

    def agent_of(self, payload: Mapping[str, Any]) -> str | None:
        """The type of the subagent that calls. It is noted: a question doesn't tell it."""
        kind = payload.get("agent_type")
        if kind is not None and (agent := payload.get("agent_id")) is not None:
            self.agents[agent] = kind
        return kind

    # --- in the hook -------------------------------------------------------------------------

    async def in_hook(self, call: Call, named: tuple[NamedPath, ...]) -> dict[str, Any]:
        """What the hook answers, as the fields of its decision; none: no objection."""
        course = _Course(perf_counter())
        if call.tool.startswith("mcp__") and call.tool_use_id is not None:
            _keep(self.callers, call.tool_use_id, call)
        await self._read_hints(call)
        found = self.policy.judge(call, named)
        if found.verdict is RuleVerdict.DENY:
            return self._refused(call, course, found.part, found.code, found.rule, found.message)
        if found.verdict is RuleVerdict.INTERRUPT:
            if (reason := self.tools.objection(call.tool, call.tool_input)) is not None:
                return self._refused(call, course, "rules", "not-allowed", None, reason)
            if self.questions is not None:
                return await self._deferred(self.questions, call, named, found, course)
            return self._wait(call, course, found.message)
        return await self._authorized(call, named, course)

    async def _read_hints(self, call: Call) -> None:
        """Which tools of this process's servers say that they change nothing: asked once, when it counts."""
        if not self._has_hints and call.tool.startswith("mcp__") and self.policy.steps:
            self.policy.hinted.update(await read_only_tools(self.servers))
            self._has_hints = True

    async def _authorized(
        self, call: Call, named: tuple[NamedPath, ...], course: _Course
    ) -> dict[str, Any]:
        if not self.policy.authorizers or not named:
            self.record(call, course, "allow", "gate", None, None)
            return {}
        if self.policy.is_patient:
            if (reason := self.tools.objection(call.tool, call.tool_input)) is not None:
                return self._refused(call, course, "rules", "not-allowed", None, reason)
            return self._wait(call, course, _CHECKED)
        done = await self.policy.authorize(call, named)
        if done.refusal is not None:
            refusal = done.refusal
            return self._refused(
                call, course, "authorizers", refusal.code, refusal.authorizer, str(refusal)
            )
        self.record(call, course, "allow", "authorizers", None, None)
        if done.tool_input is call.tool_input:
            return {}
        return {"updatedInput": dict(done.tool_input)}

    def _wait(self, call: Call, course: _Course, reason: str) -> dict[str, Any]:
        use_id = call.tool_use_id
        if use_id is None or use_id in self._raised or len(self._waiting) >= _MAX_WAITING:
            known = self._waiting.get(use_id or "")
            if known is not None and known.call != call:
                known.void = True
            _log.error("a question about %s has no id of its own, or too many wait", call.tool)
            return self._refused(call, course, "approval", "internal-error", None, INTERNAL_ERROR)
        self._waiting[use_id] = _Waiting(call, course.agreed)
        _keep(self._raised, use_id, None)
        return {"permissionDecision": "ask", "permissionDecisionReason": reason}

    def _refused(
        self, call: Call, course: _Course, lock: str, code: str | None, rule: str | None, text: str
    ) -> dict[str, Any]:
        self.record(call, course, "deny", lock, code, rule)
        return _deny(text)

    # --- a question that outlives the host --------------------------------------------------

    async def _deferred(
        self,
        store: QuestionStore,
        call: Call,
        named: tuple[NamedPath, ...],
        found: Judgement,
        course: _Course,
    ) -> dict[str, Any]:
        """The answer that a person has left for this very call, or the end of the run."""
        seen = await asyncio.to_thread(self._prints, call, named)
        question = await asyncio.to_thread(
            store.ask,
            Question(
                question_id="",
                session_id=self.policy.session_id or "",
                tool=call.tool,
                tool_input=call.tool_input,
                target=_target(found, named),
                reason=found.message,
                agent=call.agent,
                rule=found.rule,
                cwd=call.cwd if call.tool in self.policy.commands else None,
                seen=seen,
            ),
        )
        said = await asyncio.to_thread(store.take, question)
        if said is None:
            self.record(call, course, "defer", found.part, "deferred", found.rule)
            stop = sentences.deferred(question.question_id)
            return {**_deny(sentences.waits_for_person), "stop": stop}
        course.asked = True
        if isinstance(said, Rejected):
            course.answer = "rejected"
            text = sentences.rejected(said.message)
            return self._refused(call, course, "person", "rejected", found.rule, text)
        if isinstance(said, Edited):
            return await self._edited(call, said, found, course)
        course.answer, course.agreed = "approved", True
        if seen is None or seen != question.seen:
            return self._refused(call, course, "person", "changed", found.rule, sentences.changed)
        return await self._authorized(call, named, course)

    async def _edited(
        self, call: Call, said: Edited, found: Judgement, course: _Course
    ) -> dict[str, Any]:
        """The person's input, judged from the start; what asks about it again would end the run again."""
        course.answer, course.agreed = "edited", True
        new = replace(call, tool_input=dict(said.tool_input))
        reason, named = await self._judged(new)
        reason = reason or self.tools.edit_objection(new.tool, new.tool_input)
        if reason is not None:
            return self._refused(new, course, "gate", "denied", None, reason)
        again = self.policy.judge(new, named, frozenset({found.rule or ""}))
        if again.verdict is not RuleVerdict.ALLOW:
            return self._refused(new, course, again.part, again.code, again.rule, again.message)
        answer = await self._authorized(new, named, course)
        if "permissionDecision" in answer and answer["permissionDecision"] == "deny":
            return answer
        return {"updatedInput": dict(new.tool_input), **answer}

    # --- where the CLI asks ------------------------------------------------------------------

    def waits(self, tool_use_id: str | None) -> bool:
        """Whether this is a question that the hook has raised; without an id it may be any of them."""
        return tool_use_id in self._raised or (tool_use_id is None and bool(self._waiting))

    async def answer(self, tool_name: str, tool_input: Mapping[str, Any], use_id: Any) -> Result:
        """The answer to a question that the hook has raised. It waits for the person as long as they
        take; cancelled, it counts as refused. Raises KeyError for one that was answered, or never raised."""
        waiting = self._waiting.pop(use_id)
        call = replace(waiting.call, tool_input=tool_input)
        # What a person has agreed to is that very input: another hook may have left another one.
        agreed = waiting.agreed and tool_input == waiting.call.tool_input
        course = _Course(perf_counter(), agreed=agreed)
        if call.tool != tool_name or waiting.void:
            return self._denied(call, course, "approval", "internal-error", None, INTERNAL_ERROR)
        try:
            return await self._settled(call, course, call.tool_input, tools=self.tools)
        except asyncio.CancelledError:
            self.record(call, course, "deny", "person", "aborted", None)
            raise
        except Exception:
            self.record(call, course, "deny", "approval", "internal-error", None)
            raise

    async def _settled(
        self, call: Call, course: _Course, given: Mapping[str, Any], *, tools: OpenTools | None
    ) -> Result:
        """``given`` is the input that the CLI asks about, ``tools`` what may run (``None``: it was asked)."""
        await self._read_hints(call)
        while True:
            reason, named = await self._judged(call)
            if tools is not None:
                reason = reason or tools.objection(call.tool, call.tool_input)
            if reason is not None:
                return self._denied(call, course, "gate", "denied", None, reason)
            found = self.policy.judge(call, named, frozenset(course.rules))
            if found.verdict is RuleVerdict.DENY:
                return self._denied(call, course, found.part, found.code, found.rule, found.message)
            if found.verdict is RuleVerdict.ALLOW or course.agreed:
                return await self._allowed(call, named, course, given)
            left = await self._ask_person(call, named, found, course)
            if not isinstance(left, Call):
                return left
            call = left

    async def _ask_person(
        self, call: Call, named: tuple[NamedPath, ...], found: Judgement, course: _Course
    ) -> Call | PermissionResultDeny:
        """The call as the person left it, or their refusal."""
        if self.ask is None:  # the mode was switched since, or another hook changed the input
            text = f"{found.message} {sentences.nobody_to_ask}"
            return self._denied(call, course, found.part, "nobody-to-ask", found.rule, text)
        before = await asyncio.to_thread(self._prints, call, named)
        course.asked = True
        said = await ask_person(
            self.ask,
            call,
            target=_target(found, named),
            reason=found.message,
            rule=found.rule,
        )
        if isinstance(said, Approved):
            course.answer, course.agreed = "approved", True
            if said.remember and found.rule is not None:
                self.policy.remembered.add(found.rule)
            after = await asyncio.to_thread(self._prints, call, named)
            if before is None or before != after:
                return self._denied(
                    call, course, "person", "changed", found.rule, sentences.changed
                )
            return call
        if isinstance(said, Edited) and (tool_input := _as_json(said.tool_input)) is not None:
            course.answer = "edited"
            course.rules.add(found.rule or "")
            new = replace(call, tool_input=tool_input)
            if (reason := self.tools.edit_objection(new.tool, new.tool_input)) is not None:
                return self._denied(new, course, "gate", "denied", None, reason)
            return new
        if isinstance(said, Rejected):
            course.answer = "rejected"
            text = sentences.rejected(said.message)
            return self._denied(call, course, "person", "rejected", found.rule, text)
        _log.error("the function that asks answered %s, which is no answer", type(said).__name__)
        return self._denied(
            call, course, "person", "extension-failed", found.rule, sentences.unreadable_answer
        )

    async def _allowed(
        self, call: Call, named: tuple[NamedPath, ...], course: _Course, given: Mapping[str, Any]
    ) -> Result:
        if given and not call.tool_input:
            return self._denied(call, course, "person", "denied", None, _EMPTY)
        tool_input, lock = call.tool_input, "person" if course.asked else "approval"
        if self.policy.authorizers and named:
            lock = "authorizers"
            done = await self.policy.authorize(call, named)
            if (refusal := done.refusal) is not None:
                return self._denied(
                    call, course, lock, refusal.code, refusal.authorizer, str(refusal)
                )
            tool_input = done.tool_input
        self.record(call, course, "allow", lock, None, None)
        if tool_input == given:
            return PermissionResultAllow()
        return PermissionResultAllow(updated_input=dict(tool_input))

    async def _judged(self, call: Call) -> tuple[str | None, tuple[NamedPath, ...]]:
        scope = self.policy.scope_of(call.agent)
        return await asyncio.to_thread(
            self.scope_judge.judge, scope, call.tool, call.tool_input, call.cwd
        )

    def _prints(self, call: Call, named: tuple[NamedPath, ...]) -> list[Any] | None:
        """What tells the files of a call from themselves changed; ``None`` when it can't be told."""
        scope = self.policy.scope_of(call.agent)
        targets = targets_of(
            scope, call.tool, call.tool_input, cwd=call.cwd, agent=call.agent, named=named
        )
        prints: list[Any] | None = _as_lists(prints_of(targets))
        return prints

    def _denied(
        self, call: Call, course: _Course, lock: str, code: str | None, rule: str | None, text: str
    ) -> PermissionResultDeny:
        self.record(call, course, "deny", lock, code, rule)
        return PermissionResultDeny(message=text)

    # --- what a host's own callback changes --------------------------------------------------

    @property
    def is_nobody_there(self) -> bool:
        return self.policy.mode.current is Mode.AUTONOMOUS

    async def changed(
        self, tool_name: str, given: Mapping[str, Any], changed: Any, *, context: Any, cwd: str
    ) -> Result:
        """The answer to a question of the CLI's, which the host's callback has let through with another
        input than the ``given`` one: that is judged from the start, and a rule that asks about it asks.

        ``context`` is the question's; ``cwd`` is what relative paths are relative to.
        """
        agent_id = getattr(context, "agent_id", None)
        call = Call(
            tool=tool_name,
            tool_input=dict(changed),
            cwd=cwd,
            agent=self.agents.get(agent_id or ""),
            agent_id=agent_id,
            tool_use_id=getattr(context, "tool_use_id", None),
        )
        return await self._settled(call, _Course(perf_counter()), given, tools=None)

    # --- the trail ---------------------------------------------------------------------------

    def record(
        self,
        call: Call,
        course: _Course | float,
        verdict: str,
        lock: str,
        code: str | None,
        rule: str | None,
    ) -> None:
        """One line of the trail. ``course`` may be the time at which the judgement began."""
        if self.note is None:
            return
        if not isinstance(course, _Course):
            course = _Course(course)
        self.note(
            self.policy.judged(
                call,
                started=course.started,
                verdict=verdict,
                lock=lock,
                code=None if code is None else str(code),
                rule=rule,
                asked=course.asked,
                answer=course.answer,
            )
        )


def _keep(kept: dict[str, Any], key: str, value: Any) -> None:
    while len(kept) >= _MAX_WAITING:
        kept.pop(next(iter(kept)))
    kept[key] = value


def _deny(reason: str) -> dict[str, Any]:
    return {"permissionDecision": "deny", "permissionDecisionReason": reason}


def _target(found: Judgement, named: tuple[NamedPath, ...]) -> str | None:
    text = found.path if found.path is not None else next((path.text for path in named), None)
    return None if text is None else shown(text)


def _as_json(tool_input: Any) -> dict[str, Any] | None:
    """An edited input as the CLI gets it, and nobody else holds; ``None`` for what JSON can't hold."""
    try:
        found: dict[str, Any] = json.loads(json.dumps(dict(tool_input), allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None
    return found


def _as_lists(value: Any) -> Any:
    """As JSON gives it back."""
    return [_as_lists(each) for each in value] if isinstance(value, (list, tuple)) else value
