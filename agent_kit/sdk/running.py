"""Which call of the agent a tool of this process runs for: the CLI says so in the request's ``_meta``."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from agent_kit.policy.running import RUNNING, Running

__all__ = ["note_running"]

_log = logging.getLogger("agent_kit.guard")

_USE_ID: Final = "claudecode/toolUseId"  # measured on CLI 2.1.332
_DONE: Final = "_agent_kit_notes_running"


def note_running(servers: Mapping[str, Any]) -> None:
    """Have each server of this process note the call that it runs in :data:`RUNNING`.

    ``servers`` are the SDK's own configurations. It may be done to a server again. Where it can't be
    done, a guard can't tell who calls, and judges by what holds for any agent.
    """
    for name, server in servers.items():
        instance = server.get("instance") if isinstance(server, Mapping) else None
        try:
            _wrap(instance)
        except Exception as error:  # noqa: BLE001 - a server may be anybody's code
            how = type(error).__name__
            _log.warning("the calls of the server %s can't be told apart (%s)", name, how)


def _wrap(server: Any) -> None:
    """With mcp 1 and 2. Raises whatever the server raises."""
    if hasattr(server, "get_request_handler"):  # mcp 2
        entry = server.get_request_handler("tools/call")
        if entry is not None and not hasattr(entry.handler, _DONE):
            handler = entry.handler

            async def noting(context: Any, params: Any) -> Any:
                token = RUNNING.set(_running(params))
                try:
                    return await handler(context, params)
                finally:
                    RUNNING.reset(token)

            setattr(noting, _DONE, True)
            server.add_request_handler("tools/call", entry.params_type, noting)
        return
    from mcp.types import CallToolRequest

    old = server.request_handlers.get(CallToolRequest)
    if old is not None and not hasattr(old, _DONE):

        async def noting_old(request: Any) -> Any:
            token = RUNNING.set(_running(request.params))
            try:
                return await old(request)
            finally:
                RUNNING.reset(token)

        setattr(noting_old, _DONE, True)
        server.request_handlers[CallToolRequest] = noting_old


def _running(params: Any) -> Running | None:
    meta = getattr(params, "meta", None)
    given = meta if isinstance(meta, Mapping) else getattr(meta, "model_extra", None) or {}
    use_id = given.get(_USE_ID)
    if not isinstance(use_id, str):
        return None
    return Running(use_id=use_id, arguments=dict(params.arguments or {}))
