"""A session of the real CLI, told call by call while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    Message,
    PermissionResultDeny,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)

from agent_kit.testing import CallRecord
from agent_kit.testing._calls import answered_by
from agent_kit.testing._requests import tool_result_text
from agent_kit.testing._run import is_result
from agent_kit.testing._watch import Watch

__all__ = ["Listener", "Played", "play"]


class Listener(Protocol):
    """Hears of everything at the moment at which it happens."""

    def prompted(self, prompt: str) -> None: ...
    def called(self, call: CallRecord) -> None:
        """A call was made: it has no answer yet."""

    def answered(self, call: CallRecord) -> None: ...
    def said(self, text: str, agent: str | None) -> None: ...
    def blocked(self, reason: str) -> None:
        """A prompt was stopped, and no request made."""

    def failed(self, reason: str) -> None:
        """The CLI ended a prompt with an error."""


@dataclass(slots=True)
class Played:
    """What came of it: the calls by their id, why prompts were stopped, the SDK's messages."""

    calls: dict[str, CallRecord] = field(default_factory=dict)
    blocked: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)


async def play(
    options: ClaudeAgentOptions, prompts: Iterable[str], listener: Listener, *, limit: float
) -> Played:
    """Send the prompts one after the other and tell ``listener`` what happens.

    Raises ``TimeoutError`` after ``limit`` seconds, and the SDK's own errors.
    """
    session = _Session(listener)
    watched = session.watched(options)
    async with asyncio.timeout(limit), ClaudeSDKClient(watched) as client:
        for prompt in prompts:
            listener.prompted(prompt)
            await client.query(prompt)
            async for message in client.receive_messages():
                session.take(message)
                if is_result(message):
                    break
    return session.played


class _Session:
    def __init__(self, listener: Listener) -> None:
        self.played = Played()
        self._listener = listener
        self._watch = Watch()
        self._asked_denied: set[str] = set()

    def watched(self, options: ClaudeAgentOptions) -> ClaudeAgentOptions:
        """A copy of ``options`` whose hooks and ``can_use_tool`` tell what they denied."""
        ask = options.can_use_tool

        async def asked(tool: str, fields: dict[str, Any], context: Any) -> Any:
            assert ask is not None
            answer = await ask(tool, fields, context)
            if isinstance(answer, PermissionResultDeny):
                self._asked_denied.add(context.tool_use_id)
            return answer

        watched = self._watch.options(options, options.env)
        return watched if ask is None else replace(watched, can_use_tool=asked)

    def take(self, message: Message) -> None:
        self.played.messages.append(message)
        if isinstance(message, AssistantMessage):
            self._spoken(message)
        elif isinstance(message, UserMessage):
            for block in _results(message):
                self._answer(block)
        elif isinstance(message, SystemMessage):
            self._outcome(message.data.get("prompt_submit_outcome"))
        elif isinstance(message, ResultMessage) and message.is_error:
            self._fail(message.result or message.subtype)

    def _spoken(self, message: AssistantMessage) -> None:
        agent = self._agent(message.parent_tool_use_id)
        for block in message.content:
            if isinstance(block, TextBlock):
                self._listener.said(block.text, agent)
            elif isinstance(block, ToolUseBlock):
                call = CallRecord(
                    call_id=block.id,
                    tool=block.name,
                    input=block.input,
                    result=None,
                    is_error=False,
                    lock=None,
                    agent=agent,
                )
                self.played.calls[block.id] = call
                self._listener.called(call)

    def _agent(self, parent: str | None) -> str | None:
        """The type of the subagent that a call of this id started."""
        started = self.played.calls.get(parent) if parent else None
        return None if started is None else str(started.input.get("subagent_type", "subagent"))

    def _answer(self, block: ToolResultBlock) -> None:
        asked = self.played.calls.get(block.tool_use_id)
        if asked is None:
            return
        text, is_error = tool_result_text(block.content), bool(block.is_error)
        lock = answered_by(
            text,
            is_error=is_error,
            hook_denied=block.tool_use_id in self._watch.hook_denied,
            permission_denied=block.tool_use_id in self._asked_denied,
        )
        call = replace(asked, result=text, is_error=is_error, lock=lock)
        self.played.calls[call.call_id] = call
        self._listener.answered(call)

    def _outcome(self, outcome: Mapping[str, Any] | None) -> None:
        if outcome:
            reason = str(outcome.get("reason", ""))
            self.played.blocked.append(reason)
            self._listener.blocked(reason)

    def _fail(self, reason: str) -> None:
        self.played.failed.append(reason)
        self._listener.failed(reason)


def _results(message: UserMessage) -> Iterator[ToolResultBlock]:
    if isinstance(message.content, list):
        yield from (block for block in message.content if isinstance(block, ToolResultBlock))
