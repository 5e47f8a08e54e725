"""What ``SessionConfig.ask`` takes: a question in the terminal, without holding up the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, TextIO

from agent_kit.policy.approval import Approval, PersonsAnswer, Unasked
from agent_kit.terminal.desk import Question, desk_of
from agent_kit.terminal.place import Nobody, find_place

__all__ = ["Ask", "ask_in_terminal", "terminal_asker"]

_log = logging.getLogger("agent_kit.terminal")

Ask = Callable[[Approval], Coroutine[Any, Any, PersonsAnswer]]

_TOLD: Final[set[str]] = set()  # what the operator's log already says


async def ask_in_terminal(approval: Approval) -> PersonsAnswer:
    """Ask the person at the terminal, and wait for the answer as long as it takes.

    The question is shown whole and literally. It is answered with y (yes), n (no, and what the model
    is told), e (edit the input), r (yes, and no more questions of this rule in this session), and
    where something is asked for with g (give it) in the place of y; Ctrl+C and Ctrl+D are a no, and
    nothing else is an answer. Questions wait in turn, one at a time in one terminal. Cancelled, it withdraws its question. Where there is no terminal the answer is a refusal
    that says so.
    """
    return await _ask(approval, None, plain=False)


def terminal_asker(
    *,
    input: TextIO | None = None,  # noqa: A002 - what it is to a caller
    output: TextIO | None = None,
    plain: bool = False,
) -> Ask:
    """An ``ask_in_terminal`` for another terminal: both streams of it, or neither for one's own.

    With ``plain`` there are no colours. Streams that are no terminal when a question comes refuse it.
    Raises TypeError for one stream alone, or what is no stream.
    """
    streams = _streams(input, output)
    if not isinstance(plain, bool):
        raise TypeError("plain is True or False")

    async def ask(approval: Approval) -> PersonsAnswer:
        return await _ask(approval, streams, plain=plain)

    return ask


def _streams(reading: TextIO | None, writing: TextIO | None) -> tuple[TextIO, TextIO] | None:
    if reading is None and writing is None:
        return None
    if reading is None or writing is None:
        raise TypeError("give input and output, or neither")
    for name, stream in (("input", reading), ("output", writing)):
        if not hasattr(stream, "fileno"):
            raise TypeError(f"{name} is an open text stream, not {type(stream).__name__}")
    return reading, writing


async def _ask(
    approval: Approval, streams: tuple[TextIO, TextIO] | None, *, plain: bool
) -> PersonsAnswer:
    try:
        place = find_place(streams)
    except Nobody as why:
        if str(why) not in _TOLD:
            _TOLD.add(str(why))
            _log.warning("%s Calls that a person must approve are refused.", why)
        return Unasked(message=str(why))
    question = Question(approval=approval, place=place, plain=plain)
    answer = asyncio.wrap_future(question.answer)
    desk_of(place).put(question)
    return await answer
