"""What a confined session needs to be there inside beside the scope: programs, files, links, copies."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from agent_kit.confine.backend import ConfinementUnavailableError
from agent_kit.confine.programs import Program, find_program, needed_folders, on_path
from agent_kit.confine.system import SYSTEM
from agent_kit.confine.view import Mount
from agent_kit.scope import ConfigError, Fault
from agent_kit.sdk.locations import CliLocations, bundled_cli
from agent_kit.session.config import SessionConfig
from agent_kit.session.paths import absolute
from agent_kit.session.servers import absolute_arguments

__all__ = [
    "copied_files",
    "has_secrets",
    "links_to",
    "loaded_files",
    "named_programs",
    "named_scripts",
]

# What a project's settings sources load from its folder, beside what the scope opens.
_PROJECT_FILES: Final = (".mcp.json", ".claude/settings.json")
_LOCAL_FILES: Final = (".claude/settings.local.json",)
# What "user" loads from the runner's own configuration.
_USER_PARTS: Final = (
    "CLAUDE.md",
    "settings.json",
    "agents",
    "commands",
    "output-styles",
    "rules",
    "skills",
)
_CREDENTIALS: Final = ".credentials.json"


def named_programs(
    config: SessionConfig,
    project: Path,
    places: CliLocations,
    servers: Mapping[str, Any],
    env: Mapping[str, str],
    writable: Sequence[str] = (),
) -> tuple[str, list[Program]]:
    """The CLI, and every program that the session names. Raises ConfigError for those missing.

    Nothing from a ``writable`` folder is run here to find them, and no CLI from there is taken.
    """
    found, faults = [], []
    for field, name in (
        *(("confined_tools", name) for name in config.confined_tools),
        *((f"mcp_servers[{name!r}]", command) for name, command in _commands_of(servers)),
    ):
        path = str(absolute(name, project, places.home)) if "/" in name else name
        if (program := find_program(path, env, writable)) is None:
            where, instead = (
                ("there", "correct its") if "/" in name else ("on PATH", "write its absolute")
            )
            remedy = f"there is no such program {where}: install it, or {instead} path."
            faults.append(Fault(field=field, value=name, remedy=remedy))
        else:
            found.append(program)
    given = config.cli_path and str(absolute(config.cli_path, project, places.home))
    cli = given or bundled_cli() or on_path("claude", env.get("PATH"), writable)
    if cli is None or not os.path.isfile(cli):
        remedy = "there is no CLI: install the SDK's wheel for this platform, or give its path."
        if given is None and not faults:
            raise ConfinementUnavailableError(f"There is nothing to confine. T{remedy[1:]}")
        faults.append(Fault(field="cli_path", value=given, remedy=remedy))
    home = f"{os.path.realpath(places.home)}/"
    for folder in needed_folders(found):
        if home.startswith(f"{folder}/"):
            remedy = f"it would bring {folder} inside: install it under a folder of its own."
            faults.append(Fault(field="confined_tools", value=folder, remedy=remedy))
    if faults:
        raise ConfigError(faults)
    return str(cli), found


def has_secrets(server: Any) -> bool:
    """Whether a server's configuration has values that are often secret."""
    return isinstance(server, Mapping) and bool(server.get("env") or server.get("headers"))


def _commands_of(servers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, server in servers.items():
        if isinstance(server, Mapping) and isinstance(command := server.get("command"), str):
            yield name, command


def named_scripts(servers: Mapping[str, Any]) -> Iterator[str]:
    """The script that a server's command line names: its first absolute path of a file."""
    for server in servers.values():
        script = next(filter(os.path.isfile, absolute_arguments(server)), None)
        if script is not None:
            yield script


def loaded_files(
    project: Path, sources: Collection[str], memory_files: Sequence[Path]
) -> Iterator[str]:
    """The files that the CLI itself reads at its start. A link is left to where it leads."""
    names = (*(_PROJECT_FILES if "project" in sources else ()),)
    names += _LOCAL_FILES if "local" in sources else ()
    for path in (*(project / name for name in names), *memory_files):
        if os.path.realpath(path) == str(path):
            yield str(path)


def links_to(paths: Sequence[str], mounts: Mapping[str, Mount]) -> Iterator[tuple[str, str]]:
    """The links on the way to these paths, unless they are in something that is mounted."""
    seen: set[str] = set()
    for path in paths:
        here = "/"
        for name in path.split("/")[1:]:
            each = os.path.join(here, name)
            if os.path.islink(each) and each not in seen:
                seen.add(each)
                if each not in SYSTEM and not _is_mounted(each, mounts):
                    yield each, os.path.realpath(each)
            here = os.path.realpath(each)


def _is_mounted(path: str, mounts: Mapping[str, Mount]) -> bool:
    while path != "/":
        if path in mounts:
            return True
        path = os.path.dirname(path)
    return False


def copied_files(
    encoded: str, session_id: str, sources: Collection[str], account: bool, apart: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is copied into the session's configuration folder, and back out of it: names in it.

    ``account``: the sign-in comes along. Back it goes only where commands are kept ``apart`` and
    can't have written it.
    """
    both = (f"projects/{encoded}/{session_id}.jsonl", f"projects/{encoded}/{session_id}")
    sign_in = (_CREDENTIALS,) if account else ()
    users = _USER_PARTS if "user" in sources else ()
    return (*both, *sign_in, *users), (*both, *(sign_in if apart else ()))
