"""A question of a tool's own to the person who is asked about calls: not for leave, but for something
that only they can give."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

from agent_kit.policy import sentences
from agent_kit.policy.approval import Approved, Edited, PersonsAnswer, Unasked
from agent_kit.policy.asking import Ask, ask_person
from agent_kit.policy.judged import Judged
from agent_kit.policy.modes import Mode
from agent_kit.policy.policy import Call, Policy

__all__ = ["Inquiry"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inquiry:
    """One question. ``call`` is the running one, as the person is to see it."""

    policy: Policy
    ask: Ask | None
    note: Callable[[Judged], None] | None
    call: Call
    started: float = field(default_factory=perf_counter)

    async def answer(self, reason: str, asks_for: str) -> PersonsAnswer:
        """The person's answer, which is recorded. Nobody, and one that can't be read, is an Unasked."""
        if self.policy.mode.current is Mode.AUTONOMOUS:
            return self._unasked(sentences.nobody_there_to_answer, "nobody-to-ask")
        if self.ask is None:
            return self._unasked(sentences.nobody_to_answer, "nobody-to-ask")
        try:
            said = await ask_person(
                self.ask, self.call, target=None, reason=reason, rule=None, asks_for=asks_for
            )
        except asyncio.CancelledError:
            self._record("person", code="aborted", asked=True)
            raise
        if said is None:
            return self._unasked(sentences.no_answer, "extension-failed", asked=True)
        if isinstance(said, Unasked):
            return self._unasked(said.message, "nobody-to-ask", asked=True)
        if isinstance(said, Approved | Edited):
            answer = "approved" if isinstance(said, Approved) else "edited"
            self._record("person", asked=True, answer=answer)
        else:
            self._record("person", code="rejected", asked=True, answer="rejected")
        return said

    def _unasked(self, message: str, code: str, *, asked: bool = False) -> Unasked:
        self._record("person" if code == "extension-failed" else "answer", code=code, asked=asked)
        return Unasked(message=message)

    def _record(
        self, lock: str, *, code: str | None = None, asked: bool = False, answer: str | None = None
    ) -> None:
        """The trail's line; without a ``code`` the person has given something."""
        if self.note is not None:
            self.note(
                self.policy.judged(
                    self.call,
                    started=self.started,
                    verdict="allow" if code is None else "deny",
                    lock=lock,
                    code=code,
                    rule=f"answer[{self.call.tool}]",
                    asked=asked,
                    answer=answer,
                )
            )
