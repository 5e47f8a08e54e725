"""What the model is told of rules and authorizers, and the person who is asked.

``path`` is what the model wrote, already escaped. No sentence says where a link points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from agent_kit.scope.decision import Access

__all__ = [
    "changed",
    "deferred",
    "narrower",
    "nobody_there",
    "nobody_to_ask",
    "not_startable",
    "plan_mode",
    "rejected",
    "rule_asks",
    "rule_denies",
    "step_asks",
    "tool_asks",
    "unjudged",
    "unreadable_answer",
    "waits_for_person",
]

_VERBS: Final[Mapping[Access, tuple[str, str]]] = {
    Access.READ: ("read", ""),
    Access.LIST: ("listed", " it, or something in it"),
    Access.SEARCH: ("searched", " it, or something in it"),
    Access.WRITE: ("written", ""),
}


def rule_denies(access: Access, path: str) -> str:
    verb, reach = _VERBS[access]
    if reach:
        return (
            f'"{path}" can\'t be {verb}: a rule of this session closes{reach}.'
            " Try a folder below that holds nothing closed."
        )
    return f'"{path}" can\'t be {verb}: a rule of this session forbids it.'


def rule_asks(access: Access, path: str) -> str:
    verb, reach = _VERBS[access]
    if reach:
        return f'"{path}" is {verb} only when a person agrees: a rule asks for{reach}.'
    return f'"{path}" is {verb} only when a person agrees.'


unjudged: Final = "This call names a path that can't be judged, so the rules refuse it."

nobody_to_ask: Final = "Nobody can be asked in this session, so it was refused. Do without."
nobody_there: Final = "Nobody is there in this session, so it was refused. Do without."
changed: Final = (
    "The file changed while a person looked at this call, so it was refused. Read it again first."
)
waits_for_person: Final = (
    "A person is asked about this call, and this session ends until they have answered."
)
unreadable_answer: Final = "The person's answer could not be read, so the call was refused."


def plan_mode(tool: str) -> str:
    return (
        f'This session is in plan mode: nothing is changed, and "{tool}" may change something.'
        " Look, and say what you would do."
    )


def tool_asks(tool: str) -> str:
    return f'"{tool}" is called only when a person agrees.'


def step_asks(tool: str) -> str:
    return f'"{tool}" may change something: in this mode a person agrees to each such call first.'


def not_startable(agent: str, startable: Sequence[str]) -> str:
    if not startable:
        return "No agent may be started in this session: do the work yourself."
    return f'"{agent}" is no agent that may be started here. Start one of {", ".join(startable)}.'


def rejected(message: str) -> str:
    """``message`` is the person's own."""
    return f"A person rejected this call{f': {message}' if message else '.'}"


def deferred(question_id: str) -> str:
    """For the host: why the run has ended."""
    return f"a person must answer question {question_id} first: see agent_kit.answer"


def narrower(tool: str) -> str:
    return (
        f'This agent may write less than others, and "{tool}" could go around that. Report what you'
        " found instead."
    )
