"""What the model is told of rules and authorizers, and the person who is asked.

``path`` is what the model wrote, already escaped. No sentence says where a link points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from agent_kit.scope.decision import Access

__all__ = [
    "answer_asks",
    "changed",
    "deferred",
    "delete_asks",
    "delete_denies",
    "edited_too_late",
    "fork_asks",
    "fork_closed",
    "left_nothing",
    "name_it",
    "narrower",
    "no_answer",
    "nobody_there",
    "nobody_there_to_answer",
    "nobody_to_answer",
    "nobody_to_ask",
    "not_startable",
    "off_limits",
    "only_in_part",
    "part_of_mention",
    "plan_mode",
    "rejected",
    "rule_asks",
    "rule_denies",
    "so_refused",
    "step_asks",
    "tool_asks",
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


nobody_to_ask: Final = "Nobody can be asked in this session, so it was refused. Do without."
nobody_there: Final = "Nobody is there in this session, so it was refused. Do without."
changed: Final = (
    "The file changed while a person looked at this call, so it was refused. Read it again first."
)
# In the place of an empty input the CLI runs the one that it asked about (measured on CLI 2.1.332).
left_nothing: Final = "A person left nothing of this call's input, so it was refused."
waits_for_person: Final = (
    "A person is asked about this call, and this session ends until they have answered."
)
unreadable_answer: Final = "The person's answer could not be read, so the call was refused."
nobody_to_answer: Final = "Nobody can be asked in this session."
nobody_there_to_answer: Final = "Nobody is there in this session."
no_answer: Final = "The person's answer could not be read."


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


def answer_asks(tool: str) -> str:
    return f'"{tool}" is a question to a person, and runs when they have answered.'


def fork_asks(skill: str) -> str:
    return f'"{skill}" runs in an agent of its own, which is started only when a person agrees.'


def fork_closed(skill: str, agent: str | None) -> str:
    """``agent`` is the type that the skill starts, ``None`` when nobody can tell."""
    kind = "some type" if agent is None else f'type "{agent}"'
    return f'"{skill}" runs in an agent of {kind}, which may not be started here. Do the work yourself.'


def rejected(message: str) -> str:
    """``message`` is the person's own."""
    return f"A person rejected this call{f': {message}' if message else '.'}"


def so_refused(why: str) -> str:
    """``why`` is the sentence that says why nobody could be asked."""
    return f"{why} So it was refused. Do without."


def deferred(question_id: str) -> str:
    """For the host: why the run has ended."""
    return f"a person must answer question {question_id} first: see agent_kit.answer"


def narrower(tool: str) -> str:
    return (
        f'This agent may write less than others, and "{tool}" could go around that. Report what you'
        " found instead."
    )


def off_limits(path: str) -> str:
    """Of what a tool calls by a name of its own."""
    return f'"{path}" is off limits.'


def delete_denies(path: str) -> str:
    return f'"{path}" can\'t be deleted: it, or something in it, is closed. Nothing was deleted.'


def delete_asks(path: str) -> str:
    return f'"{path}" is deleted, with all that is in it, only when a person agrees.'


edited_too_late: Final = (
    "A person would have this call changed, which can't be done once its tool runs, so it was refused."
    " Ask them what to change, and call again."
)
name_it: Final = "Only a command's file mentions it: mention it in the prompt, if you agree."
part_of_mention: Final = "it may be read in part only, and a mention attaches the whole"
only_in_part: Final = "It may be read in part only, which this tool can't do, so it was refused."
