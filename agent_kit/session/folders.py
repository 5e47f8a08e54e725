"""From a spec, a config and contributions to the folders of one scope."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_kit.scope import ToolOnlyDir
from agent_kit.scope.patterns import is_pattern
from agent_kit.sdk.locations import CliLocations
from agent_kit.session.config import SessionConfig
from agent_kit.session.extensions import Active
from agent_kit.session.spec import AgentSpec

__all__ = ["Folders", "gather_folders"]

# The parts of a project's .claude/ that an agent needs to read; settings, worktrees and agents'
# memories are none of them.
_PROJECT_PARTS: Final = ("skills", "commands", "agents", "rules", "output-styles")
_MEMORY_NAMES: Final = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """The fields of a scope, and the plugins with their skills. Entries are as configured."""

    writable: tuple[str, ...]
    searchable: tuple[str, ...]
    read_only: tuple[str, ...]
    also_readable: tuple[str, ...]
    denied: tuple[str, ...]
    tool_only: tuple[ToolOnlyDir, ...]
    tool_results: str
    plugins: tuple[Path, ...]
    skills: tuple[str, ...]
    memory_files: tuple[Path, ...]


def gather_folders(
    spec: AgentSpec,
    config: SessionConfig,
    active: Active,
    project: Path,
    run_dir: Path,
    places: CliLocations,
    session_id: str,
    sources: Sequence[str],
) -> Folders:
    brought = active.contributions
    writable = (
        *map(str, config.extra_writable_dirs),
        *(d for c in brought for d in c.writable_dirs),
    )
    read_only = tuple(d for c in brought for d in c.read_only_dirs)
    readable = (
        *(d for c in brought for d in c.readable_dirs),
        *map(str, config.extra_readable_dirs),
    )
    plugins = tuple(_plugins(spec, active, project))
    tool_only = tuple(entry for c in brought for entry in c.tool_only_dirs)
    denied = [*map(str, config.denied_paths), *(d for c in brought for d in c.denied_paths)]
    denied += [*places.account_files(), str(run_dir / "host")]
    denied += _repositories([*denied, *(entry.dir for entry in tool_only)], project)
    tasks = places.task_outputs_dir(Path(os.path.realpath(project)), session_id)
    also = [str(run_dir), *map(str, plugins), *_project_parts(project, places, sources)]
    return Folders(
        writable=tuple(dict.fromkeys(writable)),
        searchable=tuple(dict.fromkeys((*read_only, *writable, *readable))),
        read_only=tuple(dict.fromkeys(read_only)),
        also_readable=(*also, tasks) if tasks else tuple(also),
        denied=tuple(dict.fromkeys(denied)),
        tool_only=tool_only,
        tool_results=places.tool_results_dir(Path(os.path.realpath(project)), session_id),
        plugins=plugins,
        skills=tuple(dict.fromkeys((*_skills(plugins), *spec.skills))),
        memory_files=tuple(_memory_files(project)) if "project" in sources else (),
    )


def _plugins(spec: AgentSpec, active: Active, project: Path) -> Iterator[Path]:
    for extension in active.extensions:
        if extension.plugin_dir is not None:
            yield Path(extension.plugin_dir)
    for folder in spec.plugins:
        yield project / folder


def _skills(plugins: Sequence[Path]) -> Iterator[str]:
    """What the CLI calls the skills and commands of the plugins: ``<plugin>:<folder or stem>``."""
    for plugin in plugins:
        name = _plugin_name(plugin)
        for skill in sorted(plugin.glob("skills/*/SKILL.md")):
            yield f"{name}:{skill.parent.name}"
        for command in sorted(plugin.glob("commands/*.md")):
            yield f"{name}:{command.stem}"


def _plugin_name(plugin: Path) -> str:
    manifest = plugin / ".claude-plugin" / "plugin.json"
    try:
        return str(json.loads(manifest.read_text(encoding="utf-8"))["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return plugin.name


def _project_parts(project: Path, places: CliLocations, sources: Sequence[str]) -> Iterator[str]:
    own = project / ".claude"
    if (
        "project" not in sources
        or _same(own, places.config_dir)
        or _same(own, places.home / ".claude")
    ):
        return
    for part in _PROJECT_PARTS:
        yield str(own / part)


def _same(one: Path, other: Path) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _memory_files(project: Path) -> Iterator[Path]:
    """The instruction files that "project" loads: in the project and in every folder above it."""
    for folder in (project, *project.parents):
        for name in _MEMORY_NAMES:
            if (folder / name).is_file():
                yield folder / name


def _repositories(closed: Sequence[str], project: Path) -> Iterator[str]:
    """The ``.git`` of each repository that a closed path lies in: it holds the same contents."""
    seen: set[Path] = set()
    for text in closed:
        if is_pattern(text):
            continue
        path = Path(os.path.abspath(project / Path(text).expanduser()))
        for folder in path.parents:
            if folder in seen:
                break
            seen.add(folder)
            if os.path.lexists(folder / ".git"):
                yield str(folder / ".git")
