"""The system prompt: the spec's own words, the folders, and a section of each extension."""

from __future__ import annotations

from collections.abc import Sequence

from agent_kit.scope import ConfigError, Fault, FileScope
from agent_kit.session.config import SessionConfig
from agent_kit.session.extensions import Active
from agent_kit.session.spec import AgentSpec

__all__ = ["system_prompt"]


def system_prompt(
    spec: AgentSpec,
    config: SessionConfig,
    active: Active,
    scope: FileScope,
    *,
    no_network: bool = False,
    hindered: Sequence[str] = (),
) -> str:
    """``no_network``: there are commands, and they have none. ``hindered`` are folders that the kernel
    opens in part, as the model knows them.

    Raises ConfigError when the spec's function gives no text.
    """
    own = spec.system_prompt(config) if callable(spec.system_prompt) else spec.system_prompt
    if not isinstance(own, str):
        remedy = "the function must return a text."
        raise ConfigError([Fault(field="system_prompt", value=own, remedy=remedy)])
    sections = [own, _folders(scope, no_network, hindered)]
    sections += [c.prompt_section for c in active.contributions if c.prompt_section]
    if active.inactive:
        sections.append(_not_available(active))
    return "\n\n".join(section.strip() for section in sections if section and section.strip())


def _folders(scope: FileScope, no_network: bool, hindered: Sequence[str]) -> str:
    compiled = scope._compiled
    rows = (
        ("Write and edit files only inside", compiled.writable),
        ("Search with Grep only inside", compiled.searchable),
        ("Read and list files only inside", compiled.readable),
    )
    lines = [f"- {words} {_listed(dirs)}." for words, dirs in rows if dirs]
    lines += ["- Commands have no network."] if no_network else []
    lines += [_HINDERED.format(_listed(hindered))] if hindered else []
    if not lines:
        return ""
    return "\n".join(["# Folders", "Everything else on this machine is closed to you.", *lines])


_HINDERED = (
    "- Of {} itself the system may refuse listing, Glob, Grep and new files, because something in it is"
    " closed. Don't try that again: read and change files there by name, and list, search and make new"
    " ones in a folder below."
)


def _listed(dirs: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in dirs)


def _not_available(active: Active) -> str:
    lines = [f"- {name}: {reason}" for name, reason in active.inactive.items()]
    return "\n".join(["# Not available in this session", *lines])
