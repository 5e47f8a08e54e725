"""``SessionConfig``: one session of an agent."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_kit.scope.errors import ConfigError, Fault
from agent_kit.scope.value import Checked
from agent_kit.sdk.hooks import hook_faults
from agent_kit.session.spec import SOURCES, _is_text, _list_faults, permission_faults

if TYPE_CHECKING:
    from agent_kit.policy.approval import Approval
    from agent_kit.policy.outcome import Messages
    from agent_kit.policy.rules import FilePermission

__all__ = ["SessionConfig"]

BACKEND_NAMES: Final = ("bubblewrap", "landlock", "seatbelt")
_CHOICES: Final[Mapping[str, tuple[object, ...]]] = {
    "mode": ("guided", "interactive", "plan", "autonomous"),
    "confinement": ("auto", "required", "off", "external"),
    "confinement_backend": (None, *BACKEND_NAMES),
    "confine_network": (None, True, False),
    "prompt_mentions": ("scope", "off", "any"),
    "permission_mode": (None, "default", "acceptEdits", "dontAsk", "bypassPermissions", "plan"),
}
_PATH_LISTS: Final = ("extra_writable_dirs", "extra_readable_dirs", "denied_paths")
_FLAGS: Final = (
    "allow_unconfined_commands",
    "allow_worktrees",
    "confined_git",
    "expose_account",
    "writable_control_files",
    "strict_mcp_config",
)
_MAPPINGS: Final = ("settings", "mcp_file_tools")


@dataclass(frozen=True, kw_only=True)
class SessionConfig(metaclass=Checked):
    """One session. Subclass it (as a frozen dataclass) for fields of the agent's own.

    Paths are relative to ``project_dir``; ``project_dir`` itself (or ``workspace``, which stands for
    it) is relative to the process's folder. Raises ConfigError with every malformed value at once; what only the disk can tell is a
    fault of ``plan_session``.

    * ``workspace``: the short form, in place of ``project_dir``. The folder is read, searched and
      written; the secrets of ``agent_kit.session.workspace.SECRETS`` are denied.
    * ``mode``: ``"guided"`` (a rule that interrupts asks), ``"interactive"`` (each call that changes
      something asks first), ``"plan"`` (nothing is changed), ``"autonomous"`` (whatever would ask is
      denied).
    * ``permissions``: rules for files, first match wins; they hold for every agent of the session.
      ``authorizers``: asked from left to right about each file that a call names. ``messages``: the
      wording of their refusals. ``interrupt_on``: tool name to whether a person is asked before it
      (``False``: not even in interactive mode).
    * ``ask``: an async function that gets an :class:`~agent_kit.Approval` and returns ``approve()``,
      ``edit(new_input)`` or ``reject(message)``; or ``"defer"``: the run ends, and
      :func:`agent_kit.answer` answers, from any process. Without it nobody can be asked.
    * ``allowed_subagents``: the agent types that may be started; ``None`` means every one there is.
    * ``run_dir``: where the run keeps what it needs; by default a new folder under the platform's
      state folder for the agent.
    * ``extra_writable_dirs``: read, searched and written. ``extra_readable_dirs``: read and
      searched. ``denied_paths``: literal paths or gitignore patterns that nothing opens.
    * ``confinement``: ``"auto"`` (the best backend that works here), ``"required"``, ``"off"``, or
      ``"external"``: a container around the host is the boundary. ``confinement_backend`` insists on
      one. ``confined_tools``: programs that exist inside, by name or absolute path.
      ``confined_git``: the project's ``.git`` exists inside, read-only. ``confine_network``: nothing
      but the model is reached from inside; by default so where commands can be run.
      ``expose_account``: a sign-in that no broker can stand in for goes inside.
      ``allow_unconfined_commands``: build a session that can run commands although nothing confines
      them.
    * ``allow_worktrees``: agents may work in copies of the repository, which hold closed files.
    * ``prompt_mentions``: ``"scope"`` blocks prompts that mention files outside the scope, ``"off"``
      expands no mention, ``"any"`` lets every mention through.
    * ``setting_sources``: overrides the spec's.
    * ``env``: variables for the CLI, over the process's own. ``config_dir``: a separate
      ``CLAUDE_CONFIG_DIR`` (moves the sign-in, too).
    * ``cli_path``: another CLI than the SDK's own.
    * ``writable_control_files``: lets tools write files that steer later sessions.
    * ``mcp_file_tools``: path fields of MCP tools to judge.
    * ``strict_mcp_config``: no MCP server but the spec's and the extensions'.
    * ``hooks``: the host's own, event to callbacks or ``HookMatcher``.
    * ``settings``: more CLI settings, of the names and types in ``agent_kit.session.settings``.
    * ``unlock``: which of the kit's isolation values are left out, by name.
    * ``resume``, ``session_id``: UUIDs. ``max_turns``, ``model``, ``permission_mode``: left unset
      unless given.
    * ``keep_runs``: how many run folders of this agent are kept (newest first), or for how long.
    """

    project_dir: str | Path | None = None
    workspace: str | Path | None = None
    mode: str = "guided"
    run_dir: str | Path | None = None
    extra_writable_dirs: Sequence[str | Path] = ()
    extra_readable_dirs: Sequence[str | Path] = ()
    denied_paths: Sequence[str | Path] = ()
    permissions: Sequence[FilePermission] = ()
    authorizers: Sequence[Any] = ()
    messages: Messages | None = None
    interrupt_on: Mapping[str, bool] = field(default_factory=dict)
    ask: Callable[[Approval], Any] | Literal["defer"] | None = None
    allowed_subagents: Sequence[str] | None = None
    confinement: Literal["auto", "required", "off", "external"] = "auto"
    confinement_backend: Literal["bubblewrap", "landlock", "seatbelt"] | None = None
    confined_tools: Sequence[str] = ()
    confined_git: bool = False
    confine_network: bool | None = None
    expose_account: bool = False
    allow_unconfined_commands: bool = False
    allow_worktrees: bool = False
    prompt_mentions: Literal["scope", "off", "any"] = "scope"
    setting_sources: Sequence[str] | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold a key
    config_dir: str | Path | None = None
    cli_path: str | Path | None = None
    writable_control_files: bool = False
    mcp_file_tools: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    strict_mcp_config: bool = False
    hooks: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    unlock: Collection[str] = ()
    max_turns: int | None = None
    model: str | None = None
    permission_mode: str | None = None
    resume: str | None = None
    session_id: str | None = None
    keep_runs: int | timedelta = 20

    def __post_init__(self) -> None:
        faults = list(_config_faults(self))
        if faults:
            raise ConfigError(faults)
        for name in (*_PATH_LISTS, "confined_tools"):
            object.__setattr__(self, name, tuple(str(path) for path in getattr(self, name)))
        for name in ("project_dir", "workspace", "run_dir", "config_dir", "cli_path"):
            if (path := getattr(self, name)) is not None:
                object.__setattr__(self, name, str(path))
        object.__setattr__(self, "unlock", tuple(sorted(self.unlock)))
        if self.setting_sources is not None:
            object.__setattr__(self, "setting_sources", tuple(self.setting_sources))


def _is_path(value: object) -> bool:
    return isinstance(value, (str, Path)) and bool(str(value)) and "\0" not in str(value)


def _config_faults(config: SessionConfig) -> list[Fault]:
    path_remedy = "give a path as text, not empty and without a NUL."
    faults = [
        Fault(field=name, value=value, remedy=path_remedy)
        for name in ("project_dir", "workspace", "run_dir", "config_dir", "cli_path")
        if (value := getattr(config, name)) is not None and not _is_path(value)
    ]
    faults += _project_faults(config.project_dir, config.workspace)
    for name, choices in _CHOICES.items():
        if (value := getattr(config, name)) not in choices:
            listed = ", ".join(repr(choice) for choice in choices if choice is not None)
            faults.append(Fault(field=name, value=value, remedy=f"choose from {listed}."))
    for name in (*_PATH_LISTS, "confined_tools"):
        faults += _list_faults(name, getattr(config, name), _is_path, path_remedy)
    if config.setting_sources is not None:
        faults += _list_faults(
            "setting_sources",
            config.setting_sources,
            lambda value: value in SOURCES,
            f"choose from {', '.join(SOURCES)}.",
        )
    return faults + _unheld_faults(config) + _plain_faults(config) + _policy_faults(config)


def of_a_confinement(config: SessionConfig) -> list[str]:
    """The fields that ask something of a confinement: where there is none, they hold nothing."""
    asked = {
        "confined_tools": isinstance(config.confined_tools, (list, tuple))
        and len(config.confined_tools) > 0,
        "confined_git": config.confined_git is True,
        "confine_network": config.confine_network is True,
    }
    return [name for name, is_asked in asked.items() if is_asked]


def _unheld_faults(config: SessionConfig) -> list[Fault]:
    """What is asked of a confinement where there is none."""
    if config.confinement not in ("off", "external"):
        return []
    names = of_a_confinement(config) if config.confinement == "off" else []
    names += ["confinement_backend"] if config.confinement_backend is not None else []
    remedy = (
        f"with confinement={config.confinement!r} nothing is confined: leave one of the two out."
    )
    return [Fault(field=name, value=getattr(config, name), remedy=remedy) for name in names]


def _policy_faults(config: SessionConfig) -> list[Fault]:
    faults = permission_faults(config.permissions)
    if config.authorizers != ():
        from agent_kit.policy.run import authorizer_faults

        faults += authorizer_faults(config.authorizers)
    if config.messages is not None:
        from agent_kit.policy.outcome import Messages

        if not isinstance(config.messages, Messages):
            remedy = "give agent_kit.Messages(…)."
            faults.append(Fault(field="messages", value=config.messages, remedy=remedy))
    if (lacks := _ask_remedy(config.ask)) is not None:
        faults.append(Fault(field="ask", value=config.ask, remedy=lacks))
    if config.allowed_subagents is not None:
        remedy = "give the types of agents by name."
        faults += _list_faults("allowed_subagents", config.allowed_subagents, _is_text, remedy)
    if not isinstance(config.interrupt_on, Mapping):
        remedy = "give a dict of tool name to True or False."
        return [*faults, Fault(field="interrupt_on", value=config.interrupt_on, remedy=remedy)]
    for tool, value in config.interrupt_on.items():
        if not _is_text(tool) or "(" in tool or not isinstance(value, bool):
            remedy = "give a tool's name and a bool."
        elif "*" in tool:
            remedy = "give each tool's whole name: patterns aren't read here."
        else:
            continue
        faults.append(Fault(field="interrupt_on", value={tool: value}, remedy=remedy))
    return faults


def _ask_remedy(ask: object) -> str | None:
    if ask is None or ask == "defer":
        return None
    if not callable(ask):
        return "give an async function of an Approval, or 'defer'."
    if getattr(ask, "__module__", None) == "agent_kit.policy.approval":
        return "that makes an answer: give a function of an Approval that returns one."
    try:
        signature = inspect.signature(ask)
    except (TypeError, ValueError):  # nobody can tell
        return None
    try:
        signature.bind("an Approval")
    except TypeError:
        return "the function is called with one argument, an Approval: let it take that."
    return None


def _project_faults(project: object, workspace: object) -> list[Fault]:
    """One of the two must name the folder; both may if they say the same."""
    if project is None and workspace is None:
        remedy = "this field is required: name the project's folder, or a workspace."
        return [Fault(field="project_dir", value=None, remedy=remedy)]
    if project is None or workspace is None or str(project) == str(workspace):
        return []
    remedy = "leave it out: the workspace is the project folder."
    return [Fault(field="project_dir", value=project, remedy=remedy)]


def _plain_faults(config: SessionConfig) -> list[Fault]:
    faults = [
        Fault(field=name, value=value, remedy="write True or False.")
        for name in _FLAGS
        if not isinstance(value := getattr(config, name), bool)
    ]
    faults += [
        Fault(field=name, value=value, remedy="give a dict.")
        for name in _MAPPINGS
        if not isinstance(value := getattr(config, name), Mapping)
    ]
    faults += [*_env_faults(config.env), *hook_faults("hooks", config.hooks)]
    if isinstance(config.unlock, str) or not isinstance(
        config.unlock, (list, tuple, set, frozenset)
    ):
        faults.append(Fault(field="unlock", value=config.unlock, remedy="give a list."))
    else:
        faults += _list_faults("unlock", [*config.unlock], _is_text, "give a name.")
    if config.model is not None and not _is_text(config.model):
        faults.append(Fault(field="model", value=config.model, remedy="give a model's name."))
    faults += [
        Fault(field=name, value=value, remedy="give a UUID as text.")
        for name in ("resume", "session_id")
        if (value := getattr(config, name)) is not None and not _is_uuid(value)
    ]
    if config.resume is not None and config.session_id is not None:
        faults.append(
            Fault(
                field="session_id",
                value=config.session_id,
                remedy="leave it out: a resumed session keeps its own.",
            )
        )
    if config.max_turns is not None and not _is_number(config.max_turns, least=1):
        remedy = "give a number from 1 up."
        faults.append(Fault(field="max_turns", value=config.max_turns, remedy=remedy))
    keep = config.keep_runs
    if not (keep >= timedelta() if isinstance(keep, timedelta) else _is_number(keep, least=0)):
        remedy = "give a number from 0 up, or a timedelta."
        faults.append(Fault(field="keep_runs", value=keep, remedy=remedy))
    return faults


def _is_number(value: object, *, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _env_faults(env: object) -> list[Fault]:
    if not isinstance(env, Mapping):
        return [Fault(field="env", value=env, remedy="give a dict.")]
    return [
        Fault(
            field="env", value={name: value}, remedy="give texts without a NUL, no '=' in a name."
        )
        for name, value in env.items()
        if not (isinstance(name, str) and isinstance(value, str))
        or not name
        or "=" in name
        or "\0" in name + value
    ]


def _is_uuid(value: object) -> bool:
    try:
        return isinstance(value, str) and str(uuid.UUID(value)) == value.lower()
    except ValueError:
        return False
