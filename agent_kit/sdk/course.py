"""What became of one call so far, from the hook to the answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_kit.policy.approval import Rejected
from agent_kit.policy.guard_check import APPROVED, REMEMBERED, note_answer
from agent_kit.policy.policy import Call, Judgement
from agent_kit.policy.seen import Seen
from agent_kit.scope.judge import NamedPath
from agent_kit.scope.text import shown

__all__ = ["Course", "Stopped", "Waiting", "target_of"]


@dataclass(slots=True)
class Waiting:
    """A call for which the hook has said "ask". ``course`` is what became of it so far. ``void``:
    another call has the same id, so nobody could tell whose question it is."""

    call: Call
    course: Course
    void: bool = False


@dataclass(slots=True)
class Course:
    """One call's. ``started`` is when the judgement began (``time.perf_counter``). ``rule`` is the one
    that asked last, ``rules`` are those whose question an edit has answered, ``seen`` are the files as
    they were when a person was first asked about each."""

    started: float
    asked: bool = False
    answer: str | None = None
    agreed: bool = False
    rule: str | None = None
    rules: set[str] = field(default_factory=set)
    seen: Seen = field(default_factory=dict)
    question: str | None = None  # of a hook before the gate, unanswered

    def heard(self, authorizer: str, answer: bool | None) -> None:
        """An authorizer asks a person, and once they have said it, what they said."""
        note_answer(self, authorizer, answer)

    def approved(self, remember: bool) -> None:
        self.answer, self.agreed = REMEMBERED if remember else APPROVED, True


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped(Rejected):
    """A host's callback refuses the call, and ends the run."""


def target_of(found: Judgement, named: tuple[NamedPath, ...]) -> str | None:
    """What a question is about, as messages show it."""
    text = found.path if found.path is not None else next((path.text for path in named), None)
    return None if text is None else shown(text)
