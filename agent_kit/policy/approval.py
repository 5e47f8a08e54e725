"""What a person is asked about a call, and what they may answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Approval",
    "Approved",
    "Edited",
    "PersonsAnswer",
    "Rejected",
    "Unasked",
    "approve",
    "edit",
    "reject",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """One question to a person: may this call run?

    ``question_id`` tells questions of a session apart (it is the call's tool use id). ``tool`` and
    ``tool_input`` are the call as it would run. ``target`` is the file or folder that the question
    is about, as messages show it, ``None`` for a call without one. ``reason`` is a sentence that says
    why somebody is asked. ``agent`` is the type of the subagent that calls, ``None`` for the main
    agent. ``rule`` names what asks (``SessionConfig.permissions[3]``, ``interrupt_on[mcp__mail__send]``):
    it is what ``approve(remember=True)`` remembers, and ``None`` where nothing can be remembered.
    ``cwd`` is the folder, absolute, that a command runs in and relative paths are relative to.
    ``asks_for`` is the field of ``tool_input`` that they are asked to fill in, ``None`` where they are
    asked for leave alone: the answer is ``edit({**approval.tool_input, approval.asks_for: …})``.

    ``tool_input`` and ``target`` are the model's words: show them literally, and whole.
    """

    question_id: str
    tool: str
    tool_input: Mapping[str, Any] = field(default_factory=dict)
    target: str | None = None
    reason: str
    agent: str | None = None
    rule: str | None = None
    cwd: str | None = None
    asks_for: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """The call may run as it is; made by :func:`approve`."""

    remember: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """The call may run with another input, which is judged again; made by :func:`edit`."""

    tool_input: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The call may not run; made by :func:`reject`."""

    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unasked(Rejected):
    """The call may not run, since nobody could be asked; ``message`` says why, as a sentence."""


PersonsAnswer = Approved | Edited | Rejected


def approve(*, remember: bool = False) -> Approved:
    """The call may run. With ``remember`` its rule asks no more in this session.

    Raises TypeError for what is neither ``True`` nor ``False``.
    """
    if not isinstance(remember, bool):
        raise TypeError("remember is True or False")
    return Approved(remember=remember)


def edit(new_input: Mapping[str, Any]) -> Edited:
    """The call may run with ``new_input`` in place of its own, once that was judged from the start.

    Raises TypeError for what is no mapping.
    """
    if not isinstance(new_input, Mapping):
        raise TypeError("an edited input is a dict, as the tool takes it")
    return Edited(tool_input=dict(new_input))


def reject(message: str = "") -> Rejected:
    """The call may not run. ``message`` is told to the model: why, and what to do instead.

    Raises TypeError for a message that is no text.
    """
    if not isinstance(message, str):
        raise TypeError(f"a message is text, not {type(message).__name__}")
    return Rejected(message=message)
