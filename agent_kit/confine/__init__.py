"""The kernel lock. No backend stands here yet: sessions are planned with this lock off."""

from __future__ import annotations

__all__ = ["ConfinementUnavailableError", "unavailable_reason"]


class ConfinementUnavailableError(RuntimeError):
    """A session that must be confined can't be. The message says what to do."""


def unavailable_reason() -> str:
    """Why no backend can confine a session on this machine, in one sentence."""
    return "this version of agent-kit has no backend that confines the CLI."
