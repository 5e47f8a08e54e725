"""Tools of this process's servers that say that they change nothing."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from claude_agent_sdk import create_sdk_mcp_server, tool
from mcp.types import ToolAnnotations

from agent_kit.sdk.hints import read_only_tools, read_only_tools_at_once, tools_at_once


def server(**hints: Any) -> Any:
    """A server whose tools are named after what they say of themselves."""

    async def run(_arguments: Any) -> Any:
        return {"content": []}

    made = [
        tool(name, "d", {}, **({} if hint is None else {"annotations": hint}))(run)
        for name, hint in hints.items()
    ]
    return create_sdk_mcp_server("own", tools=made)


def says(**fields: Any) -> ToolAnnotations:
    return ToolAnnotations(**fields)


async def test_a_tool_that_says_that_it_only_reads_is_one(caplog: pytest.LogCaptureFixture) -> None:
    own = server(
        look=says(readOnlyHint=True),
        change=says(readOnlyHint=False),
        destroy=says(destructiveHint=False, idempotentHint=True),
        silent=None,
    )
    assert await read_only_tools({"own": own, "no": server()}) == {"mcp__own__look"}
    assert caplog.records == []


async def test_another_program_isnt_asked_and_nobody_is_told_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What another program says of itself proves nothing."""
    others = {
        "program": {"type": "stdio", "command": "x"},
        "far": {"type": "http", "url": "https://example.com"},
        "none": {"type": "sdk", "name": "none", "instance": None},
        "odd": 5,
    }
    with caplog.at_level(logging.DEBUG, logger="agent_kit.gate"):
        assert await read_only_tools(others) == frozenset()
    assert caplog.records == []


class Hints:
    def __init__(self, given: Any) -> None:
        self.given = given

    def model_dump(self, *, by_alias: bool) -> Any:
        assert by_alias
        return self.given


def newer(*tools: Any, entry: Any = None) -> Any:
    """A server as of mcp 2."""

    async def handler(_context: Any, _params: Any) -> Any:
        return SimpleNamespace(tools=tools)

    found = {"tools/list": handler if entry is None else entry(handler)}
    return {"type": "sdk", "instance": SimpleNamespace(get_request_handler=found.__getitem__)}


@pytest.mark.parametrize("hint", [1, "true", "yes", [True], None, False])
async def test_only_true_is_a_hint(hint: Any) -> None:
    odd = SimpleNamespace(name="odd", annotations=Hints({"readOnlyHint": hint}))
    good = SimpleNamespace(name="good", annotations=Hints({"readOnlyHint": True}))
    bare = SimpleNamespace(name="bare", annotations=None)
    empty = SimpleNamespace(name="empty", annotations=Hints({}))
    every = {"mcp__own__good"}
    assert await read_only_tools({"own": newer(odd, good, bare, empty)}) == every
    entry = lambda handler: SimpleNamespace(handler=handler)  # noqa: E731
    assert await read_only_tools({"own": newer(odd, good, entry=entry)}) == every


async def test_a_server_that_cant_be_asked_has_no_such_tool_and_harms_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails(*_: Any) -> Any:
        raise ValueError("a secret")

    broken = {"instance": SimpleNamespace(get_request_handler=lambda _: fails)}
    odd = {"instance": object()}
    good = server(look=says(readOnlyHint=True))
    found = await read_only_tools({"broken": broken, "odd": odd, "good": good})
    assert found == {"mcp__good__look"}
    assert ["broken" in record.message for record in caplog.records] == [True, False]
    assert "a secret" not in caplog.text


async def test_what_answers_at_once_needs_no_event_loop(caplog: pytest.LogCaptureFixture) -> None:
    async def waits(*_: Any) -> Any:
        await asyncio.sleep(0)

    own = server(look=says(readOnlyHint=True), change=says(readOnlyHint=False), silent=None)
    slow = {"instance": SimpleNamespace(get_request_handler=lambda _: waits)}
    servers = {"slow": slow, "own": own, "program": {"type": "stdio", "command": "x"}}
    found = await asyncio.to_thread(read_only_tools_at_once, servers)
    assert found == read_only_tools_at_once(servers) == {"mcp__own__look"}
    assert ["slow" in record.message for record in caplog.records] == [True, True]


def test_the_tools_of_a_server_of_this_process_are_known_by_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def waits(*_: Any) -> Any:
        await asyncio.sleep(0)

    servers = {
        "own": server(look=None, change=None),
        "empty": newer(),
        "slow": {"instance": SimpleNamespace(get_request_handler=lambda _: waits)},
        "program": {"command": "x"},
    }
    assert tools_at_once(servers) == {"own": ["look", "change"], "empty": []}
    assert len(caplog.records) == 1
