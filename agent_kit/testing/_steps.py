"""What a script is made of, and what a script may know when it decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

__all__ = ["Say", "Script", "Step", "ToolCall", "ToolResult", "Turn", "check_script", "parts_of"]


@dataclass(frozen=True, slots=True)
class Say:
    """The model answers with ``text`` and ends its turn. A plain string does the same."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model calls tool ``name`` with ``input`` as given: nothing is checked or filled in.

    ``script`` is for a call that starts a subagent (``Agent``): what that subagent does. Two
    subagents with the same prompt get their scripts in the order in which they first speak.
    """

    name: str
    input: Mapping[str, Any] = field(default_factory=dict)
    script: Script | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What the CLI answered to one call, as the model got it. ``text`` joins the text blocks."""

    call_id: str
    name: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a function script sees: one request of one agent.

    ``agent`` is ``None`` in the main conversation, else the CLI's id of the subagent, and
    ``agent_type`` the type that its ``Agent`` call named (``None`` when it named none).
    ``prompt`` is the last text that came from outside: the person's prompt, a task notification, or
    the text that the subagent was given. ``results`` answer the calls of this agent's last step, in
    the order of the calls. ``number`` counts this agent's steps from 0. ``messages`` and ``body``
    are the request as it was parsed.
    """

    agent: str | None
    agent_type: str | None
    prompt: str
    number: int
    results: tuple[ToolResult, ...]
    messages: tuple[Mapping[str, Any], ...]
    body: Mapping[str, Any]


Part: TypeAlias = ToolCall | Say | str

Step: TypeAlias = Part | tuple[Part, ...]
"""One answer of the model: a call, text, or a tuple of parallel calls (text may stand among them)."""

Script: TypeAlias = "Sequence[Step] | Callable[[Turn], Step | None]"
"""Steps in order, or a function of the turn. The end of the list, and ``None``, say "Done."."""


def parts_of(step: object) -> tuple[Part, ...]:
    """The calls and texts of one step. Raises ``TypeError`` for anything that is no step."""
    parts = step if isinstance(step, tuple) else (step,)
    if not parts:
        raise TypeError("A step is a call, a text, or a tuple of them; this tuple is empty.")
    for part in parts:
        if not isinstance(part, ToolCall | Say | str):
            raise TypeError(f"A step is a call, a text, or a tuple of them, not {part!r}.")
    return parts


def check_script(script: object) -> None:
    """Raises ``TypeError`` when ``script`` is neither a list of steps nor a function."""
    if callable(script):
        return
    if isinstance(script, str) or not isinstance(script, Sequence):
        raise TypeError(f"A script is a list of steps or a function of the turn, not {script!r}.")
    for step in script:
        for part in parts_of(step):
            if isinstance(part, ToolCall) and part.script is not None:
                check_script(part.script)
