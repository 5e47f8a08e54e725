"""The record of one session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

from claude_agent_sdk import (
    Message,
    ResultMessage,
    SystemMessage,
    ToolResultBlock,
    UserMessage,
)

from agent_kit.testing._calls import AnsweredBy, CallRecord, answered_by
from agent_kit.testing._model import ScriptedModel
from agent_kit.testing._requests import Request, tool_result_text
from agent_kit.testing._steps import Step
from agent_kit.testing._watch import Watch

__all__ = ["Prompt", "PromptRecord", "SessionRun", "is_result", "record"]

Prompt: TypeAlias = "str | Sequence[Mapping[str, Any]]"
"""A text, or the content blocks of one message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptRecord:
    """One prompt: the final answer to it, or why a hook stopped it: the prompt's, or that of a command.

    ``lock`` is ``AnsweredBy.PROMPT_GATE`` for a stopped one, else ``AnsweredBy.RAN``.
    """

    prompt: Prompt
    text: str
    blocked: str | None
    lock: AnsweredBy


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRun:
    """What happened in one session.

    ``calls`` are in the order in which the scripts made them, the subagents' among them.
    ``messages`` are the SDK's, ``stderr`` the CLI's lines. ``outside`` names what was wanted from
    other hosts, and refused. ``unplayed`` are the steps that the session did not reach: a claim
    that something was not seen is worth nothing when they would have shown it.
    """

    prompts: tuple[PromptRecord, ...]
    calls: tuple[CallRecord, ...]
    requests: tuple[Request, ...]
    messages: tuple[Message, ...]
    stderr: tuple[str, ...]
    outside: tuple[str, ...]
    unplayed: tuple[Step, ...]

    @property
    def text(self) -> str:
        """The final answer to the last prompt, empty when there was none."""
        return self.prompts[-1].text if self.prompts else ""

    @property
    def blocked_prompt(self) -> str | None:
        """Why the first prompt that a hook stopped was stopped, else ``None``."""
        return next((each.blocked for each in self.prompts if each.blocked is not None), None)

    def saw(self, text: str) -> bool:
        """Whether ``text`` was in any request to the model: as it is, escaped, or in base64."""
        return any(request.saw(text) for request in self.requests)

    def where(self, text: str) -> tuple[str, ...]:
        """Each place where ``text`` was seen, for a person."""
        return tuple(
            f"#{number} {place}"
            for number, request in enumerate(self.requests)
            for place in request.where(text)
        )


def record(
    prompts: Sequence[Prompt], model: ScriptedModel, watch: Watch, answers: Sequence[list[Message]]
) -> SessionRun:
    """The record of a session that is over. ``answers`` has one list of messages a prompt."""
    messages = tuple(chain.from_iterable(answers))
    return SessionRun(
        prompts=tuple(map(_prompt_record, prompts, answers)),
        calls=tuple(_calls(model, watch, messages)),
        requests=model.requests,
        messages=messages,
        stderr=tuple(watch.stderr),
        outside=model.outside,
        unplayed=model.unplayed,
    )


def is_result(message: Message) -> bool:
    """Whether the answer to a prompt is over; the answer to a task notification is none."""
    if not isinstance(message, ResultMessage):
        return False
    origin = getattr(message, "origin", None) or {}
    return bool(origin.get("kind") != "task-notification")


def _prompt_record(prompt: Prompt, answer: Sequence[Message]) -> PromptRecord:
    """The first result is the answer; what follows belongs to task notifications."""
    end = next((at for at, message in enumerate(answer) if is_result(message)), len(answer))
    outcomes = [message.data.get("prompt_submit_outcome") for message in _system(answer[:end])]
    blocked = next((str(outcome.get("reason", "")) for outcome in outcomes if outcome), None)
    text = getattr(answer[end], "result", None) if end < len(answer) else None
    if blocked is None and (stopped := _EXPANSION.fullmatch(text or "")):
        blocked = stopped[1]
    return PromptRecord(
        prompt=prompt,
        text=(text or "") if blocked is None else "",
        blocked=blocked,
        lock=AnsweredBy.RAN if blocked is None else AnsweredBy.PROMPT_GATE,
    )


# How the CLI tells that a UserPromptExpansion hook stopped a command (measured on CLI 2.1.332).
_EXPANSION = re.compile(
    r"UserPromptExpansion operation blocked by hook:\n(.*)\n\nOriginal prompt: .*", re.DOTALL
)


def _calls(model: ScriptedModel, watch: Watch, messages: Sequence[Message]) -> Iterator[CallRecord]:
    told, reported = model.results, dict(_reported(messages))
    denied, types = set(_denials(messages)), dict(_agent_types(messages))
    for issued in model.issued:
        result = told.get(issued.call_id)
        answer = (result.text, result.is_error) if result else reported.get(issued.call_id)
        yield CallRecord(
            call_id=issued.call_id,
            tool=issued.call.name,
            input=issued.call.input,
            result=answer[0] if answer else None,
            is_error=bool(answer and answer[1]),
            lock=None
            if answer is None
            else answered_by(
                answer[0],
                is_error=answer[1],
                hook_denied=issued.call_id in watch.hook_denied,
                permission_denied=issued.call_id in denied,
            ),
            agent=types.get(issued.agent, issued.agent),
            agent_id=issued.agent,
        )


def _system(messages: Sequence[Message]) -> Iterator[SystemMessage]:
    return (message for message in messages if isinstance(message, SystemMessage))


def _reported(messages: Sequence[Message]) -> Iterator[tuple[str, tuple[str, bool]]]:
    """Results as the SDK passed them on: call id to text and whether it is an error."""
    for message in messages:
        if isinstance(message, UserMessage) and isinstance(message.content, list):
            for block in message.content:
                if isinstance(block, ToolResultBlock):
                    text = tool_result_text(block.content)
                    yield block.tool_use_id, (text, bool(block.is_error))


def _denials(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        if isinstance(message, ResultMessage):
            denials: list[Any] = message.permission_denials or []
            yield from (str(denial.get("tool_use_id")) for denial in denials)


def _agent_types(messages: Sequence[Message]) -> Iterator[tuple[str | None, str]]:
    for message in _system(messages):
        if message.subtype == "task_started" and message.data.get("subagent_type"):
            yield message.data["task_id"], message.data["subagent_type"]
