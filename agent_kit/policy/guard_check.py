"""One question of a guard's, to its end: a person where a rule asks, then the authorizers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final, Protocol

from agent_kit.policy import sentences
from agent_kit.policy.approval import Approved, Edited, Rejected, Unasked
from agent_kit.policy.asking import Ask, ask_person
from agent_kit.policy.authorizers import denied_patterns
from agent_kit.policy.contents import _ContentCheck
from agent_kit.policy.guard_judge import ACCESS, TREE, Found, GuardJudge, Question, denied
from agent_kit.policy.judged import Judged
from agent_kit.policy.modes import Mode
from agent_kit.policy.outcome import Action, Answer
from agent_kit.policy.policy import Policy
from agent_kit.policy.rules import RuleVerdict
from agent_kit.policy.run import flat
from agent_kit.policy.seen import Seen, seen_of
from agent_kit.policy.target import AuthorizerContext, Target, targets_of

__all__ = ["APPROVED", "REMEMBERED", "Checking", "note_answer"]

APPROVED: Final = "approved"
REMEMBERED: Final = "remembered"  # approved, and its rule asks no more


@dataclass(slots=True, kw_only=True, eq=False)
class Checking:
    """What is checked, and what became of it so far. ``agreed`` are rules that a person said yes to."""

    policy: Policy
    judge: GuardJudge
    ask: Ask | None
    note: Callable[[Judged], None] | None
    question: Question
    started: float = field(default_factory=perf_counter)
    agreed: frozenset[str] = frozenset()
    asked: bool = False
    answer: str | None = None
    rule: str | None = None  # that asked last

    async def found(self) -> Found:
        """No objection, or a refusal. It waits for a person as long as they take."""
        self.agreed = await asyncio.to_thread(self.judge.agreed, self.question)
        while True:
            found = await asyncio.to_thread(self.judge.judge, self.question, self.agreed)
            if found.verdict is RuleVerdict.INTERRUPT:
                found = await self._asked(found)
            if found.verdict is RuleVerdict.ALLOW:
                found = await self._authorized(found)
            if found.verdict is not RuleVerdict.INTERRUPT:
                if found.verdict is RuleVerdict.ALLOW and TREE in self.agreed:
                    self._keep(TREE, found)  # every rule that asks about the whole was answered
                self._record(found)
                return found

    async def _asked(self, found: Found) -> Found:
        """A refusal, or ``found`` as it is: they agreed, and it is judged once more."""
        if self.policy.mode.current is Mode.AUTONOMOUS:
            return _nobody(found, sentences.nobody_there)
        if self.ask is None:
            return _nobody(found, sentences.nobody_to_ask)
        before = await asyncio.to_thread(self._seen, found)
        self.asked, self.rule = True, found.rule
        try:
            said = await ask_person(
                self.ask,
                self.question.call,
                target=self.question.shown,
                reason=found.message,
                rule=found.rule,
            )
        except asyncio.CancelledError:
            self._record(denied("person", "aborted", "", found.rule))
            raise
        if isinstance(said, Approved):
            self.answer = APPROVED
            if said.remember and found.rule is not None:
                self.answer = REMEMBERED
                self.policy.remembered.add(found.rule)
            if before is None or before != await asyncio.to_thread(self._seen, found):
                return denied("person", "changed", sentences.changed, found.rule)
            self._agree(found)
            return found
        if isinstance(said, Unasked):
            return _nobody(found, sentences.so_refused(said.message))
        if isinstance(said, Rejected):
            self.answer = "rejected"
            return denied("person", "rejected", sentences.rejected(said.message), found.rule)
        if isinstance(said, Edited):
            self.answer = "edited"
            return denied("person", "edited-too-late", sentences.edited_too_late, found.rule)
        return denied("person", "extension-failed", sentences.unreadable_answer, found.rule)

    def _agree(self, found: Found) -> None:
        self.agreed |= {found.rule or TREE}
        if self.question.operation is Action.DELETE:
            self.agreed |= {TREE}
        if found.rule is not None:
            self._keep(found.rule, found)

    def _keep(self, rule: str, found: Found) -> None:
        """Ask by this rule no more in this call, about the path and what is below it."""
        if self.question.running is not None:
            place = found.named[0].targets[0].path
            self.question.running.agreed.add((rule, place, self.question.weight))

    def _seen(self, found: Found) -> Seen | None:
        """The files as they are now; ``None`` when it can't be told."""
        call = self.question.call
        return seen_of(targets_of(self.policy.scope, call.tool, call.tool_input, named=found.named))

    async def _authorized(self, found: Found) -> Found:
        """``found``, or the refusal of an authorizer."""
        question, named = self.question, found.named
        authorizers = tuple(flat(self.policy.authorizers))
        if question.filtered:  # what deny_paths denies in it the tool leaves out
            named = tuple(path._replace(access=ACCESS[question.operation]) for path in named)
            authorizers = tuple(each for each in authorizers if not denied_patterns([each]))
        if not authorizers:
            return found
        if question.operation is Action.WRITE and not question.call.tool_input:
            authorizers = tuple(map(_without_text, authorizers))
        done = await self.policy.authorize(
            question.call,
            named,
            deletes=question.operation is Action.DELETE,
            authorizers=authorizers,
            heard=self._heard,
        )
        if (refusal := done.refusal) is not None:
            return denied("authorizers", str(refusal.code), str(refusal), refusal.authorizer)
        if done.tool_input is not question.call.tool_input:
            return denied("authorizers", "denied", sentences.only_in_part)
        return found

    def _heard(self, authorizer: str, answer: bool | None) -> None:
        note_answer(self, authorizer, answer)

    def _record(self, found: Found) -> None:
        if self.note is None:
            return
        call, denies = self.question.call, found.verdict is RuleVerdict.DENY
        by_scope = not denies or found.part == "scope"
        self.note(
            self.policy.judged(
                call,
                started=self.started,
                tool_input={"operation": str(self.question.operation), "path": self.question.path},
                verdict="deny" if denies else "allow",
                lock="guard" if by_scope else found.part,
                code=found.code or None,
                rule=found.rule if denies else self.rule,
                asked=self.asked,
                answer=self.answer,
            )
        )


@dataclass(frozen=True, slots=True)
class _Textless:
    """In the place of an authorizer that looks at what is written, where nobody has said what that is."""

    id: str
    actions: Any
    inline: bool = True

    def authorize(self, _target: Target, _context: AuthorizerContext) -> Answer:
        raise LookupError(
            f"{self.id} can't tell what is about to be written: no call of a tool is known to be"
            " running here, so give it to the guard, as require(..., tool_input={'text': text})"
        )


def _without_text(authorizer: Any) -> Any:
    if not isinstance(authorizer, _ContentCheck):
        return authorizer
    return _Textless(authorizer.id, authorizer.actions)


class _Told(Protocol):
    """What the trail says of a person."""

    asked: bool
    answer: str | None
    rule: str | None


def note_answer(told: _Told, authorizer: str, answer: bool | None) -> None:
    """An authorizer asks a person (``None``), or has their answer. What they said before about the
    same call stays, unless this is a no."""
    told.asked = True
    if answer is False:
        told.answer = "rejected"
    elif answer and told.answer is None:
        told.answer, told.rule = APPROVED, authorizer


def _nobody(found: Found, because: str) -> Found:
    return denied(found.part, "nobody-to-ask", f"{found.message} {because}", found.rule)
