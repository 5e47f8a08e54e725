"""Instruction files inside the scope's folders are contents, not instructions.

Reading a file makes the CLI attach the ``CLAUDE.md``, ``AGENTS.md`` and ``.claude/rules`` of its
folder, following links of these names out of it. ``claudeMdExcludes`` (picomatch patterns over
absolute paths, measured on CLI 2.1.332) turns that off for every folder the agent may read, and
leaves the project's own chain alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["memory_excludes"]

_SPECIAL = re.compile(r"([\\*?\[\]{}()!+@|^$])")


def memory_excludes(folders: Iterable[str], project: str) -> list[str]:
    """The patterns for these absolute folders, each once; ``project`` is absolute, too."""
    return list(dict.fromkeys(pattern for folder in folders for pattern in _below(folder, project)))


def _below(folder: str, project: str) -> Iterator[str]:
    """Everything in a folder, but for the folders that lead to the project and its ``.claude``."""
    here = folder.rstrip("/")
    if project != folder and not project.startswith(here + "/"):
        yield _literal(here) + "/**"
        return
    for name in project[len(here) + 1 :].split("/") if project != folder else ():
        yield f"{_literal(here)}/!({_literal(name)}|.claude)/**/*"
        here = f"{here}/{name}"
    yield f"{_literal(here)}/!(.claude)/**/*"


def _literal(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
