"""What the CLI's own file names: tools, slash commands, file names that mean something to it.

The file is a program with its JavaScript in it as plain text, so the names stand there as literals.
A name that isn't what it looks like does no harm: the CLI is asked for it and doesn't know it. A CLI
that hides its names is noticed (``Names.is_readable``).
"""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass
from pathlib import Path

import claude_agent_sdk

__all__ = ["Names", "cli_path", "names_in"]

_WORD = rb'"[A-Za-z_][A-Za-z0-9_]{1,40}"'
_LIST = re.compile(rb"\[(" + _WORD + rb"(?:," + _WORD + rb"){2,200})\]")
# A list of names with three of these in it is one of tools.
_TOOLS = frozenset({"Agent", "Bash", "Edit", "Glob", "Grep", "Read", "Skill", "WebFetch", "Write"})
_ALIASES = re.compile(rb'\{Task:"Agent"((?:,[A-Za-z]+:"[A-Za-z]+"){1,40})\}')
# {type:"local",name:"heapdump",…}, {…,name:"rewind",…,type:"local"}
_KIND = rb'type:"(?:local|local-jsx|prompt)"'
_COMMAND = re.compile(
    _KIND + rb',[^{}]{0,200}?name:"([a-z0-9_:-]+)"|name:"([a-z0-9_:-]+)",[^{}]{0,300}?' + _KIND
)
_IN_CLAUDE = re.compile(rb'["`/ ]\.claude/([A-Za-z][\w./-]*)')
_JOINED = re.compile(rb'"\.claude","([A-Za-z][\w.-]*)"(?:,"([A-Za-z][\w.-]*)")?')
_DOCUMENT = re.compile(rb'"([A-Z]{4,}(?:\.[a-z]+)?\.md)"')
_DOTTED = re.compile(rb'"(\.(?:claude|mcp|agents|worktree)[a-z-]*(?:\.json)?|\.[a-z]*ignore)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """``files`` are relative to a folder that the CLI works in. ``commands`` have no slash."""

    tools: tuple[str, ...]
    commands: tuple[str, ...]
    files: tuple[str, ...]

    @property
    def is_readable(self) -> bool:
        """Whether what every CLI has was found."""
        return (
            set(self.tools) >= _TOOLS
            and {"init", "insights", "heapdump", "config"} <= set(self.commands)
            and {"CLAUDE.md", ".claude/settings.json", ".mcp.json"} <= set(self.files)
        )


def cli_path() -> Path:
    """The CLI that the SDK bundles."""
    return Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"


def names_in(program: Path) -> Names:
    """Every name in ``program``, sorted. Some 400 MB are read: it takes a few seconds."""
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return Names(
            tools=tuple(sorted(_tools(text))),
            commands=tuple(sorted(_found(_COMMAND, text))),
            files=tuple(sorted(_files(text))),
        )


def _found(pattern: re.Pattern[bytes], text: mmap.mmap) -> set[str]:
    return {name.decode() for match in pattern.finditer(text) for name in match.groups() if name}


def _tools(text: mmap.mmap) -> set[str]:
    lists = [set(re.findall(r"\w+", match[1].decode())) for match in _LIST.finditer(text)]
    aliases = [match[1].decode() for match in _ALIASES.finditer(text)]
    named = {name for names in lists if len(names & _TOOLS) >= 3 for name in names}
    return named | {name for alias in aliases for name in re.findall(r"\w+", alias)}


def _files(text: mmap.mmap) -> set[str]:
    below = _found(_IN_CLAUDE, text) | {
        "/".join(part.decode() for part in match.groups() if part)
        for match in _JOINED.finditer(text)
    }
    inside = {f".claude/{name.rstrip('./')}" for name in below}
    return inside | _found(_DOCUMENT, text) | _found(_DOTTED, text)
