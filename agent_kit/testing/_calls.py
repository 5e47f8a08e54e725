"""What became of each call of a session, and which lock answered it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["AnsweredBy", "CallRecord", "answered_by"]


class AnsweredBy(StrEnum):
    """Who answered a call, or a prompt."""

    RAN = "ran"  # the tool did its work
    GATE = "gate"  # a PreToolUse hook refused, or failed and was told to block then
    RULES = "rules"  # a permission rule, the CLI's permission check, or can_use_tool refused
    PROMPT_GATE = "prompt-gate"  # a UserPromptSubmit hook refused the prompt
    TOOL = "tool"  # the call was malformed, or the tool itself failed


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call of a script and its answer.

    ``input`` is what the model wrote, before any hook. ``result`` is the text that the model got,
    or that the SDK reported when the model was not asked again; ``None`` when there was no answer,
    and then ``lock`` is ``None`` too. ``agent`` is ``None`` in the main conversation, else the type
    of the subagent, and ``agent_id`` the CLI's id of it.
    """

    call_id: str
    tool: str
    input: Mapping[str, Any]
    result: str | None
    is_error: bool
    lock: AnsweredBy | None
    agent: str | None = None
    agent_id: str | None = None


# The CLI writes "PreToolUse:Read hook error: <reason>" only when the input reached the hook as the
# model wrote it; for a relative path the model gets the bare reason. So hooks are watched, and
# these forms are for the hooks that nobody could watch: failed ones and those of settings files.
_GATE = re.compile(r"(Hook )?PreToolUse(:\S+)? (hook|denied)")

_RULES = (
    "denied by your permission settings",  # a deny rule on a path, at input validation
    "Permission to ",  # "… read <path> has been denied", "… use Bash with command …", dontAsk
    "Claude requested permissions to ",  # nobody is there to ask
    " has been denied by permission rule ",  # Agent(type)
    " needs approval. ",  # Bash
    "This command requires approval",  # Bash
    "Tool permission request failed",  # can_use_tool raised
)


def answered_by(
    text: str, *, is_error: bool, hook_denied: bool, permission_denied: bool
) -> AnsweredBy:
    """Which lock gave this result.

    ``hook_denied``: a hook was seen to deny the call. ``permission_denied``: it is in the CLI's own
    list of denials, which has those of hooks, rules and can_use_tool alike.
    """
    if hook_denied:
        return AnsweredBy.GATE
    if not is_error:
        return AnsweredBy.RAN
    if _GATE.match(text):
        return AnsweredBy.GATE
    if permission_denied or any(sentence in text for sentence in _RULES):
        return AnsweredBy.RULES
    return AnsweredBy.TOOL
