"""The scope as a value: which folders an agent may read, search and write, and what is closed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agent_kit.scope.compiled import Compiled, compile_scope, pattern_faults
from agent_kit.scope.decision import Access
from agent_kit.scope.errors import ConfigError, Fault
from agent_kit.scope.flavour import FLAVOURS
from agent_kit.scope.value import Checked

__all__ = ["FileScope", "ToolOnlyDir"]

NATIVE: Final = "windows" if os.name == "nt" else "posix"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOnlyDir(metaclass=Checked):
    """A folder that is reached only through tools. ``instead`` names them in the denial.

    >>> ToolOnlyDir(dir="knowledge", instead="the knowledge_* tools").instead
    'the knowledge_* tools'
    """

    dir: str
    instead: str

    def __post_init__(self) -> None:
        faults = [
            fault
            for name in ("dir", "instead")
            if (fault := _text_fault(f"tool_only_dirs.{name}", getattr(self, name)))
        ]
        if faults:
            raise ConfigError(faults)
        object.__setattr__(self, "dir", os.fspath(self.dir))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileScope(metaclass=Checked):
    """What the agent's file tools may touch. What no folder allows is refused.

    Folders and ``denied_paths`` are relative to ``project_dir``; ``project_dir`` itself is relative
    to the process's folder. ``~`` is ``home`` (default: the process's own), expanded here and once.
    Links in configured paths are resolved here, too.

    * ``writable_dirs``, ``searchable_dirs``, ``readable_dirs``: for Write and Edit, for Grep, for
      Read and Glob. ``readable_dirs=None`` means the searchable folders.
    * ``also_readable``: readable, but not named in messages. ``tool_results_dir``: likewise.
    * ``read_only_dirs``: never written, even where a writable folder says otherwise.
    * ``denied_paths``: literal paths or gitignore patterns; they win over everything.
    * ``tool_only_dirs``: closed to the file tools.
    * ``writable_control_files``: lifts the protection of files that steer later sessions.
    * ``mcp_file_tools``: MCP tool name to its path fields and what each does
      (``"read"``, ``"write"``, ``"list"``, ``"search"``).
    * ``platform``: ``"posix"`` or ``"windows"``; one that isn't this machine's is judged by its
      texts alone.

    Raises ConfigError with every malformed value at once.

    >>> scope = FileScope(project_dir="/work", writable_dirs=["notes"], denied_paths=["**/.env"])
    >>> scope.writable_dirs
    ('notes',)
    """

    project_dir: str
    writable_dirs: Sequence[str] = ()
    searchable_dirs: Sequence[str] = ()
    readable_dirs: Sequence[str] | None = None
    also_readable: Sequence[str] = ()
    read_only_dirs: Sequence[str] = ()
    denied_paths: Sequence[str] = ()
    tool_results_dir: str | None = None
    tool_only_dirs: Sequence[ToolOnlyDir] = ()
    writable_control_files: bool = False
    mcp_file_tools: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    platform: str = NATIVE
    home: str | None = None
    _compiled: Compiled = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        faults = list(_shape_faults(self))
        if faults:
            raise ConfigError([*faults, *_pattern_faults(self)])
        for name in _LISTS:
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(_fspath(item) for item in value))
        for name in ("project_dir", "tool_results_dir", "home"):
            object.__setattr__(self, name, _fspath(getattr(self, name)))
        object.__setattr__(
            self, "mcp_file_tools", {k: dict(v) for k, v in self.mcp_file_tools.items()}
        )
        compiled, faults = compile_scope(self, native=self.platform == NATIVE)
        if compiled is None:
            raise ConfigError(faults)
        object.__setattr__(self, "_compiled", compiled)


_LISTS: Final = (
    "writable_dirs",
    "searchable_dirs",
    "readable_dirs",
    "also_readable",
    "read_only_dirs",
    "denied_paths",
    "tool_only_dirs",
)
_ACCESSES: Final = frozenset(str(access) for access in Access)


def _fspath(value: Any) -> Any:
    if type(value) is str:  # nearly always, and to ask whether it is a path takes longer
        return value
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _text_fault(name: str, value: object) -> Fault | None:
    text = _fspath(value)
    if not isinstance(text, str):
        return Fault(field=name, value=value, remedy="give a path as text.")
    if not text:
        return Fault(field=name, value=value, remedy="give a path; this one is empty.")
    if "\0" in text:
        return Fault(field=name, value=value, remedy="a path can't hold a NUL.")
    return None


def _shape_faults(scope: FileScope) -> list[Fault]:
    faults = [_text_fault("project_dir", scope.project_dir)]
    faults += [
        _text_fault(name, value)
        for name in ("tool_results_dir", "home")
        if (value := getattr(scope, name)) is not None
    ]
    for name in _LISTS:
        faults += _list_faults(name, getattr(scope, name))
    if not isinstance(scope.writable_control_files, bool):
        faults.append(
            Fault(
                field="writable_control_files",
                value=scope.writable_control_files,
                remedy="write True or False.",
            )
        )
    if scope.platform not in tuple(FLAVOURS):
        faults.append(
            Fault(field="platform", value=scope.platform, remedy="write 'posix' or 'windows'.")
        )
    faults += _mcp_faults(scope.mcp_file_tools)
    return [fault for fault in faults if fault is not None]


def _list_faults(name: str, value: Any) -> list[Fault | None]:
    if value is None and name == "readable_dirs":
        return []
    if isinstance(value, (str, bytes)) or not isinstance(value, (list, tuple)):
        return [Fault(field=name, value=value, remedy="give a list.")]
    if name == "tool_only_dirs":
        return [
            Fault(field=name, value=item, remedy="give ToolOnlyDir(dir=…, instead=…).")
            for item in value
            if not isinstance(item, ToolOnlyDir)
        ]
    return [_text_fault(name, item) for item in value]


def _pattern_faults(scope: FileScope) -> list[Fault]:
    """The patterns' faults, where other values are too malformed to go on."""
    texts = scope.denied_paths
    if not isinstance(texts, (list, tuple)):
        return []
    sound = [_fspath(text) for text in texts if _text_fault("denied_paths", text) is None]
    platform = scope.platform if scope.platform in tuple(FLAVOURS) else NATIVE
    return list(pattern_faults(sound, FLAVOURS[platform]))


def _mcp_faults(value: Any) -> list[Fault | None]:
    name = "mcp_file_tools"
    if not isinstance(value, Mapping):
        return [Fault(field=name, value=value, remedy="give {tool name: {field: access}}.")]
    return [
        Fault(
            field=name,
            value={tool: given},
            remedy=f"give the tool's path fields with one of {sorted(_ACCESSES)} each.",
        )
        for tool, given in value.items()
        if not isinstance(tool, str)
        or not tool.startswith("mcp__")
        or not isinstance(given, Mapping)
        or not all(isinstance(part, str) for item in given.items() for part in item)
        or not _ACCESSES.issuperset(given.values())
    ]
