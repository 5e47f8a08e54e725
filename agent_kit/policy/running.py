"""Which call of a tool is running, for code that the tool calls: kept in a context variable.

Threads of ``asyncio.to_thread`` and tasks that a tool starts have it, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["RUNNING", "Running"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Running:
    """One call of a tool of this process. ``use_id`` is the agent's, ``arguments`` are what it runs
    with. ``agreed`` are rules whose question a person has answered with yes (or the deletion of all that
    is in a folder), each with the real path that it was about, and how much was agreed to (0: reading,
    1: writing, 2: deleting)."""

    use_id: str
    arguments: Mapping[str, Any]
    agreed: set[tuple[str, str, int]] = field(default_factory=set)


RUNNING: Final[ContextVar[Running | None]] = ContextVar("agent_kit_running", default=None)
