"""What a project's skills and agents would tell the model without being asked.

The CLI lists every skill to a subagent with the first words of its file, links followed, whatever the
session offers; once a file in a folder was read, also the skills of a ``.claude`` there. An agent's
description is listed in the main conversation. ``skillOverrides`` in the flag settings and an
``Agent(name)`` rule hide them; other rules don't (measured on CLI 2.1.332). A closed agent that no
rule can name is a fault.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agent_kit.scope import ConfigError, Fault, FileScope, check_file_scope
from agent_kit.sdk.catalogue import find_commands, folders_below, header, is_clear, read_text
from agent_kit.sdk.commands import Commands, Place

__all__ = ["MAX_NAMES", "Hidden", "hide"]

MAX_NAMES: Final = 100_000  # in the folders of a scope: so many are looked at for nested skills
_RULE: Final = re.compile(r"(?!\s)[^(),*\\\x00-\x1f\x7f]+(?<!\s)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """``skills`` are the names that are switched off, ``rules`` refuse agents. ``notes`` say so.

    ``faults`` are for what can't be hidden: there is no session with it.
    """

    skills: tuple[str, ...]
    rules: tuple[str, ...]
    notes: tuple[str, ...]
    faults: tuple[Fault, ...]


def hide(scope: FileScope, commands: Commands) -> Hidden:
    """Everything that the project's folders hold and that the session doesn't offer."""
    mine = [
        each
        for each in commands.found
        if not each.place.trusted and each.name not in commands.offered
    ]
    names = [name for each in mine for name in (each.name, *each.aliases)]
    tops = [*scope.writable_dirs, *scope.searchable_dirs]
    walk = _Walk([os.path.realpath(os.path.join(scope.project_dir, top)) for top in tops])
    nested, too_much = _all_nested(walk.folders, scope)
    agents, unnamed = _all_agents(scope, commands.places)
    names += nested
    notes = [
        f"the agent {name!r} is refused: its file is closed to this session" for name in agents
    ]
    if walk.left <= 0:
        notes.append("not every folder was looked at for skills that a subagent may be told of")
    return Hidden(
        skills=tuple(dict.fromkeys(name for name in names if name not in commands.offered)),
        rules=tuple(f"Agent({name})" for name in agents),
        notes=tuple(notes),
        faults=(*too_much, *unnamed),
    )


class _Walk:
    """Finds the ``.claude`` folders below some folders; enters no link."""

    def __init__(self, tops: Sequence[str]) -> None:
        self.left = MAX_NAMES
        self.folders: list[str] = []
        for top in dict.fromkeys(tops):
            if not any(top != other and top.startswith(f"{other}/") for other in tops):
                self._visit(top)

    def _visit(self, top: str) -> None:
        for here, folders, files in os.walk(top):
            self.left -= len(folders) + len(files)
            if self.left <= 0:
                return
            if ".claude" in folders:
                self.folders.append(os.path.join(here, ".claude"))
                folders.remove(".claude")


def _all_nested(folders: Iterable[str], scope: FileScope) -> tuple[list[str], list[Fault]]:
    names: list[str] = []
    faults: list[Fault] = []
    for folder in folders:
        try:
            names += _nested(folder, scope)
        except ConfigError as error:
            faults += error.faults
    return names, faults


def _nested(folder: str, scope: FileScope) -> Iterator[str]:
    """The names that the CLI may give the skills of a ``.claude`` below the project."""
    above = os.path.dirname(folder)
    relative = os.path.relpath(above, os.path.realpath(scope.project_dir))
    befores = {os.path.basename(above), relative, relative.replace("/", ":")} - {"."}
    for each in find_commands([Place(folder=folder, own=False)]):
        for name in (each.name, *each.aliases):
            yield name
            yield from (f"{before}:{name}" for before in sorted(befores))


def _all_agents(scope: FileScope, places: Iterable[Place]) -> tuple[list[str], list[Fault]]:
    """The names of closed agents that a rule can hold, and a fault for each that none can name."""
    names: dict[str, None] = {}
    faults: list[Fault] = []
    for place in places:
        if place.plugin or place.trusted:
            continue
        try:
            for file in _closed_agents(scope, os.path.join(place.folder, "agents")):
                stem, called = _names_of(file)
                names.update(dict.fromkeys(name for name in (stem, called) if _is_nameable(name)))
                if not _is_nameable(called):
                    faults.append(Fault(field="setting_sources", value=file, remedy=_RENAME))
        except ConfigError as error:
            faults += error.faults
    return list(names), faults


_RENAME: Final = "rename it: its file is closed to this session and no rule can name it."


def _closed_agents(scope: FileScope, top: str) -> Iterator[str]:
    """The agents' files below a folder that this session may not read."""
    for here, _, names in folders_below(top):
        for name in names:
            path = os.path.join(here, name)
            if name.lower().endswith(".md") and not (os.path.isdir(path) or _may_read(scope, path)):
                yield path


def _may_read(scope: FileScope, path: str) -> bool:
    return check_file_scope(scope, "Read", {"file_path": path}) is None


def _names_of(file: str) -> tuple[str, str]:
    """The file's own name, and the agent's; that is empty where it can't be told.

    An agent without a name, or one that can't be read, is taken for one with the file's.
    """
    stem = os.path.basename(file)[: -len(".md")]
    text = read_text(file) or ""
    called = header(text).get("name") or (stem if is_clear(text) else "")
    return stem, called if isinstance(called, str) else ""


def _is_nameable(name: str) -> bool:
    return _RULE.fullmatch(name) is not None
