"""What the gate adds to the SDK's own dispatch of a hook."""

from __future__ import annotations

import asyncio
import json
import statistics
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from time import perf_counter
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions
from claude_agent_sdk._internal.query import Query
from claude_agent_sdk._internal.transport.subprocess_cli import SubprocessCLITransport

from agent_kit import create_file_scope_gate
from benchmarks.measure import Effort, Row, Samples, quiet, take_turns
from benchmarks.places import place

__all__ = ["measure"]

Callback = Callable[..., Awaitable[dict[str, Any]]]

_CALLS = 25  # hook calls in one block


def measure(effort: Effort) -> Iterator[Row]:
    with place() as at, asyncio.Runner() as runner:
        gate: Any = create_file_scope_gate(at.scope(["agent.config.json", "**/*.env"])).hooks[0]
        for key, what, path, bound in (
            ("dispatch.gate", "the gate added to the SDK's dispatch of a hook", at.file, 0.5),
            ("dispatch.denied", "the same, a denied call", f"{at.near}/course.env", None),
        ):
            yield _turns(runner, gate, _lines(at.project, path), effort).added(
                key, what, bound=bound
            )


async def _nothing(*_: Any) -> dict[str, Any]:
    """The cheapest hook there is."""
    return {}


def _lines(project: str, path: str) -> list[str]:
    """What the CLI writes to ask a hook about a Read (as measured on CLI 2.1.332)."""
    payload = {
        "session_id": "00000000-0000-4000-8000-000000000000",
        "transcript_path": "/home/me/.claude/projects/-course/0.jsonl",
        "cwd": project,
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Read",
        "tool_input": {"file_path": path},
        "tool_use_id": "toolu_0001",
    }
    request = {
        "subtype": "hook_callback",
        "callback_id": "hook_0",
        "input": payload,
        "tool_use_id": "toolu_0001",
    }
    return [
        json.dumps({"type": "control_request", "request_id": str(n), "request": request}) + "\n"
        for n in range(_CALLS)
    ]


def _turns(runner: asyncio.Runner, gate: Callback, lines: list[str], effort: Effort) -> Samples:
    def dispatched(callback: Callback) -> Callable[[], float]:
        return lambda: runner.run(_dispatched(callback, lines))

    for callback in (_nothing, gate):
        dispatched(callback)()  # once, to warm up
    with quiet():
        return take_turns(dispatched(_nothing), dispatched(gate), effort.blocks)


async def _dispatched(callback: Callback, lines: list[str]) -> float:
    """Seconds from the line that asks a hook to the line that answers: the median of all lines."""
    pipes = _Pipes(lines)
    transport = SubprocessCLITransport(prompt="", options=ClaudeAgentOptions())
    for name, value in (
        ("_process", pipes),
        ("_stdout_stream", pipes),
        ("_stdin_stream", pipes),
        ("_ready", True),
    ):
        setattr(transport, name, value)
    query = Query(transport=transport, is_streaming_mode=True)
    query.hook_callbacks["hook_0"] = callback
    await query.start()
    taken = await pipes.taken
    transport._process = None  # there is none to end
    await query.close()
    return statistics.median(taken)


class _Pipes:
    """A CLI in memory: it asks one hook again and again, each time after the last answer."""

    returncode: int | None = None

    def __init__(self, lines: list[str]) -> None:
        self.taken: asyncio.Future[list[float]] = asyncio.get_running_loop().create_future()
        self._lines = lines
        self._answered = asyncio.Event()
        self._end = 0.0

    async def __aiter__(self) -> AsyncIterator[str]:
        taken = []
        for line in self._lines:
            self._answered.clear()
            start = perf_counter()
            yield line
            await self._answered.wait()
            taken.append(self._end - start)
        self.taken.set_result(taken)

    async def send(self, data: str) -> None:
        if '"success"' not in data:
            raise AssertionError(f"the SDK answered {data}")
        self._end = perf_counter()
        self._answered.set()

    async def aclose(self) -> None:
        pass

    async def wait(self) -> int:
        return 0
