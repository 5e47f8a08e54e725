"""Lock 4 for one session: which backend, what is seen inside, and how the CLI is started there."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from agent_kit.confine import launcher
from agent_kit.confine.backend import Backend, ConfinementUnavailableError
from agent_kit.confine.commands import NOT_APART, interpreter, start_programs
from agent_kit.confine.looking import MAX_ENTRIES, add, look
from agent_kit.confine.programs import Program, find_program, needed_folders, on_path
from agent_kit.confine.system import (
    ENV_ACCOUNT,
    ENV_NAMES,
    ENV_PLAIN,
    ENV_SECRET,
    ENV_STARTS,
    SYSTEM,
    is_system,
)
from agent_kit.confine.upstream import broker_reason, inside_env, made_up_key
from agent_kit.confine.view import ConfinedView, Mount, Sight
from agent_kit.scope import ConfigError, Fault, FileScope
from agent_kit.scope.control import CONTROL_NAMES
from agent_kit.sdk.locations import CliLocations, OwnFolder, bundled_cli, encoded
from agent_kit.session.config import SessionConfig
from agent_kit.session.paths import absolute
from agent_kit.session.run_folder import write_private, write_program

__all__ = [
    "Confinement",
    "confine_session",
    "own_folder",
    "plan_confinement",
    "write_launcher",
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
_BROKER_NEEDS: Final = ("agent_kit", "h11", "httpcore2")
_PROXIES: Final = tuple(
    form for name in ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY") for form in (name, name.lower())
)
_SOCKET_PATH: Final = 103  # bytes
_CREDENTIALS: Final = ".credentials.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """One session's confinement, planned. Nothing is on the disk yet.

    ``own`` is the session's own folder. ``made_up_key`` is what the CLI has in place of the key.
    ``commands`` are the programs that keep commands from the CLI itself, path to text; empty where
    this kernel can't. ``complete``: every name in the scope's folders was looked at.
    """

    backend: Backend
    view: ConfinedView
    cli: str
    own: OwnFolder
    brokered: bool
    account: bool
    made_up_key: str
    commands: Mapping[str, str]
    copied_in: tuple[str, ...]
    copied_out: tuple[str, ...]
    env_names: tuple[str, ...]
    path: str
    complete: bool
    notes: tuple[str, ...]

    @property
    def env(self) -> dict[str, str]:
        """What the CLI's environment has instead of the host's."""
        found = {"CLAUDE_CONFIG_DIR": str(self.own.config), "PATH": self.path}
        found["GIT_CONFIG_NOSYSTEM"] = "1"  # /etc/gitconfig isn't there
        found["CLAUDE_CODE_SHELL_PREFIX"] = next(iter(self.commands), "")
        if not self.backend.own_tmp:
            found |= dict.fromkeys(("TMPDIR", "CLAUDE_CODE_TMPDIR"), str(self.own.tmp))
        return found

    def env_over(self, env: Mapping[str, str]) -> dict[str, str]:
        """The same, with what stands for the sign-in in ``env``, the host's whole environment."""
        found = {} if self.view.network else dict.fromkeys(_PROXIES, "")  # they may hold a login
        if self.brokered:
            found |= inside_env(env, key=self.made_up_key, socket=self.own.socket)
        return {**found, **self.env}


def own_folder(session_id: str) -> Path:
    """In the temporary folder, for this user alone.

    In ``/tmp`` when the process's own is no place for it: a Unix socket's path holds 107 bytes (103 on
    macOS), and where a path has a word that begins with ``-`` the CLI cuts it.
    """
    places = [
        OwnFolder(Path(top) / f"agent-kit-{os.getuid()}" / session_id)
        for top in (tempfile.gettempdir(), "/tmp")  # noqa: S108 - made for one user, and checked
    ]
    fits = (each for each in places if len(os.fsencode(each.socket)) <= _SOCKET_PATH)
    return next((each.path for each in fits if " -" not in str(each.path)), places[-1].path)


def plan_confinement(
    backend: Backend,
    *,
    config: SessionConfig,
    scope: FileScope,
    project: Path,
    session_id: str,
    places: CliLocations,
    env: Mapping[str, str],
    sources: Collection[str],
    memory_files: Sequence[Path],
    servers: Mapping[str, Any],
    commands: Sequence[str],
) -> Confinement:
    """Work out one session's confinement. ``env`` is the CLI's whole environment.

    Raises ConfigError when a program that is needed isn't there, and ConfinementUnavailableError
    when commands would come near a sign-in that no broker can stand in for.
    """
    unbrokered = broker_reason(env, places.config_dir)
    if unbrokered and commands and not config.expose_account:
        raise ConfinementUnavailableError(
            f"{', '.join(commands)} can run commands, and the sign-in can't be kept from them:"
            f" {unbrokered} Or set expose_account=True knowingly."
        )
    if unbrokered and config.confine_network:
        remedy = f"leave it out: without a broker the model is out of reach. {unbrokered}"
        raise ConfigError([Fault(field="confine_network", value=True, remedy=remedy)])
    closed = bool(commands) if config.confine_network is None else config.confine_network
    cli, programs = _programs(config, project, places, servers, env)
    confinement = confine_session(
        backend,
        scope=scope,
        cli=cli,
        project=project,
        session_id=session_id,
        encoded_project=encoded(Path(os.path.realpath(project))),
        sources=sources,
        memory_files=memory_files,
        programs=programs,
        scripts=tuple(_scripts(servers)),
        network=not closed or unbrokered is not None,
        brokered=unbrokered is None,
        account=unbrokered is not None,
        env_names=config.env,
        env_path=env.get("PATH", ""),
        prefix=env.get("CLAUDE_CODE_SHELL_PREFIX"),
        secrets=[name for name, server in servers.items() if _has_env(server)],
        git=config.confined_git,
    )
    if not confinement.complete and (commands or config.confinement == "required"):
        raise ConfinementUnavailableError(
            f"The session's folders hold more than {MAX_ENTRIES:,} names, and not all were looked at"
            " for what must be covered: open smaller folders."
        )
    if config.confinement == "auto" and config.confinement_backend is None and not commands:
        _judge_losses(backend, confinement.view)
    return confinement


def _judge_losses(backend: Backend, view: ConfinedView) -> None:
    """Raise ConfinementUnavailableError when a session that runs no commands would lose more by it."""
    if hindered := backend.hindered(view):
        raise ConfinementUnavailableError(
            f"{backend.name} alone works here, and it can't open all that the scope opens in"
            f" {', '.join(hindered)}, because of what is closed there: install bubblewrap, or say"
            " confinement='required' to do without."
        )


def _programs(
    config: SessionConfig,
    project: Path,
    places: CliLocations,
    servers: Mapping[str, Any],
    env: Mapping[str, str],
) -> tuple[str, list[Program]]:
    """The CLI, and every program that the session names. Raises ConfigError for those missing."""
    found, faults = [], []
    for field, name in (
        *(("confined_tools", name) for name in config.confined_tools),
        *((f"mcp_servers[{name!r}]", command) for name, command in _commands_of(servers)),
    ):
        path = str(absolute(name, project, places.home)) if "/" in name else name
        if (program := find_program(path, env)) is None:
            remedy = "there is no such program on PATH: install it, or write its absolute path."
            faults.append(Fault(field=field, value=name, remedy=remedy))
        else:
            found.append(program)
    given = config.cli_path and str(absolute(config.cli_path, project, places.home))
    cli = given or bundled_cli() or on_path("claude", env.get("PATH"))
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


def _has_env(server: Any) -> bool:
    return isinstance(server, Mapping) and bool(server.get("env") or server.get("headers"))


def _commands_of(servers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, server in servers.items():
        if isinstance(server, Mapping) and isinstance(command := server.get("command"), str):
            yield name, command


def _scripts(servers: Mapping[str, Any]) -> Iterator[str]:
    """The script that a server's command line names: its first absolute path of a file."""
    for server in servers.values():
        words = server.get("args") if isinstance(server, Mapping) else None
        named = (word for word in words or () if isinstance(word, str) and os.path.isabs(word))
        if (script := next(filter(os.path.isfile, named), None)) is not None:
            yield script


def confine_session(
    backend: Backend,
    *,
    scope: FileScope,
    cli: str,
    project: Path,
    session_id: str,
    encoded_project: str,
    sources: Collection[str],
    memory_files: Sequence[Path],
    programs: Sequence[Program],
    network: bool,
    scripts: Sequence[str] = (),
    brokered: bool,
    account: bool,
    env_names: Collection[str],
    env_path: str = "/usr/bin:/bin",
    prefix: str | None = None,
    secrets: Sequence[str] = (),
    git: bool = False,
) -> Confinement:
    """What is seen inside. ``account`` lets the runner's sign-in come along."""
    own = OwnFolder(own_folder(session_id))
    found = look(scope)
    real = os.path.realpath(project)
    python = interpreter()
    starts = start_programs(own.commands, python[0]) if python else {}
    needed = [*needed_folders([*programs, *([python] if python else ())])]
    needed += map(os.path.realpath, scripts)
    extra = [*_loaded_files(Path(real), sources, memory_files), os.path.realpath(cli), *needed]
    mounts = {mount.path: mount for mount in add(scope, found.mounts, extra)}
    if git and os.path.lexists(f"{real}/.git"):  # asked for, although a closed file may be in it
        mounts[f"{real}/.git"] = Mount(path=f"{real}/.git", sight=Sight.READ)
    for folder in (own.config, *([] if backend.own_tmp else [own.tmp])):
        mounts[str(folder)] = Mount(path=str(folder), sight=Sight.WRITE)
    mounts[str(own.commands)] = Mount(path=str(own.commands), sight=Sight.READ)
    view = ConfinedView(
        mounts=tuple(mounts[path] for path in sorted(mounts)),
        links=tuple(_links([str(project), *(path for path, _ in programs), *scripts], mounts)),
        system=SYSTEM,
        cwd=real,
        tmp=str(own.tmp),
        network=network,
        sockets=(own.socket,) if brokered else (),
    )
    if view.sight(os.path.realpath(cli)) is Sight.NOTHING:
        remedy = "the scope closes it: the CLI itself must be there inside."
        raise ConfigError([Fault(field="cli_path", value=cli, remedy=remedy)])
    copied_in, copied_out = _copies(encoded_project, session_id, sources, account)
    return Confinement(
        backend=backend,
        view=view,
        cli=os.path.realpath(cli),
        own=own,
        brokered=brokered,
        account=account,
        made_up_key=made_up_key(),
        commands=starts,
        copied_in=copied_in,
        copied_out=copied_out,
        env_names=tuple(env_names),
        path=_path(programs, env_path, view),
        complete=found.complete,
        notes=(
            *_notes(found.complete, network, account, needed, secrets),
            *(() if starts else (NOT_APART,)),
            *((_OWN_PREFIX,) if prefix else ()),
            *backend.notes(view),
        ),
    )


_OWN_PREFIX: Final = (
    "CLAUDE_CODE_SHELL_PREFIX is the kit's own inside: the one that is set is not used"
)


def _path(programs: Sequence[Program], path: str, view: ConfinedView) -> str:
    """``PATH`` inside: the named programs first, then what of the host's is seen there."""
    named = [os.path.dirname(program) for program, _ in programs]
    seen = [
        folder
        for folder in path.split(os.pathsep)
        if is_system(folder) or view.sight(os.path.realpath(folder)) is not Sight.NOTHING
    ]
    return os.pathsep.join(dict.fromkeys([*named, *filter(os.path.isabs, seen)]))


def _notes(
    complete: bool, network: bool, account: bool, needed: Sequence[str], secrets: Sequence[str]
) -> Iterator[str]:
    for name in secrets:
        yield f"what the server {name!r} has in its env or headers can be read inside"
    for folder in needed:
        yield f"{folder} exists inside, read-only: a program that runs there needs it"
    yield (
        "inside, denied patterns are covered as they are at the start: what appears later is refused"
        " by the gate and the rules alone"
    )
    if not complete:
        yield "not every name in the scope's folders was looked at for what must be covered inside"
    if not network:
        yield (
            "only the model's endpoint can be reached from inside: no web tool of the CLI, no server on"
            " the network. What the endpoint does with a request, such as a search, is its own"
        )
    if account:
        yield "the sign-in is inside, and the network open: no broker can stand in for it"


def _loaded_files(
    project: Path, sources: Collection[str], memory_files: Sequence[Path]
) -> Iterator[str]:
    """The files that the CLI itself reads at its start. A link is left to where it leads."""
    names = (*(_PROJECT_FILES if "project" in sources else ()),)
    names += _LOCAL_FILES if "local" in sources else ()
    for path in (*(project / name for name in names), *memory_files):
        if os.path.realpath(path) == str(path):
            yield str(path)


def _links(paths: Sequence[str], mounts: Mapping[str, Mount]) -> Iterator[tuple[str, str]]:
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


def _copies(
    encoded: str, session_id: str, sources: Collection[str], account: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What is copied into the session's configuration folder, and back out of it: names in it."""
    both = [f"projects/{encoded}/{session_id}.jsonl", f"projects/{encoded}/{session_id}"]
    both += [_CREDENTIALS] if account else []
    return (*both, *(_USER_PARTS if "user" in sources else ())), tuple(both)


def write_launcher(
    confinement: Confinement,
    host: Path,
    session_id: str,
    files: Sequence[str],
    env: Mapping[str, str],
) -> str:
    """Write the launcher and its description. Returns the launcher's path.

    ``files`` are what the CLI is told to read from the ``host/`` part, ``env`` is the host's whole
    environment.
    """
    view = confinement.view
    mounts = [*view.mounts, *(Mount(path=f, sight=Sight.READ, folder=False) for f in files)]
    view = replace(view, mounts=tuple(sorted(mounts)))
    launch = confinement.backend.launch(view)
    writable = [
        m.path for m in view.mounts if m.sight is Sight.WRITE and _is_scopes(m, confinement)
    ]
    description: dict[str, Any] = {
        "launch": {"argv": launch.argv, "text": launch.text},
        "cli": confinement.cli,
        "env": confinement.env_over(env),
        "env_names": [*ENV_NAMES, *ENV_PLAIN, *confinement.env_names],
        "env_starts": [*ENV_STARTS, *(ENV_ACCOUNT if confinement.account else ())],
        "env_secret": [] if confinement.account else ENV_SECRET,
        "own_folder": str(confinement.own.path),
        "made_folders": [str(confinement.own.config), view.tmp, str(confinement.own.commands)],
        "programs": dict(confinement.commands),
        "config_dir": str(confinement.own.config),
        "copied_in": confinement.copied_in,
        "copied_out": confinement.copied_out,
        "writable": writable,
        "control_names": CONTROL_NAMES,
        "removed": str(host / f"{session_id}.removed"),
        "broker": _broker(confinement),
    }
    path = write_private(host, f"{session_id}.launch.json", json.dumps(description))
    words = [sys.executable, "-I", "-S", launcher.__file__, str(path)]
    return str(write_program(host, f"{session_id}.launch", words))


def _broker(confinement: Confinement) -> dict[str, Any] | None:
    if not confinement.brokered:
        return None
    found = [importlib.util.find_spec(name) for name in _BROKER_NEEDS]
    folders = [
        os.path.dirname(os.path.dirname(each.origin)) for each in found if each and each.origin
    ]
    return {
        "socket": confinement.own.socket,
        "key": confinement.made_up_key,
        "paths": list(dict.fromkeys(map(os.path.abspath, folders))),
    }


def _is_scopes(mount: Mount, confinement: Confinement) -> bool:
    return not mount.path.startswith(str(confinement.own.path))
