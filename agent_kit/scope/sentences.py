"""Every sentence that a model hears from the scope. Each says what to do instead.

``path`` is what the model wrote, already escaped. No sentence says where a link points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from agent_kit.scope.decision import Access

__all__ = [
    "INTERNAL_ERROR",
    "above_tools_only",
    "climbs",
    "contains_denied",
    "control_file",
    "denied",
    "in_tools_only",
    "malformed",
    "outside",
    "read_only",
    "special_file",
    "too_many_names",
    "unjudged_tool",
]

INTERNAL_ERROR: Final = "This call could not be checked, so it was refused. Try another way."

_DONE: Final[Mapping[Access, str]] = {
    Access.READ: "read",
    Access.LIST: "listed",
    Access.SEARCH: "searched",
    Access.WRITE: "written",
}


def denied(access: Access, path: str) -> str:
    return f'"{path}" is off limits: it can\'t be {_DONE[access]}.'


def read_only(path: str, writable: Sequence[str]) -> str:
    if not writable:
        return (
            f'"{path}" is read-only: originals are never modified,'
            " and this agent may write nothing."
        )
    return (
        f'"{path}" is read-only: originals are never modified — write your own notes inside'
        f" {', '.join(writable)} instead."
    )


def control_file(path: str) -> str:
    return f'"{path}" can\'t be written: it changes the rules or runs code in later sessions.'


def _read(_tool: str, path: str, dirs: str) -> str:
    if not dirs:
        return f'"{path}" can\'t be read: this session has no readable folder.'
    return (
        f'"{path}" can\'t be read: reading is only allowed inside {dirs}'
        " and your own plugins and run folder."
    )


def _listed(tool: str, path: str, dirs: str) -> str:
    if not dirs:
        return f'{tool} can\'t list "{path}": this session has no readable folder.'
    return (
        f'{tool} can\'t list "{path}": listing is only allowed inside {dirs}'
        " and your own plugins and run folder."
    )


def _searched(tool: str, path: str, dirs: str) -> str:
    if not dirs:
        return f'{tool} can\'t search "{path}": this session has no searchable folder.'
    return f'{tool} only searches inside {dirs} — pass one of them (or a folder inside) as "path".'


def _written(_tool: str, path: str, dirs: str) -> str:
    if not dirs:
        return f'"{path}" can\'t be written: this agent may write nothing.'
    return f'"{path}" can\'t be written: writing is only allowed inside {dirs}.'


_OUTSIDE: Final[Mapping[Access, Callable[[str, str, str], str]]] = {
    Access.READ: _read,
    Access.LIST: _listed,
    Access.SEARCH: _searched,
    Access.WRITE: _written,
}


def outside(access: Access, tool: str, path: str, dirs: Sequence[str]) -> str:
    return _OUTSIDE[access](tool, path, ", ".join(dirs))


def in_tools_only(path: str, folder: str, instead: str) -> str:
    return f'"{path}" is in {folder}, which is reached only through {instead}, not the file tools.'


def above_tools_only(path: str, folder: str, instead: str) -> str:
    return (
        f'"{path}" contains {folder}, which is reached only through {instead}, not the file tools.'
    )


def contains_denied(path: str, entry: str) -> str:
    return f'"{path}" contains {entry}, which is off limits: search a folder beside it.'


def too_many_names(path: str) -> str:
    return f'"{path}" holds too many names to look for what is off limits: search a folder in it.'


def climbs(tool: str, pattern: str) -> str:
    return f'{tool} can\'t use "{pattern}": a pattern can\'t climb with "..".'


def special_file(access: Access, path: str) -> str:
    return f'"{path}" is a device or system file: it can\'t be {_DONE[access]}.'


def malformed(path: str) -> str:
    return f'"{path}" can\'t be judged as a path: write the plain path of one file or folder.'


def unjudged_tool(tool: str) -> str:
    return f"{tool} was not called by a name and with named fields, so it was refused."
