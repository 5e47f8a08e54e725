"""How the CLI of a session is started: through what keeps foreign slash commands from running."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Sequence
from typing import Final

from agent_kit.sdk import _verbatim_start

__all__ = ["NOT_HERE", "can_start_literal", "literal_start"]


def can_start_literal() -> bool:
    """Whether there is a way here: POSIX, and a Python that can be started again."""
    frozen = getattr(sys, "frozen", False)  # there sys.executable is the application itself
    return os.name == "posix" and bool(sys.executable) and not frozen


NOT_HERE: Final = (
    "built-in slash commands of the CLI that ask no hook (/config, /heapdump, …) can't be stopped"
    " here: don't pass on prompts that begin with a slash"
)


def literal_start(program: Sequence[str], allowed: Collection[str]) -> list[str]:
    """The words that start ``program``, its own first words, behind :mod:`agent_kit.sdk.verbatim`.

    ``allowed`` are the slash commands that may run.
    """
    folder = os.path.dirname(os.path.abspath(_verbatim_start.__file__))
    start = [sys.executable, "-I", "-S", "-c", _verbatim_start.START, folder]
    return [*start, str(len(allowed)), *sorted(allowed), *program]
