"""Skills and commands that a session offers, and whether one may be run with these arguments.

The CLI puts the body of a skill or command into the conversation, and attaches the files that it
mentions, with no tool call for them (measured on CLI 2.1.332). So the file is judged as a Read, and
so is every mention: in the body as it was planned, in the body as it is now, in the arguments, and
in what the two make together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from agent_kit.policy.starts import canonical_name
from agent_kit.scope import FileScope, check_file_scope
from agent_kit.scope.text import JS_SPACE, shown
from agent_kit.sdk.expansion import (
    ANY_VARIABLE,
    UNKNOWN_VARIABLE,
    expanded,
    has_words,
    in_reach,
    plain_words,
    text_of,
)
from agent_kit.sdk.mentions import Mentioned, refused_mention

__all__ = [
    "UNKNOWN_NAMES",
    "Command",
    "Commands",
    "Place",
    "canonical_name",
    "refused_args",
    "refused_body",
    "refused_command",
    "refused_skill",
    "texts_in",
]

UNKNOWN_NAMES: Final = "?"  # among ``Command.arguments``: there are some that we can't read


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the CLI looks for skills and commands: a plugin's folder, or a ``.claude`` folder.

    ``plugin`` is the plugin's name, empty for a ``.claude``. ``trusted``: a person named this folder
    for its skills, so its files may be opened whatever the scope says. ``own``: the session offers
    what is in it; without that only what the spec names.
    """

    folder: str
    plugin: str = ""
    trusted: bool = False
    own: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One skill or command file that the session's CLI knows.

    ``name`` as the CLI calls it, ``file`` absolute, ``body`` its text when the session was planned.
    ``aliases`` are other names that the CLI takes for it, ``arguments`` the names that its front
    matter gives to words of the arguments, ``tools`` those that it lets run unasked. ``skill`` tells
    it from a command. ``forks`` are the types of agent that a call of it may start, ``None`` for any;
    without one it runs in the conversation.
    """

    name: str
    file: str
    body: str
    place: Place
    aliases: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    skill: bool = False
    forks: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Commands:
    """What a session may call, and every file that the CLI might take for it.

    ``offered`` are the names of files that may be called at all, ``builtin`` those of the CLI's own
    that have no file. ``skills`` are the names among them that the model may call. ``found`` are all
    files that were there when the session was planned, ``places`` where to look again.
    ``narrowed`` are tools that the session opens in part only: no project's file may open the rest.
    """

    offered: frozenset[str] = frozenset()
    builtin: frozenset[str] = frozenset()
    skills: frozenset[str] = frozenset()
    found: tuple[Command, ...] = ()
    places: tuple[Place, ...] = ()
    narrowed: frozenset[str] = frozenset()

    @property
    def forks(self) -> dict[str, tuple[str | None, ...]]:
        """Every name of a file that starts an agent, with the types, as the session was planned."""
        found: dict[str, dict[str | None, None]] = {}
        for each in self.found:
            for name in (each.name, *each.aliases) if each.forks else ():
                found.setdefault(name, {}).update(dict.fromkeys(each.forks))
        return {name: tuple(kinds) for name, kinds in found.items()}

    def meant_by(self, name: str) -> tuple[Command, ...]:
        """Every file that the CLI may take for ``name``: as planned, and as the disk is now."""
        from agent_kit.sdk.catalogue import find_commands

        now = find_commands(self.places)
        every = dict.fromkeys((*self.found, *now))
        return tuple(each for each in every if name == each.name or name in each.aliases)


def refused_skill(
    scope: FileScope,
    commands: Commands,
    tool_input: Any,
    cwd: str,
    seen: Mentioned | None = None,
) -> str | None:
    """Why the model may not make this call of the Skill tool; ``None``: it may.

    What it may mention is noted in ``seen``, here and below.
    """
    fields = dict(tool_input) if isinstance(tool_input, Mapping) else {"args": tool_input}
    name = fields.pop("skill", None)
    args = list(texts_in(fields))
    if not isinstance(name, str):
        return refused_args(scope, args, cwd, seen) or _unknown(name)
    found = commands.meant_by(canonical_name(name))
    if not {canonical_name(name), *(each.name for each in found)} & commands.skills:
        return _unknown(name)
    planned = commands.forks.get(canonical_name(name), ())
    for each in found:
        if not set(each.forks) <= {*planned}:
            return f"{shown(each.file)} starts an agent now, and didn't when this session began."
    for text in args or [""]:
        if (reason := _refused(scope, commands, name, found, text, cwd, seen)) is not None:
            return reason
    return None


def refused_command(
    scope: FileScope,
    commands: Commands,
    name: str,
    args: str,
    cwd: str,
    seen: Mentioned | None = None,
) -> str | None:
    """Why this skill or command may not be run with these arguments; ``None``: it may.

    It must be one of the session's, and its file and every mention must be open. A file that isn't
    the session's and that the CLI might take instead counts, too. ``cwd`` is what mentions are
    relative to. Never raises for any text.
    """
    found = commands.meant_by(canonical_name(name))
    return _refused(scope, commands, name, found, args, cwd, seen)


def _refused(
    scope: FileScope,
    commands: Commands,
    name: str,
    found: Sequence[Command],
    args: str,
    cwd: str,
    seen: Mentioned | None,
) -> str | None:
    """The same, with the files that the CLI may take for ``name``."""
    wanted = canonical_name(name)
    if wanted not in commands.builtin and not {each.name for each in found} & commands.offered:
        return _unknown(name)
    for each in found:
        if each.name not in commands.offered:
            return f"{shown(name)} may mean {shown(each.file)}, which is not this session's."
        reason = refused_body(scope, each, args, cwd, commands.narrowed, seen)
        if reason is not None:
            return f"{shown(name)} can't be used: {reason}"
    return refused_args(scope, [args], cwd, seen)


def refused_body(
    scope: FileScope,
    command: Command,
    args: str,
    cwd: str,
    narrowed: frozenset[str] = frozenset(),
    seen: Mentioned | None = None,
) -> str | None:
    """Why this file may not be expanded with these arguments."""
    place = command.place
    if not (place.trusted and _is_below(command.file, place.folder)):
        reason = check_file_scope(scope, "Read", {"file_path": command.file}, cwd=cwd)
        if reason is not None:
            return reason
    if not place.trusted and (opened := _opened(command.tools, narrowed)):
        return f"its front matter would open {', '.join(opened)} as a whole."
    text = text_of(command.body)
    words = plain_words(args)
    if UNKNOWN_NAMES in command.arguments and args and "$" in text and "@" in text + args:
        return _UNCLEAR
    if words is None and _is_unclear(text, args, command.arguments):
        return _UNCLEAR
    if command.skill:
        text = f"Base directory for this skill: {os.path.dirname(command.file)}\n\n{text}"
    given = words if words is not None else (args.strip(JS_SPACE),)
    for folders in _variables(scope, command):
        for form in expanded(text, args, given, command.arguments, folders):
            if (reason := _refused_text(scope, form, cwd, seen)) is not None:
                return reason
    return None


def refused_args(
    scope: FileScope, args: Sequence[str], cwd: str, seen: Mentioned | None = None
) -> str | None:
    """Why a skill may not get these arguments, whatever its body.

    A body may take them apart first (``$1``): then a quote or a backslash before the ``@`` is gone.
    """
    for text in args:
        apart = text.translate(_NO_QUOTES).replace("@", " @")
        for folder in _both(scope.project_dir):
            for form in (text, apart):
                full = form.replace("${CLAUDE_PROJECT_DIR}", folder)
                if (reason := _refused_text(scope, full, cwd, seen, ANY_VARIABLE)) is not None:
                    return reason
    return None


_NO_QUOTES: Final = str.maketrans(dict.fromkeys("\"'`\\", " "))
_UNCLEAR: Final = (
    "its arguments are taken apart as a shell would, and with these nobody can say which file it"
    " would mention. Write plain words, or words between quotes."
)


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a tool's input, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from texts_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from texts_in(each)


def _refused_text(
    scope: FileScope,
    text: str,
    cwd: str,
    seen: Mentioned | None,
    variables: re.Pattern[str] = UNKNOWN_VARIABLE,
) -> str | None:
    if (unknown := variables.search(text)) is not None:
        return f"It mentions {shown(unknown[0])}…, and what that is only the CLI knows."
    return refused_mention(scope, text, cwd, seen)


def _opened(tools: Sequence[str], narrowed: Iterable[str]) -> list[str]:
    return [name for name in sorted(narrowed) if any(fnmatchcase(name, tool) for tool in tools)]


def _is_unclear(text: str, args: str, names: Sequence[str]) -> bool:
    return in_reach(text, names) or ("@" in args and has_words(text, names))


def _variables(scope: FileScope, command: Command) -> Iterator[dict[str, str]]:
    """Folders that the CLI puts in, as they are configured and with their links resolved."""
    named = {
        "CLAUDE_PROJECT_DIR": scope.project_dir,
        "CLAUDE_SKILL_DIR": os.path.dirname(command.file),
    }
    if command.place.plugin:
        named["CLAUDE_PLUGIN_ROOT"] = command.place.folder
    yield named
    real = {name: os.path.realpath(path) for name, path in named.items()}
    if real != named:
        yield real


def _both(folder: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((folder, os.path.realpath(folder))))


def _is_below(file: str, folder: str) -> bool:
    """Whether ``file`` really lies in ``folder``: a link out of it is no part of it."""
    real = os.path.realpath(folder)
    return os.path.realpath(file).startswith(real.rstrip(os.sep) + os.sep)


def _unknown(name: object) -> str:
    return f"{shown(name)} is none of this session's skills and commands."
