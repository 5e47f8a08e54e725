"""Where the CLI keeps its things (measured on CLI 2.1.332). No SDK needed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["CliLocations"]

_MAX_ENCODED = 200  # UTF-16 units; longer names are cut and get a checksum
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


class CliLocations:
    """The folders of a CLI that is started with environment ``env`` (whole, not only changes)."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.home = Path(env.get("HOME") or os.path.expanduser("~"))
        configured = env.get("CLAUDE_CONFIG_DIR")
        self.config_dir = Path(configured) if configured else self.home / ".claude"
        self._temporary = Path(env.get("CLAUDE_CODE_TMPDIR") or "/tmp")  # noqa: S108 (the CLI's)

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
        return str(self.config_dir / "projects" / _encoded(project) / session_id / "tool-results")

    def task_outputs_dir(self, project: Path, session_id: str) -> str | None:
        """Where one session's background tasks write; ``None`` where the CLI has no such folder."""
        if not hasattr(os, "getuid"):
            return None
        user = f"claude-{os.getuid()}"
        return str(self._temporary / user / _encoded(project) / session_id / "tasks")


def _encoded(project: Path) -> str:
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
