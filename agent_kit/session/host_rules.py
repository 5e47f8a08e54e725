"""What ``ClaudeAgentOptions`` say of tools, and what of them can't stand beside the locks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from claude_agent_sdk import ClaudeAgentOptions

from agent_kit.scope import Fault
from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.session.config import SessionConfig
from agent_kit.session.flags import is_harmless
from agent_kit.session.promise import read_settings
from agent_kit.session.tool_names import meant

__all__ = [
    "AGENT_PARTS",
    "REFUSED",
    "bare",
    "host_rules",
    "is_plain",
    "is_several",
    "is_whole_file_tool",
    "kept_faults",
    "listed",
    "moved_faults",
    "named_skills",
    "unasked",
]

# Options that can't be kept beside the locks, and where to say it instead.
REFUSED: Final = {
    "add_dirs": "take it out: name the folders in the config's extra_readable_dirs.",
    "permission_prompt_tool_name": "take it out: it would take the CLI's questions away from the kit.",
    "sandbox": "take it out: it would rewrite the settings that hold the rules.",
    "continue_conversation": "take it out: the session's id must be known. Give its id as resume.",
    "fork_session": "take it out: the session's id must be known beforehand.",
}


def bare(tool: str) -> str:
    """The tool that an entry or a rule is about."""
    return tool.partition("(")[0].strip()


def is_plain(tool: str) -> bool:
    """A tool's name, and neither a rule nor a pattern of names."""
    return "(" not in tool and "*" not in tool


def is_several(name: str) -> bool:
    """Whether the CLI would split this entry into several tools."""
    return "," in name or " " in name


def listed(tools: Any) -> list[str] | None:
    """The tools by name; ``None`` when they were left open."""
    return list(tools) if isinstance(tools, (list, tuple)) else None


def _is_whole(rule: str) -> bool:
    """Whether an entry allows a tool as a whole: as ``Read``, ``Read()`` or ``Read(*)``."""
    return rule.strip() == bare(rule) or rule.strip()[len(bare(rule)) :] in ("()", "(*)")


def is_whole_file_tool(rule: object) -> bool:
    return isinstance(rule, str) and bare(rule) in FILE_TOOLS and _is_whole(rule)


def host_rules(options: ClaudeAgentOptions) -> list[str]:
    """What ``allowed_tools`` allows beside file tools."""
    return [
        bare(rule) if _is_whole(rule) else rule
        for rule in options.allowed_tools
        if bare(rule) not in FILE_TOOLS
    ]


def named_skills(options: ClaudeAgentOptions) -> list[str]:
    """The skills that ``allowed_tools`` names, one by one."""
    rules = [rule.strip() for rule in options.allowed_tools if bare(rule) == "Skill"]
    return [rule[len("Skill(") : -1] for rule in rules if not _is_whole(rule)]


def unasked(options: ClaudeAgentOptions) -> set[str]:
    """The file tools that the host allowed as a whole, so that nobody was asked about them."""
    rules = list(options.allowed_tools)
    if options.settings:
        rules += read_settings(options).get("permissions", {}).get("allow", [])
    return {bare(rule) for rule in rules if is_whole_file_tool(rule)}


def kept_faults(options: ClaudeAgentOptions, config: SessionConfig) -> Iterator[Fault]:
    """What can't be kept without undoing a lock, each with the option's name."""
    yield from _refused(options)
    yield from _allowed_faults(options)
    yield from _agent_faults(options)
    yield from _place_faults(options, config)


def _refused(options: ClaudeAgentOptions) -> Iterator[Fault]:
    for name, remedy in REFUSED.items():
        if value := getattr(options, name):
            yield Fault(field=f"options.{name}", value=value, remedy=remedy)
    for flag, value in options.extra_args.items():
        if not is_harmless(flag, value):
            remedy = "take it out: a flag could undo any lock, and the kit doesn't know this one."
            yield Fault(field="options.extra_args", value=flag, remedy=remedy)
    tools: Any = options.tools
    if tools is not None and listed(tools) is None:
        remedy = "name the tools in a list: among all of them are those that run commands."
        yield Fault(field="options.tools", value=tools, remedy=remedy)
    yield from _misspelt("options.disallowed_tools", options.disallowed_tools, plain=False)
    for name in listed(tools) or ():
        if "(" in name:
            remedy = "name the tool alone; a rule belongs in allowed_tools."
            yield Fault(field="options.tools", value=name, remedy=remedy)


def _misspelt(field: str, rules: Iterable[str], *, plain: bool) -> Iterator[Fault]:
    """Rules that close a tool whose name is close to a known one's; ``plain``: whole tools, too."""
    for rule in rules:
        close = None if "*" in bare(rule) else meant(bare(rule))
        if close is not None and (plain or not is_plain(rule)):
            remedy = f"there is no such tool: did you mean {close}?"
            yield Fault(field=field, value=rule, remedy=remedy)


def _allowed_faults(options: ClaudeAgentOptions) -> Iterator[Fault]:
    for rule in options.allowed_tools:
        if bare(rule) in FILE_TOOLS and not _is_whole(rule):
            remedy = "take it out: name the folder in the config, which makes the rules."
            yield Fault(field="options.allowed_tools", value=rule, remedy=remedy)
        elif is_several(bare(rule)):
            remedy = "give a list of one tool each: the CLI splits it into several."
            yield Fault(field="options.allowed_tools", value=rule, remedy=remedy)


def _agent_faults(options: ClaudeAgentOptions) -> Iterator[Fault]:
    for name, agent in (options.agents or {}).items():
        for part, row in AGENT_PARTS.items():
            if (value := getattr(agent, part, None)) is not None:
                field, remedy = f"options.agents[{name!r}].{part}", f"take it out: {row.remedy}."
                yield Fault(field=field, value=value, remedy=remedy)
        closed = getattr(agent, "disallowedTools", None) or ()
        yield from _misspelt(f"options.agents[{name!r}].disallowedTools", closed, plain=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPart:
    """A field of an agent's definition that undoes ``lock``."""

    lock: str
    remedy: str


AGENT_PARTS: Final[Mapping[str, AgentPart]] = {
    "memory": AgentPart(
        lock="rules", remedy="it opens a folder of the CLI's own, outside of the scope"
    ),
    "initialPrompt": AgentPart(
        lock="prompts", remedy="send it as a prompt, which the prompt gate sees"
    ),
}


def _place_faults(options: ClaudeAgentOptions, config: SessionConfig) -> Iterator[Fault]:
    name = "workspace" if config.project_dir is None else "project_dir"
    folder = str(getattr(config, name))
    if options.cwd is not None and os.path.realpath(options.cwd) != os.path.realpath(
        os.path.expanduser(folder)
    ):
        remedy = f"the config has {name}={folder!r}, and the two must be one folder."
        yield Fault(field="options.cwd", value=options.cwd, remedy=remedy)


def moved_faults(permissions: Mapping[str, Any]) -> Iterator[Fault]:
    """Rules that are relative to the settings' file: the kit writes them to another place."""
    for name in ("deny", "ask"):
        rules = permissions.get(name)
        for rule in rules if isinstance(rules, list) else ():
            rest = rule[len(bare(rule)) :] if isinstance(rule, str) else ""
            if rest.startswith("(/") and not rest.startswith("(//") and bare(rule) in FILE_TOOLS:
                remedy = "it is relative to the settings' file: write //, and the absolute path."
                place = f"options.settings['permissions'][{name!r}]"
                yield Fault(field=place, value=rule, remedy=remedy)
