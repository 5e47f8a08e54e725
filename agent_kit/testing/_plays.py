"""Which agent of a session plays which script, and how far each one is."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_kit.testing._requests import tool_result_text
from agent_kit.testing._steps import (
    Say,
    Script,
    Step,
    ToolCall,
    ToolResult,
    Turn,
    check_script,
    parts_of,
)

__all__ = ["IssuedCall", "Plays"]

Block = dict[str, Any]

_DONE = "Done."
_REMINDER = "<system-reminder>"
_DEFAULT_TYPE = "general-purpose"  # of a call that names none
_SUBAGENT_TOOLS = frozenset({"Agent", "Task"})  # the CLI takes the old name as well


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedCall:
    """A call that the script made: its id in the conversation, and the agent that made it."""

    call_id: str
    call: ToolCall
    agent: str | None


@dataclass(slots=True)
class _Play:
    """One agent's conversation: its script, and how many of its steps were played."""

    agent: str | None
    agent_type: str | None
    script: Script
    number: int = 0
    last_calls: tuple[str, ...] = ()

    def rest(self) -> tuple[Step, ...]:
        return () if callable(self.script) else tuple(self.script[self.number :])


class Plays:
    """The scripts of one session. Not thread-safe: the caller holds a lock.

    An agent is known by the id that the CLI sends with each request of a subagent. Its type stands
    in no request, only in the ``Agent`` call with its prompt. A new one gets the script of that
    call, else the entry of ``subagents`` under its type, else the first one whose key stands in its
    prompt, else a main script that is a function; else it says "Done.".
    Raises ``TypeError`` when a script is none.
    """

    def __init__(self, script: Script, subagents: Mapping[str, Script]) -> None:
        for each in (script, *subagents.values()):
            check_script(each)
        self._script = script
        self._subagents = dict(subagents)
        self._handed_out: set[str] = set()  # keys of subagents
        self._plays: dict[str | None, _Play] = {None: _Play(None, None, script)}
        self._waiting: list[ToolCall] = []
        self._own = secrets.token_hex(4)  # a resumed session has the calls of two models
        self._ids = itertools.count(1)
        self.issued: dict[str, IssuedCall] = {}

    def unplayed(self) -> tuple[Step, ...]:
        """The steps of list scripts that were not reached, those that no agent was given included."""
        playing = [step for play in self._plays.values() for step in play.rest()]
        silent = [call.script for call in self._waiting if call.script is not None]
        silent += [s for key, s in self._subagents.items() if key not in self._handed_out]
        return (*playing, *(step for script in silent if not callable(script) for step in script))

    def answer(self, agent: str | None, body: Mapping[str, Any]) -> list[Block]:
        """The content blocks of the next step. Raises what a function script raises."""
        play = self._plays.get(agent) or self._meet(agent, body)
        step = self._step(play, body)
        blocks = [self._block(part, agent) for part in parts_of(_DONE if step is None else step)]
        play.number += 1
        play.last_calls = tuple(block["id"] for block in blocks if "id" in block)
        return blocks

    def results(self, messages: Sequence[Mapping[str, Any]]) -> Iterator[ToolResult]:
        """Every answer to one of the script's calls in a conversation, in order."""
        for block in _blocks(messages, "tool_result"):
            issued = self.issued.get(str(block.get("tool_use_id")))
            if issued is not None:
                yield ToolResult(
                    call_id=issued.call_id,
                    name=issued.call.name,
                    text=tool_result_text(block.get("content")),
                    is_error=bool(block.get("is_error")),
                )

    def _step(self, play: _Play, body: Mapping[str, Any]) -> Step | None:
        if callable(play.script):
            return play.script(self._turn(play, body))
        return play.script[play.number] if play.number < len(play.script) else None

    def _meet(self, agent: str | None, body: Mapping[str, Any]) -> _Play:
        texts = [_text(block) for block in _blocks(body.get("messages", ())[:1], "text")]
        call = self._call_for(texts)
        agent_type = call.input.get("subagent_type") if call is not None else None
        play = _Play(agent, agent_type, self._script_for(call, "\n".join(texts)))
        self._plays[agent] = play
        return play

    def _call_for(self, texts: Sequence[str]) -> ToolCall | None:
        """The ``Agent`` call that started the agent with these texts, which then waits no more.

        A text is the call's prompt, or holds it: the longest such prompt is the nearest.
        """
        found = [call for call in self._waiting if any(_prompt(call) in text for text in texts)]
        exact = [call for call in found if _prompt(call) in texts]
        call = next(iter(exact or sorted(found, key=lambda call: -len(_prompt(call)))), None)
        if call is not None:
            self._waiting.remove(call)
        return call

    def _script_for(self, call: ToolCall | None, prompt: str) -> Script:
        if call is not None and call.script is not None:
            return call.script
        own = None if call is None else call.input.get("subagent_type", _DEFAULT_TYPE)
        keys = [key for key in self._subagents if key == own or key in prompt]
        if not keys:
            return self._script if callable(self._script) else ()
        key = own if own in keys else keys[0]
        self._handed_out.add(key)
        return self._subagents[key]

    def _block(self, part: ToolCall | Say | str, agent: str | None) -> Block:
        if not isinstance(part, ToolCall):
            return {"type": "text", "text": part.text if isinstance(part, Say) else part}
        call_id = f"toolu_{self._own}_{next(self._ids):04d}"
        self.issued[call_id] = IssuedCall(call_id=call_id, call=part, agent=agent)
        if part.name in _SUBAGENT_TOOLS and _prompt(part):
            self._waiting.append(part)
        return {"type": "tool_use", "id": call_id, "name": part.name, "input": dict(part.input)}

    def _turn(self, play: _Play, body: Mapping[str, Any]) -> Turn:
        messages = tuple(body.get("messages", ()))
        answers = {result.call_id: result for result in self.results(messages)}
        return Turn(
            agent=play.agent,
            agent_type=play.agent_type,
            prompt=_last_prompt(messages),
            number=play.number,
            results=tuple(answers[call] for call in play.last_calls if call in answers),
            messages=messages,
            body=body,
        )


def _prompt(call: ToolCall) -> str:
    return str(call.input.get("prompt", "")).strip()


def _text(block: Mapping[str, Any]) -> str:
    return str(block.get("text", "")).strip()


def _blocks(messages: Sequence[Mapping[str, Any]], kind: str) -> Iterator[Mapping[str, Any]]:
    """The blocks of one kind in the user's messages, a plain string being one text block."""
    for message in messages:
        content = message.get("content") if message.get("role") == "user" else None
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        yield from (block for block in content or () if block.get("type") == kind)


def _last_prompt(messages: Sequence[Mapping[str, Any]]) -> str:
    """The last user text that is no reminder of the CLI's, except one that carries a notification."""
    texts = [_text(block) for block in _blocks(messages, "text")]
    outside = [t for t in texts if not t.startswith(_REMINDER) or "<task-notification>" in t]
    return outside[-1] if outside else ""
