"""The running call, as a tool of this process learns of it."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from claude_agent_sdk import create_sdk_mcp_server, tool

from agent_kit.policy.running import RUNNING, Running
from agent_kit.sdk.running import note_running

USE_ID = "claudecode/toolUseId"


def server(seen: list[Running | None]) -> Any:
    @tool("t", "d", {"path": str})
    async def look(_arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0)
        seen.append(await asyncio.to_thread(RUNNING.get))
        return {"content": [{"type": "text", "text": "done"}]}

    return create_sdk_mcp_server("s", tools=[look])


async def call(configuration: Any, **meta: Any) -> None:
    entry = configuration["instance"].get_request_handler("tools/call")
    given = {"name": "t", "arguments": {"path": "x"}, "_meta": meta}
    await entry.handler(None, entry.params_type.model_validate(given))


async def test_a_tool_and_its_threads_know_the_call_and_each_its_own() -> None:
    seen: list[Running | None] = []
    configuration = server(seen)
    note_running({"s": configuration, "other": {"type": "stdio", "command": "x"}})
    await asyncio.gather(*(call(configuration, **{USE_ID: f"u{n}"}) for n in range(5)))
    assert sorted(each.use_id for each in seen if each) == [f"u{n}" for n in range(5)]
    assert all(each and each.arguments == {"path": "x"} for each in seen)
    assert RUNNING.get() is None


@pytest.mark.parametrize("meta", [{}, {USE_ID: 3}, {"toolUseId": "u"}])
async def test_a_call_that_the_agents_cli_doesnt_name_is_unknown(meta: dict[str, Any]) -> None:
    seen: list[Running | None] = []
    configuration = server(seen)
    note_running({"s": configuration})
    outer = RUNNING.set(Running(use_id="outer", arguments={}))
    await call(configuration, **meta)
    RUNNING.reset(outer)
    assert seen == [None]


def test_a_server_is_told_once_however_often_it_is_used() -> None:
    configuration = server([])
    note_running({"s": configuration})
    first = configuration["instance"].get_request_handler("tools/call").handler
    note_running({"again": configuration})
    assert configuration["instance"].get_request_handler("tools/call").handler is first


async def test_with_mcp_1_it_is_the_same() -> None:
    from mcp.types import CallToolRequest

    seen: list[Running | None] = []

    async def handler(_request: Any) -> str:
        seen.append(RUNNING.get())
        return "done"

    old = SimpleNamespace(request_handlers={CallToolRequest: handler})
    note_running({"s": {"instance": old}})
    note_running({"s": {"instance": old}})
    meta = SimpleNamespace(model_extra={USE_ID: "u"})
    request = SimpleNamespace(params=SimpleNamespace(meta=meta, arguments=None))
    assert await old.request_handlers[CallToolRequest](request) == "done"
    assert [each and each.use_id for each in seen] == ["u"]
    assert RUNNING.get() is None


def test_a_server_that_cant_be_told_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "agent_kit.guard"):
        note_running({"odd": {"instance": object()}})
    assert "the calls of the server odd can't be told apart (AttributeError)" in caplog.text
