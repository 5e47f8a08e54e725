"""The run folder: its ``host/`` part, what is kept there, and what becomes of it."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["open_run_folder", "remove_old_runs", "write_private"]

_OWNER: Final = "owner"  # holds the id of the process that uses the folder
_TEMPORARY: Final = ("settings.json", "mcp.json")


def open_run_folder(run_dir: Path) -> Path:
    """Make the run folder and its ``host/`` part, both for this user alone. Returns the latter."""
    host = run_dir / "host"
    for folder in (run_dir, host):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (host / _OWNER).write_text(str(os.getpid()), encoding="utf-8")
    return host


def write_private(host: Path, name: str, content: Mapping[str, Any]) -> Path:
    """Write JSON that only this user can read; it goes when the process ends, or before."""
    path = host / name
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(content, file)
    atexit.register(_unlink, path)
    return path


def close_run_folder(run_dir: Path) -> None:
    """Remove what only a running session needs."""
    for name in (*_TEMPORARY, _OWNER):
        _unlink(run_dir / "host" / name)


def _unlink(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def remove_old_runs(runs: Path, keep: int) -> None:
    """Tidy an agent's run folders: the newest ``keep`` stay, and each that is in use.

    What a killed host left behind in the ones that stay goes as well.
    """
    try:
        folders = [entry for entry in runs.iterdir() if entry.is_dir() and not entry.is_symlink()]
    except OSError:
        return
    folders.sort(key=_age)
    for at, folder in enumerate(folders):
        if _in_use(folder):
            continue
        close_run_folder(folder)
        if at >= keep:
            shutil.rmtree(folder, ignore_errors=True)


def _age(folder: Path) -> float:
    try:
        return -folder.stat().st_mtime
    except OSError:
        return 0.0


def _in_use(folder: Path) -> bool:
    try:
        owner = int((folder / "host" / _OWNER).read_text(encoding="utf-8"))
        os.kill(owner, 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True
