"""A session that is being planned, and its servers' tools called through the MCP protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_kit.extension import Contribution, ExtensionContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a tool answered: whether as an error, its blocks, and all of them as one text."""

    is_error: bool
    blocks: tuple[str, ...]

    @property
    def text(self) -> str:
        return "\n".join(self.blocks)


Caller = Callable[..., Awaitable[Answer]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "course"
    folder.mkdir()
    return folder


@pytest.fixture
def context(project: Path) -> Callable[..., ExtensionContext]:
    """Makes a context; the keywords become the configuration's fields."""

    def make(**fields: Any) -> ExtensionContext:
        return ExtensionContext(
            config=SimpleNamespace(**{"denied_paths": (), **fields}),
            spec=SimpleNamespace(name="course-assistant"),
            project_dir=project,
            run_dir=project.parent / "run",
            mode="guided",
        )

    return make


@pytest.fixture
def servers() -> Iterator[Callable[[Contribution], Any]]:
    """Builds the contribution's only server, as ``build_session_options`` does."""

    def build(contribution: Contribution) -> Any:
        (factory,) = contribution.mcp_servers.values()
        config = factory()
        assert config["type"] == "sdk"
        return config["instance"]

    yield build


@pytest.fixture
def caller(servers: Callable[[Contribution], Any]) -> Callable[[Contribution], Caller]:
    """Calls a contribution's tools in a client that is connected to its server in memory."""

    def connect(contribution: Contribution) -> Caller:
        from mcp import Client

        server = servers(contribution)

        async def call(name: str, /, **arguments: Any) -> Answer:
            async with Client(server) as client:
                result = await client.call_tool(name, arguments)
            blocks = tuple(block.text for block in result.content)
            return Answer(is_error=bool(result.is_error), blocks=blocks)

        return call

    return connect


@pytest.fixture
def listed(servers: Callable[[Contribution], Any]) -> Callable[[Contribution], Awaitable[Any]]:
    """The tools that a contribution's server offers."""

    async def list_tools(contribution: Contribution) -> Any:
        from mcp import Client

        async with Client(servers(contribution)) as client:
            return (await client.list_tools()).tools

    return list_tools
