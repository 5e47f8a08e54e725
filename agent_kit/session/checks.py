"""What is wrong with a session's folders, all of it, each with the field, the value and a remedy."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from agent_kit.confine._places import notes_folders, own_folders
from agent_kit.scope import Code, Fault, FileScope, explain_file_scope
from agent_kit.scope.patterns import is_pattern, unescaped
from agent_kit.sdk.locations import CliLocations
from agent_kit.session.config import SessionConfig
from agent_kit.session.extensions import Active
from agent_kit.session.folders import Folders
from agent_kit.session.paths import absolute, inside, resolved
from agent_kit.session.spec import AgentSpec

__all__ = ["disk_faults", "environment_faults", "pattern_faults", "role_faults", "type_faults"]


def type_faults(*wanted: tuple[str, object, type]) -> list[Fault]:
    """Of arguments, each with its name and its type: they are easily swapped."""
    return [
        Fault(
            field=name, value=type(value).__name__, remedy=f"give {_with_article(kind.__name__)}."
        )
        for name, value, kind in wanted
        if not isinstance(value, kind)
    ]


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def environment_faults(env: Mapping[str, str]) -> Iterator[Fault]:
    """Variables that would make the CLI keep its things where the plan doesn't look."""
    if env.get("CLAUDE_CONFIG_DIR") == "":
        yield Fault(
            field="env",
            value={"CLAUDE_CONFIG_DIR": ""},
            remedy="the CLI takes the working folder for its config folder then: unset it, or give"
            " SessionConfig.config_dir.",
        )
    if not os.path.isabs(home := env.get("HOME", "/")):
        yield Fault(field="env", value={"HOME": home}, remedy="give an absolute path.")


def disk_faults(spec: AgentSpec, config: SessionConfig, project: Path, home: Path) -> list[Fault]:
    """Folders that are missing, that are files, or that are links in a circle."""
    name = "project_dir" if config.workspace is None else "workspace"
    if (fault := _folder_fault(name, config.project_dir, project)) is not None:
        return [fault]  # everything else is relative to it
    rows = [
        (name, text)
        for name in ("extra_writable_dirs", "extra_readable_dirs")
        for text in getattr(config, name)
    ]
    rows += [("plugins", text) for text in spec.plugins]
    found = [_folder_fault(name, text, absolute(text, project, home)) for name, text in rows]
    found += [
        _new_folder_fault(name, text, absolute(text, project, home))
        for name in ("run_dir", "config_dir")
        if (text := getattr(config, name)) is not None
    ]
    faults = [fault for fault in found if fault is not None]
    if config.cli_path is not None and not absolute(config.cli_path, project, home).is_file():
        remedy = "there is no such file: correct the path."
        faults.append(Fault(field="cli_path", value=config.cli_path, remedy=remedy))
    return faults


def _folder_fault(name: str, text: object, path: Path) -> Fault | None:
    try:
        path.stat()
    except FileNotFoundError:
        remedy = "there is no such folder: create it, or correct the path."
    except OSError as error:
        remedy = f"the folder can't be reached ({error.strerror}): mend the link."
    else:
        if path.is_dir():
            return None
        remedy = "this is a file: name the folder that it is in."
    where = f" (it means {path})" if str(text) != str(path) else ""
    return Fault(field=name, value=text, remedy=remedy + where)


def _new_folder_fault(name: str, text: object, path: Path) -> Fault | None:
    """The fault of a folder that may still be missing."""
    return _folder_fault(name, text, path) if os.path.lexists(path) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """A folder in a role: who claims it, under which field."""

    owner: str
    name: str
    role: str
    text: str
    path: Path
    real: str

    @property
    def field(self) -> str:
        return f"{self.owner}.{self.name}" if self.owner else self.name


_OWN_ROLES: Final = {
    "extra_writable_dirs": "writable",
    "extra_readable_dirs": "readable",
    "denied_paths": "denied",
}


def _claims(config: SessionConfig, active: Active, project: Path, home: Path) -> list[_Claim]:
    rows = [
        ("", name, role, str(text))
        for name, role in _OWN_ROLES.items()
        for text in getattr(config, name)
    ]
    for extension, brought in zip(active.extensions, active.contributions, strict=False):
        lists = {
            "read_only": brought.read_only_dirs,
            "readable": brought.readable_dirs,
            "writable": brought.writable_dirs,
            "tool_only": tuple(entry.dir for entry in brought.tool_only_dirs),
        }
        rows += [
            (extension.name, f"{role}_dirs", role, text)
            for role, texts in lists.items()
            for text in texts
        ]
        rows += [(extension.name, "denied_paths", "denied", t) for t in brought.denied_paths]
    return [
        _Claim(
            owner=owner,
            name=name,
            role=role,
            text=text,
            path=(path := absolute(_plain(role, text), project, home)),
            real=resolved(path),
        )
        for owner, name, role, text in rows
        if role != "denied" or not is_pattern(text)
    ]


def _plain(role: str, text: str) -> str:
    """The name that an entry stands for: a denied one may hold escapes."""
    return unescaped(text) if role == "denied" else text


# A folder of the first role may not lie in (or be) one of the second: it would mean nothing.
_USELESS: Final = {
    ("writable", "read_only"): "originals are never written",
    ("writable", "tool_only"): "it is reached only through tools",
    ("readable", "tool_only"): "it is reached only through tools",
    ("read_only", "tool_only"): "it is reached only through tools",
}


def role_faults(
    config: SessionConfig,
    active: Active,
    folders: Folders,
    project: Path,
    run_dir: Path,
    places: CliLocations,
) -> list[Fault]:
    """Folders whose roles contradict each other, and folders that would undo the locks."""
    claims = _claims(config, active, project, places.home)
    faults = [
        fault
        for claim in claims
        if claim.owner and claim.role != "denied"
        if (fault := _new_folder_fault(claim.field, claim.text, claim.path)) is not None
    ]
    faults += _overlap_faults([claim for claim in claims if claim.role != "denied"])
    faults += _closed_faults(claims, {"the project": project, "the run folder": run_dir})
    faults += _run_dir_faults(config, run_dir, project, places)
    for claim in claims:
        if claim.role in ("writable", "readable", "read_only"):
            faults += _sessions_faults(claim)
        if claim.role == "writable":
            faults += _protected_faults(claim, folders, run_dir, places)
    faults += _cli_faults(config, claims, project, places)
    said = {(fault.field, fault.value) for fault in faults}
    faults += (f for f in _led_out_faults(claims, project) if (f.field, f.value) not in said)
    return faults


def _overlap_faults(claims: list[_Claim]) -> Iterator[Fault]:
    for at, one in enumerate(claims):
        for other_at, other in enumerate(claims):
            if at == other_at or not inside(one.real, other.real):
                continue
            why = _conflict(one, other)
            if why is None or (one.real == other.real and _conflict(other, one) and at > other_at):
                continue  # one folder in two roles is one fault
            who = f"{other.owner}'s {other.text!r}" if other.owner else repr(other.text)
            yield Fault(
                field=one.field,
                value=one.text,
                remedy=f"it lies in {who}, and {why}: choose another folder.",
            )


def _led_out_faults(claims: list[_Claim], project: Path) -> Iterator[Fault]:
    """Folders in the project that are links out of it: it would be the project that names a folder."""
    for claim in claims:
        if claim.role != "denied" and _is_led_out(claim.path, project):
            yield Fault(
                field=claim.field,
                value=claim.text,
                remedy=f"a link leads from it out of the project, to {os.path.realpath(claim.path)}:"
                " name that folder itself.",
            )


def _is_led_out(path: Path, project: Path) -> bool:
    return path.is_relative_to(project) and not inside(resolved(path), resolved(project))


def _conflict(one: _Claim, other: _Claim) -> str | None:
    if (useless := _USELESS.get((one.role, other.role))) is not None:
        return useless
    if not one.owner or not other.owner or one.owner == other.owner:
        return None
    if one.role != other.role:
        return "the two have different roles"
    return "each has tools of its own" if one.role == "tool_only" else None


def _closed_faults(claims: list[_Claim], held: Mapping[str, Path]) -> Iterator[Fault]:
    reals = {what: resolved(path) for what, path in held.items()}
    for claim in claims:
        if claim.role not in ("denied", "tool_only"):
            continue
        if holds := [what for what, real in reals.items() if inside(real, claim.real)]:
            remedy = f"it holds {' and '.join(holds)}: close something inside."
            yield Fault(field=claim.field, value=claim.text, remedy=remedy)


def pattern_faults(scope: FileScope, project: Path, run_dir: Path) -> Iterator[Fault]:
    """Denied patterns that match the project or the run folder."""
    matches: dict[str, list[str]] = {}
    for what, path in {"the project": project, "the run folder": run_dir}.items():
        decision = explain_file_scope(scope, "Read", {"file_path": str(path)})
        if decision.code is Code.DENIED_PATTERN and decision.entry is not None:
            matches.setdefault(decision.entry, []).append(what)
    for entry, whats in matches.items():
        remedy = f"the pattern matches {' and '.join(whats)}: deny something inside."
        yield Fault(field="denied_paths", value=entry, remedy=remedy)


def _run_dir_faults(
    config: SessionConfig, run_dir: Path, project: Path, places: CliLocations
) -> Iterator[Fault]:
    """The agent may read the run folder, so it may be nobody else's."""
    held = {
        "the project": project,
        "the home folder": places.home,
        "the CLI's config folder": places.config_dir,
        **{f"what confined sessions have ({path})": Path(path) for path in _sessions_folders()},
    }
    for what, path in held.items():
        if config.run_dir is not None and inside(resolved(path), resolved(run_dir)):
            remedy = (
                f"it holds {what}, and the agent may read all of the run folder: name a new one."
            )
            yield Fault(field="run_dir", value=config.run_dir, remedy=remedy)
            return
    if _is_led_out(run_dir, project):
        remedy = "a link leads from it out of the project: name that folder itself."
        yield Fault(field="run_dir", value=config.run_dir, remedy=remedy)


def _sessions_folders() -> tuple[str, ...]:
    return (*own_folders(), *notes_folders())


def _sessions_faults(claim: _Claim) -> Iterator[Fault]:
    """What confined sessions have of their own, and what is done at their ends, is no session's."""
    for path in _sessions_folders():
        how = "lies in" if inside(claim.real, path) else "holds"
        held = claim.role == "writable" and inside(path, claim.real)  # read, a confinement hides it
        if inside(claim.real, path) or held:
            yield Fault(
                field=claim.field,
                value=claim.text,
                remedy=f"it {how} what confined sessions have of their own ({path}): name a folder"
                " inside, or set TMPDIR to another one.",
            )
            return


def _cli_faults(
    config: SessionConfig, claims: list[_Claim], project: Path, places: CliLocations
) -> Iterator[Fault]:
    """A CLI that is found by a link in a writable folder: a command could lead it elsewhere."""
    if config.cli_path is None:
        return
    at = "/"
    for name in absolute(config.cli_path, project, places.home).parts[1:]:
        each = os.path.join(at, name)
        if os.path.islink(each) and any(
            claim.role == "writable" and inside(resolved(at), claim.real) for claim in claims
        ):
            remedy = f"{each} is a link in a writable folder: name the file that it leads to."
            yield Fault(field="cli_path", value=config.cli_path, remedy=remedy)
            return
        at = os.path.realpath(each)


_library = cache(sysconfig.get_path)


def _protected_faults(
    claim: _Claim, folders: Folders, run_dir: Path, places: CliLocations
) -> Iterator[Fault]:
    kit, config = str(Path(__file__).parents[1]), str(places.config_dir)
    whole = [("the run folder", str(run_dir)), ("the CLI's config folder", config)]
    # What lies in a workspace is read-only there.
    own = {each.path for each in folders.own_code}
    code = [each for each in folders.code if each.path not in own]
    whole += [(each.what, each.path) for each in code]
    parts = [
        ("the CLI's config folder", config),
        ("agent-kit itself", kit),
        ("the Python library", _library("stdlib")),
        ("the Python library", _library("purelib")),
    ]
    parts += [(each.what, each.path) for each in code if each.whole]
    rows = [("holds", *row) for row in whole if inside(resolved(row[1]), claim.real)]
    rows += [("lies in", *row) for row in parts if inside(claim.real, resolved(row[1]))]
    for how, what, path in {row[1]: row for row in rows}.values():
        yield Fault(
            field=claim.field,
            value=claim.text,
            remedy=f"it {how} {what} ({path}): an agent that writes there could open its locks;"
            " choose another folder.",
        )
