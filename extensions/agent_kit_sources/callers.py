"""Who calls a tool: what the manifest says of whoever had an original kept or retired."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_kit.policy.guard import Guard

__all__ = ["Callers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Callers:
    """``agent`` is the spec's name, ``guard`` gives the session's guard once it is planned."""

    agent: str
    guard: Callable[[], Guard]

    def now(self) -> dict[str, str]:
        """The ``agent``, the ``session`` by its id, and the type of the ``subagent``, where known."""
        try:
            guard = self.guard()
        except LookupError:  # the session is still being planned
            return {"agent": self.agent}
        call = guard.calling()
        known = {"session": guard.policy.session_id, "subagent": call.agent if call else None}
        return {"agent": self.agent, **{name: value for name, value in known.items() if value}}
