"""Which instruction files the CLI may load: the project's own chain, and nothing that hangs on it.

Left alone, the CLI attaches the ``CLAUDE.md``, ``AGENTS.md`` and ``.claude/rules`` beside every file
that is read, whatever such a file imports with ``@path``, and whatever a link of such a name leads
to. ``claudeMdExcludes`` (picomatch patterns over absolute paths, measured on CLI 2.1.332) is the
only switch, and it can only exclude. So everything is excluded but the chain: the instruction files
in the project and in the folders above it. They may import each other; what else they import can be
read with a tool, if the scope lets it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

__all__ = ["chain_paths", "literal", "memory_excludes"]

# The instruction files of one folder, as the CLI looks for them.
_NAMES = ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", ".claude/CLAUDE.md", ".claude/rules")
_SPECIAL = re.compile(r"([\\*?\[\]{}()!+@|^$])")


@dataclass(slots=True)
class _Kept:
    """A path on the way to one that is kept; ``whole``: kept with all that is below."""

    whole: bool = False
    below: dict[str, _Kept] = field(default_factory=dict)


def memory_excludes(
    projects: Iterable[str], runners: Iterable[str], kept: Iterable[str] = ()
) -> list[str]:
    """The patterns. ``projects`` are the absolute names of the project folder (as given, and with
    links resolved); ``runners`` are the runner's own config folders, which are no part of a chain
    though a project may lie below them; ``kept`` are files or folders that may be loaded whole.
    """
    root = _Kept()
    for path in (*chain_paths(projects, runners), *kept):
        _keep(root, path)
    return list(_others("", root))


def chain_paths(projects: Iterable[str], runners: Iterable[str]) -> list[str]:
    """Where instruction files of these projects may lie, each once."""
    own = tuple(f"{folder}/" for folder in runners)
    found = (
        f"{folder}/{name}"
        for project in projects
        for folder in _upwards(project)
        for name in _NAMES
    )
    return [path for path in dict.fromkeys(found) if not path.startswith(own)]


def _upwards(folder: str) -> Iterator[str]:
    """A folder and every folder above it, without a slash at the end: the root is empty."""
    here = folder.rstrip("/")
    while here:
        yield here
        here = here.rpartition("/")[0]
    yield ""


def _keep(root: _Kept, path: str) -> None:
    node = root
    for name in path.split("/")[1:]:
        if name:
            node = node.below.setdefault(name, _Kept())
    node.whole = True


def _others(path: str, node: _Kept) -> Iterator[str]:
    """Everything that is not kept below ``path``, which is spelled already."""
    if node.whole:
        return
    names = "|".join(map(literal, node.below))
    yield f"{path}/!({names})"
    yield f"{path}/!({names})/**"
    for name, below in node.below.items():
        yield from _others(f"{path}/{literal(name)}", below)


def literal(text: str) -> str:
    """``text`` as picomatch takes it literally."""
    return _SPECIAL.sub(r"\\\1", text)
