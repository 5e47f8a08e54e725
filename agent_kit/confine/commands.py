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
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_kit.confine import _command_start
from agent_kit.confine.first_program import MACHINES, first_program
from agent_kit.confine.landlock import abi_version
from agent_kit.confine.programs import Program
from agent_kit.confine.system import is_system
from agent_kit.confine.view import Mount, Sight, is_in

__all__ = ["LOADED", "NOT_APART", "SHARED", "interpreter", "start_programs", "written"]

NOT_APART: Final = (
    "this kernel has no Landlock: a command inside can speak to this process in the CLI's place, call"
    " the tools that run here, and write the transcript that a resumed session reads"
)
LOADED: Final = (
    "on this machine the program that keeps commands apart is a script: what a project's stdio server has"
    " in its environment (LD_PRELOAD) is loaded beside the CLI, and can do what it can"
)
SHARED: Final = (
    "the session's own folder is in /tmp, where commands write: they can write the transcript that a"
    " resumed session reads"
)
# Of the CLI's configuration folder, what is there for commands to write, where it is.
_FOR_COMMANDS: Final = (
    "session-env",  # hooks leave variables for later commands
    "plugins/data",  # a plugin's own
)
_MACHINE: Final = ("/dev", "/proc")
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


def written(mounts: Mapping[str, Mount], config: str, temporary: str) -> tuple[str, ...] | None:
    """Where commands write, at most: where the CLI does, but for its configuration folder.

    ``None``: that one lies in another such folder, and can't be kept from them.
    """
    folders = [mount.path for mount in mounts.values() if mount.sight is Sight.WRITE]
    folders = sorted({*folders, temporary, *_MACHINE} - {config})
    if any(is_in(config, folder) for folder in folders):
        return None
    tops = (
        each
        for each in folders
        if not any(is_in(each, other) for other in folders if other != each)
    )
    return (*tops, *(os.path.join(config, name) for name in _FOR_COMMANDS))


def start_programs(
    folder: Path, python: str, written: tuple[str, ...] | None = None
) -> dict[str, str]:
    """The programs in ``folder`` that start a command, path to text; the CLI runs the first one.

    ``written``: nothing is written but what lies in these; ``None``: wherever the CLI may. What is no
    UTF-8 in a text is escaped (``surrogateescape``).
    """
    start, text = folder / "start.py", Path(_command_start.__file__).read_text(encoding="utf-8")
    paths = ("/",) if written is None else written
    words = [python, "-I", "-S", str(start), str(len(paths)), *paths]
    if os.uname().machine in MACHINES:
        first = first_program(words).decode("utf-8", "surrogateescape")
    else:
        first = f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n'
    return {str(folder / "start"): first, str(start): text}
