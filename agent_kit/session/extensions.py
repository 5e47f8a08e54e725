"""Which extensions of a spec run in a session, and what they bring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_kit.extension import Contribution, Extension, ExtensionContext
from agent_kit.scope import ConfigError, Fault
from agent_kit.session.config import SessionConfig
from agent_kit.session.spec import AgentSpec

__all__ = ["Active", "resolve_extensions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Active:
    """The extensions that run, each with its contribution; the others with the reason."""

    extensions: tuple[Extension, ...]
    contributions: tuple[Contribution, ...]
    inactive: Mapping[str, str]
    faults: tuple[Fault, ...] = ()


def resolve_extensions(
    spec: AgentSpec, config: SessionConfig, project: Path, run_dir: Path
) -> Active:
    """Ask each extension whether it can run, until nothing changes; then what it brings.

    One whose requirements no active extension provides is inactive, and may make others so.
    """
    active = list(spec.extensions)
    inactive: dict[str, str] = {}
    faults = _name_faults(active)
    changed = True
    while changed and not faults:
        context = _context(spec, config, project, run_dir, active)
        changed = False
        for extension in list(active):
            if (reason := _why_not(extension, context)) is not None:
                active.remove(extension)
                inactive[extension.name] = reason
                changed = True
    context = _context(spec, config, project, run_dir, active)
    contributions: list[Contribution] = []
    for extension in active if not faults else ():
        try:
            contributions.append(extension.contribute(context))
        except ConfigError as error:
            faults += error.faults
    return Active(
        extensions=tuple(active),
        contributions=tuple(contributions),
        inactive=inactive,
        faults=tuple(faults),
    )


def _context(
    spec: AgentSpec, config: SessionConfig, project: Path, run_dir: Path, active: list[Extension]
) -> ExtensionContext:
    return ExtensionContext(
        config=config,
        spec=spec,
        project_dir=project,
        run_dir=run_dir,
        mode=config.mode,
        capabilities=frozenset(name for extension in active for name in extension.provides),
    )


def _why_not(extension: Extension, context: ExtensionContext) -> str | None:
    lacking = [name for name in extension.requires if name not in context.capabilities]
    if lacking:
        return f"it needs {', '.join(lacking)}, which no active extension provides."
    return extension.missing(context)


def _name_faults(extensions: list[Extension]) -> list[Fault]:
    names = [extension.name for extension in extensions]
    return [
        Fault(field="extensions", value=name, remedy="two extensions have this name: take one out.")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
