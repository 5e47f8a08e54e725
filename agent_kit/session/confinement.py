"""Lock 4 for one session: which backend, what is seen inside, and how the CLI is started there."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shlex
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import agent_kit
from agent_kit.confine import launcher
from agent_kit.confine.backend import Backend
from agent_kit.confine.looking import look
from agent_kit.confine.programs import Program, needed_folders
from agent_kit.confine.system import ENV_NAMES, ENV_SECRET, ENV_STARTS, SYSTEM
from agent_kit.confine.view import ConfinedView, Mount, Sight
from agent_kit.scope import FileScope
from agent_kit.scope.control import CONTROL_NAMES

__all__ = ["Confinement", "bundled_cli", "confine_session", "own_folder", "write_launcher"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """One session's confinement, planned. Nothing is on the disk yet.

    ``own_dir`` is a folder for what lives only as long as the session: its configuration folder, the
    broker's socket, temporary files. ``made_up_key`` is what the CLI has in place of the key. ``complete``: every name in the scope's folders was looked at.
    """

    backend: Backend
    view: ConfinedView
    cli: str
    own_dir: Path
    brokered: bool
    made_up_key: str
    copied_in: tuple[tuple[str, str], ...]
    copied_out: tuple[tuple[str, str], ...]
    env_names: tuple[str, ...]
    complete: bool

    @property
    def config_dir(self) -> Path:
        """The session's own configuration folder."""
        return self.own_dir / "config"

    @property
    def socket(self) -> str:
        return str(self.own_dir / "model.sock")

    @property
    def env(self) -> dict[str, str]:
        """What the CLI's environment has instead of the host's."""
        found = {"CLAUDE_CONFIG_DIR": str(self.config_dir)}
        if not self.backend.own_tmp:
            found |= dict.fromkeys(("TMPDIR", "CLAUDE_CODE_TMPDIR"), str(self.own_dir / "tmp"))
        if self.brokered:
            found |= {
                "ANTHROPIC_API_KEY": self.made_up_key,
                "ANTHROPIC_UNIX_SOCKET": self.socket,
            }
        return found


def bundled_cli() -> str | None:
    """The CLI that the SDK brings, without loading the SDK."""
    found = importlib.util.find_spec("claude_agent_sdk")
    if found is None or found.origin is None:
        return None
    cli = Path(found.origin).parent / "_bundled" / "claude"
    return str(cli) if cli.is_file() else None


def own_folder(session_id: str) -> Path:
    """Short, since a Unix socket's path holds 107 bytes; for this user alone."""
    return Path(tempfile.gettempdir()) / f"agent-kit-{os.getuid()}" / session_id


def confine_session(
    backend: Backend,
    *,
    scope: FileScope,
    cli: str,
    project: Path,
    session_id: str,
    runners_config: Path,
    encoded_project: str,
    sources: Collection[str],
    memory_files: Sequence[Path],
    programs: Sequence[Program],
    network: bool,
    brokered: bool,
    account: bool,
    env_names: Collection[str],
) -> Confinement:
    """Work out what is seen inside. ``runners_config`` is the runner's own configuration folder;
    ``account`` lets their sign-in come along.
    """
    own = own_folder(session_id)
    config_dir = own / "config"
    found = look(scope)
    real = os.path.realpath(project)
    extra = [*_loaded_files(Path(real), sources, memory_files), os.path.realpath(cli)]
    extra += needed_folders(programs)
    mounts = {mount.path: mount for mount in found.mounts}
    for path in extra:
        if path not in mounts and os.path.lexists(path):
            mounts[path] = Mount(path=path, sight=Sight.READ, folder=os.path.isdir(path))
    for folder in (config_dir, *([] if backend.own_tmp else [own / "tmp"])):
        mounts[str(folder)] = Mount(path=str(folder), sight=Sight.WRITE)
    view = ConfinedView(
        mounts=tuple(mounts[path] for path in sorted(mounts)),
        links=tuple(_links([str(project), *(path for path, _ in programs)], mounts)),
        system=SYSTEM,
        cwd=real,
        tmp=str(own / "tmp"),
        network=network,
        sockets=(str(own / "model.sock"),) if brokered else (),
    )
    copied_in, copied_out = _copies(
        config_dir, runners_config, encoded_project, session_id, sources, account
    )
    return Confinement(
        backend=backend,
        view=view,
        cli=os.path.realpath(cli),
        own_dir=own,
        brokered=brokered,
        made_up_key=f"sk-ant-confined-{secrets.token_hex(16)}",
        copied_in=copied_in,
        copied_out=copied_out,
        env_names=tuple(env_names),
        complete=found.complete,
    )


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
                if not _is_mounted(each, mounts):
                    yield each, os.path.realpath(each)
            here = os.path.realpath(each)


def _is_mounted(path: str, mounts: Mapping[str, Mount]) -> bool:
    while path != "/":
        if path in mounts:
            return True
        path = os.path.dirname(path)
    return False


def _copies(
    config_dir: Path,
    runners: Path,
    encoded: str,
    session_id: str,
    sources: Collection[str],
    account: bool,
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """What is copied into the session's configuration folder, and back out of it."""
    transcripts = [f"projects/{encoded}/{session_id}.jsonl", f"projects/{encoded}/{session_id}"]
    both = [*transcripts, *([_CREDENTIALS] if account else [])]
    into = [*both, *(_USER_PARTS if "user" in sources else ())]
    return (
        tuple((str(runners / name), str(config_dir / name)) for name in into),
        tuple((str(config_dir / name), str(runners / name)) for name in both),
    )


def write_launcher(
    confinement: Confinement, host: Path, session_id: str, files: Sequence[str]
) -> tuple[str, str]:
    """Write the launcher and its description. Returns both paths; the first is the ``cli_path``.

    ``files`` are what the CLI is told to read from the ``host/`` part.
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
        "env": confinement.env,
        "env_names": [*ENV_NAMES, *confinement.env_names],
        "env_starts": ENV_STARTS,
        "env_secret": ENV_SECRET,
        "own_folder": str(confinement.own_dir),
        "made_folders": [str(confinement.config_dir), view.tmp],
        "copied_in": confinement.copied_in,
        "copied_out": confinement.copied_out,
        "writable": writable,
        "known_control_files": list(_present(writable)),
        "control_names": CONTROL_NAMES,
        "report": str(host / f"{session_id}.removed.txt"),
        "broker": {"socket": confinement.socket, "key": confinement.made_up_key}
        if confinement.brokered
        else None,
        "kit": str(Path(agent_kit.__file__).parents[1]),
    }
    path = host / f"{session_id}.launch.json"
    path.write_text(json.dumps(description), encoding="utf-8")
    path.chmod(0o600)
    start = host / f"{session_id}.launch"
    words = [sys.executable, "-I", "-S", launcher.__file__, str(path)]
    start.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
    start.chmod(0o700)
    return str(start), str(path)


def _is_scopes(mount: Mount, confinement: Confinement) -> bool:
    return not mount.path.startswith(str(confinement.own_dir))


def _present(tops: Sequence[str]) -> Iterator[str]:
    names = set(CONTROL_NAMES)
    for top in tops:
        yield from launcher.control_files(top, names)
