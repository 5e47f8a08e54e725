"""MCP servers of the spec and of its extensions: one name each, short enough for the API."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from agent_kit.scope import Fault
from agent_kit.session.extensions import Active
from agent_kit.session.spec import AgentSpec

__all__ = ["gather_servers", "server_faults"]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_MAX_TOOL_NAME: Final = 64  # characters of mcp__<server>__<tool>, as the API has it
_LONGEST: Final = _MAX_TOOL_NAME - len("mcp____") - 1


def _named(spec: AgentSpec, active: Active) -> Iterator[tuple[str, Any]]:
    yield from spec.mcp_servers.items()
    for contribution in active.contributions:
        yield from contribution.mcp_servers.items()


def gather_servers(spec: AgentSpec, active: Active) -> dict[str, Any]:
    """Server name to its configuration, or to the function that makes it."""
    return dict(_named(spec, active))


def server_faults(spec: AgentSpec, active: Active) -> list[Fault]:
    counts = Counter(name for name, _ in _named(spec, active))
    faults = [
        Fault(
            field="mcp_servers",
            value=name,
            remedy=f"use letters, digits, '-' and '_', at most {_LONGEST} of them.",
        )
        for name in counts
        if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST
    ]
    faults += [
        Fault(field="mcp_servers", value=name, remedy="two servers have this name: rename one.")
        for name, count in counts.items()
        if count > 1
    ]
    for contribution in active.contributions:
        faults += [
            Fault(
                field="read_only_tools",
                value=tool,
                remedy=f"the name is over {_MAX_TOOL_NAME} characters: shorten it.",
            )
            for tool in contribution.read_only_tools
            if len(tool) > _MAX_TOOL_NAME
        ]
    return faults
