"""What a project's skills and agents would tell the model without being asked.

The CLI lists every skill to a subagent with the first words of its file, links followed, whatever the
session offers; once a file in a folder was read, also the skills of a ``.claude`` there. An agent's
description is listed in the main conversation. ``skillOverrides`` in the flag settings and an
``Agent(name)`` rule hide them; other rules don't (measured on CLI 2.1.332).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.sdk.catalogue import find_commands
from agent_kit.sdk.commands import Commands, Place

__all__ = ["MAX_NAMES", "Hidden", "hide"]

MAX_NAMES: Final = 100_000  # in the folders of a scope: so many are looked at for nested skills
_NAME: Final = re.compile(r"^name:[^\S\n]*[\"']?([^\"'\n]+)", re.MULTILINE)
_RULE: Final = re.compile(r"[^(),*\x00-\x1f\x7f]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """``skills`` are the names that are switched off, ``rules`` refuse agents. ``notes`` say so."""

    skills: tuple[str, ...]
    rules: tuple[str, ...]
    notes: tuple[str, ...]


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
    names += [name for folder in walk.folders for name in _nested(folder, scope)]
    agents = [name for place in commands.places for name in _agents(scope, place)]
    notes = [
        f"the agent {name!r} is refused: its file is closed to this session" for name in agents
    ]
    if walk.left <= 0:
        notes.append("not every folder was looked at for skills that a subagent may be told of")
    return Hidden(
        skills=tuple(dict.fromkeys(name for name in names if name not in commands.offered)),
        rules=tuple(dict.fromkeys(f"Agent({name})" for name in agents if _RULE.fullmatch(name))),
        notes=tuple(notes),
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


def _nested(folder: str, scope: FileScope) -> Iterator[str]:
    """The names that the CLI may give the skills of a ``.claude`` below the project."""
    above = os.path.dirname(folder)
    relative = os.path.relpath(above, os.path.realpath(scope.project_dir))
    befores = {os.path.basename(above), relative, relative.replace("/", ":")} - {"."}
    for each in find_commands([Place(folder=folder, own=False)]):
        for name in (each.name, *each.aliases):
            yield name
            yield from (f"{before}:{name}" for before in sorted(befores))


def _agents(scope: FileScope, place: Place) -> Iterator[str]:
    """The agents of a ``.claude`` folder whose file this session may not read."""
    if place.plugin or place.trusted:
        return
    for here, _, files in os.walk(os.path.join(place.folder, "agents"), followlinks=True):
        for file in files:
            path = os.path.join(here, file)
            if not file.lower().endswith(".md") or _may_read(scope, path):
                continue
            yield from _names_of(path)


def _may_read(scope: FileScope, path: str) -> bool:
    return check_file_scope(scope, "Read", {"file_path": path}) is None


def _names_of(path: str) -> Iterator[str]:
    yield os.path.basename(path)[: -len(".md")]
    try:
        with open(path, encoding="utf-8", errors="replace") as opened:
            yield from (name.strip() for name in _NAME.findall(opened.read(1 << 16)))
    except OSError:
        return
