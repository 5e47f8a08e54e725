"""Lock 3, the prompt gate: an ``@path`` in a prompt attaches a file with no tool call at all.

A UserPromptSubmit hook sees the prompt before anything is attached, and blocks it when it mentions
something that exists and that the scope doesn't open.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from claude_agent_sdk import HookMatcher

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.scope.mentions import Mention, find_mentions
from agent_kit.scope.text import shown
from agent_kit.sdk.gate import HOOK_TIMEOUT

__all__ = ["create_prompt_gate"]

_log = logging.getLogger("agent_kit.prompt_gate")


def create_prompt_gate(scope: FileScope, *, home: str) -> HookMatcher:
    """The prompt gate as a ``HookMatcher`` for ``hooks={"UserPromptSubmit": [...]}``.

    ``home`` is the CLI's home folder, for ``@~/…``. A prompt that can't be judged is blocked.
    """

    async def prompt_gate(payload: Any, _use_id: str | None, _context: Any) -> dict[str, Any]:
        try:
            cwd = payload.get("cwd") or scope.project_dir
            refused = first_refused(scope, payload["prompt"], cwd=cwd, home=home)
        except Exception:
            _log.exception("the prompt gate could not judge a prompt")
            return _block("This prompt could not be checked for mentioned files, so it was blocked.")
        return {} if refused is None else _block(_sentence(*refused))

    return HookMatcher(
        matcher=None,
        hooks=[prompt_gate],  # type: ignore[list-item]
        timeout=HOOK_TIMEOUT,
        on_failure="block",
    )


def first_refused(
    scope: FileScope, prompt: str, *, cwd: str, home: str
) -> tuple[Mention, str] | None:
    """The first mention of something that exists outside the scope, with the scope's reason."""
    for mention in find_mentions(prompt):
        for text in mention.readings:
            if (kind := _kind(text, cwd, home)) is not None:
                tool, fields = kind
                if (reason := check_file_scope(scope, tool, fields, cwd=cwd)) is not None:
                    return mention, reason
    return None


def _kind(text: str, cwd: str, home: str) -> tuple[str, dict[str, str]] | None:
    """The tool call that attaching this path comes to; ``None`` when nothing has that name."""
    expanded = home + text[1:] if text == "~" or text.startswith("~/") else text
    path = os.path.join(cwd, expanded)
    try:
        if os.path.isdir(path):
            return "LS", {"path": path}
        return ("Read", {"file_path": path}) if os.path.lexists(path) else None
    except ValueError:  # a NUL names nothing
        return None


def _sentence(mention: Mention, reason: str) -> str:
    return f"The prompt mentions {shown(mention.text)}, which this agent may not open: {reason}"


def _block(reason: str) -> dict[str, Any]:
    return {"decision": "block", "reason": reason}
