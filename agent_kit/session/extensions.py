"""Which extensions of a spec run in a session, and what they bring."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from agent_kit.extension import Contribution, Extension, ExtensionContext, PlannedScope
from agent_kit.scope import ConfigError, Fault, ToolOnlyDir
from agent_kit.sdk.hooks import hook_faults
from agent_kit.session.config import SessionConfig
from agent_kit.session.spec import SERVER_REMEDY, AgentSpec, tool_faults

__all__ = ["Active", "resolve_extensions"]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Active:
    """The extensions that run, each with its contribution; the others with the reason."""

    extensions: tuple[Extension, ...]
    contributions: tuple[Contribution, ...]
    inactive: Mapping[str, str]
    faults: tuple[Fault, ...] = ()


def resolve_extensions(
    spec: AgentSpec,
    config: SessionConfig,
    project: Path,
    run_dir: Path,
    home: Path,
    planned: PlannedScope,
) -> Active:
    """Ask each extension whether it can run, until nothing changes; then what it brings.

    One whose requirements no active extension provides is inactive, and may make others so.
    ``planned`` is what the extensions' tools ask for the session's scope and guard later.
    """
    named = list(spec.extensions)
    if faults := [*_name_faults(named), *(f for each in named for f in _shape_faults(each))]:
        return Active(extensions=(), contributions=(), inactive={}, faults=tuple(faults))
    inactive: dict[str, str] = {}
    try:
        active = _stable(
            named, inactive, partial(_context, spec, config, project, run_dir, home, planned)
        )
    except ConfigError as error:
        return Active(extensions=(), contributions=(), inactive={}, faults=error.faults)
    context = _context(spec, config, project, run_dir, home, planned, active)
    brought: list[tuple[Extension, Contribution]] = []
    for extension in active:
        try:
            contribution = extension.contribute(context)
        except ConfigError as error:
            faults += error.faults
            continue
        if found := [*_contribution_faults(extension.name, contribution)]:
            faults += found
        else:
            brought.append((extension, contribution))
    return Active(
        extensions=tuple(extension for extension, _ in brought),
        contributions=tuple(contribution for _, contribution in brought),
        inactive=inactive,
        faults=tuple(faults),
    )


def _stable(
    active: list[Extension],
    inactive: dict[str, str],
    context_of: Callable[[list[Extension]], ExtensionContext],
) -> list[Extension]:
    """The extensions that can run; ``inactive`` gets the others, with the reason."""
    while True:
        context = context_of(active)
        reasons = {extension.name: _why_not(extension, context) for extension in active}
        found = {name: reason for name, reason in reasons.items() if reason is not None}
        if not found:
            return active
        inactive.update(found)
        active = [extension for extension in active if extension.name not in found]


def _context(
    spec: AgentSpec,
    config: SessionConfig,
    project: Path,
    run_dir: Path,
    home: Path,
    planned: PlannedScope,
    active: list[Extension],
) -> ExtensionContext:
    return ExtensionContext(
        config=config,
        spec=spec,
        project_dir=project,
        run_dir=run_dir,
        home=home,
        scope=planned,
        guard=planned.guard,
        mode=config.mode,
        capabilities=frozenset(name for extension in active for name in extension.provides),
    )


def _why_not(extension: Extension, context: ExtensionContext) -> str | None:
    """Why the extension can't run. Raises ConfigError for an answer that is none."""
    lacking = [name for name in extension.requires if name not in context.capabilities]
    if lacking:
        return f"it needs {', '.join(lacking)}, which no active extension provides."
    reason = extension.missing(context)
    if reason is None or isinstance(reason, str):
        return reason
    remedy = "return the reason as a text, or None."
    raise ConfigError([Fault(field=f"{extension.name}.missing", value=reason, remedy=remedy)])


def _name_faults(extensions: list[Extension]) -> list[Fault]:
    names = [extension.name for extension in extensions]
    return [
        Fault(field="extensions", value=name, remedy="two extensions have this name: take one out.")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]


def _shape_faults(extension: Extension) -> Iterator[Fault]:
    """What is wrong with an extension before it is asked anything."""
    name = extension.name
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        remedy = "use letters, digits, '-' and '_', at most 64 of them."
        yield Fault(field="extensions", value=name, remedy=remedy)
    for part in ("provides", "requires"):
        yield from _text_list_faults(f"{name}.{part}", getattr(extension, part))
    folder = extension.plugin_dir
    if folder is not None and not (isinstance(folder, (str, Path)) and Path(folder).is_dir()):
        remedy = "give the plugin's folder as a path, or None."
        yield Fault(field=f"{name}.plugin_dir", value=folder, remedy=remedy)


# The fields of a contribution that are lists of texts; one text would be read letter by letter.
_TEXT_LISTS: Final = (
    "read_only_dirs",
    "readable_dirs",
    "writable_dirs",
    "denied_paths",
    "file_tools",
    "read_only_tools",
)


def _contribution_faults(name: str, brought: object) -> Iterator[Fault]:
    if not isinstance(brought, Contribution):
        yield Fault(field=f"{name}.contribute", value=brought, remedy="return a Contribution(…).")
        return
    for part in _TEXT_LISTS:
        yield from _text_list_faults(f"{name}.{part}", getattr(brought, part))
    yield from tool_faults(f"{name}.file_tools", brought.file_tools)
    entries = brought.tool_only_dirs
    if not isinstance(entries, (list, tuple)) or not all(
        isinstance(entry, ToolOnlyDir) for entry in entries
    ):
        remedy = "give a tuple of ToolOnlyDir(dir=…, instead=…)."
        yield Fault(field=f"{name}.tool_only_dirs", value=entries, remedy=remedy)
    if brought.prompt_section is not None and not isinstance(brought.prompt_section, str):
        remedy = "give a text, or None."
        yield Fault(field=f"{name}.prompt_section", value=brought.prompt_section, remedy=remedy)
    yield from _server_faults(f"{name}.mcp_servers", brought.mcp_servers)
    yield from _own_tools_faults(name, "interrupt_on", brought, "True or False", _is_bool)
    yield from _own_tools_faults(name, "asked_files", brought, "a function", callable)
    yield from hook_faults(f"{name}.hooks", brought.hooks)


def _text_list_faults(field: str, value: object) -> Iterator[Fault]:
    if not isinstance(value, (list, tuple)):
        yield Fault(field=field, value=value, remedy="give a tuple of texts.")
        return
    for item in value:
        if not isinstance(item, str) or not item:
            yield Fault(field=field, value=item, remedy="give a text, not empty.")


def _own_tools_faults(
    name: str, field: str, brought: Contribution, what: str, fits: Callable[[object], bool]
) -> Iterator[Fault]:
    """An extension says of its own tools alone whether somebody is asked, and about which files."""
    told = getattr(brought, field)
    if not isinstance(told, Mapping):
        remedy = f"give a dict of tool name to {what}."
        yield Fault(field=f"{name}.{field}", value=told, remedy=remedy)
        return
    own = brought.mcp_servers if isinstance(brought.mcp_servers, Mapping) else ()
    starts = tuple(f"mcp__{server}__" for server in own)
    for tool, value in told.items():
        if not isinstance(tool, str) or not tool.startswith(starts) or tool in starts:
            remedy = "name a tool of one of this extension's servers, as mcp__server__tool."
        elif not fits(value):
            remedy = f"give a tool's name and {what}."
        else:
            continue
        yield Fault(field=f"{name}.{field}", value={tool: value}, remedy=remedy)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _server_faults(field: str, servers: object) -> Iterator[Fault]:
    if not isinstance(servers, Mapping):
        yield Fault(field=field, value=servers, remedy="give a dict of name to configuration.")
        return
    for name, server in servers.items():
        if not isinstance(server, Mapping) and not callable(server):
            yield Fault(field=f"{field}[{name!r}]", value=server, remedy=SERVER_REMEDY)
