"""``agent-kit doctor``: which locks work on this machine, why not, and what to do about it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from agent_kit import __version__
from agent_kit.confine.bubblewrap import DOCKER_FLAGS, PODMAN_FLAGS
from agent_kit.confine.choice import BACKENDS
from agent_kit.confine.programs import OFF_PATH
from agent_kit.confine.upstream import broker_reason
from agent_kit.sdk.locations import CliLocations, bundled_cli

__all__ = ["Check", "Diagnosis", "diagnose"]

# The releases that the tests run on.
OLDEST_SDK: Final = (0, 2, 177)
NEWEST_SDK: Final = (0, 2, 189)
NEWEST_CLI: Final = (2, 1, 332)
# The mark of a container may be left over from an image that a machine was made of: so the backends
# come first.
_CONTAINER: Final = (
    "see the backends below. If this is a container, start it so that bubblewrap works in it (docker run"
    f" {DOCKER_FLAGS} …, or podman run {PODMAN_FLAGS} …) or where its kernel and engine allow Landlock;"
    " or set confinement='external' if the container is the boundary."
)
_NOWHERE: Final = (
    "see the backends below; or set confinement='external' if a container around this process is the"
    " boundary."
)

_BUT: Final = {  # the first backend that works, and what it alone doesn't hold
    "landlock": ". By it alone a session without commands is not confined where something is closed in"
    " an open folder (a .git or a .env in a workspace): its plan says so, and confinement='required' or"
    " bubblewrap changes that",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at. ``remedy`` is empty where there is nothing to do."""

    name: str
    works: bool
    said: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """``locks`` are the four, in order; ``parts`` is what they stand on."""

    locks: tuple[Check, ...]
    parts: tuple[Check, ...]

    @property
    def works(self) -> bool:
        """Whether every lock works."""
        return all(check.works for check in self.locks)

    def as_json(self) -> dict[str, Any]:
        return {
            "works": self.works,
            "locks": [asdict(check) for check in self.locks],
            "parts": [asdict(check) for check in self.parts],
        }


def diagnose() -> Diagnosis:
    """Look at this machine, in this process's environment. Nothing is changed or sent."""
    sdk, cli = _sdk(), _cli()
    backends = tuple(_backends())
    return Diagnosis(
        locks=(*_hook_locks(sdk, cli), _kernel(backends)),
        parts=(_python(), sdk, cli, *backends, _key()),
    )


def _hook_locks(sdk: Check, cli: Check) -> Iterator[Check]:
    works = sdk.works and cli.works
    remedy = "" if works else sdk.remedy or cli.remedy
    for name, said in (
        ("gate", "a hook judges every file tool call"),
        ("rules", "the CLI's own rules say the same once more"),
        ("prompts", "prompts that mention closed files are blocked"),
    ):
        yield Check(
            name=name,
            works=works,
            said=said if works else "needs the SDK and its CLI, see below",
            remedy=remedy,
        )


def _kernel(backends: tuple[Check, ...]) -> Check:
    best = next((check for check in backends if check.works), None)
    if best is not None:
        said = f"the CLI and what it starts run confined to the scope, by {best.name}"
        return Check(name="kernel", works=True, said=said + _BUT.get(best.name, ""))
    nowhere = _CONTAINER if _in_container() else _NOWHERE
    return Check(
        name="kernel",
        works=False,
        said="nothing on this machine can confine the CLI; sessions with commands are refused",
        remedy=next((c.remedy for c in backends if c.said.endswith(OFF_PATH)), nowhere),
    )


def _python() -> Check:
    return Check(
        name="python",
        works=True,
        said=f"{platform.python_version()}, agent-kit {__version__}, {platform.platform()}",
    )


def _sdk() -> Check:
    try:
        version = importlib.metadata.version("claude-agent-sdk")
    except importlib.metadata.PackageNotFoundError:
        remedy = "pip install claude-agent-sdk"
        return Check(name="sdk", works=False, said="claude-agent-sdk is missing", remedy=remedy)
    found = _numbers(version)
    if found < OLDEST_SDK:
        return Check(
            name="sdk",
            works=False,
            said=f"claude-agent-sdk {version} is too old: its hooks can't block when they fail",
            remedy="pip install --upgrade claude-agent-sdk",
        )
    newer = " (newer than what was tested)" if found > NEWEST_SDK else ""
    return Check(name="sdk", works=True, said=f"claude-agent-sdk {version}{newer}")


def _cli() -> Check:
    program = bundled_cli()
    if program is None:
        return Check(
            name="cli",
            works=False,
            said="the SDK brings no CLI here",
            remedy="install a wheel of claude-agent-sdk for this platform, or give"
            " SessionConfig(cli_path=…)",
        )
    version = _bundled_version(Path(program))
    newer = " (newer than what was tested)" if _numbers(version) > NEWEST_CLI else ""
    return Check(name="cli", works=True, said=f"{version}{newer}, {program}")


def _bundled_version(program: Path) -> str:
    try:
        return program.with_name("claude.version").read_text(encoding="utf-8").split()[0]
    except (OSError, IndexError):
        return "of an unknown version"


def _backends() -> Iterator[Check]:
    for name, backend in BACKENDS.items():
        if (name == "seatbelt") != (sys.platform == "darwin"):
            continue
        reason = backend.available()
        said, remedy = _parted(reason or "works")
        yield Check(name=name, works=reason is None, said=said, remedy=remedy)


def _parted(reason: str) -> tuple[str, str]:
    """What is so and what to do, which stand on both sides of the first colon outside brackets."""
    depth = 0
    for at, letter in enumerate(reason):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and reason.startswith(": ", at):
            return reason[:at], reason[at + 2 :]
    return reason, ""


def _key() -> Check:
    reason = broker_reason(os.environ, CliLocations(os.environ).config_dir)
    if reason is None:
        return Check(name="key", works=True, said="a broker can keep it from a confined CLI")
    said, _, remedy = reason.partition(": ")
    return Check(
        name="key",
        works=False,
        said=f"{said}; any session needs a key or a sign-in, and a confined one with commands a key, or"
        " expose_account=True",
        remedy=remedy,
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _in_container() -> bool:
    return sys.platform == "linux" and (
        Path("/.dockerenv").exists() or Path("/run/.containerenv").exists()
    )
