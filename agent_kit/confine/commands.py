"""How commands inside a confinement are kept apart from the CLI that runs them.

The CLI starts every command of a tool, a hook or a stdio MCP server through its
``CLAUDE_CODE_SHELL_PREFIX`` (measured on CLI 2.1.332 and 2.1.317), and that is
:mod:`agent_kit.confine._command_start`.
"""

from __future__ import annotations

import glob
import os
import shlex
import sys
from pathlib import Path
from typing import Final

from agent_kit.confine import _command_start
from agent_kit.confine.landlock import abi_version
from agent_kit.confine.programs import Program
from agent_kit.confine.system import is_system

__all__ = ["NOT_APART", "interpreter", "start_programs"]

NOT_APART: Final = (
    "this kernel has no Landlock: a command inside can speak to this process in the CLI's place, and"
    " call the tools that run here"
)
_SYSTEM_PYTHON: Final = "/usr/bin/python3"


def interpreter() -> Program | None:
    """The Python that starts commands inside; ``None`` where this kernel can't keep them apart.

    The system's where that is whole, so that nothing more need be seen inside; else this process's.
    """
    if abi_version() < 1:
        return None
    own = os.path.realpath(sys.executable)
    system = os.path.realpath(_SYSTEM_PYTHON)
    whole = glob.glob(f"/usr/lib*/{os.path.basename(system)}/lib-dynload/_ctypes.*")
    if not is_system(own) and whole:
        return system, system
    return own, own


def start_programs(folder: Path, python: str) -> dict[str, str]:
    """The programs in ``folder`` that start a command, path to text; the CLI runs the first one."""
    start, text = folder / "start.py", Path(_command_start.__file__).read_text(encoding="utf-8")
    words = shlex.join([python, "-I", "-S", str(start)])
    return {str(folder / "start"): f'#!/bin/sh\nexec {words} "$@"\n', str(start): text}
