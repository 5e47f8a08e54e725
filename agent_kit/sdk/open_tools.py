"""Which tools a session has opened, and how far: an approval opens no more.

Where a hook says "ask", the CLI takes ``can_use_tool``'s yes without looking at its allow rules. So
what those would have refused is refused here: in a narrower reading than the CLI's where a rule's
text can be read in more than one way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent_kit.scope.decision import Access
from agent_kit.scope.text import shown
from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.sdk.approval import is_mcp_tool

__all__ = ["OpenTools"]

# Of a command that holds none of these a prefix says what it does.
_ONE_COMMAND: Final = re.compile(r"[^;&|<>$`\\\n\r(){}*?\[\]!#~'\"]+")
# Of an address of this form every program says the same host.
_PLAIN_URL: Final = re.compile(
    r"https?://([a-z0-9.-]+)(?::[0-9]+)?(?:[/?#][^\s\\]*)?", re.ASCII | re.IGNORECASE
)
_FIELDS: Final[Mapping[str, str]] = {
    "Bash": "command",
    "WebFetch": "url",
    "Skill": "skill",
    "Agent": "subagent_type",
    "Task": "subagent_type",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTools:
    """``whole`` tools may be called with any input, ``rules`` open a part of others, ``closed`` close
    one. File tools and MCP tools are judged elsewhere."""

    whole: frozenset[str]
    rules: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()

    def objection(self, tool: str, tool_input: Mapping[str, Any]) -> str | None:
        """Why a person's yes can't open this call, or ``None``."""
        if tool in FILE_TOOLS or is_mcp_tool(tool) or tool in self.whole:
            return None
        if any(_covers(rule, tool, tool_input) for rule in self.rules):
            return None
        if own := [rule for rule in self.rules if rule.startswith(f"{tool}(")]:
            plainly = ", and only as one plain command" if tool == "Bash" else ""
            return f'"{tool}" is allowed in this session only as {", ".join(own)}{plainly}.'
        return f'"{shown(tool)}" isn\'t an allowed tool in this session.'

    def edit_objection(self, tool: str, tool_input: Mapping[str, Any]) -> str | None:
        """As :meth:`objection`, of an input that a person wrote."""
        return self.change_objection(tool) or self.objection(tool, tool_input)

    def change_objection(self, tool: str) -> str | None:
        """Why the input of a call can't be changed: the CLI's deny rules aren't asked about the new one."""
        if any(tool in _closed_by(rule.partition("(")[0]) for rule in self.closed):
            return f'"{shown(tool)}" is closed in part, so its input can\'t be edited: reject it.'
        return None


def _closed_by(name: str) -> frozenset[str]:
    """The tools that a deny rule of this name is about, for the CLI."""
    if name == "Read":  # what may not be read may not be searched or written, either
        return frozenset(FILE_TOOLS)
    if name == "Edit":
        return frozenset(each for each, tool in FILE_TOOLS.items() if tool.access is Access.WRITE)
    return _STARTS_AGENTS if name in _STARTS_AGENTS else frozenset({name})


_STARTS_AGENTS: Final = frozenset({"Agent", "Task"})  # one tool, with two names


def _covers(rule: str, tool: str, tool_input: Mapping[str, Any]) -> bool:
    name, _, rest = rule.partition("(")
    if name != tool or not rest.endswith(")"):
        return False
    content, value = rest[:-1], tool_input.get(_FIELDS.get(tool, ""))
    if not isinstance(value, str):
        return False
    if tool == "WebFetch":
        return _covers_domain(content, value)
    if tool == "Bash":
        return _ONE_COMMAND.fullmatch(value) is not None and _covers_command(content, value)
    return value == content


def _covers_domain(content: str, url: str) -> bool:
    kind, _, domain = content.partition(":")
    plain = _PLAIN_URL.fullmatch(url)
    return kind == "domain" and plain is not None and _fits(domain.lower(), plain[1].lower())


def _covers_command(content: str, command: str) -> bool:
    if content.endswith(":*"):
        start = content.removesuffix(":*")
        return command == start or command.startswith(f"{start} ")
    return _fits(content, command)


def _fits(pattern: str, text: str) -> bool:
    """Whether the text is the pattern, in which ``*`` alone stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None
