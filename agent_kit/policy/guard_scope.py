"""The scope that a guard judges by: a session's, read as a tool's own code would read a path."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent_kit.scope.decision import Access
from agent_kit.scope.file_scope import FileScope

__all__ = ["TOOL", "OwnFolder", "judged_scope"]

TOOL: Final = "mcp__agent_kit__guard"  # how a call of the guard's looks to the scope
_FIELDS: Final = {access.value: access.value for access in Access}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFolder:
    """A folder that a tool keeps: ``dir`` is absolute, ``writable`` says that it also writes there."""

    dir: str
    writable: bool = False


def judged_scope(scope: FileScope, own: OwnFolder | None = None) -> FileScope:
    """``scope`` for calls of :data:`TOOL`, whose field is the access, with ``own`` open.

    What closes ``own`` to the file tools is left out; what is closed inside it stays closed.
    """
    tools = {TOOL: _FIELDS}
    if own is None:
        return replace(scope, mcp_file_tools=tools)
    real = f"{os.path.realpath(own.dir)}/"
    readable = scope.readable_dirs
    more: tuple[str, ...] = (own.dir,) if own.writable else ()
    return replace(
        scope,
        mcp_file_tools=tools,
        searchable_dirs=(*scope.searchable_dirs, own.dir),
        readable_dirs=None if readable is None else (*readable, own.dir),
        writable_dirs=(*scope.writable_dirs, *more),
        read_only_dirs=_beside(scope, scope.read_only_dirs, real) if more else scope.read_only_dirs,
        tool_only_dirs=tuple(
            each for each in scope.tool_only_dirs if not _holds(scope, each.dir, real)
        ),
    )


def _beside(scope: FileScope, folders: Sequence[str], real: str) -> tuple[str, ...]:
    return tuple(folder for folder in folders if not _holds(scope, folder, real))


def _holds(scope: FileScope, folder: str, real: str) -> bool:
    """Whether ``real`` (with a slash at its end) is this folder of the scope's, or lies in it."""
    place = os.path.realpath(os.path.join(scope.project_dir, folder))
    return real.startswith(f"{place.rstrip('/')}/")
