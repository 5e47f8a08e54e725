"""Control files: what runs code or changes the rules of a later session.

No tool may write them, at any depth, even inside a writable folder. Reading them is another matter.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from agent_kit.scope.text import fold

__all__ = ["CONTROL_NAMES", "is_control_file"]

# A path with a component of one of these names is a control file. Folded.
CONTROL_NAMES: Final = tuple(
    fold(name)
    for name in (
        ".claude",  # settings, hooks, skills, agents, commands
        ".mcp.json",  # servers that are started
        "CLAUDE.md",  # instructions
        "CLAUDE.local.md",
        "AGENTS.md",
        ".git",  # hooks, and settings that name programs; a file of that name points elsewhere
        ".gitmodules",
        ".gitconfig",
        ".envrc",  # direnv
        ".vscode",  # tasks and settings that run programs
        ".idea",
        # read by shells when they start
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".zlogout",
        ".kshrc",
        ".cshrc",
        ".tcshrc",
        ".login",
        ".logout",
        "config.fish",
    )
)
_NAMES = frozenset(CONTROL_NAMES)
_BARE_PARTS = frozenset({"head", "objects", "refs", "config", "hooks"})
_MAKES_BARE = {"head", "objects", "refs"}  # gitrepository-layout(5): what git looks for


def is_control_file(path: str, parts: Sequence[str]) -> bool:
    """Whether writing canonical ``path`` writes a control file. ``parts`` is the path folded.

    A bare repository counts as well, and so does the write that would complete one.
    """
    if not _NAMES.isdisjoint(parts):
        return True
    return not _BARE_PARTS.isdisjoint(parts) and _in_bare_repository(path)


def _in_bare_repository(path: str) -> bool:
    names = path.split("/")
    return any(
        fold(name) in _BARE_PARTS and _is_bare("/".join(names[:at]) or "/", fold(name))
        for at, name in enumerate(names)
        if at
    )


def _is_bare(folder: str, written: str) -> bool:
    try:
        present = {fold(name) for name in os.listdir(folder)}
    except (OSError, ValueError):
        return False
    return present | {written} >= _MAKES_BARE
