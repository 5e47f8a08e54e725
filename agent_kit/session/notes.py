"""What an operator should know of a session that is planned, in sentences."""

from __future__ import annotations

import os
from collections.abc import Mapping

from agent_kit.scope.patterns import is_pattern
from agent_kit.sdk.rules import RuleSet
from agent_kit.session.folders import Folders
from agent_kit.session.settings import UNCHECKED_SETTINGS
from agent_kit.session.surroundings import Surroundings
from agent_kit.session.tools import Tools

__all__ = ["plan_notes"]


def plan_notes(
    around: Surroundings,
    folders: Folders,
    rules: RuleSet,
    inactive: Mapping[str, str],
    looked_at_all: bool,
    tools: Tools,
) -> tuple[str, ...]:
    """Whatever the session does that its spec and config don't tell by themselves."""
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
    notes += [
        f"denied_paths={text!r} names one path, which doesn't exist: write '**/{text}' for the name"
        " anywhere"
        for text in map(str, config.denied_paths)
        if "/" not in text and not is_pattern(text) and not os.path.lexists(project / text)
    ]
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
    ]
    return tuple(notes)
