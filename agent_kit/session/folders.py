"""From a spec, a config and contributions to the folders of one scope."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_kit.scope import ToolOnlyDir
from agent_kit.scope.control import PAGE_INDEXES
from agent_kit.scope.flavour import FLAVOURS, Malformed
from agent_kit.scope.patterns import is_pattern, parse_pattern, unescaped
from agent_kit.sdk.locations import CliLocations
from agent_kit.session.config import SessionConfig
from agent_kit.session.extensions import Active
from agent_kit.session.own_code import Code, code_paths
from agent_kit.session.paths import absolute, inside, literal, resolved
from agent_kit.session.servers import gather_servers
from agent_kit.session.spec import AgentSpec
from agent_kit.session.workspace import own_code

__all__ = ["Folders", "gather_folders"]

# The parts of a project's .claude/ that an agent needs to read; settings, worktrees and agents'
# memories are none of them.
_PROJECT_PARTS: Final = ("skills", "commands", "agents", "rules", "output-styles")
_MEMORY_NAMES: Final = ("CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md", "AGENTS.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """The fields of a scope, and the plugins. Entries are as configured.

    ``linked_parts`` are the parts of the project's ``.claude`` that stay closed: they are links.
    ``code`` is what runs the agent, ``own_code`` what of it is read-only in the workspace.
    """

    writable: tuple[str, ...]
    searchable: tuple[str, ...]
    read_only: tuple[str, ...]
    also_readable: tuple[str, ...]
    denied: tuple[str, ...]
    tool_only: tuple[ToolOnlyDir, ...]
    tool_results: str
    plugins: tuple[Path, ...]
    memory_files: tuple[Path, ...]
    linked_parts: tuple[Path, ...]
    code: tuple[Code, ...]
    own_code: tuple[Code, ...]


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
    plugins = tuple(_plugins(spec, active, project, places.home))
    tool_only = tuple(entry for c in brought for entry in c.tool_only_dirs)
    denied = [*map(str, config.denied_paths), *(d for c in brought for d in c.denied_paths)]
    denied += map(literal, (*places.account_files(), str(run_dir / "host")))
    closed = [*denied, *(literal(entry.dir) for entry in tool_only)]
    denied += map(literal, _repositories(closed, project, places.home))
    if any(is_pattern(str(path)) for path in config.denied_paths):
        denied.append("**/.git")  # any repository may hold what a pattern means
    if config.run_dir is None:  # those of other runs may hold keys, too
        denied.append(f"{literal(str(run_dir.parents[2]))}/*/runs/*/host")
    if not config.allow_worktrees:
        denied.append("**/.claude/worktrees")  # a literal path would stop every search above it
    held = [resolved(absolute(folder, project, places.home)) for folder in writable]
    read = [resolved(absolute(folder, project, places.home)) for folder in (*read_only, *readable)]
    if any(inside(cache, folder) for cache in _caches() for folder in (*held, *read)):
        denied.append(f"**/{PAGE_INDEXES}")
    tasks = places.task_outputs_dir(Path(os.path.realpath(project)), session_id)
    parts = list(_project_parts(project, places)) if "project" in sources else []
    linked = [part for part in parts if _is_linked(project, part)]
    also = [*map(str, (run_dir, *plugins, *(part for part in parts if part not in linked)))]
    servers = gather_servers(spec, active)
    code = code_paths(spec, config, servers, project, places.home, held)
    own = own_code(code, config, project)
    return Folders(
        writable=tuple(dict.fromkeys(writable)),
        searchable=tuple(dict.fromkeys((*read_only, *writable, *readable))),
        read_only=tuple(dict.fromkeys((*read_only, *(each.path for each in own)))),
        also_readable=(*also, tasks) if tasks else tuple(also),
        denied=tuple(dict.fromkeys(denied)),
        tool_only=tool_only,
        tool_results=places.tool_results_dir(Path(os.path.realpath(project)), session_id),
        plugins=plugins,
        memory_files=tuple(_memory_files(project, places)) if "project" in sources else (),
        linked_parts=tuple(linked),
        code=code,
        own_code=own,
    )


def _caches() -> Iterator[str]:
    """Where the cache folder of this host's user may be. To ask platformdirs would take 18 ms."""
    if own := os.environ.get("XDG_CACHE_HOME"):
        yield resolved(own)
    for name in (".cache", "Library/Caches", "AppData/Local"):
        yield resolved(os.path.join(os.path.expanduser("~"), name))


def _plugins(spec: AgentSpec, active: Active, project: Path, home: Path) -> Iterator[Path]:
    for extension in active.extensions:
        if extension.plugin_dir is not None:
            yield Path(extension.plugin_dir)
    for folder in spec.plugins:
        yield absolute(folder, project, home)


def _project_parts(project: Path, places: CliLocations) -> Iterator[Path]:
    """The parts of the project's ``.claude``, unless that is the runner's own config folder."""
    own = project / ".claude"
    if resolved(own) not in map(resolved, (places.config_dir, places.home / ".claude")):
        yield from (own / part for part in _PROJECT_PARTS)


def _is_linked(project: Path, part: Path) -> bool:
    """Whether there is a link on the way: it would be the project that names a folder."""
    return resolved(part) != os.path.join(resolved(project), *part.relative_to(project).parts)


def _memory_files(project: Path, places: CliLocations) -> Iterator[Path]:
    """The instruction files that "project" loads: in the project and in every folder above it."""
    runners = (places.home / ".claude", places.config_dir)
    for folder in (project, *project.parents):
        for name in _MEMORY_NAMES:
            file = folder / name
            if file.is_file() and not any(file.is_relative_to(own) for own in runners):
                yield file


def _repositories(closed: Sequence[str], project: Path, home: Path) -> Iterator[str]:
    """The ``.git`` of each repository that a closed path lies in: it holds the same contents."""
    seen: set[Path] = set()
    for path in _located(closed, project, home):
        for folder in path.parents:
            if folder in seen:
                break
            seen.add(folder)
            if os.path.lexists(folder / ".git"):
                yield str(folder / ".git")
                yield from _pointed_to(folder / ".git")


def _pointed_to(file: Path) -> Iterator[str]:
    """The folder that a ``.git`` file of a worktree or a submodule points to."""
    with contextlib.suppress(OSError, ValueError):
        if file.is_file():
            target = file.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
            yield os.path.abspath(file.parent / target)


def _located(closed: Sequence[str], project: Path, home: Path) -> Iterator[Path]:
    """Each closed path; for a pattern that is fixed to a folder, something in that folder."""
    for text in closed:
        if not is_pattern(text):
            yield absolute(unescaped(text), project, home)
            continue
        with contextlib.suppress(Malformed):  # a fault of the scope
            for pattern in parse_pattern(text, str(project), str(home), FLAVOURS["posix"]):
                if pattern.fixed is not None:
                    yield Path(pattern.fixed, "*")
