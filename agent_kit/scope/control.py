"""Control files: what runs code or changes the rules of a later session.

No tool may write them, at any depth, even inside a writable folder. Reading them is another matter.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final

from agent_kit.scope.text import fold

__all__ = ["CONTROL_NAMES", "PAGE_INDEXES", "is_control_file"]

PAGE_INDEXES: Final = "agent-kit/pages.index"
"""What holds the indexes of the stores, in a user's cache folder. It has the text of every page of each."""

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
        ".hg",  # likewise
        ".jj",
        ".gitmodules",
        ".gitconfig",
        ".envrc",  # direnv
        "mise.toml",  # hooks, and what is on PATH
        ".mise.toml",
        ".vscode",  # tasks and settings that run programs
        ".idea",
        ".zed",
        ".devcontainer",  # commands that are run on the host, too
        ".codex",  # other agents': servers that are started, instructions
        ".cursor",
        ".gemini",
        ".roo",
        ".kiro",
        ".windsurfrules",
        ".clinerules",
        ".aider.conf.yml",
        "opencode.json",
        # what a store of this kit does next
        ".agent-kit.pending",
        # read by shells, and when a person signs in
        ".bash_completion",
        ".xprofile",
        ".xsessionrc",
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
_BARE_PARTS = frozenset(
    {"head", "objects", "refs", "commondir", "config", "config.worktree", "hooks"}
)
# gitrepository-layout(5): what git looks for, and what points it to a repository elsewhere.
_MAKES_BARE = (frozenset({"head", "objects", "refs"}), frozenset({"head", "commondir"}))


def is_control_file(path: str, parts: Sequence[str], display: Callable[[str], str] | None) -> bool:
    """Whether writing canonical ``path`` writes a control file. ``parts`` is the path folded.

    A bare repository counts as well, and so does the write that would complete one. ``display``
    writes a path as the system does; ``None`` leaves the disk alone.
    """
    if not _NAMES.isdisjoint(parts):
        return True
    if display is None or _BARE_PARTS.isdisjoint(parts):
        return False
    names = path.split("/")
    return any(
        (written := fold(name)) in _BARE_PARTS
        and _is_bare(display("/".join(names[:at]) or "/"), written)
        for at, name in enumerate(names)
    )


def _is_bare(folder: str, written: str) -> bool:
    try:
        present = {written, *map(fold, os.listdir(folder))}
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # it may be one
        return True
    return any(present >= parts for parts in _MAKES_BARE)
