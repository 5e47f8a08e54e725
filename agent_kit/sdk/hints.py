"""What the tools of this process's MCP servers say of themselves."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

__all__ = ["read_only_tools"]

_log = logging.getLogger("agent_kit.gate")


async def read_only_tools(servers: Mapping[str, Any]) -> frozenset[str]:
    """The full names of tools with a ``readOnlyHint``. ``servers`` are the SDK's own configurations.

    Only servers of this process are asked: what another program says of itself proves nothing. One
    that can't be asked has no such tool.
    """
    found: set[str] = set()
    for name, server in servers.items():
        instance = server.get("instance") if isinstance(server, Mapping) else None
        if instance is None:
            continue
        try:
            for tool in await _tools(instance):
                hints = tool.annotations and tool.annotations.model_dump(by_alias=True)
                if hints and hints.get("readOnlyHint") is True:
                    found.add(f"mcp__{name}__{tool.name}")
        except Exception as error:  # noqa: BLE001 - a server may be anybody's code
            how = type(error).__name__
            _log.warning("the tools of the server %s can't be listed (%s)", name, how)
    return frozenset(found)


async def _tools(server: Any) -> list[Any]:
    """As ``tools/list`` answers, with mcp 1 and 2. Raises whatever the server raises."""
    if hasattr(server, "get_request_handler"):  # mcp 2
        entry = server.get_request_handler("tools/list")
        answer = await getattr(entry, "handler", entry)(None, None)
        return list(answer.tools)
    from mcp.types import ListToolsRequest

    answer = await server.request_handlers[ListToolsRequest](ListToolsRequest(method="tools/list"))
    return list(answer.root.tools)
