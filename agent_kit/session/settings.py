"""The CLI settings that a person may add, by name and type.

One malformed value makes the CLI drop the whole settings text without a word, permission rules
included (measured on CLI 2.1.332: a text where a flag belongs, a zero for ``cleanupPeriodDays``, an
unknown shell). So a setting of a type that nobody knows can't stand beside the rules of lock 2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent_kit.scope import Fault
from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.session.config import SessionConfig
from agent_kit.session.spec import AgentSpec
from agent_kit.session.tool_names import meant

__all__ = [
    "SETTINGS",
    "UNCHECKED_SETTINGS",
    "given_settings_faults",
    "merged_settings",
    "settings_faults",
]

# What opens the settings that are not in the table.
UNCHECKED_SETTINGS: Final = "unchecked_settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A type of setting, and how to ask for it."""

    good: Callable[[Any], bool]
    remedy: str


def _texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


def _text_map(value: object) -> bool:
    return isinstance(value, Mapping) and _texts([*value.keys(), *value.values()])


def _days(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


_FLAG: Final = Kind(good=lambda value: isinstance(value, bool), remedy="write True or False.")
_TEXT: Final = Kind(good=lambda value: isinstance(value, str), remedy="give a text.")
_TEXTS: Final = Kind(good=_texts, remedy="give a list of texts.")
_TEXT_MAP: Final = Kind(good=_text_map, remedy="give a dict of texts.")
_DAYS: Final = Kind(good=_days, remedy="give a whole number from 1 up (days).")

# Measured on CLI 2.1.332: with these types the rules hold.
SETTINGS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(
        (
            "alwaysThinkingEnabled",
            "autoCompactEnabled",
            "autoMemoryEnabled",
            "disableAllHooks",
            "disableClaudeAiConnectors",
            "disableSkillShellExecution",
            "enableAllProjectMcpServers",
            "fastMode",
            "fileCheckpointingEnabled",
            "includeCoAuthoredBy",
            "includeGitInstructions",
            "respectGitignore",
            "skipWebFetchPreflight",
        ),
        _FLAG,
    ),
    **dict.fromkeys(
        (
            "agent",
            "apiKeyHelper",
            "autoMemoryDirectory",
            "awsAuthRefresh",
            "awsCredentialExport",
            "crossSessionInbound",  # a text it doesn't know holds messages back, and the rules stay
            "effortLevel",
            "language",
            "model",
            "otelHeadersHelper",
            "outputStyle",
            "plansDirectory",
        ),
        _TEXT,
    ),
    **dict.fromkeys(
        (
            "availableModels",
            "claudeMdExcludes",
            "disabledMcpjsonServers",
            "enabledMcpjsonServers",
        ),
        _TEXTS,
    ),
    **dict.fromkeys(("attribution", "env", "modelOverrides"), _TEXT_MAP),
    "cleanupPeriodDays": _DAYS,
}

# Settings that have a better place, or would open a lock.
_ELSEWHERE: Final[Mapping[str, str]] = {
    "hooks": "give callbacks as SessionConfig.hooks: commands there would run beside the gate.",
    "sandbox": "say it with SessionConfig.confinement.",
    "enabledPlugins": "name the folders as AgentSpec.plugins.",
    "permissions.additionalDirectories": "name the folder in SessionConfig.extra_readable_dirs.",
    "permissions.defaultMode": "give it as SessionConfig.permission_mode.",
    "env.CLAUDE_CONFIG_DIR": "give it as SessionConfig.config_dir: the plan must know the folder.",
    "env.CLAUDE_CODE_TMPDIR": "give it in SessionConfig.env: the plan must know the folder.",
    "env.HOME": "give it in SessionConfig.env: the plan must know the folder.",
}
_PERMISSIONS: Final = ("allow", "deny", "ask")
_RULE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*(?:__\*)?)(\(.+\))?", re.DOTALL)


def _given(spec: AgentSpec, config: SessionConfig) -> dict[str, Mapping[str, Any]]:
    """The settings that people gave, by the field; a later one's values win over an earlier's."""
    return {
        "options['settings']": spec.options.get("settings", {}),
        "settings": config.settings,
    }


def given_settings_faults(spec: AgentSpec, config: SessionConfig) -> list[Fault]:
    """What is wrong with the settings of the two."""
    unchecked = UNCHECKED_SETTINGS in config.unlock
    return [
        fault
        for field, settings in _given(spec, config).items()
        for fault in settings_faults(field, settings, unchecked=unchecked)
    ]


def merged_settings(spec: AgentSpec, config: SessionConfig) -> dict[str, Any]:
    """The settings of the two. Variables are merged by name, and no one's rules are lost.

    ``permissions`` is always there, a dict of lists that belongs to the caller.
    """
    merged: dict[str, Any] = {}
    rules: dict[str, list[str]] = {}
    env: dict[str, str] = {}
    for settings in _given(spec, config).values():
        merged.update(settings)
        env.update(settings.get("env", {}))
        for name, given in settings.get("permissions", {}).items():
            rules.setdefault(name, []).extend(given)
    return {**merged, **({"env": env} if env else {}), "permissions": rules}


def settings_faults(field: str, settings: Any, *, unchecked: bool) -> list[Fault]:
    """What is wrong with settings that a person gave as ``field``.

    ``unchecked`` lets names pass that the table doesn't have.
    """
    if not isinstance(settings, Mapping):
        return [Fault(field=field, value=settings, remedy="give a dict.")]
    faults = [
        Fault(field=f"{field}[{name!r}]", value=value, remedy=remedy)
        for name, value in settings.items()
        if (remedy := _remedy(name, value, unchecked)) is not None
    ]
    env = settings.get("env")
    faults += _elsewhere(field, "env", env if isinstance(env, Mapping) else {})
    if "permissions" in settings:
        faults += _permission_faults(field, settings["permissions"])
    return faults or _json_faults(field, settings)


def _remedy(name: object, value: object, unchecked: bool) -> str | None:
    if name == "permissions":
        return None
    if not isinstance(name, str):
        return "name settings with texts."
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    if (kind := SETTINGS.get(name)) is not None:
        return None if kind.good(value) else kind.remedy
    if unchecked:
        return None
    return (
        f"the kit doesn't know this setting's type, and the CLI drops every rule when one is wrong:"
        f" choose from {', '.join(sorted(SETTINGS))}, or unlock {UNCHECKED_SETTINGS!r} knowingly."
    )


def _elsewhere(field: str, part: str, values: Mapping[Any, Any]) -> list[Fault]:
    return [
        Fault(field=f"{field}[{part!r}][{name!r}]", value=value, remedy=remedy)
        for name, value in values.items()
        if (remedy := _ELSEWHERE.get(f"{part}.{name}")) is not None
    ]


def _permission_faults(field: str, permissions: Any) -> Iterator[Fault]:
    where = f"{field}['permissions']"
    if not isinstance(permissions, Mapping):
        yield Fault(field=where, value=permissions, remedy="give a dict of lists of texts.")
        return
    elsewhere = _elsewhere(field, "permissions", permissions)
    yield from elsewhere
    for name, rules in permissions.items():
        place = f"{where}[{name!r}]"
        if name not in _PERMISSIONS:
            if not any(fault.field == place for fault in elsewhere):
                remedy = f"there is no such list: choose from {', '.join(_PERMISSIONS)}."
                yield Fault(field=place, value=rules, remedy=remedy)
        elif not _texts(rules):
            yield Fault(field=place, value=rules, remedy=_TEXTS.remedy)
        else:
            yield from _rule_faults(place, name, rules)


def _rule_faults(place: str, name: str, rules: list[str]) -> Iterator[Fault]:
    for rule in rules:
        match = _RULE.fullmatch(rule)
        if match is None:
            remedy = "write a tool's name, or a rule such as 'Bash(git status:*)'."
            yield Fault(field=place, value=rule, remedy=remedy)
        elif name != "allow" and (close := meant(match[1])) is not None:
            remedy = f"there is no such tool: did you mean {close}?"
            yield Fault(field=place, value=rule, remedy=remedy)
        elif name == "allow" and match[1] in FILE_TOOLS:
            remedy = (
                "it would let the CLI open more than the scope does: name the folder in"
                " SessionConfig.extra_readable_dirs or extra_writable_dirs."
            )
            yield Fault(field=place, value=rule, remedy=remedy)


def _json_faults(field: str, settings: Mapping[Any, Any]) -> list[Fault]:
    try:
        json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return [Fault(field=field, value=settings, remedy=f"it can't be written as JSON: {error}.")]
    return []
