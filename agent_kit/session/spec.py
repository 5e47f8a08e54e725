"""``AgentSpec``: the agent, written once."""

from __future__ import annotations

import copy
import dataclasses
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_kit.extension import Extension
from agent_kit.scope.errors import ConfigError, Fault
from agent_kit.scope.text import shown
from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.scope.value import Checked
from agent_kit.sdk.hooks import hook_faults
from agent_kit.session.tool_names import meant

if TYPE_CHECKING:
    from agent_kit.policy.rules import FilePermission

__all__ = ["AgentSpec", "Subagent", "is_skill", "tool_faults"]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_TOOL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\(.+\))?", re.DOTALL)
SOURCES: Final = ("user", "project", "local")

# SDK options that hold a lock, or that the plan sets: where to say it instead.
_OWNED: Final = {
    **dict.fromkeys(
        ("tools", "disallowed_tools", "plugins", "mcp_servers", "skills", "system_prompt"),
        "give it as the field of that name of AgentSpec.",
    ),
    **dict.fromkeys(
        (
            "env",
            "resume",
            "session_id",
            "max_turns",
            "permission_mode",
            "cli_path",
            "strict_mcp_config",
        ),
        "give it as the field of that name of SessionConfig.",
    ),
    "agents": "give them as AgentSpec.subagents.",
    "allowed_tools": "name the tool in AgentSpec.tools: a whole-tool entry would undo the rules.",
    "can_use_tool": "it would undo the rules: the kit judges what the CLI asks.",
    "cwd": "it is SessionConfig.project_dir.",
    "add_dirs": "name the folder in SessionConfig.extra_readable_dirs.",
    "model": "give it as AgentSpec.model or SessionConfig.model.",
    "setting_sources": "give them as AgentSpec.setting_sources.",
    "verbatim_prompts": "write SessionConfig(prompt_mentions='off').",
    "permission_prompt_tool_name": "it would take the question away from the kit.",
    "sandbox": "it would rewrite the settings that hold the rules.",
    "extra_args": "a flag there could undo any lock.",
    "fork_session": "the session's id must be known beforehand.",
    "continue_conversation": "the session's id must be known beforehand: use SessionConfig.resume.",
}

_TOOL_REMEDY = "write a tool's name, or a rule that narrows one such as 'Bash(git status:*)'."
SERVER_REMEDY: Final = "give the SDK's configuration as a dict, or a function that makes it."
_SERVER_NAMES: Final = ("type", "command", "args", "env", "url", "headers", "name", "instance")
_STARTS_SERVER: Final = ("type", "command", "url", "instance")
_ALIKE: Final = 0.75
_SHOWN: Final = 60  # characters of a description
_ALL_TOOLS: Final = "default"  # to the CLI this is no tool's name, but every tool there is
# Between parentheses in the CLI's list of allowed tools, these would end the rule.
_SKILL: Final = re.compile(r"(?! )[^(),\x00-\x1f\x7f-\x9f\ufeff\ud800-\udfff*]+(?<! )")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagent(metaclass=Checked):
    """An agent that the main one may start. It is held by the same scope, or a narrower one.

    * ``tools``: names of tools; ``None`` means those of the session.
    * ``permissions``: rules in the place of ``AgentSpec.permissions``; ``None`` inherits those.
      ``replace_rules=True`` with an empty list means no rules. ``SessionConfig.permissions`` hold
      anyway.
    * ``writable_dirs``: the only folders that it may write, each inside one that the session may write;
      relative to the project. ``None`` means the session's. One that has them runs no commands,
      calls no skills and starts no agents, since those would not be held by them.

    Raises ConfigError with every fault at once.
    """

    description: str
    prompt: str
    tools: Sequence[str] | None = None
    model: str | None = None
    permissions: Sequence[FilePermission] | None = None
    replace_rules: bool = False
    writable_dirs: Sequence[str | Path] | None = None

    def __post_init__(self) -> None:
        faults = _text_faults(self, ("description", "prompt"))
        if self.tools is not None:
            faults += tool_faults("tools", self.tools)
        if self.writable_dirs is not None:
            remedy = "give a folder's path, inside a folder that the session may write."
            faults += _list_faults("writable_dirs", self.writable_dirs, _is_folder_text, remedy)
        rules: tuple[FilePermission, ...] | None = None
        if self.permissions is not None or self.replace_rules:  # without, policy isn't loaded
            from agent_kit.policy.rule_sets import own_rules

            try:
                rules = own_rules(self.permissions, self.replace_rules)
            except ConfigError as error:
                faults += error.faults
        if faults:
            raise ConfigError(_of_subagent(fault, self.description) for fault in faults)
        object.__setattr__(self, "tools", None if self.tools is None else tuple(self.tools))
        object.__setattr__(self, "permissions", rules)
        if self.writable_dirs is not None:
            object.__setattr__(self, "writable_dirs", tuple(map(str, self.writable_dirs)))


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec(metaclass=Checked):
    """What an agent is, whatever session it runs in. Raises ConfigError with every fault at once.

    * ``system_prompt``: text, or a function of the config. With ``preset="claude_code"`` it is
      appended to that preset.
    * ``extensions``: values that bring folders, tools and prompts.
    * ``subagents``: name to :class:`Subagent`.
    * ``mcp_servers``: name to SDK configuration. ``plugins``: folders, relative to the project.
    * ``tools``: built-in tools beyond what the folders imply, by name or as a rule that narrows
      (``Bash(git status:*)``, ``WebFetch(domain:example.org)``).
    * ``setting_sources``: what the CLI loads from disk (``user``, ``project``, ``local``).
    * ``permissions``: rules for files (:class:`~agent_kit.FilePermission`), first match wins; a
      subagent may have its own instead. ``read_only_tools``: names of MCP tools that change nothing,
      beside those that say so themselves.
    * ``skills``: further skills by name, the CLI's own among them; those of extensions, plugins and
      a project that is loaded need no mention.
    * ``commands``: the slash commands that a prompt may call, by name; ``None`` means those of the
      extensions and plugins.
    * ``options``: other SDK options, passed through. What would undo a lock is an error.
    """

    name: str
    version: str = "0"
    description: str = ""
    system_prompt: str | Callable[[Any], str] = ""
    preset: Literal["claude_code"] | None = None
    extensions: Sequence[Extension] = ()
    subagents: Mapping[str, Subagent] = field(default_factory=dict)
    mcp_servers: Mapping[str, Any] = field(default_factory=dict)
    plugins: Sequence[str] = ()
    tools: Sequence[str] = ()
    disallowed_tools: Sequence[str] = ()
    setting_sources: Sequence[str] = ("project",)
    permissions: Sequence[FilePermission] = ()
    read_only_tools: Sequence[str] = ()
    skills: Sequence[str] = ()
    commands: Sequence[str] | None = None
    model: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    _defined_in: str | None = field(init=False, repr=False, compare=False, default=None)
    _read_from: tuple[str, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        faults = list(_spec_faults(self))
        if faults:
            raise ConfigError(faults)
        for name in (
            "extensions",
            "permissions",
            "plugins",
            "tools",
            "disallowed_tools",
            "read_only_tools",
            "skills",
        ):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.commands is not None:
            object.__setattr__(self, "commands", tuple(self.commands))
        object.__setattr__(self, "setting_sources", tuple(self.setting_sources))
        object.__setattr__(self, "plugins", tuple(str(folder) for folder in self.plugins))
        object.__setattr__(self, "_defined_in", _caller())


def _of_subagent(fault: Fault, description: object) -> Fault:
    """A fault that says of which subagent it is. Its name stands in the spec, which isn't made yet."""
    if not _is_text(description):
        return fault
    whose = shown(str(description)[:_SHOWN])
    return dataclasses.replace(
        fault, remedy=f'{fault.remedy} (the subagent with the description "{whose}")'
    )


def permission_faults(permissions: object) -> list[Fault]:
    """What is wrong with a list of rules, each with its index."""
    if permissions == ():
        return []
    from agent_kit.policy.rules import read_rules

    try:
        read_rules(permissions, "permissions")
    except ConfigError as error:
        return list(error.faults)
    return []


def _caller() -> str | None:
    """The file that defines the spec: an agent that could write it would choose its own rules."""
    makers = (f"{Path(__file__).parents[1]}{os.sep}", dataclasses.__file__, copy.__file__, "<")
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(makers):
            return os.path.abspath(file)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def tool_faults(field: str, tools: object) -> list[Fault]:
    """What is wrong with a list of tools and narrowing rules."""
    faults = _list_faults(field, tools, _is_tool, _TOOL_REMEDY)
    for tool in tools if isinstance(tools, (list, tuple)) else ():
        if _is_tool(tool) and "(" in tool and tool.partition("(")[0] in FILE_TOOLS:
            remedy = (
                "paths are no part of a tool's rule: name the folder in SessionConfig's"
                " extra_readable_dirs, extra_writable_dirs or denied_paths."
            )
            faults.append(Fault(field=field, value=tool, remedy=remedy))
    return faults + _misspelt_faults(field, tools)


def _misspelt_faults(field: str, tools: object) -> list[Fault]:
    """Tools that nobody knows, by names that are close to a known one's.

    One that resembles nothing is none: a later CLI may have it.
    """
    named = [tool for tool in tools if _is_tool(tool)] if isinstance(tools, (list, tuple)) else []
    return [
        Fault(field=field, value=tool, remedy=f"there is no such tool: did you mean {close}?")
        for tool in named
        if (close := meant(tool)) is not None
    ]


def _is_tool(value: object) -> bool:
    named = isinstance(value, str) and _TOOL.fullmatch(value) is not None
    return named and str(value).casefold() != _ALL_TOOLS


def is_command(value: object) -> bool:
    return is_skill(value) and not str(value).startswith("/")


def is_skill(value: object) -> bool:
    """Whether it can stand in the CLI's list of skills."""
    return isinstance(value, str) and _SKILL.fullmatch(value) is not None


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _text_faults(value: object, names: Sequence[str]) -> list[Fault]:
    return [
        Fault(field=name, value=text, remedy="give a text.")
        for name in names
        if not _is_text(text := getattr(value, name))
    ]


def _list_faults(
    name: str, value: object, good: Callable[[object], bool], remedy: str
) -> list[Fault]:
    if isinstance(value, (str, bytes)) or not isinstance(value, (list, tuple)):
        return [Fault(field=name, value=value, remedy="give a list.")]
    return [Fault(field=name, value=item, remedy=remedy) for item in value if not good(item)]


def _spec_faults(spec: AgentSpec) -> list[Fault]:
    faults: list[Fault] = []
    if not isinstance(spec.name, str) or not _NAME.fullmatch(spec.name):
        faults.append(
            Fault(field="name", value=spec.name, remedy="use letters, digits, '-' and '_'.")
        )
    if not isinstance(spec.system_prompt, str) and not callable(spec.system_prompt):
        faults.append(
            Fault(
                field="system_prompt",
                value=spec.system_prompt,
                remedy="give a text or a function of the config.",
            )
        )
    if spec.preset not in (None, "claude_code"):
        faults.append(
            Fault(field="preset", value=spec.preset, remedy="write 'claude_code' or leave it out.")
        )
    faults += [
        Fault(field=name, value=value, remedy="give a text.")
        for name in ("version", "description")
        if not isinstance(value := getattr(spec, name), str)
    ]
    if spec.model is not None and not _is_text(spec.model):
        faults.append(Fault(field="model", value=spec.model, remedy="give a model's name."))
    tables: tuple[tuple[str, Callable[[object], bool], str], ...] = (
        ("extensions", _is_extension, "give an extension such as sources(dir='sources')."),
        ("plugins", _is_folder_text, "give a folder's path."),
        ("read_only_tools", _is_mcp_name, "give a tool's full name, as mcp__server__tool."),
        ("setting_sources", _is_source, f"choose from {', '.join(SOURCES)}."),
        ("skills", is_skill, "give a skill's name, without commas, parentheses and '*'."),
    )
    if spec.commands is not None:
        remedy = "give a command's name, without the slash, commas, parentheses and '*'."
        faults += _list_faults("commands", spec.commands, is_command, remedy)
    for name, good, remedy in tables:
        faults += _list_faults(name, getattr(spec, name), good, remedy)
    for name in ("tools", "disallowed_tools"):
        faults += tool_faults(name, getattr(spec, name))
    faults += permission_faults(spec.permissions)
    return faults + _mapping_faults(spec)


def _is_extension(value: object) -> bool:
    return isinstance(value, Extension) and not isinstance(value, type)


def _is_folder_text(value: object) -> bool:
    return isinstance(value, (str, Path)) and bool(str(value))


def _is_mcp_name(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"mcp__.+__.+", value) is not None


def _is_source(value: object) -> bool:
    return value in SOURCES


def _server_faults(field: str, server: Mapping[Any, Any]) -> Iterator[Fault]:
    """Names in a server's configuration that are close to those that the CLI knows, or none of them.

    Values are left out: they may be keys.
    """
    absent = [name for name in _SERVER_NAMES if name not in server]
    for name in server:
        close = get_close_matches(str(name), absent, n=1, cutoff=_ALIKE)
        if name not in _SERVER_NAMES and close:
            yield Fault(field=field, value=name, remedy=f"did you mean {close[0]!r}?")
            return
    if server and not any(name in server for name in _STARTS_SERVER):
        remedy = "give a 'command', a 'url', or a server of this process ('type': 'sdk')."
        yield Fault(field=field, value=", ".join(map(str, server)), remedy=remedy)


def _mapping_faults(spec: AgentSpec) -> list[Fault]:
    faults = [
        Fault(field=name, value=value, remedy="give a dict.")
        for name in ("subagents", "mcp_servers", "options")
        if not isinstance(value := getattr(spec, name), Mapping)
    ]
    if isinstance(spec.options, Mapping):
        faults += [
            Fault(field=f"options[{name!r}]", value=value, remedy=_OWNED[name])
            for name, value in spec.options.items()
            if name in _OWNED
        ]
        faults += hook_faults("options['hooks']", spec.options.get("hooks") or {})
    if isinstance(spec.mcp_servers, Mapping):
        faults += [
            Fault(field=f"mcp_servers[{name!r}]", value=server, remedy=SERVER_REMEDY)
            for name, server in spec.mcp_servers.items()
            if not isinstance(server, Mapping) and not callable(server)
        ]
        for name, server in spec.mcp_servers.items():
            if isinstance(server, Mapping):
                faults += _server_faults(f"mcp_servers[{name!r}]", server)
    if isinstance(spec.subagents, Mapping):
        faults += [
            Fault(
                field="subagents",
                value={name: agent},
                remedy="name each with letters, digits, '-' and '_', and give a Subagent(…).",
            )
            for name, agent in spec.subagents.items()
            if not isinstance(agent, Subagent)
            or not isinstance(name, str)
            or not _NAME.fullmatch(name)
        ]
    return faults
