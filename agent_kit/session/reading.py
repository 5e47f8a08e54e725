"""``ClaudeAgentOptions`` read as a spec and a config, with everything that can't be."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any, Final

from claude_agent_sdk import ClaudeAgentOptions

from agent_kit.scope import ConfigError, Fault
from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.session.config import SessionConfig
from agent_kit.session.host_rules import (
    REFUSED,
    bare,
    host_rules,
    is_plain,
    is_several,
    is_whole_file_tool,
    kept_faults,
    listed,
    moved_faults,
    named_skills,
)
from agent_kit.session.promise import SettingsUnreadable, is_file_name, read_settings
from agent_kit.session.spec import AgentSpec, Subagent

__all__ = ["NAME", "Reading", "plan_fault", "shown"]

NAME: Final = "guarded"  # of the agent; the run folders are kept under it
_PLANNED: Final = ("Read", "Glob", "Grep", "Write", "Edit", "Skill", "Agent")  # by folders and such
# Options that the config has a field for, under that name.
_SHARED: Final = (
    "permission_mode",
    "resume",
    "session_id",
    "max_turns",
    "model",
    "cli_path",
    "strict_mcp_config",
)
# Options that are read one by one below; every other one is passed on as it is.
_READ: Final = frozenset(
    {
        *REFUSED,
        *_SHARED,
        "agents",
        "allowed_tools",
        "can_use_tool",
        "cwd",
        "disallowed_tools",
        "env",
        "extra_args",
        "hooks",
        "mcp_servers",
        "plugins",
        "setting_sources",
        "settings",
        "skills",
        "system_prompt",
        "tools",
        "verbatim_prompts",
    }
)


# Fields of a spec that a plan finds fault with, which only the options can have filled.
_OPTIONS_OWN: Final = ("mcp_servers", "plugins", "skills", "tools")


def plan_fault(fault: Fault) -> Fault:
    """A fault of the plan, named after the option that it comes from, if it does."""
    name = fault.field
    if name.startswith("options['"):
        name = name.removeprefix("options['").replace("']", "", 1)
    elif name.partition("[")[0] not in _OPTIONS_OWN:
        return fault
    return dataclasses.replace(fault, field=f"options.{name}")


_HIDDEN: Final = "…"  # in the place of a value that may be secret
_SECRET: Final = ("env", "extra_args", "mcp_servers", "settings")  # options that often hold a key


def shown(fault: Fault) -> Fault:
    """A fault without a value that may be a key. Names, rules, numbers and what is empty stay."""
    name = fault.field.removeprefix("options.")
    option = name.partition("[")[0]
    if option not in _SECRET:
        return fault
    value = fault.value
    if not value or isinstance(value, (bool, int, float)):
        return fault
    if isinstance(value, Mapping) and name == "env":
        return dataclasses.replace(fault, value=", ".join(map(str, value)))
    # Of the option itself a text is the name of a part or of a file, or else JSON.
    is_name = name == option and is_file_name(str(value))
    is_rule = name.startswith("settings['permissions']")
    if isinstance(value, (str, Path)) and (is_name or is_rule):
        return fault
    return dataclasses.replace(fault, value=_HIDDEN)


@dataclass(slots=True)
class Reading:
    """Options as a spec and a config. ``faults`` gathers what can't be read so."""

    options: ClaudeAgentOptions
    given: SessionConfig
    faults: list[Fault] = field(default_factory=list)
    _settings_given: dict[str, Any] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.faults += kept_faults(self.options, self.given)

    def fault(self, name: str, value: object, remedy: str) -> None:
        self.faults.append(Fault(field=f"options.{name}", value=value, remedy=remedy))

    def spec(self) -> AgentSpec | None:
        """``None`` when there is a fault in it."""
        options = self.options
        prompt, preset = self._prompt()
        try:
            spec = AgentSpec(
                name=NAME,
                system_prompt=prompt,
                preset=preset,  # type: ignore[arg-type]  # checked there
                subagents=self._subagents(),
                mcp_servers=self._servers(),
                plugins=self._plugins(),
                tools=self._tools(),
                disallowed_tools=self._disallowed(),
                setting_sources=_or(options.setting_sources, ("project",)),
                skills=self._skills(),
                options=self._passed_on(),
            )
            object.__setattr__(spec, "_read_from", tuple(self._files()))
            return spec
        except ConfigError as error:
            self.faults += [self.of_option(_named(fault)) for fault in error.faults]
            return None

    def of_option(self, fault: Fault) -> Fault:
        """A fault of a tool, named after the list that has it: ``tools`` left open is none."""
        if fault.field == "options.tools" and listed(self.options.tools) is None:
            return dataclasses.replace(fault, field="options.allowed_tools")
        return fault

    def part(self) -> AgentSpec:
        """What a plan finds fault with beside the rest: for a spec that can't be made."""
        given = self._settings_given
        return AgentSpec(name=NAME, options={"settings": given} if given else {})

    def config(self) -> SessionConfig | None:
        """The config with what the options say; ``None`` when there is a fault in it."""
        changes = {name: value for name in _SHARED if (value := self._shared(name)) is not None}
        if self.options.verbatim_prompts:
            if self.given.prompt_mentions == "any":
                self.fault("verbatim_prompts", True, _CONFLICT.format("prompt_mentions", "any"))
            changes["prompt_mentions"] = "off"
        for name, value in self.options.env.items():
            if self.given.env.get(name, value) != value:
                self.fault("env", name, _CONFLICT.format("env", "another value"))
        changes["env"] = {**self.options.env, **self.given.env}
        try:
            return dataclasses.replace(self.given, **changes)
        except ConfigError as error:
            self.faults += [_named(fault) for fault in error.faults]
            return None

    def _shared(self, name: str) -> Any:
        """What the options say, when they say something and the config doesn't."""
        ours, theirs = getattr(self.options, name), getattr(self.given, name)
        if ours in (None, False) or ours == theirs:
            return None
        if theirs not in (None, False) and str(theirs) != str(ours):
            self.fault(name, ours, _CONFLICT.format(name, repr(theirs)))
            return None
        return ours

    def _prompt(self) -> tuple[str, str | None]:
        given: Any = self.options.system_prompt
        if given is None or isinstance(given, str):
            return given or "", None
        if isinstance(given, Mapping):
            kind = given.get("type")
            if kind == "preset":
                return given.get("append", ""), given.get("preset")
            if kind == "custom":
                return given.get("prompt", ""), None
            if kind == "file":
                return self._prompt_file(str(given.get("path"))), None
        self.fault("system_prompt", given, "give a text or one of the SDK's forms.")
        return "", None

    def _prompt_file(self, path: str) -> str:
        try:
            return (Path(self.options.cwd or "") / path).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            self.fault("system_prompt", path, f"the file can't be read: {error}.")
            return ""

    def _files(self) -> Iterator[str]:
        """The files that options are in, absolute paths: the next session reads them again."""
        prompt: Any = self.options.system_prompt
        in_file = isinstance(prompt, Mapping) and prompt.get("type") == "file"
        given = (self.options.settings, self.options.mcp_servers, in_file and prompt.get("path"))
        for value in given:
            text = str(value).strip() if isinstance(value, (str, Path)) else ""
            if text and not text.startswith("{"):
                yield os.path.abspath(os.path.join(self.options.cwd or "", text))

    def _tools(self) -> list[str]:
        """Those that exist at all: what the folders imply is added by the plan, or taken away."""
        if (names := listed(self.options.tools)) is not None:
            return ["Agent" if name == "Task" else name for name in names]  # an older name
        return [
            entry
            for entry in map(bare, self.options.allowed_tools)
            if entry not in ("Skill", *FILE_TOOLS)
            and not entry.startswith("mcp__")
            and not is_several(entry)
        ]

    def _disallowed(self) -> list[str]:
        own = [name for name in self.options.disallowed_tools if is_plain(name)]
        if listed(self.options.tools) is None:
            return own
        offered = {*self._tools()}
        return [*own, *(name for name in _PLANNED if name not in offered)]

    def _skills(self) -> list[str]:
        skills: Any = self.options.skills
        if isinstance(skills, str):
            remedy = "name them: a list of skills is what the gate holds the model to."
            self.fault("skills", skills, remedy)
            return []
        return list(dict.fromkeys([*(skills or ()), *named_skills(self.options)]))

    def _subagents(self) -> dict[str, Any]:
        """For the plan; the definitions themselves are put back."""
        names = listed(self.options.tools)
        found = {}
        for name, agent in (self.options.agents or {}).items():
            tools = agent.tools
            if tools is not None and names is not None:  # none is added for an agent's sake
                tools = [tool for tool in tools if bare(tool) in names]
            try:
                found[name] = Subagent(
                    description=agent.description, prompt=agent.prompt, tools=tools
                )
            except ConfigError as error:
                self.faults += [_named(fault, f"agents[{name!r}].") for fault in error.faults]
        return found

    def _plugins(self) -> list[str]:
        found = []
        for plugin in self.options.plugins:
            if plugin.get("type") == "local" and plugin.keys() == {"type", "path"}:
                found.append(plugin["path"])
            else:
                remedy = "give a local plugin: {'type': 'local', 'path': …}."
                self.fault("plugins", plugin, remedy)
        return found

    def _servers(self) -> Mapping[str, Any]:
        given: Any = self.options.mcp_servers
        if isinstance(given, Mapping):
            return given
        try:
            text = str(given).strip()
            if not text.startswith("{"):
                text = (Path(self.options.cwd or "") / text).read_text(encoding="utf-8-sig")
            servers = json.loads(text)["mcpServers"]
            if isinstance(servers, Mapping):
                return servers
        except (OSError, ValueError, KeyError, TypeError):
            pass
        remedy = "give a dict, or the text or file of a JSON object with 'mcpServers'."
        self.fault("mcp_servers", given, remedy)
        return {}

    def _passed_on(self) -> dict[str, Any]:
        """What the SDK has and the kit has no field for, hooks, and settings."""
        found = {
            each.name: value
            for each in dataclasses.fields(self.options)
            if each.name not in _READ
            and (value := getattr(self.options, each.name)) is not _default(each)
            and value != _default(each)
        }
        if self.options.hooks:
            found["hooks"] = self.options.hooks
        if settings := self._settings():
            found["settings"] = self._settings_given = settings
        return found

    def _settings(self) -> dict[str, Any]:
        """The settings and the rules that ``allowed_tools`` says, those of file tools taken out."""
        settings: dict[str, Any] = {}
        if self.options.settings:
            try:
                settings = read_settings(self.options)
            except SettingsUnreadable as why:
                self.fault("settings", self.options.settings, f"{why}: correct them.")
        allow = [
            rule
            for rule in host_rules(self.options)
            if bare(rule) != "Skill" and not is_several(bare(rule))
        ]
        permissions = settings.get("permissions", {})
        if not isinstance(permissions, Mapping):
            return settings  # a fault of the plan
        self.faults += moved_faults(permissions)
        given = permissions.get("allow", [])
        if isinstance(given, list):
            given = [rule for rule in given if not is_whole_file_tool(rule)]
        rules = [*given, *allow] if isinstance(given, list) else given
        merged = {**permissions, "allow": rules} if rules or "allow" in permissions else permissions
        return {**settings, "permissions": merged} if merged else settings


_CONFLICT: Final = "the config has {0}={1}: say it in one of the two."


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _default(each: dataclasses.Field[Any]) -> Any:
    return each.default_factory() if each.default_factory is not MISSING else each.default


def _named(fault: Fault, prefix: str = "") -> Fault:
    """A fault of the spec's or the config's field, named after the option of that name."""
    found = fault if prefix else plan_fault(fault)
    if found is not fault:
        return found
    name = "agents" if fault.field == "subagents" else fault.field
    return dataclasses.replace(fault, field=f"options.{prefix}{name}")
