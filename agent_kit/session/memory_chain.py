"""Instruction files of the project's chain that are links: what they lead to is judged as a Read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.session.nested_memory import chain_paths

__all__ = ["closed_chain_files"]


def closed_chain_files(
    scope: FileScope, projects: Iterable[str], runners: Iterable[str]
) -> list[str]:
    """The chain's files that lead, by a link of their own or above them, where nothing may be read.

    ``projects`` are the absolute names of the project folder. A link to another file of the chain
    (``CLAUDE.md`` to ``AGENTS.md``) is none of them.
    """
    candidates = chain_paths(projects, runners)
    files = [file for path in candidates for file in _files(path)]
    chain = {*candidates, *files}
    return [
        file
        for file in files
        if (real := os.path.realpath(file)) != file
        and real not in chain
        and check_file_scope(scope, "Read", {"file_path": file}) is not None
    ]


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        if os.path.lexists(path):
            yield path
        return
    for folder, folders, names in os.walk(path):  # it enters no linked folder, the CLI does
        yield from (os.path.join(folder, name) for name in names)
        yield from (link for name in folders if os.path.islink(link := os.path.join(folder, name)))
