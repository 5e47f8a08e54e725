"""Which of the files that bring MCP servers are a plugin's, and start programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

__all__ = ["starting_plugins"]

_ELSEWHERE: Final = ("http", "sse", "ws")  # how a server is reached that runs on another machine


def starting_plugins(files: Iterable[str], plugins: Sequence[Path]) -> tuple[str, ...]:
    """Those of ``files`` (:func:`~agent_kit.session.servers.other_servers`) that are in ``plugins`` and
    have a server that the CLI starts. What can't be read counts: the CLI may read it otherwise.
    """
    return tuple(
        path
        for path in files
        if any(Path(path).is_relative_to(folder) for folder in plugins) and _starts(path)
    )


def _starts(path: str) -> bool:
    try:
        held = json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return True
    servers = held.get("mcpServers", held) if isinstance(held, Mapping) else held
    if not isinstance(servers, Mapping):  # the name of another file
        return True
    return not all(map(_is_elsewhere, servers.values()))


def _is_elsewhere(server: Any) -> bool:
    return (
        isinstance(server, Mapping) and server.get("type") in _ELSEWHERE and "command" not in server
    )
