"""MCP servers of the spec and of its extensions: one name each, and what is said of them."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from agent_kit.confine.upstream import KEY_NAMES
from agent_kit.scope import Fault
from agent_kit.session.config import SessionConfig
from agent_kit.session.extensions import Active
from agent_kit.session.paths import absolute
from agent_kit.session.spec import AgentSpec

__all__ = [
    "absolute_arguments",
    "file_tool_faults",
    "file_tool_notes",
    "gather_servers",
    "key_faults",
    "missing_scripts",
    "other_servers",
    "relative_files",
    "server_faults",
]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_MAX_TOOL_NAME: Final = 64  # characters of mcp__<server>__<tool>, as the API has it
_LONGEST: Final = _MAX_TOOL_NAME - len("mcp____") - 1


def _named(spec: AgentSpec, active: Active) -> Iterator[tuple[str, Any]]:
    yield from spec.mcp_servers.items()
    for contribution in active.contributions:
        yield from contribution.mcp_servers.items()


def gather_servers(spec: AgentSpec, active: Active) -> dict[str, Any]:
    """Server name to its configuration, or to the function that makes it."""
    return dict(_named(spec, active))


def server_faults(spec: AgentSpec, active: Active) -> list[Fault]:
    counts = Counter(name for name, _ in _named(spec, active))
    faults = [
        Fault(
            field="mcp_servers",
            value=name,
            remedy=f"use letters, digits, '-' and '_', at most {_LONGEST} of them.",
        )
        for name in counts
        if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST
    ]
    faults += [
        Fault(field="mcp_servers", value=name, remedy="two servers have this name: rename one.")
        for name, count in counts.items()
        if count > 1
    ]
    for contribution in active.contributions:
        faults += [
            Fault(
                field="read_only_tools",
                value=tool,
                remedy=f"the name is over {_MAX_TOOL_NAME} characters: shorten it.",
            )
            for tool in contribution.read_only_tools
            if len(tool) > _MAX_TOOL_NAME
        ]
    return faults


# --- tools that the config names by their servers -----------------------------------------------


def file_tool_faults(
    spec: AgentSpec, config: SessionConfig, active: Active, others: Collection[str]
) -> list[Fault]:
    """Tools of ``mcp_file_tools`` and ``interrupt_on`` whose server the session can't have: nothing would
    judge them, and nobody be asked.

    Where ``others`` (:func:`other_servers`) bring servers, it is :func:`file_tool_notes` that speaks of
    them.
    """
    if others:
        return []
    remedy = "the session has no such server{}: name one of the spec's or an extension's."
    return [
        Fault(field=field, value=name, remedy=remedy.format(meant))
        for field in _CONSEQUENCES
        for name, meant in _strangers(spec, getattr(config, field), active, set())
    ]


def file_tool_notes(
    spec: AgentSpec, config: SessionConfig, active: Active, others: Collection[str]
) -> Iterator[str]:
    """The same tools, whose server only ``others`` (:func:`other_servers`) may have."""
    for name, meant in _strangers(spec, () if others else spec.read_only_tools, active, set()):
        yield (
            f"read_only_tools names {name}, whose server is neither the spec's nor an extension's"
            f"{meant}: no tool counts as read-only by that"
        )
    if not others:
        return
    known = {name for path in others for name in _names_in(path)}
    for field, consequence in _CONSEQUENCES.items():
        for name, meant in _strangers(spec, getattr(config, field), active, known):
            yield (
                f"{field} names {name}, whose server is neither the spec's nor an extension's"
                f"{meant}: if none of {', '.join(others)} brings it, {consequence}"
            )


# Fields of the config that name MCP tools, and what becomes of a name that there is not.
_CONSEQUENCES: Final[Mapping[str, str]] = {
    "mcp_file_tools": "nothing is judged by that",
    "interrupt_on": "nobody is asked",
}


def _strangers(
    spec: AgentSpec, names: Iterable[str], active: Active, others: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Each name whose server is unknown, and what may have been meant."""
    known = {*(name for name, _ in _named(spec, active)), *others}
    for name in names:
        if not isinstance(name, str) or not name.startswith("mcp__"):
            continue  # no MCP tool: somebody else says so
        if not any(_is_of(name, server) for server in known):
            server = name.removeprefix("mcp__").rpartition("__")[0] or name.removeprefix("mcp__")
            close = get_close_matches(server, [str(each) for each in known], n=1)
            yield name, f" (did you mean mcp__{close[0]}__…?)" if close else ""


def _is_of(tool: str, server: str) -> bool:
    start = f"mcp__{server}__"
    return tool.startswith(start) and tool != start


def other_servers(
    spec: AgentSpec,
    config: SessionConfig,
    active: Active,
    project: Path,
    home: Path,
    sources: Collection[str],
) -> list[str]:
    """The files of a project, of plugins and of the runner that may bring servers beside the plan's."""
    if config.strict_mcp_config:
        return []
    files = [f"{folder}/.mcp.json" for folder in (project, *project.parents)]
    plugins = [absolute(folder, project, home) for folder in spec.plugins]
    plugins += [Path(each.plugin_dir) for each in active.extensions if each.plugin_dir is not None]
    found = [path for path in files if "project" in sources and os.path.lexists(path)]
    for folder in plugins:
        found += [path for path in (f"{folder}/.mcp.json",) if os.path.lexists(path)]
        manifest = f"{folder}/.claude-plugin/plugin.json"
        found += [manifest for held in (_json(manifest),) if "mcpServers" in held]
    if not {"user", "local"}.isdisjoint(sources):
        found.append(f"{home}/.claude.json")
    return found


def key_faults(files: Iterable[str]) -> list[Fault]:
    """Files that have the CLI write its key into a server's command line, for all to see inside.

    ``files`` are those of :func:`other_servers`.
    """
    remedy = (
        "it gives the CLI's key to a server: inside, that one is for nobody else. Take the variable"
        " out, or set strict_mcp_config=True."
    )
    return [
        Fault(field="mcp_servers", value=path, remedy=remedy) for path in files if _has_key(path)
    ]


def _has_key(path: str) -> bool:
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    told = json.dumps(_parsed(text), ensure_ascii=False)  # without the escapes of the file
    return any(name in each for name in KEY_NAMES for each in (text, told))


def _names_in(path: str) -> list[str]:
    held = _json(path)
    servers = held.get("mcpServers", held if path.endswith("/.mcp.json") else {})
    return [str(name) for name in servers] if isinstance(servers, Mapping) else []


def _json(path: str) -> Mapping[str, Any]:
    try:
        return _parsed(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return held if isinstance(held, Mapping) else {}


# --- stdio servers ----------------------------------------------------------------------------


def missing_scripts(servers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The server's name and the first absolute path among its arguments, where nothing is there."""
    for name, server in servers.items():
        script = next(absolute_arguments(server), None)
        if script is not None and not os.path.exists(script):
            yield name, script


def absolute_arguments(server: Any) -> Iterator[str]:
    """The absolute paths among the arguments of a stdio server."""
    return filter(os.path.isabs, _arguments(server))


def relative_files(server: Any, project: str) -> Iterator[str]:
    """The files of the project among the arguments of a stdio server, as they are written there."""
    for word in _arguments(server):
        if not os.path.isabs(word) and os.path.isfile(os.path.join(project, word)):
            yield word


def _arguments(server: Any) -> Iterator[str]:
    words = server.get("args") if isinstance(server, Mapping) else None
    listed = words if isinstance(words, (list, tuple)) else ()  # else the CLI says so
    return (word for word in listed if isinstance(word, str) and "\0" not in word)
