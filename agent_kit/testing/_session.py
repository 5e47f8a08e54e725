"""One session of the real CLI against a scripted model, from connecting to the record."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    Message,
    SystemMessage,
)

from agent_kit.testing._env import cli_env, endpoint_env, kept, repinned
from agent_kit.testing._model import ScriptedModel
from agent_kit.testing._run import Prompt, SessionRun, is_result, record
from agent_kit.testing._steps import Script
from agent_kit.testing._watch import Watch

__all__ = ["SessionTimeoutError", "run_session"]

_STATE_EVENTS = {"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"}
_TAIL = 8  # messages, and lines of stderr, that an error quotes


class SessionTimeoutError(TimeoutError):
    """The session did not end within its limit. The message says how far it came."""


async def run_session(
    options: ClaudeAgentOptions,
    script: Script | None = None,
    *,
    prompt: str | Sequence[Prompt] = "Go.",
    home: Path | None = None,
    subagents: Mapping[str, Script] | None = None,
    model: ScriptedModel | None = None,
    wait_for_background: bool = False,
    timeout: float = 60,  # noqa: ASYNC109 - the session is closed in order, not cancelled
) -> SessionRun:
    """Run a session of ``options`` on the real CLI with ``script`` as its model; tell what happened.

    ``options`` is left as it is. The session's environment is ``cli_env``, then ``options.env``,
    then again what keeps it on loopback; ``home`` (default: an empty folder, removed afterwards)
    goes before a HOME in ``options.env``. ``prompt`` may be several prompts, sent one after the
    other; each is a text or a list of content blocks. ``subagents`` gives scripts to the subagents
    whose ``Agent`` call in the script has none: a key is the type of an agent (``"auditor"``) or a text
    that stands in its prompt. The type goes first; where no call of the script started the agent (a
    skill did), only the prompt is known. ``model`` is a running ``ScriptedModel`` to use instead of a
    new one for ``script`` and ``subagents``; its record is there also when this function raises.

    A prompt is done when the CLI reports its result, or, with ``wait_for_background``, when no
    subagent works in the background any more and the main agent has answered their notifications.

    Raises ``SessionTimeoutError`` after ``timeout`` seconds, whatever a script function raised, the
    SDK's own errors (with the CLI's last lines as a note), and ``TypeError`` for options or a script
    that is none, or a script beside a ``model``.
    """
    if not isinstance(options, ClaudeAgentOptions):
        raise TypeError(f"The options are ClaudeAgentOptions, not a {type(options).__name__}.")
    if model is not None and (script is not None or subagents is not None):
        raise TypeError("The model has its own script: give a script or a model, not both.")
    prompts = (prompt,) if isinstance(prompt, str) else tuple(prompt)
    with (
        _running(model, script or (), subagents) as played,
        _home(options, home) as own_home,
        tempfile.TemporaryDirectory(prefix="agent-kit-settings-") as folder,
        kept(options.settings),
    ):
        session = _Session(options, played, own_home, Path(folder), wait_for_background)
        await session.run(prompts, timeout)
        if played.error is not None:
            raise played.error
        return record(prompts, played, session.watch, session.answers)


@contextmanager
def _running(
    model: ScriptedModel | None, script: Script, subagents: Mapping[str, Script] | None
) -> Iterator[ScriptedModel]:
    if model is not None:
        yield model
        return
    with ScriptedModel(script, subagents=subagents) as own:
        yield own


@contextmanager
def _home(options: ClaudeAgentOptions, home: Path | None) -> Iterator[Path]:
    if home is not None or "HOME" in options.env:
        yield home or Path(options.env["HOME"])
        return
    with tempfile.TemporaryDirectory(prefix="agent-kit-home-", ignore_cleanup_errors=True) as own:
        yield Path(own)


class _Session:
    """``answers`` holds the messages that came in answer to each prompt."""

    def __init__(
        self,
        options: ClaudeAgentOptions,
        model: ScriptedModel,
        home: Path,
        folder: Path,
        background: bool,
    ) -> None:
        self.watch = Watch()
        self.answers: list[list[Message]] = []
        self._model = model
        self._background = background
        env = {**cli_env(model, home), **options.env, **_STATE_EVENTS, "HOME": str(home)}
        env |= endpoint_env(model)
        settings = repinned(options.settings, env, folder)
        self._options = self.watch.options(replace(options, settings=settings), env)

    async def run(self, prompts: Sequence[Prompt], limit: float) -> None:
        client = ClaudeSDKClient(self._options)
        try:
            async with asyncio.timeout(limit):
                await client.connect()
                for prompt in prompts:
                    await self._ask(client, prompt)
        except TimeoutError as error:
            raise SessionTimeoutError(self._how_far(limit)) from error
        except Exception as error:
            error.add_note(self._how_far(None))
            raise
        finally:
            await client.disconnect()

    async def _ask(self, client: ClaudeSDKClient, prompt: Prompt) -> None:
        answer: list[Message] = []
        self.answers.append(answer)
        await client.query(prompt if isinstance(prompt, str) else _message(prompt))
        async for message in client.receive_messages():
            answer.append(message)
            if _is_idle(message) if self._background else is_result(message):
                return

    def _how_far(self, limit: float | None) -> str:
        last = [type(message).__name__ for answer in self.answers for message in answer]
        return (
            f"The session {'failed' if limit is None else f'did not end within {limit:g} s'}:"
            f" {len(self.answers)} prompts sent, {len(self._model.requests)} requests,"
            f" {len(self._model.issued)} calls."
            f" Last messages: {', '.join(last[-_TAIL:]) or 'none'}."
            f" The CLI's last lines: {' | '.join(self.watch.stderr[-_TAIL:]) or 'none'}."
        )


async def _message(blocks: Sequence[Mapping[str, Any]]) -> AsyncIterator[dict[str, Any]]:
    inner = {"role": "user", "content": list(blocks)}
    yield {"type": "user", "message": inner, "parent_tool_use_id": None}


def _is_idle(message: Message) -> bool:
    """Whether the CLI owes no turn any more. It never says so while a subagent works."""
    return (
        isinstance(message, SystemMessage)
        and message.subtype == "session_state_changed"
        and message.data.get("state") == "idle"
    )
