"""Lock 4 for one session: which backend, what is seen inside, and how the CLI is started there."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from agent_kit.confine import _places as kept
from agent_kit.confine._tidying import neighbours, tidy_up_after_others
from agent_kit.confine.backend import Backend, ConfinementUnavailableError
from agent_kit.confine.commands import (
    LOADED,
    NOT_APART,
    SHARED,
    interpreter,
    start_programs,
    written,
)
from agent_kit.confine.first_program import MACHINES
from agent_kit.confine.landlock_rules import TooManyRules
from agent_kit.confine.looking import MAX_ENTRIES, add, look
from agent_kit.confine.programs import Program, needed_folders
from agent_kit.confine.system import SYSTEM, is_system, named_certificates
from agent_kit.confine.upstream import (
    broker_reason,
    inside_env,
    made_up_key,
    trust_faults,
    upstream_from,
)
from agent_kit.confine.view import ConfinedView, Mount, Sight
from agent_kit.scope import ConfigError, Fault, FileScope
from agent_kit.sdk.locations import CliLocations, OwnFolder, encoded
from agent_kit.session.config import SessionConfig
from agent_kit.session.inside import (
    copied_files,
    has_secrets,
    links_to,
    loaded_files,
    named_programs,
    named_scripts,
)
from agent_kit.session.locks import named
from agent_kit.session.paths import absolute

__all__ = [
    "Confinement",
    "SignInExposedError",
    "confine_session",
    "own_folder",
    "plan_confinement",
]

_PROXIES: Final = tuple(
    form for name in ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY") for form in (name, name.lower())
)
_SOCKET_PATH: Final = 103  # bytes
_NOTHING: Final = broker_reason({}, None)  # the reason where there is nothing to sign in with


class SignInExposedError(ConfinementUnavailableError):
    """Commands would come near a sign-in that no broker can stand in for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """One session's confinement, planned. Nothing is on the disk yet.

    ``own`` is the session's own folder, ``place`` what is noted of it for its end. ``made_up_key`` is what the CLI has in place of the key.
    ``commands`` are the programs that keep commands from the CLI itself, path to text; empty where
    this kernel can't. ``complete``: every name in the scope's folders was looked at.
    """

    backend: Backend
    view: ConfinedView
    cli: str
    own: OwnFolder
    place: str
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
        temporary = _temporary(self.backend, self.own)  # the host's own isn't there
        return found | dict.fromkeys(("TMPDIR", "CLAUDE_CODE_TMPDIR"), temporary)

    def env_over(self, env: Mapping[str, str]) -> dict[str, str]:
        """The same, with what stands for the sign-in in ``env``, the host's whole environment."""
        found = {} if self.view.network else dict.fromkeys(_PROXIES, "")  # they may hold a login
        if self.brokered:
            found |= inside_env(env, key=self.made_up_key, socket=self.own.socket)
        return {**found, **self.env}


def _temporary(backend: Backend, own: OwnFolder) -> str:
    """The temporary folder inside."""
    return "/tmp" if backend.own_tmp else str(own.tmp)  # noqa: S108


def own_folder(session_id: str) -> Path:
    """In the temporary folder, for this user alone.

    Elsewhere when the process's own is no place for it: a Unix socket's path holds 107 bytes (103 on
    macOS), where a path has a word that begins with ``-`` the CLI cuts it, and commands write in
    ``/tmp``. Raises ConfinementUnavailableError when there is no place.
    """
    places = [OwnFolder(Path(folder) / session_id) for folder in kept.own_folders()]
    fits = [each for each in places if len(os.fsencode(each.socket)) <= _SOCKET_PATH]
    whole = [each.path for each in fits if " -" not in str(each.path)]
    return Path(_first_usable([str(path.parent) for path in whole]), session_id)


def _first_usable(folders: Sequence[str]) -> str:
    faults = {folder: kept.fault_of(folder) for folder in folders}
    for folder, fault in faults.items():
        if fault is None:
            return folder
    said = "; ".join(filter(None, faults.values()))
    raise ConfinementUnavailableError(f"There is no place for a confined session's files: {said}.")


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
    starting: Sequence[str] = (),
) -> Confinement:
    """Work out one session's confinement. ``env`` is the CLI's whole environment.

    ``starting`` are the files of plugins that have the CLI start programs. Raises ConfigError when a
    program that is needed isn't there, and SignInExposedError when commands, or such programs, would
    come near a sign-in that no broker can stand in for.
    """
    tidy_up_after_others(str(own_folder(session_id)))  # what they left is not looked at
    unbrokered = broker_reason(env, places.config_dir)
    started = starting if unbrokered != _NOTHING else ()
    if unbrokered and (commands or started) and not config.expose_account:
        who = ", ".join((*map(named, commands), *started))
        raise SignInExposedError(
            f"{who} can run commands, and the sign-in can't be kept from them: {unbrokered} Or set"
            " expose_account=True knowingly."
        )
    if unbrokered and config.confine_network:
        remedy = f"leave it out: without a broker the model is out of reach. {unbrokered}"
        raise ConfigError([Fault(field="confine_network", value=True, remedy=remedy)])
    if unbrokered is None and (faults := list(trust_faults(upstream_from(env)))):
        raise ConfigError(faults)
    closed = bool(commands) if config.confine_network is None else config.confine_network
    writable = [str(absolute(each, project, places.home)) for each in scope.writable_dirs]
    cli, programs = named_programs(config, project, places, servers, env, writable)
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
        scripts=tuple(named_scripts(servers)),
        network=not closed or unbrokered is not None,
        brokered=unbrokered is None,
        account=unbrokered is not None,
        signed_in=unbrokered != _NOTHING,
        runs_commands=bool(commands),
        env_names=config.env,
        env_path=env.get("PATH", ""),
        prefix=env.get("CLAUDE_CODE_SHELL_PREFIX"),
        secrets=[name for name, server in servers.items() if has_secrets(server)],
        git=config.confined_git,
        certificates=tuple(named_certificates(env)),
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
    with _few_enough():
        hindered = backend.hindered(view)
    if hindered:
        raise ConfinementUnavailableError(
            f"{backend.name} is what works here, and it can't open all that the scope opens in"
            f" {', '.join(hindered)}: {_LOSSES[backend.name]}."
        )


@contextmanager
def _few_enough() -> Iterator[None]:
    """Too many rules for a kernel are a confinement that can't be had."""
    try:
        yield
    except TooManyRules as error:
        raise ConfinementUnavailableError(
            f"landlock can't hold this session: {error}. Move what is closed out of that folder, or"
            " install bubblewrap."
        ) from error


_LOSSES: Final = {
    "landlock": "something in them is closed. Install bubblewrap; or say confinement='required', and"
    " the session is confined, but lists those folders and makes new files there in part only",
    "bubblewrap": "they are another user's. Give them to root, or say confinement_backend='landlock';"
    " or say confinement='required', and the session is confined, but can't write there",
}


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
    signed_in: bool = True,
    runs_commands: bool = False,
    env_names: Collection[str],
    env_path: str = "/usr/bin:/bin",
    prefix: str | None = None,
    secrets: Sequence[str] = (),
    git: bool = False,
    certificates: Sequence[str] = (),
) -> Confinement:
    """What is seen inside. ``account`` lets the runner's sign-in come along, if there is one
    (``signed_in``)."""
    own = OwnFolder(own_folder(session_id))
    found = look(scope)
    real = os.path.realpath(project)
    python = interpreter()
    needed = [*needed_folders([*programs, *([python] if python else ())])]
    needed += map(os.path.realpath, scripts)
    extra = [*loaded_files(Path(real), sources, memory_files), os.path.realpath(cli), *needed]
    extra += certificates
    mounts = {
        mount.path: mount
        for mount in add(scope, found.mounts, extra)
        if own.path not in Path(mount.path).parents  # of an earlier run: it will be made anew
    }
    if git and os.path.lexists(f"{real}/.git"):  # asked for, although a closed file may be in it
        mounts[f"{real}/.git"] = Mount(path=f"{real}/.git", sight=Sight.READ)
    for folder in (own.config, *([] if backend.own_tmp else [own.tmp])):
        mounts[str(folder)] = Mount(path=str(folder), sight=Sight.WRITE)
    mounts[str(own.commands)] = Mount(path=str(own.commands), sight=Sight.READ)
    opened = written(mounts, str(own.config), _temporary(backend, own))
    starts = start_programs(own.commands, python[0], opened) if python else {}
    view = ConfinedView(
        mounts=tuple(mounts[path] for path in sorted(mounts)),
        links=tuple(links_to([str(project), *(path for path, _ in programs), *scripts], mounts)),
        system=SYSTEM,
        cwd=real,
        tmp=str(own.tmp),
        network=network,
        sockets=(own.socket,) if brokered else (),
    )
    view = _without_other_sessions(view, str(own.path.parent))
    if view.sight(os.path.realpath(cli)) is Sight.NOTHING:
        remedy = "the scope closes it: the CLI itself must be there inside."
        raise ConfigError([Fault(field="cli_path", value=cli, remedy=remedy)])
    apart = bool(starts) and opened is not None
    copied_in, copied_out = copied_files(encoded_project, session_id, sources, account, apart)
    with _few_enough():
        said = backend.notes(view)
    return Confinement(
        backend=backend,
        view=view,
        cli=os.path.realpath(cli),
        own=own,
        place=os.path.join(_first_usable(kept.notes_folders()), session_id),
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
            *_notes(found.complete, network, needed, secrets),
            *((_SIGN_IN_INSIDE,) if account and signed_in else ()),
            *((_NETWORK_OPEN,) if account and not signed_in and runs_commands else ()),
            *(
                _NEIGHBOUR.format(os.path.basename(n["own_folder"]))
                for n in neighbours(real, str(own.path))
            ),
            *(() if starts else (NOT_APART,)),
            *((LOADED,) if starts and os.uname().machine not in MACHINES else ()),
            *((SHARED,) if starts and not apart else ()),
            *((_SIGN_IN_STAYS,) if account and signed_in and not apart else ()),
            *((_OWN_PREFIX,) if prefix else ()),
            *said,
        ),
    )


def _without_other_sessions(view: ConfinedView, folder: str) -> ConfinedView:
    """Whatever a program needs: what other sessions have of their own isn't there."""
    hidden = [
        Mount(path=path, sight=Sight.NOTHING)
        for path in {folder, *filter(os.path.isdir, (*kept.own_folders(), *kept.notes_folders()))}
        if view.sight(path) is not Sight.NOTHING
    ]
    return replace(view, mounts=tuple(sorted((*view.mounts, *hidden))))


_NEIGHBOUR: Final = (
    "session {} is running and can write in this project: new control files of its are moved away when"
    " this one starts, but what it makes later is loaded here, with this session's rights"
)
_SIGN_IN_INSIDE: Final = (
    "what the CLI signs in with is inside, and the network open: no broker can stand in for it"
)
_NETWORK_OPEN: Final = "the network is open inside: there is no key that a broker could hold"
_SIGN_IN_STAYS: Final = (
    "a sign-in that the CLI renews inside is not brought back, since commands could have written it:"
    " you may have to sign in again"
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
    complete: bool, network: bool, needed: Sequence[str], secrets: Sequence[str]
) -> Iterator[str]:
    yield _INSIDE
    for name in secrets:
        yield f"what the server {name!r} has in its env or headers can be read inside"
    for folder in needed:
        yield f"{folder} exists inside, read-only: a program that runs there needs it"
    if not complete:
        yield "not every name in the scope's folders was looked at for what must be covered inside"
    if not network:
        yield (
            "only the model's endpoint can be reached from inside: no web tool of the CLI, no server on"
            " the network. What the endpoint does with a request, such as a search, is its own"
        )


_INSIDE: Final = (
    "inside, which is all that the CLI and what it starts can see while they are confined, denied"
    " patterns are covered as they are at the start: what appears later is refused by the gate and the"
    " rules alone"
)
