"""The contract between the kit and an extension.

An extension is a value in ``AgentSpec.extensions``. It is never discovered: installing a package
can't widen a session. ``plan_session`` asks each one whether it can run (``missing``) and what it
brings (``contribute``); both get the same :class:`ExtensionContext`. Nothing here imports the SDK:
an MCP server is given as a function that ``build_session_options`` calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from agent_kit.scope import FileScope, ToolOnlyDir

if TYPE_CHECKING:
    from agent_kit.policy.guard import Guard

__all__ = ["Contribution", "Extension", "ExtensionContext", "PlannedGuard", "PlannedScope"]


@dataclass(slots=True)
class PlannedGuard:
    """The guard of one plan, for whoever opens files in its session; see :class:`~agent_kit.Guard`.

    Empty until the plan is made. The session's own, which can ask a person and records what it
    judges, is there once the options are built.
    """

    guard: Guard | None = None
    make: Callable[[], Guard] | None = None

    def __call__(self) -> Guard:
        """The guard. Raises ``LookupError`` while there is none."""
        if self.guard is None:
            if self.make is None:
                raise LookupError("The session's guard is known once the session is planned.")
            self.guard = self.make()
        return self.guard


@dataclass(slots=True)
class PlannedScope:
    """The scope of one plan, for the tools of its extensions: empty until the plan is made."""

    scope: FileScope | None = None
    guard: PlannedGuard = field(default_factory=PlannedGuard)

    def __call__(self) -> FileScope:
        """The scope. Raises ``LookupError`` while there is none."""
        if self.scope is None:
            raise LookupError("The session's scope is known once the session is planned.")
        return self.scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionContext:
    """What an extension may know of the session that is being planned.

    ``config`` is the ``SessionConfig`` (or the agent's own subclass of it), ``spec`` the
    ``AgentSpec``. ``project_dir`` and ``run_dir`` are absolute. ``home`` is what ``~`` means to the
    session's CLI. ``capabilities`` are the names that the session's active extensions provide.
    ``scope`` gives the session's whole scope, every extension's folders included, to a tool that
    runs: what the gate judges by. Raises ``LookupError`` before the session is planned, so neither
    ``missing`` nor ``contribute`` can ask it. ``guard`` gives, likewise, what judges a path for a
    tool that opens files itself: by scope, rules, a person and authorizers.
    """

    config: Any
    spec: Any
    project_dir: Path
    run_dir: Path
    mode: str
    capabilities: frozenset[str] = frozenset()
    home: Path = field(default_factory=Path.home)
    scope: Callable[[], FileScope] = field(default_factory=PlannedScope)
    guard: Callable[[], Guard] = field(default_factory=PlannedGuard)


AskedFiles = Callable[[Mapping[str, Any]], Sequence[Path]]
"""The files that a call is about, by its input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What an extension brings to one session. Relative folders are relative to the project.

    * ``read_only_dirs``: readable and searchable, never written.
    * ``readable_dirs``: readable and searchable.
    * ``writable_dirs``: readable, searchable and writable.
    * ``tool_only_dirs``: closed to the file tools, reached only through the extension's own tools.
    * ``denied_paths``: off limits, as ``SessionConfig.denied_paths``.
    * ``mcp_servers``: server name to its SDK configuration, or to a function without arguments
      that returns it (called when the options are built, so that planning needs no SDK).
    * ``prompt_section``: Markdown that is added to the system prompt.
    * ``file_tools``: built-in tools the extension needs beyond what the folders imply.
    * ``read_only_tools``: full tool names (``mcp__server__tool``) that change nothing.
    * ``interrupt_on``: full name of a tool of these servers to whether a person is asked before each
      call. ``False``: not even in interactive mode, for a tool that asks them itself. What
      ``SessionConfig.interrupt_on`` says of the same tool counts instead.
    * ``asked_files``: full name of a tool of these servers to a function of its input that gives the
      files a call is about, as absolute paths. When one of them changes before a person's answer is
      used, the call is refused; so it is when the function raises.
    * ``hooks``: hook event to async callbacks with the SDK's signature
      ``(input, tool_use_id, context) -> dict``. PreToolUse callbacks run inside the kit's gate;
      wrapped in :class:`agent_kit.sdk.hooks.Chained` they are asked about the tools it names only.
    * ``api``: an object for the host program, handed out as it is.
    """

    read_only_dirs: tuple[str, ...] = ()
    readable_dirs: tuple[str, ...] = ()
    writable_dirs: tuple[str, ...] = ()
    tool_only_dirs: tuple[ToolOnlyDir, ...] = ()
    denied_paths: tuple[str, ...] = ()
    mcp_servers: Mapping[str, Any | Callable[[], Any]] = field(default_factory=dict)
    prompt_section: str | None = None
    file_tools: tuple[str, ...] = ()
    read_only_tools: tuple[str, ...] = ()
    interrupt_on: Mapping[str, bool] = field(default_factory=dict)
    asked_files: Mapping[str, AskedFiles] = field(default_factory=dict)
    hooks: Mapping[str, tuple[Callable[..., Any], ...]] = field(default_factory=dict)
    api: object | None = None


@runtime_checkable
class Extension(Protocol):
    """Anything with these members can stand in ``AgentSpec.extensions``.

    ``plugin_dir`` is the extension's Claude Code plugin folder, or ``None``. ``provides`` and
    ``requires`` are capability names: an extension whose requirements no active extension
    provides is inactive, with that as the reason.
    """

    @property
    def name(self) -> str: ...
    @property
    def plugin_dir(self) -> Path | None: ...
    @property
    def provides(self) -> tuple[str, ...]: ...
    @property
    def requires(self) -> tuple[str, ...]: ...

    def missing(self, context: ExtensionContext, /) -> str | None:
        """Why the extension can't run in this session, or ``None`` when it can."""

    def contribute(self, context: ExtensionContext, /) -> Contribution:
        """What the extension brings. Called once a plan, after ``missing`` said ``None``."""
