"""Tools that take no path and yet bring files to the model, or copy them.

Seen on CLI 2.1.332 with a gate on the file tools and deny rules in place. One function a tool: the
reason why the call is refused, or ``None``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from agent_kit.scope import FileScope
from agent_kit.sdk.mentions import refused_mention

__all__ = ["DOORS"]


def _skill(scope: FileScope, tool_input: Any, cwd: str) -> str | None:
    """A skill's arguments are the model's words, and the CLI attaches the files they mention."""
    for text in _texts(tool_input):
        if (reason := refused_mention(scope, text, cwd)) is not None:
            return reason
    return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _texts(each)


def _agent(_scope: FileScope, tool_input: Any, _cwd: str) -> str | None:
    """``isolation`` copies every file of the repository to where no rule names it."""
    if isinstance(tool_input, Mapping) and not tool_input.get("isolation"):
        return None
    return (
        "An agent can't work in a copy of the repository here: it would hold closed files. "
        'Start it without "isolation".'
    )


def _worktree(_scope: FileScope, _tool_input: Any, _cwd: str) -> str | None:
    return "A copy of the repository can't be made here: it would hold closed files. Work in place."


DOORS: Final[Mapping[str, Callable[[FileScope, Any, str], str | None]]] = {
    "Skill": _skill,
    "Agent": _agent,
    "Task": _agent,  # its older name
    "EnterWorktree": _worktree,
}
