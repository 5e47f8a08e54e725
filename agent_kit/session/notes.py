"""What an operator should know of a session that is planned, in sentences."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_kit.confine.system import is_system
from agent_kit.confine.view import Sight
from agent_kit.sdk.rules import RuleSet
from agent_kit.session.confinement import Confinement
from agent_kit.session.folders import Folders
from agent_kit.session.inside import named_scripts
from agent_kit.session.paths import inside
from agent_kit.session.servers import missing_scripts, relative_files
from agent_kit.session.settings import UNCHECKED_SETTINGS
from agent_kit.session.spec import AgentSpec
from agent_kit.session.surroundings import Surroundings
from agent_kit.session.tool_names import is_unknown
from agent_kit.session.tools import Tools, commands_in

__all__ = [
    "confinement_notes",
    "hindered_folders",
    "is_offline",
    "plan_notes",
    "server_notes",
]


def plan_notes(
    around: Surroundings,
    folders: Folders,
    rules: RuleSet,
    inactive: Mapping[str, str],
    looked_at_all: bool,
    tools: Tools,
    *,
    offline: bool = False,
) -> tuple[str, ...]:
    """Whatever the session does that its spec and config don't tell by themselves.

    ``offline``: a confinement leaves nothing on the network but the model's endpoint.
    """
    config, project, sources = around.config, around.project, around.sources
    notes = [
        f"the rule language can't spell {name!r}: the gate alone holds it"
        for name in rules.unspellable
    ]
    notes += [
        f"the rule language can't name {name!r} alone: the CLI asks, and the scope answers"
        for name in rules.inexact
    ]
    notes += [f"the extension {name} does not run: {why}" for name, why in inactive.items()]
    if UNCHECKED_SETTINGS in config.unlock:
        notes.append("settings are not checked: a malformed one makes the CLI drop every rule")
    if not looked_at_all:
        notes.append("not every name in the writable folders was looked at for links that lead out")
    notes += [
        f"{part} is a link: name its target in extra_readable_dirs to let the agent read it"
        for part in folders.linked_parts
    ]
    if "project" in sources:
        notes += [
            f"{file} is loaded: 'project' is a setting source" for file in folders.memory_files
        ]
        servers = project / ".mcp.json"
        if servers.exists() and not config.strict_mcp_config:
            notes.append(f"the servers of {servers} are started: 'project' is a setting source")
    notes += [
        f"{name} is a way out for what the agent has read"
        for name in ("WebFetch", "WebSearch")
        if name in tools.names
        and not (offline and name == "WebFetch")  # a search is the endpoint's
    ]
    if offline and "WebFetch" in tools.names:
        notes.append("WebFetch reaches nothing: the network is closed inside")
    notes += _unknown_tools(around.spec, tools)
    return tuple(notes)


def _unknown_tools(spec: AgentSpec, tools: Tools) -> Iterator[str]:
    for name in filter(is_unknown, tools.names):
        yield (
            f"{name} is a tool that this version of the kit doesn't know: it counts as one that runs"
            " commands"
        )
    for name in filter(is_unknown, spec.disallowed_tools):
        yield f"disallowed_tools: {name} is a tool that this version of the kit doesn't know"


def is_offline(confinement: Confinement | None) -> bool:
    """Whether nothing on the network but the model's endpoint can be reached."""
    return confinement is not None and not confinement.view.network


def hindered_folders(project: Path, confinement: Confinement | None) -> tuple[str, ...]:
    """The folders that Landlock opens in part, relative to the project where they are in it."""
    if confinement is None or confinement.backend.name != "landlock":
        return ()
    real = os.path.realpath(project)
    return tuple(
        os.path.relpath(folder, real) if inside(folder, real) else folder
        for folder in confinement.backend.hindered(confinement.view)
    )


def confinement_notes(
    around: Surroundings, confinement: Confinement | None, tools: Tools
) -> Iterator[str]:
    """What a confinement does with the project's ``.git``."""
    git = f"{os.path.realpath(around.project)}/.git"
    if confinement is None or not os.path.lexists(git):
        return
    if around.config.confined_git:
        yield "confined_git=True: the history in .git holds what files once were, closed ones too"
    elif commands_in(tools) and confinement.view.sight(git) is Sight.NOTHING:
        yield "the project's .git is not there for commands; confined_git=True shows it, read-only"


def server_notes(servers: Mapping[str, Any], confinement: Confinement | None) -> Iterator[str]:
    """What is missing of the scripts of stdio servers, on the disk and inside."""
    for name, path in missing_scripts(servers):
        yield f"the server {name!r} names {path}, which doesn't exist"
    if confinement is None:
        return
    for name, server in servers.items():
        for word in relative_files(server, confinement.view.cwd):
            path = os.path.realpath(os.path.join(confinement.view.cwd, word))
            if confinement.view.sight(path) is Sight.NOTHING:
                yield (
                    f"the server {name!r} names {word}, which isn't there inside: write its absolute"
                    " path, or name its folder in extra_readable_dirs"
                )
        for path in named_scripts({name: server}):
            folder = os.path.dirname(os.path.realpath(path))
            if not is_system(folder) and confinement.view.sight(folder) is Sight.NOTHING:
                yield (
                    f"of the server {name!r} {path} exists inside, and nothing beside it: if it"
                    f" imports what is there, name {folder} in extra_readable_dirs"
                )
