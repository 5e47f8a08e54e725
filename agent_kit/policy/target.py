"""What authorizers are asked about: one file of one call, and the session around it."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self

from agent_kit.policy.outcome import Action, Messages
from agent_kit.scope.decision import Access
from agent_kit.scope.disk import Located, locate
from agent_kit.scope.file_scope import FileScope
from agent_kit.scope.judge import NamedPath, named_paths
from agent_kit.scope.text import shown
from agent_kit.scope.tools import FILE_TOOLS

__all__ = [
    "AuthorizerContext",
    "Print",
    "Target",
    "plain_target",
    "print_of",
    "targets_of",
]

ACTIONS: Final[Mapping[Access, Action]] = {
    Access.READ: Action.READ,
    Access.LIST: Action.LIST,
    Access.SEARCH: Action.SEARCH,
    Access.WRITE: Action.WRITE,
}


# Both are made for each call, and a tuple takes a quarter of the time of a frozen dataclass.


class Target(NamedTuple):
    """One file or folder of one call.

    ``requested`` is the path as the call has it, ``absolute`` the same made absolute, ``resolved`` with
    links followed. ``also`` are further real paths that the text may mean. ``size`` is in bytes, of an
    existing file. ``display_path`` is as messages show it: relative inside the project, escaped.
    ``agent`` is the type of the subagent that calls, ``None`` for the main one.
    """

    action: Action
    requested: str
    absolute: str
    resolved: str
    display_path: str
    tool: str
    tool_input: Mapping[str, Any] = MappingProxyType({})
    also: tuple[str, ...] = ()
    size: int | None = None
    is_folder: bool = False
    agent: str | None = None

    @property
    def real_paths(self) -> tuple[str, ...]:
        return self.resolved, *self.also


class _Context(NamedTuple):
    project_dir: str
    config: Any
    session_id: str | None
    agent: str | None
    tool_use_id: str | None
    home: str | None
    abort: asyncio.Event
    state: dict[Any, Any]
    messages: Messages
    unfiltered: frozenset[str]


class AuthorizerContext(_Context):
    """The session around a call.

    ``project_dir`` is absolute. ``abort`` is set when the call is stopped. ``state`` lives as long as
    the session: an authorizer keeps its memory there, under a key of its own. ``unfiltered`` are
    patterns of ``deny_paths`` whose hits no rule of the CLI leaves out of a search.
    """

    __slots__ = ()

    def __new__(
        cls,
        *,
        project_dir: str,
        config: Any = None,
        session_id: str | None = None,
        agent: str | None = None,
        tool_use_id: str | None = None,
        home: str | None = None,
        abort: asyncio.Event | None = None,
        state: dict[Any, Any] | None = None,
        messages: Messages | None = None,
        unfiltered: frozenset[str] = frozenset(),
    ) -> Self:
        return super().__new__(
            cls,
            project_dir,
            config,
            session_id,
            agent,
            tool_use_id,
            home,
            asyncio.Event() if abort is None else abort,
            {} if state is None else state,
            Messages() if messages is None else messages,
            unfiltered,
        )


def targets_of(
    scope: FileScope,
    tool_name: str,
    tool_input: Mapping[str, Any],
    *,
    cwd: str | None = None,
    agent: str | None = None,
    deletes: bool = False,
    named: tuple[NamedPath, ...] | None = None,
) -> tuple[Target, ...] | None:
    """The targets of a call, whose paths are read as ``scope`` reads them; none without a path.

    ``named`` are its paths, where ``scope.judge.judge_and_name`` has located them. ``deletes`` says
    that the tool deletes what it is said to write. ``None`` for a call that can't be judged, which
    the scope refuses, too.
    """
    if named is None and (named := named_paths(scope, tool_name, tool_input, cwd)) is None:
        return None
    targets: dict[tuple[Action, str], Target] = {}
    for path in named:
        action = ACTIONS[path.access]
        if deletes and action is Action.WRITE:
            action = Action.DELETE
        if (action, path.text) not in targets:
            target = _target(scope, path, action, tool_name, tool_input, agent)
            targets[action, path.text] = target
    return tuple(targets.values())


def _target(
    scope: FileScope,
    path: NamedPath,
    action: Action,
    tool_name: str,
    tool_input: Mapping[str, Any],
    agent: str | None,
) -> Target:
    display = scope._compiled.flavour.display
    found, absolute = path.targets[0], path.names[0]
    real = [display(found.path)]
    if len(path.targets) > 1:
        found = next((target for target in path.targets if target.mode), found)
        real = list(dict.fromkeys(display(t.path) for t in (found, *path.targets)))
    is_folder = stat.S_ISDIR(found.mode)
    project = scope._compiled.project.rstrip("/") + "/"
    inside = absolute.startswith(project)
    return Target(
        action=action,
        requested=path.text,
        absolute=display(absolute),
        resolved=real[0],
        display_path=shown(absolute[len(project) :] if inside else path.text),
        also=tuple(real[1:]),
        size=_size(found),
        is_folder=is_folder,
        tool=tool_name,
        tool_input=tool_input,
        agent=agent,
    )


def plain_target(
    scope: FileScope,
    tool_name: str,
    tool_input: Mapping[str, Any],
    file: Located,
    agent: str | None = None,
) -> Target:
    """The target of a call whose ``file`` is that of ``plain_file`` (of the scope). It looks at no disk."""
    path, project = file.path, scope._compiled.project.rstrip("/") + "/"
    return Target(
        action=ACTIONS[FILE_TOOLS[tool_name].access],
        requested=path,
        absolute=path,
        resolved=path,
        display_path=shown(path.removeprefix(project)),
        size=_size(file),
        tool=tool_name,
        tool_input=tool_input,
        agent=agent,
    )


def _size(found: Located) -> int | None:
    """The bytes of an existing file."""
    return None if not found.mode or stat.S_ISDIR(found.mode) else found.size


Print = tuple[tuple[str, tuple[int, ...]], ...]
"""Where a target is, which file that is, how large and how old."""


def print_of(target: Target) -> Print | None:
    """What tells a target from another, or from itself changed; ``None`` when it can't be told.

    Of a folder it doesn't tell what is in it.
    """
    paths = dict.fromkeys((target.absolute, *target.real_paths))
    return prints_of(paths, is_folder=target.is_folder)


def prints_of(paths: Iterable[str], *, is_folder: bool = False) -> Print | None:
    """The same of absolute paths."""
    try:
        return tuple((locate(path).path, _identity(path, is_folder)) for path in paths)
    except (OSError, ValueError):  # ValueError: Unresolvable
        return None


def _identity(path: str, is_folder: bool) -> tuple[int, ...]:
    try:
        seen = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    identity = (seen.st_mode, seen.st_dev, seen.st_ino)
    return identity if is_folder else (*identity, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
