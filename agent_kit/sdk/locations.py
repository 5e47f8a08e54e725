"""Where the CLI keeps its things (measured on CLI 2.1.332). No SDK needed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CliLocations", "OwnFolder", "bundled_cli", "encoded"]

_MAX_ENCODED = 200  # UTF-16 units; longer names are cut and get a checksum
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def bundled_cli() -> str | None:
    """The CLI that the SDK brings, without loading the SDK."""
    found = importlib.util.find_spec("claude_agent_sdk")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "_bundled"
    programs = (folder / name for name in ("claude", "claude.exe"))
    return next((str(program) for program in programs if program.is_file()), None)


@dataclass(frozen=True, slots=True)
class OwnFolder:
    """What lives only as long as one confined session. ``path`` is for this user alone."""

    path: Path

    @property
    def config(self) -> Path:
        """The CLI's configuration folder."""
        return self.path / "config"

    @property
    def tmp(self) -> Path:
        """The CLI's temporary folder, where ``/tmp`` isn't its own."""
        return self.path / "tmp"

    @property
    def commands(self) -> Path:
        """What starts a command inside."""
        return self.path / "commands"

    @property
    def socket(self) -> str:
        """Where the CLI asks the model."""
        return str(self.path / "model.sock")


class CliLocations:
    """The folders of a CLI that is started with environment ``env`` (whole, not only changes).

    ``own`` is the folder of a confined session: it keeps its configuration and its results there,
    and its temporary files unless ``own_tmp`` says that ``/tmp`` is its own already. ``config_dir``
    is the runner's all the same.
    """

    def __init__(
        self, env: Mapping[str, str], *, own: OwnFolder | None = None, own_tmp: bool = False
    ) -> None:
        self.home = Path(env.get("HOME") or os.path.expanduser("~"))
        configured = env.get("CLAUDE_CONFIG_DIR")
        self.config_dir = Path(configured) if configured else self.home / ".claude"
        self.session_config_dir = own.config if own else self.config_dir
        self._temporary = Path(env.get("CLAUDE_CODE_TMPDIR") or "/tmp")  # noqa: S108 (the CLI's)
        if own:
            self._temporary = Path("/tmp") if own_tmp else own.tmp  # noqa: S108 (inside)

    def account_files(self) -> tuple[str, ...]:
        """The files that hold the sign-in, wherever a CLI of this user may look for them."""
        folders = dict.fromkeys((self.home / ".claude", self.home, self.config_dir))
        return tuple(
            str(folder / name)
            for folder in folders
            for name in (".credentials.json", ".claude.json")
        )

    def tool_results_dir(self, project: Path, session_id: str) -> str:
        """Where the results of one session that are too long for the model are stored."""
        folder = self.session_config_dir / "projects" / encoded(project)
        return str(folder / session_id / "tool-results")

    def task_outputs_dir(self, project: Path, session_id: str) -> str | None:
        """Where one session's background tasks write; ``None`` where the CLI has no such folder."""
        if not hasattr(os, "getuid"):
            return None
        user = f"claude-{os.getuid()}"
        return str(self._temporary / user / encoded(project) / session_id / "tasks")


def encoded(project: Path) -> str:
    """A folder's name under ``projects/``: every UTF-16 unit but ASCII letters and digits is "-"."""
    raw = str(project).encode("utf-16-le", "surrogatepass")
    units = [int.from_bytes(raw[at : at + 2], "little") for at in range(0, len(raw), 2)]
    name = "".join(chr(u) if u < 128 and chr(u).isalnum() else "-" for u in units)
    if len(name) <= _MAX_ENCODED:
        return name
    return f"{name[:_MAX_ENCODED]}-{_checksum(units)}"


def _checksum(units: list[int]) -> str:
    """The CLI's own: a signed 32-bit polynomial hash of the units, its size in base 36."""
    total = 0
    for unit in units:
        total = (total * 31 + unit) & 0xFFFFFFFF
    size = abs(total - (1 << 32) if total >= 1 << 31 else total)
    digits = ""
    while size:
        size, digit = divmod(size, 36)
        digits = _DIGITS[digit] + digits
    return digits or "0"
