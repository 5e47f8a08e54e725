"""What the tools of this process's MCP servers say of themselves."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any

__all__ = ["read_only_tools", "read_only_tools_at_once", "tools_at_once"]

_log = logging.getLogger("agent_kit.gate")


async def read_only_tools(servers: Mapping[str, Any]) -> frozenset[str]:
    """The full names of tools with a ``readOnlyHint``. ``servers`` are the SDK's own configurations.

    Only servers of this process are asked: what another program says of itself proves nothing. One
    that can't be asked has no such tool.
    """
    found: set[str] = set()
    for name, instance in _instances(servers):
        try:
            found.update(await _hinted(name, instance))
        except Exception as error:  # noqa: BLE001 - a server may be anybody's code
            _tell(name, error)
    return frozenset(found)


def read_only_tools_at_once(servers: Mapping[str, Any]) -> frozenset[str]:
    """As :func:`read_only_tools`, without an event loop: a server that waits for something has none."""
    found: set[str] = set()
    for name, instance in _instances(servers):
        try:
            found.update(_at_once(_hinted(name, instance)))
        except Exception as error:  # noqa: BLE001 - a server may be anybody's code
            _tell(name, error)
    return frozenset(found)


def tools_at_once(servers: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names of the tools of each server of this process, as it lists them without waiting.

    One that can't be asked is left out.
    """
    found = {}
    for name, instance in _instances(servers):
        try:
            found[name] = _at_once(_listed(instance))
        except Exception as error:  # noqa: BLE001 - a server may be anybody's code
            _tell(name, error)
    return found


def _instances(servers: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, server in servers.items():
        instance = server.get("instance") if isinstance(server, Mapping) else None
        if instance is not None:
            yield name, instance


async def _listed(instance: Any) -> list[str]:
    return [str(tool.name) for tool in await _tools(instance)]


async def _hinted(name: str, instance: Any) -> list[str]:
    found = []
    for tool in await _tools(instance):
        hints = tool.annotations and tool.annotations.model_dump(by_alias=True)
        if hints and hints.get("readOnlyHint") is True:
            found.append(f"mcp__{name}__{tool.name}")
    return found


def _at_once(coroutine: Coroutine[Any, Any, list[str]]) -> list[str]:
    """What it returns. Raises what it raises, and ``TimeoutError`` when it would wait."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        found: list[str] = done.value
        return found
    coroutine.close()
    raise TimeoutError


def _tell(name: str, error: Exception) -> None:
    _log.warning("the tools of the server %s can't be listed (%s)", name, type(error).__name__)


async def _tools(server: Any) -> list[Any]:
    """As ``tools/list`` answers, with mcp 1 and 2. Raises whatever the server raises."""
    if hasattr(server, "get_request_handler"):  # mcp 2
        entry = server.get_request_handler("tools/list")
        answer = await getattr(entry, "handler", entry)(None, None)
        return list(answer.tools)
    from mcp.types import ListToolsRequest

    answer = await server.request_handlers[ListToolsRequest](ListToolsRequest(method="tools/list"))
    return list(answer.root.tools)
