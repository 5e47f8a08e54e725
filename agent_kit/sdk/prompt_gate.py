"""Lock 3, the prompt gate: an ``@path`` in a prompt attaches a file with no tool call at all.

A UserPromptSubmit hook sees the prompt before anything is attached, and blocks it when it mentions
something that exists and that the scope doesn't open.
"""

from __future__ import annotations

import logging
from typing import Any

from claude_agent_sdk import HookMatcher

from agent_kit.scope import FileScope
from agent_kit.sdk.gate import HOOK_TIMEOUT
from agent_kit.sdk.mentions import refused_mention

__all__ = ["create_prompt_gate"]

_log = logging.getLogger("agent_kit.prompt_gate")

_UNCHECKED = "This prompt could not be checked for mentioned files, so it was blocked."


def create_prompt_gate(scope: FileScope) -> HookMatcher:
    """The prompt gate as a ``HookMatcher`` for ``hooks={"UserPromptSubmit": [...]}``.

    A prompt that can't be judged is blocked.
    """

    async def prompt_gate(payload: Any, _use_id: str | None, _context: Any) -> dict[str, Any]:
        try:
            cwd = payload.get("cwd") or scope.project_dir
            reason = refused_mention(scope, payload["prompt"], cwd)
        except Exception:  # noqa: BLE001 - whatever it is, nothing may be attached
            _log.exception("the prompt gate could not judge a prompt")
            reason = _UNCHECKED
        return {} if reason is None else {"decision": "block", "reason": reason}

    return HookMatcher(
        matcher=None,
        hooks=[prompt_gate],  # type: ignore[list-item]
        timeout=HOOK_TIMEOUT,
        on_failure="block",
    )
