"""What is wrong with a session's folders, all of it, each with the field, the value and a remedy."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent_kit.scope import Fault
from agent_kit.scope.patterns import is_pattern
from agent_kit.sdk.locations import CliLocations
from agent_kit.session.config import SessionConfig
from agent_kit.session.extensions import Active
from agent_kit.session.spec import AgentSpec

__all__ = ["disk_faults", "role_faults"]


def disk_faults(spec: AgentSpec, config: SessionConfig, project: Path) -> list[Fault]:
    """Folders that are missing, that are files, or that are links in a circle."""
    if (fault := _folder_fault("project_dir", config.project_dir, project)) is not None:
        return [fault]  # everything else is relative to it
    rows = [
        (name, text)
        for name in ("extra_writable_dirs", "extra_readable_dirs")
        for text in getattr(config, name)
    ]
    rows += [("plugins", text) for text in spec.plugins]
    faults = [_folder_fault(name, text, _absolute(text, project)) for name, text in rows]
    if config.run_dir is not None:
        run_dir = _absolute(str(config.run_dir), project)
        if run_dir.exists() and not run_dir.is_dir():
            faults.append(Fault(field="run_dir", value=config.run_dir, remedy="it is a file."))
    return [fault for fault in faults if fault is not None]


def _absolute(text: str, project: Path) -> Path:
    return Path(os.path.normpath(project / Path(text).expanduser()))


def _folder_fault(name: str, text: object, path: Path) -> Fault | None:
    try:
        path.stat()
    except FileNotFoundError:
        remedy = "there is no such folder: create it, or correct the path."
    except (OSError, RuntimeError) as error:
        remedy = (
            f"the folder can't be reached ({getattr(error, 'strerror', error)}): mend the link."
        )
    else:
        if path.is_dir():
            return None
        remedy = "this is a file: name the folder that it is in."
    where = f" (it means {path})" if str(text) != str(path) else ""
    return Fault(field=name, value=text, remedy=remedy + where)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """A folder in a role: who claims it, under which field."""

    owner: str
    field: str
    role: str
    text: str
    path: str  # links resolved


def _claims(config: SessionConfig, active: Active, project: Path) -> list[_Claim]:
    rows = [("", "extra_writable_dirs", "writable", str(t)) for t in config.extra_writable_dirs]
    rows += [("", "extra_readable_dirs", "readable", str(t)) for t in config.extra_readable_dirs]
    for extension, brought in zip(active.extensions, active.contributions, strict=False):
        for role in ("read_only", "readable", "writable"):
            rows += [
                (extension.name, f"{role}_dirs", role, t) for t in getattr(brought, f"{role}_dirs")
            ]
        rows += [
            (extension.name, "tool_only_dirs", "tool_only", e.dir) for e in brought.tool_only_dirs
        ]
    return [
        _Claim(
            owner=owner,
            field=field,
            role=role,
            text=text,
            path=os.path.realpath(_absolute(text, project)),
        )
        for owner, field, role, text in rows
    ]


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


# A folder of the first role may not lie in (or be) one of the second: it would mean nothing.
_USELESS = {
    ("writable", "read_only"): "originals are never written",
    ("writable", "tool_only"): "it is reached only through tools",
    ("readable", "tool_only"): "it is reached only through tools",
    ("read_only", "tool_only"): "it is reached only through tools",
}


def role_faults(
    spec: AgentSpec,
    config: SessionConfig,
    active: Active,
    project: Path,
    run_dir: Path,
    places: CliLocations,
) -> list[Fault]:
    """Folders whose roles contradict each other, and folders that would undo the locks."""
    claims = _claims(config, active, project)
    faults = list(_overlap_faults(claims))
    faults += _denied_faults(config, project, run_dir)
    protected = {
        "the run folder": str(run_dir),
        "the CLI's config folder": str(places.config_dir),
        "agent-kit itself": str(Path(__file__).parents[1]),
        "the Python interpreter": sys.prefix,
    }
    if spec._defined_in is not None:
        protected["the module that defines the spec"] = spec._defined_in
    for claim in claims:
        if claim.role == "writable":
            faults += _protected_faults(claim, protected)
    return faults


def _overlap_faults(claims: list[_Claim]) -> Iterator[Fault]:
    for one in claims:
        for other in claims:
            if one is other or not _inside(one.path, other.path):
                continue
            useless = _USELESS.get((one.role, other.role))
            both = one.owner and other.owner and one.owner != other.owner
            if useless is None and not (both and one.role != other.role):
                continue
            who = f"{other.owner}'s {other.text!r}" if other.owner else repr(other.text)
            why = f" {useless}" if useless else " the two have different roles"
            yield Fault(
                field=f"{one.owner}.{one.field}" if one.owner else one.field,
                value=one.text,
                remedy=f"it lies in {who}, and{why}: choose another folder.",
            )


def _denied_faults(config: SessionConfig, project: Path, run_dir: Path) -> list[Fault]:
    held = {"the project": str(project), "the run folder": str(run_dir)}
    return [
        Fault(field="denied_paths", value=text, remedy=f"it holds {what}: deny something inside.")
        for text in map(str, config.denied_paths)
        if not is_pattern(text)
        for what, path in held.items()
        if _inside(path, str(_absolute(text, project)))
        or _inside(os.path.realpath(path), os.path.realpath(_absolute(text, project)))
    ]


def _protected_faults(claim: _Claim, protected: dict[str, str]) -> list[Fault]:
    return [
        Fault(
            field=f"{claim.owner}.{claim.field}" if claim.owner else claim.field,
            value=claim.text,
            remedy=f"it holds {what} ({path}): an agent that writes there could open its locks;"
            " choose a folder inside.",
        )
        for what, path in protected.items()
        if _inside(os.path.realpath(path), claim.path)
    ]
