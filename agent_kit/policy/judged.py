"""One judged call, as the decision trail records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Judged"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was decided of one call, and why.

    ``verdict`` is ``allow``, ``deny``, ``ask`` (it waits for a person) or ``defer``. ``lock`` is
    what decided (``gate``, ``rules``, ``authorizers``, ``mode``, ``person``, ``approval``). ``code`` is
    stable (``denied``, ``outside-scope``, ``aborted`` …). ``rule`` names the rule or authorizer.
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
