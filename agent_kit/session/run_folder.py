"""The run folder: its ``host/`` part, what is kept there, and what becomes of it."""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import shutil
import stat
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

from agent_kit.scope import ConfigError, Fault

__all__ = [
    "close_run_folder",
    "open_run_folder",
    "remove_old_runs",
    "write_private",
    "write_program",
]

_OWNER: Final = "owner"  # holds the id of the process that uses the folder
# What a running session needs. Sessions may share a run folder, so each file is <session id>.<name>.
_TEMPORARY: Final = (
    "settings.json",
    "mcp.json",
    "prompt.md",
    "cli",
    "launch",
    _OWNER,
)


def open_run_folder(run_dir: Path, session_id: str) -> Path:
    """Make the run folder and its ``host/`` part, both for this user alone. Returns the latter.

    Raises ``PermissionError`` when ``host`` is there already and is a link, or somebody else's:
    whoever could change what is in it could open the locks.
    """
    host = run_dir / "host"
    for folder in (run_dir, host):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_own(host):
        raise PermissionError(f"{host} is a link or another user's: name another run_dir")
    host.chmod(0o700)
    _clear_dead(run_dir)
    os.utime(run_dir)  # a resumed run is a new one
    write_private(host, f"{session_id}.{_OWNER}", str(os.getpid()))
    return host


def _is_own(folder: Path) -> bool:
    """Whether this is a real folder of this user."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and (os.name == "nt" or found.st_uid == os.getuid())


def write_private(host: Path, name: str, content: str | bytes) -> Path:
    """Write a file that only this user can read; it goes when the process ends, or before."""
    path = host / name
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # follows no link
    with os.fdopen(handle, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    atexit.register(_unlink, path)
    return path


def write_program(host: Path, name: str, words: Sequence[str]) -> Path:
    """Write a program that runs ``words``, and then its own arguments.

    Raises ConfigError where nothing can be run from ``host``.
    """
    path = write_private(host, name, f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o700)
    if not os.access(path, os.X_OK):
        remedy = "no program may be run from there: name a folder of another file system."
        raise ConfigError([Fault(field="run_dir", value=host.parent, remedy=remedy)])
    return path


def close_run_folder(run_dir: Path, session_id: str = "*") -> None:
    """Remove what only the running session needed, or any session. Links are not followed."""
    for name in _TEMPORARY:
        for path in _found(run_dir, f"{session_id}.{name}"):
            _unlink(path)


def _found(run_dir: Path, pattern: str) -> list[Path]:
    host = run_dir / "host"
    return list(host.glob(pattern)) if _is_own(host) else []


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def remove_old_runs(runs: Path, keep: int | timedelta) -> None:
    """Tidy an agent's run folders: the newest ``keep`` stay, or those younger, and each in use.

    What a killed host left behind in the ones that stay goes as well. Links are not followed.
    """
    try:
        folders = [entry for entry in runs.iterdir() if entry.is_dir() and not entry.is_symlink()]
    except OSError:
        return
    for at, (age, folder) in enumerate(sorted((_age(folder), folder) for folder in folders)):
        if _in_use(folder):
            continue
        close_run_folder(folder)
        if age >= keep if isinstance(keep, timedelta) else at >= keep:
            shutil.rmtree(folder, ignore_errors=True)


def _age(folder: Path) -> timedelta:
    """How long ago the run began, or was resumed; one that is just being removed is new."""
    try:
        return timedelta(seconds=time.time() - folder.stat().st_mtime)
    except OSError:
        return timedelta()


def _clear_dead(run_dir: Path) -> None:
    """Remove what sessions of killed hosts left here: their settings may hold a key."""
    living = {file.name for file in _found(run_dir, f"*.{_OWNER}") if _is_alive(file)}
    for name in _TEMPORARY:
        for path in _found(run_dir, f"*.{name}"):
            if f"{path.name.removesuffix(name)}{_OWNER}" not in living:
                _unlink(path)


def _in_use(folder: Path) -> bool:
    return any(map(_is_alive, _found(folder, f"*.{_OWNER}")))


def _is_alive(owner: Path) -> bool:
    if os.name == "nt":  # there os.kill would end it
        return True
    try:
        os.kill(int(owner.read_text(encoding="utf-8")), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return True
