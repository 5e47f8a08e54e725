"""The CLI's flag settings of a session: permissions, isolation, what is hidden and what isn't loaded."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from typing import Any, Final

from agent_kit.scope import ConfigError, Fault, FileScope
from agent_kit.sdk.locations import CliLocations
from agent_kit.sdk.rules import RuleSet
from agent_kit.session.config import SessionConfig
from agent_kit.session.environment import fixed_env
from agent_kit.session.hidden import Hidden
from agent_kit.session.isolation import isolated_settings
from agent_kit.session.memory_chain import closed_chain_files
from agent_kit.session.nested_memory import literal, memory_excludes
from agent_kit.session.settings import merged_settings
from agent_kit.session.spec import AgentSpec
from agent_kit.session.tools import Tools

__all__ = ["BYPASS", "memory_not_loaded", "plan_settings"]

BYPASS: Final = "bypassPermissions"
MAX_SETTINGS: Final = 2_000_000  # bytes: the CLI refuses a settings file over 2 MiB

# The CLI's own sandbox for commands can't start inside a confinement, which holds more than it does:
# with it, every command fails, or the session with "failIfUnavailable" (measured on CLI 2.1.332).
_NO_SANDBOX: Final = {"enabled": False}


def plan_settings(
    spec: AgentSpec,
    config: SessionConfig,
    rules: RuleSet,
    tools: Tools,
    excludes: list[str],
    hidden: Hidden,
    *,
    confined: bool,
) -> dict[str, Any]:
    """Everybody's settings in one. Raises ConfigError when the CLI couldn't read so many rules."""
    given = merged_settings(spec, config)
    given["env"] = {**given.get("env", {}), **fixed_env(config)}  # a project's may not win
    permissions: dict[str, Any] = given["permissions"]
    added = {
        "deny": (*rules.deny, *tools.denied, *hidden.rules),
        # A whole tool stands here and not in the options' "allowed_tools": there the SDK warns.
        "allow": (*rules.allow, *tools.allowed),
    }
    if rules.ask:
        added["ask"] = rules.ask
    for name, own in added.items():
        permissions[name] = list(dict.fromkeys([*own, *permissions.get(name, ())]))
    if config.permission_mode == BYPASS:
        permissions["defaultMode"] = BYPASS  # in the options, the SDK warns
    if confined:
        given["sandbox"] = _NO_SANDBOX
    if hidden.skills:
        off = dict.fromkeys(hidden.skills, "off")
        given["skillOverrides"] = {**given.get("skillOverrides", {}), **off}
    settings = isolated_settings({**given, "permissions": permissions}, config.unlock, excludes)
    size = len(json.dumps(settings).encode())
    if size > MAX_SETTINGS:
        raise ConfigError(
            [
                Fault(
                    field="denied_paths",
                    value=f"{len(config.denied_paths):,} entries",
                    remedy=f"their rules take {size:,} bytes and the CLI reads at most"
                    f" {MAX_SETTINGS:,}: deny a folder or a pattern instead of its files.",
                )
            ]
        )
    return settings


def memory_not_loaded(
    scope: FileScope, places: CliLocations, sources: Collection[str]
) -> list[str]:
    """The instruction files that the CLI may not load of itself, as its ``claudeMdExcludes``."""
    folders = map(str, (places.config_dir, places.home / ".claude"))
    runners = [*dict.fromkeys(form for path in folders for form in (path, os.path.realpath(path)))]
    # "user" is the runner's own configuration, knowingly: their instructions come whole.
    kept = [*runners, str(places.session_config_dir)] if "user" in sources else []
    compiled = scope._compiled
    projects = tuple(dict.fromkeys((compiled.project, os.path.realpath(compiled.project))))
    closed = closed_chain_files(scope, projects, runners)
    spelled = [literal(file) + end for file in closed for end in _ENDS]
    return [*memory_excludes(projects, runners, kept), *spelled]


_ENDS: Final = ("", "/**")  # of a file, and of a folder with rules
