"""Whether a call means something else in another folder: a person has to see the folder then."""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agent_kit.scope.tools import FILE_TOOLS, NAMED_FIELD_TOOLS, NO_PATH_TOOLS, names_path

__all__ = ["needs_folder"]

_COMMANDS: Final = frozenset({"Bash", "Monitor", "Skill"})  # of the tools that take no path
_NOWHERE: Final = NO_PATH_TOOLS - _COMMANDS
_BY_PATH: Final = FILE_TOOLS.keys() | NAMED_FIELD_TOOLS


def needs_folder(tool: str, tool_input: Mapping[str, Any]) -> bool:
    """Whether it counts which folder a call is made in.

    So it does for a command, for a path that is relative, and for a tool that nobody knows.

    >>> needs_folder("Bash", {"command": "make"}), needs_folder("Read", {"file_path": "a.md"})
    (True, True)
    >>> needs_folder("Read", {"file_path": "/w/a.md"}), needs_folder("WebFetch", {"url": "x"})
    (False, False)
    """
    if tool in _NOWHERE:
        return False
    if tool not in _BY_PATH and not tool.startswith("mcp__"):
        return True
    named = FILE_TOOLS.get(tool)
    if named is not None and named.here and tool_input.get("path") is None:
        return True
    return not all(map(_is_absolute, _paths(tool_input)))


def _paths(tool_input: Mapping[str, Any]) -> Iterator[object]:
    for field, value in tool_input.items():
        if names_path(field):
            yield from value if isinstance(value, list | tuple) else (value,)


def _is_absolute(path: object) -> bool:
    """What is no text names nothing. ``~/`` is a folder of its own."""
    if not isinstance(path, str):
        return True
    return posixpath.isabs(path) or ntpath.isabs(path) or path.startswith("~")
