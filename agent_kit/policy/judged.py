"""One judged call, as the decision trail records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Judged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was decided of one call, and why.

    ``verdict`` is ``allow``, ``deny``, ``defer``, or ``ask``: nothing objects, and the CLI decides; what
    it then asks about has another line. ``lock`` is what decided: ``gate`` (the scope, or nothing
    objected), ``hook`` (a host's own), ``mode``, ``rules``, ``interrupt_on``, ``answer``, ``subagents``,
    ``authorizers``, ``person``, ``approval`` (what the CLI asks), ``host`` (its ``can_use_tool``), and
    ``guard`` (the scope, of what an MCP tool opens). ``code`` is stable: one of the scope's
    (``outside-readable``, ``denied-path`` …), or ``denied``, ``rejected``, ``changed``, ``not-allowed``,
    ``nobody-to-ask``, ``plan-mode``, ``aborted`` and so on. ``rule`` names the rule or authorizer.
    A switch of the mode is a line with the tool ``session_mode`` and the code ``switched``.
    ``answer`` is what a person said (``approved``, ``edited``, ``rejected``), ``None`` when nobody
    was asked. ``milliseconds`` are those of the judgement, or of the wait for the person.
    """

    session_id: str
    agent: str | None = None
    agent_id: str | None = None
    tool: str
    tool_use_id: str | None = None
    tool_input: Mapping[str, Any] = field(default_factory=dict, repr=False)
    verdict: str
    lock: str
    code: str | None = None
    rule: str | None = None
    milliseconds: float = 0.0
    asked: bool = False
    answer: str | None = None
