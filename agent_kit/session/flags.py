"""The CLI's flags that touch no lock (CLI 2.1.332). Every other one might undo any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["HARMLESS_FLAGS", "is_harmless"]

_ALONE: Final = "alone"  # what follows would be taken for a prompt
_VALUE: Final = "value"
_EITHER: Final = "either"

HARMLESS_FLAGS: Final[Mapping[str, str]] = {
    "autocompact": _VALUE,
    "ax-screen-reader": _ALONE,
    "betas": _VALUE,
    "debug": _EITHER,
    "debug-file": _VALUE,
    "debug-to-stderr": _ALONE,
    "disable-slash-commands": _ALONE,
    "effort": _VALUE,
    "exclude-dynamic-system-prompt-sections": _ALONE,
    "fallback-model": _VALUE,
    "forward-subagent-text": _ALONE,
    "include-hook-events": _ALONE,
    "include-partial-messages": _ALONE,
    "json-schema": _VALUE,
    "max-budget-usd": _VALUE,
    "max-thinking-tokens": _VALUE,
    "max-turns": _VALUE,
    "model": _VALUE,
    "name": _VALUE,
    "no-chrome": _ALONE,
    "no-session-persistence": _ALONE,
    "replay-user-messages": _ALONE,
    "system-prompt-snapshot": _VALUE,
    "thinking": _VALUE,
    "verbose": _ALONE,
}


def is_harmless(flag: object, value: object) -> bool:
    """Whether this entry of ``extra_args`` leaves every lock as it is."""
    takes = HARMLESS_FLAGS.get(flag) if isinstance(flag, str) else None
    if takes is None:
        return False
    return takes == _EITHER or (value is None) == (takes == _ALONE)
