"""Looking on: options whose hooks work as before and leave a note of each denial."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

__all__ = ["Watch"]


class Watch:
    """What the callbacks of one session told.

    ``hook_denied`` holds the ids of the calls that a PreToolUse hook refused, ``stderr`` the lines
    that the CLI wrote. (What ``can_use_tool`` refused is in the CLI's own list of denials.)
    """

    def __init__(self) -> None:
        self.hook_denied: set[str] = set()
        self.stderr: list[str] = []

    def options(self, options: ClaudeAgentOptions, env: Mapping[str, str]) -> ClaudeAgentOptions:
        """A copy of ``options`` with ``env`` as its environment, hooks and stderr watched."""
        return dataclasses.replace(
            options,
            env=dict(env),
            hooks=self._hooks(options),
            stderr=self._stderr(options),
        )

    def _hooks(self, options: ClaudeAgentOptions) -> Any:
        if not options.hooks or "PreToolUse" not in options.hooks:
            return options.hooks
        matchers = [self._matcher(matcher) for matcher in options.hooks["PreToolUse"]]
        return {**options.hooks, "PreToolUse": matchers}

    def _matcher(self, matcher: HookMatcher) -> HookMatcher:
        return dataclasses.replace(matcher, hooks=[self._hook(hook) for hook in matcher.hooks])

    def _hook(self, hook: Any) -> Any:
        async def watched(payload: Any, tool_use_id: str | None, context: Any) -> Any:
            answer = await hook(payload, tool_use_id, context)
            if tool_use_id is not None and _denies(answer):
                self.hook_denied.add(tool_use_id)
            return answer

        return watched

    def _stderr(self, options: ClaudeAgentOptions) -> Any:
        def heard(line: str) -> None:
            self.stderr.append(line)
            if options.stderr is not None:
                options.stderr(line)

        return heard


def _denies(answer: object) -> bool:
    if not isinstance(answer, Mapping):
        return False
    specific = answer.get("hookSpecificOutput")
    decision = specific.get("permissionDecision") if isinstance(specific, Mapping) else None
    return decision == "deny" or answer.get("decision") == "block"
