"""Names of skills: a project must not put its own text under the name of one that a session offers.

The CLI calls a command ``<folder>:<stem>`` after where it lies, so a project's
``.claude/commands/sources/cite.md`` is ``sources:cite`` and wins over the plugin's skill of that
name (measured on CLI 2.1.332). The model would load it, and what it mentions, by a call that the
session's own skills ask for. So it is with the name of a built-in skill, and a skill's front matter
may give it one more name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agent_kit.scope import ConfigError, Fault
from agent_kit.scope.text import fold
from agent_kit.sdk.catalogue import find_commands, folders_below
from agent_kit.sdk.commands import Place

__all__ = ["skill_faults"]


def skill_faults(offered: Iterable[str], configurations: Sequence[Path]) -> Iterator[Fault]:
    """A fault for each file in one of these ``.claude`` folders that takes an offered name.

    And one for a folder that holds more than can be looked at.
    """
    wanted = {fold(name): name for name in offered}
    for folder in configurations:
        try:
            yield from _taken(wanted, folder)
        except ConfigError as error:
            yield from error.faults


def _taken(wanted: Mapping[str, str], folder: Path) -> Iterator[Fault]:
    said: set[tuple[Path, str]] = set()
    for path, names in _named(folder):
        for name in sorted(names):
            taken = wanted.get(fold(name))
            if taken is not None and (path, taken) not in said:
                said.add((path, taken))
                yield Fault(
                    field="skills",
                    value=taken,
                    remedy=f"{path} takes the name of this skill: rename that file, or don't"
                    " load its source (setting_sources).",
                )


def _named(folder: Path) -> Iterator[tuple[Path, set[str]]]:
    """Each command and skill, with every name that the CLI might give it."""
    for command in find_commands([Place(folder=str(folder))]):
        yield Path(command.file), {command.name, *command.aliases}
    for kind in ("commands", "skills"):
        for here, parts, names in folders_below(str(folder / kind)):
            for name in names:
                path = Path(here, name)
                if name.lower().endswith(".md") and not path.is_dir():
                    yield path, _names(Path(*parts, name))


def _names(path: Path) -> set[str]:
    stem = path.with_suffix("")
    parts = stem.parts[:-1] if stem.name.lower() == "skill" else stem.parts
    return {":".join(parts[at:]) for at in range(len(parts))}
