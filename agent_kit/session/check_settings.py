"""What flag settings lack of those that a plan promised, and what they have that opens a lock."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.session.isolation import ISOLATION
from agent_kit.session.pins import PINNED_COMMANDS
from agent_kit.session.promise import Promise
from agent_kit.session.settings import settings_faults

__all__ = ["file_tools_in", "lost_settings"]

# Settings whose values are the kit's.
_KITS: Final = (*(row.setting for row in ISOLATION), *PINNED_COMMANDS)


def lost_settings(promise: Promise, found: Mapping[str, Any]) -> Iterator[str]:
    """Why ``found`` don't hold what the session's settings held; nothing: they do."""
    yield from _cut(promise.settings, found)
    yield from _cut_permissions(promise.settings["permissions"], found.get("permissions"))
    yield from _added(promise, found)


def _cut(promised: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    for name in _KITS:
        if name in promised and found.get(name) != promised[name]:
            yield f"{name} is another than was planned"
    excludes = _list(found.get("claudeMdExcludes"))
    if any(entry not in excludes for entry in promised.get("claudeMdExcludes", ())):
        yield "claudeMdExcludes lacks entries: instruction files beside a file are loaded"
    env = found.get("env")
    pins = promised.get("env", {}).items()
    lost = [k for k, v in pins if not isinstance(env, Mapping) or env.get(k) != v]
    if lost:
        yield f"its env doesn't pin {lost[0]} any more ({len(lost)} of {len(pins)} are gone)"


def _cut_permissions(promised: Mapping[str, Any], found: Any) -> Iterator[str]:
    if not isinstance(found, Mapping):
        yield "there are no permissions"
        return
    for name in ("deny", "ask"):
        there = {*_list(found.get(name))}
        if gone := [rule for rule in promised.get(name, ()) if rule not in there]:
            yield f"{len(gone)} of its {name} rules are gone, {gone[0]} among them"
    known = {*promised.get("allow", ())}
    for rule in _list(found.get("allow")):
        if rule not in known and file_tools_in(str(rule)):
            yield f"{rule} is allowed beyond the scope's own rules"
    for name in {*promised, *found} - {"allow", "deny", "ask"}:
        if found.get(name) != promised.get(name):
            yield f"permissions.{name} is another than was planned"


def _added(promise: Promise, found: Mapping[str, Any]) -> Iterator[str]:
    """What is new, when the CLI would drop every rule for it or it opens a lock."""
    apart = ("permissions", "claudeMdExcludes", "env", *_KITS)
    new = {k: v for k, v in found.items() if k not in apart and promise.settings.get(k) != v}
    env = found.get("env")
    if isinstance(env, Mapping):
        known = promise.settings.get("env", {})
        new["env"] = {name: value for name, value in env.items() if name not in known}
    for fault in settings_faults("settings", new, unchecked=promise.unchecked_settings):
        yield f"{fault.field.removeprefix('settings')}: {fault.remedy}"


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def file_tools_in(rule: str) -> set[str]:
    """The file tools that an entry of a list of allowed tools names; the CLI splits at commas."""
    return {*re.findall(r"\w+", re.sub(r"\([^)]*\)", "", rule))} & {*FILE_TOOLS}
