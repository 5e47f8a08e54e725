"""Which tools a session has opened, and how far: an approval opens no more.

Where a hook says "ask", the CLI takes ``can_use_tool``'s yes without looking at its allow rules. So
what those would have refused is refused here: in a narrower reading than the CLI's where a rule's
text can be read in more than one way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final
from urllib.parse import urlsplit

from agent_kit.scope.text import shown
from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.sdk.approval import is_mcp_tool

__all__ = ["OpenTools"]

# Of a command that holds none of these a prefix says what it does.
_ONE_COMMAND: Final = re.compile(r"[^;&|<>$`\\\n\r(){}*?\[\]!#~'\"]+")
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
        return f'"{shown(tool)}" isn\'t an allowed tool in this session, or not with this input.'

    def edit_objection(self, tool: str, tool_input: Mapping[str, Any]) -> str | None:
        """As :meth:`objection`, of an input that a person wrote: the CLI's deny rules are not asked."""
        if any(rule.partition("(")[0] == tool for rule in self.closed):
            return f'"{shown(tool)}" is closed in part, so its input can\'t be edited: reject it.'
        return self.objection(tool, tool_input)


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
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return False
    return kind == "domain" and host is not None and fnmatchcase(host, domain.lower())


def _covers_command(content: str, command: str) -> bool:
    if content.endswith(":*"):
        start = content.removesuffix(":*")
        return command == start or command.startswith(f"{start} ")
    return fnmatchcase(command, content) if "*" in content else command == content
