"""An extension's tools as one of the SDK's in-process servers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

__all__ = ["ServedTool", "build_server"]


class ServedTool(Protocol):
    """A tool: its JSON schema, and an async function that takes its arguments and never raises."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def schema(self) -> Mapping[str, Any]: ...
    @property
    def read_only(self) -> bool: ...
    async def handler(self, arguments: dict[str, Any], /) -> dict[str, Any]: ...


def build_server(name: str, tools: Iterable[ServedTool]) -> Any:
    """The server's configuration for ``mcp_servers``. Loads the SDK, so call it when one is built."""
    from claude_agent_sdk import create_sdk_mcp_server, tool
    from mcp.types import ToolAnnotations

    return create_sdk_mcp_server(
        name,
        tools=[
            tool(
                item.name,
                item.description,
                dict(item.schema),
                ToolAnnotations.model_validate({"readOnlyHint": item.read_only}),
            )(item.handler)
            for item in tools
        ],
    )
