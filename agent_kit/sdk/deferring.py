"""A question that outlives the host, in the hook: the answer that was left for this very call, or the
end of the run."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from agent_kit.policy import sentences
from agent_kit.policy.approval import Edited, Rejected
from agent_kit.policy.deferred import Question, QuestionStore
from agent_kit.policy.policy import Call, Judgement
from agent_kit.policy.rules import RuleVerdict
from agent_kit.policy.seen import Seen, is_changed
from agent_kit.scope.judge import NamedPath
from agent_kit.sdk.course import Course, target_of

if TYPE_CHECKING:
    from agent_kit.sdk.policy_gate import PolicyGate

__all__ = ["Deferring"]

_MADE_ANEW: Final = (
    "A person has changed the input of this call. They are asked about the new one, too, and this"
    " session ends until they have answered. Then make the call with exactly this input: "
)


@dataclass(frozen=True, slots=True, eq=False)
class Deferring:
    """One call that a rule asks about (``found``), in a session whose questions are kept in ``store``."""

    gate: PolicyGate
    store: QuestionStore
    call: Call
    named: tuple[NamedPath, ...]
    found: Judgement
    course: Course

    async def answered(self) -> dict[str, Any]:
        """What the hook answers."""
        now = await asyncio.to_thread(self.gate.seen, self.call, self.named)
        question = await asyncio.to_thread(
            self.store.ask, self._question(self.call, self.named, self.found, now)
        )
        said = await asyncio.to_thread(self.store.take, question)
        found, course = self.found, self.course
        if said is None:
            return self._ended(self.call, found, question, sentences.waits_for_person)
        course.asked, course.rule = True, found.rule
        if isinstance(said, Rejected):
            course.answer = "rejected"
            return self._refused(self.call, "rejected", sentences.rejected(said.message))
        if isinstance(said, Edited):
            return await self._edited(said, question)
        course.approved(False)
        if is_changed(question.seen, now) or _is_about_others(question.seen, now):
            return self._refused(self.call, "changed", sentences.changed)
        return await self.gate.authorized(self.call, self.named, course)

    def _ended(self, call: Call, found: Judgement, question: Question, text: str) -> dict[str, Any]:
        """The end of the run at a question about ``call``; the model is told ``text``."""
        self.gate.record(call, self.course, "defer", found.part, "deferred", found.rule)
        return {**self.gate.deny(text), "stop": sentences.deferred(question.question_id)}

    def _question(
        self, call: Call, named: tuple[NamedPath, ...], found: Judgement, seen: Any
    ) -> Question:
        return Question(
            question_id="",
            session_id=self.gate.policy.session_id or "",
            tool=call.tool,
            tool_input=call.tool_input,
            target=target_of(found, named),
            reason=found.message,
            agent=call.agent,
            rule=found.rule,
            cwd=call.cwd,
            seen=seen,
        )

    async def _edited(self, said: Edited, question: Question) -> dict[str, Any]:
        """The person's input, judged from the start; another rule that asks about it is the next question."""
        gate, course, found = self.gate, self.course, self.found
        course.answer = "edited"
        new = replace(self.call, tool_input=dict(said.tool_input))
        if self.call.tool_input and not new.tool_input:
            return gate.refused(new, course, "person", "denied", None, sentences.left_nothing)
        reason, named, _ = await gate.judged(new)
        reason = reason or gate.tools.edit_objection(new.tool, new.tool_input)
        if reason is not None:
            return gate.refused(new, course, "gate", "denied", None, reason)
        seen = await asyncio.to_thread(gate.seen, new, named)
        if is_changed(question.seen, seen):
            return self._refused(new, "changed", sentences.changed)
        again = gate.policy.judge(new, named, frozenset({found.rule or ""}))
        if again.verdict is RuleVerdict.INTERRUPT:
            return await self._asked_again(new, named, again, seen)
        if again.verdict is RuleVerdict.DENY:
            return gate.refused(new, course, again.part, again.code, again.rule, again.message)
        course.agreed = True
        answer = await gate.authorized(new, named, course)
        if answer.get("permissionDecision") == "deny":
            return answer
        return {"updatedInput": dict(new.tool_input), **answer}

    async def _asked_again(
        self, new: Call, named: tuple[NamedPath, ...], found: Judgement, seen: Any
    ) -> dict[str, Any]:
        """The question about the person's input, which the model has to make a call with. One that
        has an answer was asked before: that counts for the model's own call alone."""
        asked = self._question(new, named, found, seen)
        question = await asyncio.to_thread(self.store.ask, asked)
        return self._ended(new, found, question, _MADE_ANEW + json.dumps(dict(new.tool_input)))

    def _refused(self, call: Call, code: str, text: str) -> dict[str, Any]:
        return self.gate.refused(call, self.course, "person", code, self.found.rule, text)


def _is_about_others(seen: Seen | None, now: Seen | None) -> bool:
    """Whether a call that reads the same names other files now: a skill's body mentions others."""
    return (seen or {}).keys() != (now or {}).keys()
