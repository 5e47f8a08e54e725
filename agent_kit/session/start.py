"""How the CLI of a session is started: through what keeps foreign slash commands from running."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Final

from agent_kit.sdk import verbatim
from agent_kit.session.run_folder import write_program

__all__ = ["NOT_HERE", "can_start_literal", "start_literal"]


def can_start_literal() -> bool:
    """Whether there is a way here: POSIX, and a Python that can be started again."""
    frozen = getattr(sys, "frozen", False)  # there sys.executable is the application itself
    return os.name == "posix" and bool(sys.executable) and not frozen


NOT_HERE: Final = (
    "built-in slash commands of the CLI that ask no hook (/config, /heapdump, …) can't be stopped"
    " here: don't pass on prompts that begin with a slash"
)


def start_literal(host: Path, session_id: str, program: str, allowed: Collection[str]) -> Path:
    """Write a program into ``host`` that starts ``program`` behind :mod:`agent_kit.sdk.verbatim`.

    ``allowed`` are the slash commands that may run. Raises ConfigError where nothing can be run from
    ``host``.
    """
    description = json.dumps({"program": program, "allowed": sorted(allowed)})
    words = [sys.executable, "-I", "-S", verbatim.__file__, description]
    return write_program(host, f"{session_id}.cli", words)
