"""Rules, modes, questions and authorizers on the CLI: what is judged once the scope has no objection.

The hook refuses, narrows or says "ask"; the waiting for a person happens in ``can_use_tool``, which
the CLI then calls whatever the tool and the permission mode (measured on CLI 2.1.332).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Final

from claude_agent_sdk import PermissionResultDeny

from agent_kit.policy.asking import Ask
from agent_kit.policy.deferred import QuestionStore
from agent_kit.policy.judged import Judged
from agent_kit.policy.modes import STARTS_AGENTS, Mode
from agent_kit.policy.policy import Call, Policy
from agent_kit.policy.rules import RuleVerdict
from agent_kit.policy.seen import Seen, seen_of
from agent_kit.policy.starts import DEFAULT_AGENT
from agent_kit.policy.target import targets_of
from agent_kit.scope.judge import Found, NamedPath
from agent_kit.scope.sentences import INTERNAL_ERROR
from agent_kit.sdk.answering import Answering, Result
from agent_kit.sdk.course import Course, Waiting
from agent_kit.sdk.deferring import Deferring
from agent_kit.sdk.doors import asks_for_a_copy
from agent_kit.sdk.hints import read_only_tools
from agent_kit.sdk.judging import ScopeJudge
from agent_kit.sdk.open_tools import OpenTools

__all__ = ["Ask", "PolicyGate"]

_log = logging.getLogger("agent_kit.approval")

_CHECKED: Final = "This call is checked further before it runs."
_MAX_WAITING: Final = 10_000  # with those that the CLI never asked about


@dataclass(slots=True, eq=False)
class PolicyGate:
    """One session's. ``ask`` reaches a person (``None``: nobody), ``questions`` keeps questions for
    later instead. ``note`` gets what the trail says of a call. ``tools`` are those that may run at all.
    ``is_left`` says of a call whether the CLI may still ask before it runs; without it ``tools`` does.
    """

    policy: Policy
    tools: OpenTools
    scope_judge: ScopeJudge
    ask: Ask | None = None
    questions: QuestionStore | None = None
    note: Callable[[Judged], None] | None = None
    servers: Mapping[str, Any] = field(default_factory=dict)  # in this process, by name
    agents: dict[str, str] = field(default_factory=dict)  # an agent's id to its type
    callers: dict[str, Call] = field(default_factory=dict)  # of MCP tools, by tool use id
    is_left: Callable[[Call], bool] | None = None
    _has_hints: bool = False
    _waiting: dict[str, Waiting] = field(default_factory=dict)
    _raised: dict[str, None] = field(default_factory=dict)  # every question, answered or not
    _left: dict[str, None] = field(default_factory=dict)  # calls that the CLI may still ask about
    _asked: dict[str, Call] = field(default_factory=dict)  # about which a person was asked

    def agent_of(self, payload: Mapping[str, Any]) -> str | None:
        """The type of the subagent that calls. It is noted: a question doesn't tell it."""
        kind = payload.get("agent_type")
        if kind is not None and (agent := payload.get("agent_id")) is not None:
            self.agents[agent] = kind
        return kind

    # --- in the hook -------------------------------------------------------------------------

    async def in_hook(
        self, call: Call, named: tuple[NamedPath, ...], question: str | None = None
    ) -> dict[str, Any]:
        """What the hook answers, as the fields of its decision; none: no objection. ``question`` is why
        a hook before it wants a person to be asked."""
        course = Course(perf_counter(), question=question)
        if call.tool.startswith("mcp__") and call.tool_use_id is not None:
            _keep(self.callers, call.tool_use_id, call)
        await self._read_hints(call)
        await self.look_for_copies(call)
        found = self.policy.judge(call, named, question=question)
        if found.verdict is RuleVerdict.DENY:
            return self.refused(call, course, found.part, found.code, found.rule, found.message)
        if found.verdict is RuleVerdict.INTERRUPT:
            if (reason := self.tools.objection(call.tool, call.tool_input)) is not None:
                return self.refused(call, course, "rules", "not-allowed", None, reason)
            if self.questions is not None:
                return await Deferring(self, self.questions, call, named, found, course).answered()
            return self._wait(call, course, found.message)
        return await self.authorized(call, named, course)

    async def _read_hints(self, call: Call) -> None:
        """Which tools of this process's servers say that they change nothing: asked once, when it counts."""
        if not self._has_hints and call.tool.startswith("mcp__") and self.policy.steps:
            self.policy.hinted.update(await read_only_tools(self.servers))
            self._has_hints = True

    async def look_for_copies(self, call: Call) -> None:
        """Whether an agent that is to be started has a copy of the repository made, where it counts."""
        if self.scope_judge.worktrees and self.policy.steps and call.tool in STARTS_AGENTS:
            agent = str(call.tool_input.get("subagent_type") or DEFAULT_AGENT)
            if await asyncio.to_thread(asks_for_a_copy, self.policy.scope, agent):
                self.policy.copying.add(agent)

    async def authorized(
        self, call: Call, named: tuple[NamedPath, ...], course: Course
    ) -> dict[str, Any]:
        """What the hook answers when nothing but an authorizer may still object."""
        if not self.policy.authorizers or not named:
            lock = "person" if course.asked else "gate"
            self.record(call, course, self._passed(call), lock, None, course.rule)
            return {}
        if self.policy.is_patient:
            if (reason := self.tools.objection(call.tool, call.tool_input)) is not None:
                return self.refused(call, course, "rules", "not-allowed", None, reason)
            return self._wait(call, course, _CHECKED)
        done = await self.policy.authorize(call, named, heard=course.heard)
        if done.refusal is not None:
            refusal = done.refusal
            return self.refused(
                call, course, "authorizers", refusal.code, refusal.authorizer, str(refusal)
            )
        self.record(call, course, self._passed(call), "authorizers", None, course.rule)
        if done.tool_input is call.tool_input:
            return {}
        return {"updatedInput": dict(done.tool_input)}

    def _wait(self, call: Call, course: Course, reason: str) -> dict[str, Any]:
        use_id = call.tool_use_id
        if use_id is None or use_id in self._raised or len(self._waiting) >= _MAX_WAITING:
            known = self._waiting.get(use_id or "")
            if known is not None and known.call != call:
                known.void = True
            _log.error("a question about %s has no id of its own, or too many wait", call.tool)
            return self.refused(call, course, "approval", "internal-error", None, INTERNAL_ERROR)
        self._waiting[use_id] = Waiting(call, course)
        _keep(self._raised, use_id, None)
        return {"permissionDecision": "ask", "permissionDecisionReason": reason}

    def refused(
        self, call: Call, course: Course, lock: str, code: str | None, rule: str | None, text: str
    ) -> dict[str, Any]:
        """The hook's refusal, which is recorded."""
        self.record(call, course, "deny", lock, code, rule)
        return self.deny(text)

    def deny(self, reason: str) -> dict[str, Any]:
        return {"permissionDecision": "deny", "permissionDecisionReason": reason}

    # --- where the CLI asks ------------------------------------------------------------------

    def waits(self, tool_use_id: str | None) -> bool:
        """Whether this is a question that the hook has raised; without an id it may be any of them."""
        return tool_use_id in self._raised or (tool_use_id is None and bool(self._waiting))

    async def answer(self, tool_name: str, tool_input: Mapping[str, Any], context: Any) -> Result:
        """The answer to a question that the hook has raised. It waits for the person as long as they
        take; cancelled, it counts as refused. One that was answered, or never raised, is refused."""
        waiting = self._waiting.pop(getattr(context, "tool_use_id", None) or "", None)
        course = Course(perf_counter()) if waiting is None else waiting.course
        course.started = perf_counter()  # of the wait: the hook's time is none of it
        if waiting is None or waiting.call.tool != tool_name or waiting.void:
            asked = self.call_of(tool_name, tool_input, context, self.policy.scope.project_dir)
            call = asked if waiting is None else replace(waiting.call, tool_input=tool_input)
            self.record(call, course, "deny", "approval", "internal-error", None)
            return PermissionResultDeny(message=INTERNAL_ERROR)
        call = replace(waiting.call, tool_input=tool_input)
        # What a person has agreed to is that very input: another hook may have left another one.
        course.agreed = course.agreed and tool_input == waiting.call.tool_input
        return await self._settled(call, course, call.tool_input, self.tools)

    async def changed(
        self, tool_name: str, given: Mapping[str, Any], changed: Any, *, context: Any, cwd: str
    ) -> Result:
        """The answer to a question of the CLI's, which the host's callback has let through with another
        input than the ``given`` one: that is judged from the start, and a rule that asks about it asks.

        ``context`` is the question's; ``cwd`` is what relative paths are relative to.
        """
        call, course = self.call_of(tool_name, changed, context, cwd), Course(perf_counter())
        if call.tool_input != given and (reason := self.tools.change_objection(tool_name)):
            self.record(call, course, "deny", "gate", "denied", None)
            return PermissionResultDeny(message=reason)
        return await self._settled(call, course, given, None)

    async def _settled(
        self, call: Call, course: Course, given: Mapping[str, Any], tools: OpenTools | None
    ) -> Result:
        try:
            await self._read_hints(call)
            return await Answering(self, course, given, tools).settled(call)
        except asyncio.CancelledError:
            self.record(call, course, "deny", "person", "aborted", None)
            raise
        except Exception:
            self.record(call, course, "deny", "approval", "internal-error", None)
            raise

    def call_of(self, tool_name: str, tool_input: Any, context: Any, cwd: str) -> Call:
        """The call that a question of the CLI's is about; ``context`` is the question's."""
        agent_id = getattr(context, "agent_id", None)
        return Call(
            tool=tool_name,
            tool_input=dict(tool_input) if isinstance(tool_input, Mapping) else {},
            cwd=cwd,
            agent=self.agents.get(agent_id or ""),
            agent_id=agent_id,
            tool_use_id=getattr(context, "tool_use_id", None),
        )

    @property
    def is_nobody_there(self) -> bool:
        return self.policy.mode.current is Mode.AUTONOMOUS

    def note_asked(self, call: Call) -> None:
        """A person is about to be asked about this call."""
        if call.tool_use_id is not None:
            _keep(self._asked, call.tool_use_id, call)

    def agent_id_of(self, tool_use_id: str) -> str | None:
        """The id of the subagent that makes a call which a person is asked about."""
        call = self._asked.get(tool_use_id) or self.callers.get(tool_use_id)
        return None if call is None else call.agent_id

    # --- what a call is judged by --------------------------------------------------------------

    async def judged(self, call: Call) -> Found:
        """What the scope says of a call, and the paths that it names."""
        scope = self.policy.scope_of(call.agent)
        return await asyncio.to_thread(
            self.scope_judge.judge, scope, call.tool, call.tool_input, call.cwd
        )

    def seen(self, call: Call, named: tuple[NamedPath, ...]) -> Seen | None:
        """The files of a call as they are now; ``None`` when it can't be told. It looks at the disk."""
        scope = self.policy.scope_of(call.agent)
        try:
            about = self.policy.about(call)
        except Exception:  # noqa: BLE001 - whatever it is, it is not known what they agree to
            _log.exception("the files that a call of %s is about can't be told", call.tool)
            return None
        targets = targets_of(
            scope, call.tool, call.tool_input, cwd=call.cwd, agent=call.agent, named=named
        )
        return seen_of(targets, about)

    # --- the trail ---------------------------------------------------------------------------

    def record(
        self,
        call: Call,
        course: Course | float,
        verdict: str,
        lock: str,
        code: str | None,
        rule: str | None,
    ) -> None:
        """One line of the trail. ``course`` may be the time at which the hook began to judge."""
        if self.note is None:
            return
        if not isinstance(course, Course):
            course = Course(course)
            verdict = self._passed(call) if verdict == "allow" else verdict
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

    def _passed(self, call: Call) -> str:
        """The verdict on a call to which the hook has no objection: ``ask`` where the CLI decides."""
        if self.is_left is not None:
            left = self.is_left(call)
        else:
            left = self.tools.objection(call.tool, call.tool_input) is not None
        if left and call.tool_use_id is not None:
            _keep(self._left, call.tool_use_id, None)
        return "ask" if left else "allow"

    def record_answer(self, call: Call, started: float, lock: str, code: str | None) -> None:
        """The line of a question that the hook hasn't raised: refused with ``code``, or let through
        (``None``), of which there is none where the hook's own line says so already."""
        left = call.tool_use_id is not None and call.tool_use_id in self._left
        if left:
            del self._left[call.tool_use_id or ""]
        if code is not None or left:
            verdict = "allow" if code is None else "deny"
            self.record(call, Course(started), verdict, lock, code, None)


def _keep(kept: dict[str, Any], key: str, value: Any) -> None:
    while len(kept) >= _MAX_WAITING:
        kept.pop(next(iter(kept)))
    kept[key] = value
