"""The judgement of one call. No SDK, no MCP: values in, a decision out."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from agent_kit.scope import globs, sentences
from agent_kit.scope.compiled import Compiled, Mark
from agent_kit.scope.control import is_control_file
from agent_kit.scope.decision import Access, Code, Decision, Verdict
from agent_kit.scope.disk import Located, Unresolvable, is_special_dir, walk
from agent_kit.scope.file_scope import FileScope
from agent_kit.scope.flavour import POSIX, Malformed, Readings
from agent_kit.scope.identity import same_file
from agent_kit.scope.index import Entry, Rank, Subtree, split
from agent_kit.scope.left_out import first_shown
from agent_kit.scope.odd_names import TooManyNames
from agent_kit.scope.text import ANY_SPACE, JS_SPACE, fold, is_well_formed, shown
from agent_kit.scope.tools import (
    FILE_TOOLS,
    NO_PATH_TOOLS,
    PATH_FIELDS,
    FileTool,
    mcp_fields,
    names_path,
)

__all__ = [
    "Found",
    "NamedPath",
    "check_file_scope",
    "explain_file_scope",
    "is_plainly_allowed",
    "judge_and_name",
    "judge_whole",
    "name_plainly",
    "named_paths",
    "plain_file",
    "plain_path",
]


class _Refusal(NamedTuple):
    code: Code
    message: str
    entry: str | None = None
    target: str | None = None


class _Names(NamedTuple):
    """One text, located. ``targets`` are what may be opened, ``names`` all that it may mean."""

    targets: tuple[Located, ...]
    names: tuple[str, ...]


class NamedPath(NamedTuple):
    """One path that a call names, as written in it (``text``) and what it may mean.

    ``targets`` are what may be opened, resolved; ``names`` all canonical names of those.
    """

    access: Access
    text: str
    targets: tuple[Located, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Ask:
    """One question: may ``tool`` do ``access`` with what ``text`` (and ``tail`` below it) names?"""

    tool: str
    access: Access
    text: str
    tail: str = ""

    @property
    def shown(self) -> str:
        if not self.tail:
            return shown(self.text)
        return shown(self.tail if self.text == "." else f"{self.text.rstrip('/')}/{self.tail}")


def check_file_scope(
    scope: FileScope, tool_name: str, tool_input: Mapping[str, Any], *, cwd: str | None = None
) -> str | None:
    """Why this call is refused, in a sentence for the model, or ``None`` for "no objection".

    ``cwd`` is the folder that relative paths of the call are relative to; ``project_dir`` if
    ``None``. Whatever the call is, it raises nothing; ``TypeError`` for a ``scope`` that is none.

    >>> scope = FileScope(
    ...     project_dir="/work",
    ...     writable_dirs=["/work/notes"],
    ...     searchable_dirs=["/work/notes"],
    ...     denied_paths=["/work/.env"],
    ... )
    >>> check_file_scope(scope, "Write", {"file_path": "notes/a.md"})
    >>> check_file_scope(scope, "Read", {"file_path": ".env"})
    '".env" is off limits: it can\\'t be read.'
    """
    _must_be_scope(scope)
    if is_plainly_allowed(scope, tool_name, tool_input, cwd):
        return None
    refusal, _, _ = _judge(scope, tool_name, tool_input, cwd)
    return None if refusal is None else refusal.message


def is_plainly_allowed(
    scope: FileScope, tool_name: str, tool_input: Mapping[str, Any], cwd: str | None
) -> bool:
    """Whether this is the usual call, to which :func:`check_file_scope` has no objection.

    It costs a few microseconds, whatever is on the disk. ``False`` says nothing. Never raises.
    """
    return plain_file(scope, tool_name, tool_input, cwd) is not None


def plain_file(
    scope: FileScope, tool_name: str, tool_input: Mapping[str, Any], cwd: str | None
) -> Located | None:
    """The file of a call that :func:`is_plainly_allowed`, as it was found; ``None`` for others."""
    plain = _PLAIN_CALLS.get(tool_name) if type(tool_name) is str else None
    if plain is None or not (cwd is None or (type(cwd) is str and cwd.isascii())):
        return None
    return _plainly_allowed(scope._compiled, *plain, tool_input)


def _plainly_allowed(compiled: Compiled, field: str, mark: int, tool_input: Any) -> Located | None:
    """The file of the usual call: one plain absolute path of ASCII, no link, nothing closed.

    A short way to what :func:`_judge` would find; ``None`` says nothing.
    """
    if type(tool_input) is not dict or not compiled.native or compiled.flavour is not POSIX:
        return None
    text = tool_input.get(field)
    if type(text) is not str or not _is_plain(text):
        return None
    for name in tool_input:
        if name in PATH_FIELDS and name != field:
            return None
    try:
        found = compiled.locate(text)
    except Unresolvable:
        return None
    kind = found.mode & 0o170000
    if found.path != text or (kind and (kind != stat.S_IFREG or found.links > 1)):
        return None
    folded = text.lower()
    lower = folded[1:].split("/")
    entry, _ = compiled.closed.find_parts(text, folded, lower, not kind)
    if entry is not None or lower[0] in _SPECIAL:
        return None
    if not compiled.open.mask_of(lower if folded == text else text[1:].split("/")) & mark:
        return None
    if mark != _WRITE or compiled.control_files_open:
        return found
    return None if is_control_file(text, lower, POSIX.display) else found


def _is_plain(text: str) -> bool:
    """Whether an absolute path of ASCII is canonical as it stands, and trimming changes nothing."""
    return (
        text[:1] == "/"
        and text[-1] not in _ENDS
        and text.isascii()
        and "//" not in text
        and text[-5:] != "M.png"  # the CLI may open a screenshot under another name
        and ("/." not in text or _CLIMB.search(text) is None)
    )


_WRITE: Final = int(Mark.WRITE)  # a member of an enumeration is slow to look up
_ENDS: Final = "/" + ANY_SPACE
_CLIMB: Final = re.compile(r"/\.\.?(?:/|\Z)")
_SPECIAL: Final = frozenset({"proc", "sys", "dev"})


def explain_file_scope(
    scope: FileScope, tool_name: str, tool_input: Mapping[str, Any], *, cwd: str | None = None
) -> Decision:
    """The whole decision, for logs and tests. Raises what :func:`check_file_scope` raises."""
    _must_be_scope(scope)
    refusal, judged, names = _judge(scope, tool_name, tool_input, cwd)
    display = scope._compiled.flavour.display
    target = display(names[0].targets[0].path) if names and names[0].targets else None
    readings = tuple(dict.fromkeys(display(name) for found in names for name in found.names))
    if refusal is None:
        code = Code.OK if judged else Code.NOT_JUDGED
        return Decision(verdict=Verdict.ALLOW, code=code, target=target, readings=readings)
    return Decision(
        verdict=Verdict.DENY,
        code=refusal.code,
        message=refusal.message,
        target=display(refusal.target) if refusal.target else target,
        entry=refusal.entry,
        readings=readings,
    )


def _must_be_scope(scope: object) -> None:
    if not isinstance(scope, FileScope):
        raise TypeError(f"The scope is a FileScope, not a {type(scope).__name__}.")


def _judge(
    scope: FileScope,
    tool_name: str,
    tool_input: Mapping[str, Any],
    cwd: str | None,
    asked: list[_Ask] | None = None,
) -> tuple[_Refusal | None, bool, list[_Names]]:
    """The refusal if any, whether anything was judged, and what was located on the way.

    ``asked`` gets the questions, one for each that was located.
    """
    compiled = scope._compiled
    seen: list[_Names] = []
    judged = False
    try:
        for ask in _asks(scope, tool_name, tool_input):
            judged = True
            if asked is not None and isinstance(ask, _Ask):
                asked.append(ask)
            refusal = ask if isinstance(ask, _Refusal) else _answer(compiled, ask, cwd, seen)
            if refusal is not None:
                return refusal, True, seen
    except (Malformed, Unresolvable):
        path = _first_text(tool_input)
        return _Refusal(Code.MALFORMED, sentences.malformed(shown(path))), True, seen
    return None, judged, seen


def _first_text(tool_input: Mapping[str, Any]) -> str:
    texts = (tool_input[name] for name in tool_input if name in PATH_FIELDS or name == "pattern")
    return next((text for text in texts if isinstance(text, str)), ".")


def named_paths(
    scope: FileScope, tool_name: str, tool_input: Mapping[str, Any], cwd: str | None = None
) -> tuple[NamedPath, ...] | None:
    """Every path that a call names, for those who judge it further; none for a tool without one.

    ``None`` for a call that can't be judged: the scope refuses it, too. Never raises.
    """
    named: list[NamedPath] = []
    try:
        for ask in _asks(scope, tool_name, tool_input):
            if isinstance(ask, _Refusal):
                return None
            readings = _readings(scope._compiled, ask, cwd)
            found = _located(scope._compiled, readings, ask.tool in FILE_TOOLS)
            named.append(_as_named(ask, found))
    except (Malformed, Unresolvable):
        return None
    return tuple(named)


def judge_and_name(
    scope: FileScope, tool_name: str, tool_input: Mapping[str, Any], cwd: str | None = None
) -> tuple[str | None, tuple[NamedPath, ...]]:
    """As :func:`check_file_scope` and :func:`named_paths` in one: each path is located once.

    Of a refused call no path is named. Never raises.
    """
    reason, named, _ = judge_whole(scope, tool_name, tool_input, cwd)
    return reason, named


class Found(NamedTuple):
    """Why a call is refused and by which code, both ``None`` when it isn't; then the paths that it names."""

    reason: str | None
    named: tuple[NamedPath, ...] = ()
    code: str | None = None


def judge_whole(
    scope: FileScope, tool_name: str, tool_input: Mapping[str, Any], cwd: str | None = None
) -> Found:
    """As :func:`judge_and_name`, with the code of a refusal. Never raises."""
    asks: list[_Ask] = []
    refusal, _, seen = _judge(scope, tool_name, tool_input, cwd, asks)
    if refusal is not None:
        return Found(refusal.message, code=str(refusal.code))
    return Found(None, tuple(map(_as_named, asks, seen)))


def _as_named(ask: _Ask, found: _Names) -> NamedPath:
    written = f"{ask.text.rstrip('/')}/{ask.tail}" if ask.tail else ask.text
    return NamedPath(ask.access, written, found.targets, found.names)


def name_plainly(
    scope: FileScope, tool_name: str, tool_input: Mapping[str, Any], cwd: str | None
) -> tuple[NamedPath, ...] | None:
    """What :func:`judge_and_name` names of a call that :func:`is_plainly_allowed`; ``None`` for others."""
    if (found := plain_file(scope, tool_name, tool_input, cwd)) is None:
        return None
    return (NamedPath(FILE_TOOLS[tool_name].access, found.path, (found,), (found.path,)),)


def plain_path(tool_name: str, tool_input: Mapping[str, Any]) -> str | None:
    """The one path of a call that :func:`is_plainly_allowed`: canonical, and no link leads to it."""
    plain = _PLAIN_CALLS.get(tool_name)
    return None if plain is None else tool_input.get(plain[0])


_BOTH: Final = (Access.WRITE, Access.READ)


def _asks(
    scope: FileScope, tool_name: str, tool_input: Mapping[str, Any]
) -> Iterator[_Ask | _Refusal]:
    """The questions that a call raises; none when the tool is not judged here.

    A refusal is the last: nobody asks on.
    """
    if not isinstance(tool_name, str):
        yield _Refusal(Code.MALFORMED, sentences.unjudged_tool(shown(tool_name)))
    elif tool_name in NO_PATH_TOOLS:
        return
    elif not isinstance(tool_input, Mapping):
        yield _Refusal(Code.MALFORMED, sentences.unjudged_tool(shown(tool_name)))
    elif (tool := FILE_TOOLS.get(tool_name)) is not None:
        yield from _file_tool_asks(scope, tool_name, tool, tool_input)
    elif tool_name.startswith("mcp__"):
        for name, access in mcp_fields(tool_name, scope.mcp_file_tools):
            if name in tool_input:
                yield from _field_asks(tool_name, (Access(access),), tool_input[name])
    else:
        for name in tool_input:
            if names_path(name):
                yield from _field_asks(tool_name, _BOTH, tool_input[name])


def _file_tool_asks(
    scope: FileScope, tool_name: str, tool: FileTool, tool_input: Mapping[str, Any]
) -> Iterator[_Ask | _Refusal]:
    if tool_name == "Glob":
        yield from _glob_asks(scope, tool_input)
        return
    here = tool.here
    for name in tool_input:
        if name in PATH_FIELDS or name in tool.fields:
            value = tool_input[name]
            if here and name in tool.fields and isinstance(value, str):
                here = not value.strip(JS_SPACE)
            yield from _field_asks(tool_name, (tool.access,), value)
    if here:
        yield _Ask(tool_name, tool.access, ".")


def _field_asks(
    tool_name: str, accesses: tuple[Access, ...], value: object
) -> Iterator[_Ask | _Refusal]:
    for text in value if isinstance(value, list) else (value,):
        if not isinstance(text, str):
            yield _Refusal(Code.MALFORMED, sentences.malformed(shown(text)))
        elif tool_name not in FILE_TOOLS or text.strip(JS_SPACE):  # those reject an empty path
            for access in accesses:
                yield _Ask(tool_name, access, text)


def _glob_asks(scope: FileScope, tool_input: Mapping[str, Any]) -> Iterator[_Ask | _Refusal]:
    pattern, path = tool_input.get("pattern", ""), tool_input.get("path", ".")
    for value in (pattern, path):
        if not isinstance(value, str):
            yield _Refusal(Code.MALFORMED, sentences.malformed(shown(value)))
    for name in tool_input:
        if name in PATH_FIELDS and name != "path":
            yield from _field_asks("Glob", (Access.LIST,), tool_input[name])
    if globs.climbs(pattern.replace("\\", "/") if scope.platform == "windows" else pattern):
        yield _Refusal(Code.CLIMBS, sentences.climbs("Glob", shown(pattern)))
    for text, tail in globs.starts(path, pattern, scope._compiled.flavour):
        yield _Ask("Glob", Access.LIST, text, tail)


_ALLOWS: Final[Mapping[Access, tuple[int, Code]]] = {
    Access.READ: (int(Mark.READ), Code.OUTSIDE_READABLE),
    Access.LIST: (int(Mark.READ), Code.OUTSIDE_READABLE),
    Access.SEARCH: (int(Mark.SEARCH), Code.OUTSIDE_SEARCHABLE),
    Access.WRITE: (int(Mark.WRITE), Code.OUTSIDE_WRITABLE),
}


# The file tools that take one path, which is all that they do: the field, and what must be allowed.
_PLAIN_CALLS: Final[Mapping[str, tuple[str, int]]] = {
    name: (tool.fields[0], _ALLOWS[tool.access][0])
    for name, tool in FILE_TOOLS.items()
    if not tool.here
}


def _answer(compiled: Compiled, ask: _Ask, cwd: str | None, seen: list[_Names]) -> _Refusal | None:
    """In the order of precedence: tools-only, denied, read-only, control files, allow-lists."""
    found = _located(compiled, _readings(compiled, ask, cwd), ask.tool in FILE_TOOLS)
    seen.append(found)
    closed, below = _closed(compiled, found)
    if (refusal := _refused_by_entry(compiled, ask, closed, below)) is not None:
        return refusal
    if ask.access is Access.WRITE and _is_control(compiled, found):
        return _Refusal(Code.CONTROL_FILE, sentences.control_file(ask.shown))
    if compiled.flavour is POSIX and any(map(is_special_dir, found.names)):
        return _Refusal(Code.SPECIAL_FILE, sentences.special_file(ask.access, ask.shown))
    mask, code = _ALLOWS[ask.access]
    for target in found.targets:
        if not compiled.open.mask(target.path) & mask:
            return _Refusal(code, _outside(compiled, ask))
    if ask.access is Access.SEARCH and below.denied is not None:
        message = sentences.contains_denied(ask.shown, below.denied.label)
        return _Refusal(Code.CONTAINS_DENIED, message, below.denied.source)
    if ask.access is Access.SEARCH and (refusal := _refused_by_names(compiled, ask, found)):
        return refusal
    for target in found.targets:
        if target.mode and (refusal := _refused_by_kind(compiled, ask, target)) is not None:
            return refusal
    return None


def _readings(compiled: Compiled, ask: _Ask, cwd: str | None) -> Readings:
    flavour, base = compiled.flavour, compiled.project
    if cwd is not None:
        if not isinstance(cwd, str) or not is_well_formed(cwd):
            raise Malformed("its folder can't be judged")
        base = flavour.absolute(cwd, base)
    if not is_well_formed(ask.text) or not is_well_formed(ask.tail):
        raise Malformed("it holds a character that no name can hold")
    return flavour.readings(ask.text, base, compiled.home, ask.tail)


def _located(compiled: Compiled, readings: Readings, by_cli: bool) -> _Names:
    """Every name of every reading: as written and resolved.

    How the CLI reads a path is known. Of any other tool it isn't, so each reading is a target.
    """
    targets = tuple(compiled.locate(path) for path in readings.cli)
    names = [*readings.cli, *(target.path for target in targets)]
    if readings.other or readings.physical:
        others = [compiled.locate(path) for path in readings.other]
        if compiled.native:
            others += [walk(path) for path in readings.physical]
        names += [*readings.other, *(other.path for other in others)]
        targets += () if by_cli else tuple(others)
    return _Names(targets, tuple(dict.fromkeys(names)))


def _closed(compiled: Compiled, found: _Names) -> tuple[Entry | None, Subtree]:
    """The strongest entry over all names, and what lies below any of them."""
    folder = not any(target.mode and not stat.S_ISDIR(target.mode) for target in found.targets)
    strongest, below = compiled.closed.find(found.names[0], folder=folder)
    for name in found.names[1:]:
        entry, under = compiled.closed.find(name, folder=folder)
        if entry is not None and (strongest is None or entry.rank < strongest.rank):
            strongest = entry
        below = Subtree(below.tools_only or under.tools_only, below.denied or under.denied)
    return strongest, below


def _refused_by_entry(
    compiled: Compiled, ask: _Ask, closed: Entry | None, below: Subtree
) -> _Refusal | None:
    if closed is not None and closed.rank is Rank.TOOLS_ONLY:
        message = sentences.in_tools_only(ask.shown, closed.label, closed.instead)
        return _Refusal(Code.TOOLS_ONLY, message, closed.source)
    if ask.access in (Access.LIST, Access.SEARCH) and below.tools_only is not None:
        above = below.tools_only
        message = sentences.above_tools_only(ask.shown, above.label, above.instead)
        return _Refusal(Code.CONTAINS_TOOLS_ONLY, message, above.source)
    if closed is not None and closed.rank is Rank.DENIED:
        return _denied(ask, closed)
    if closed is not None and ask.access is Access.WRITE:
        message = sentences.read_only(ask.shown, compiled.writable)
        return _Refusal(Code.READ_ONLY, message, closed.source)
    return None


def _denied(ask: _Ask, entry: Entry) -> _Refusal:
    code = Code.DENIED_PATTERN if entry.pattern else Code.DENIED_PATH
    return _Refusal(code, sentences.denied(ask.access, ask.shown), entry.source)


def _outside(compiled: Compiled, ask: _Ask) -> str:
    dirs = {Access.WRITE: compiled.writable, Access.SEARCH: compiled.searchable}
    return sentences.outside(
        ask.access, ask.tool, ask.shown, dirs.get(ask.access, compiled.readable)
    )


def _refused_by_names(compiled: Compiled, ask: _Ask, found: _Names) -> _Refusal | None:
    """What a look at the names in a folder tells: the CLI would show something that is closed."""
    for target in found.targets if compiled.native and compiled.left_out else ():
        try:
            display = compiled.flavour.display(target.path)
            shows = first_shown(display, target.path, (compiled.left_out,))
        except TooManyNames:
            return _Refusal(Code.CONTAINS_DENIED, sentences.too_many_names(ask.shown))
        if shows is not None:
            entry, _ = compiled.closed.find(shows[0], folder=shows[1])
            name = shown(shows[0].removeprefix(f"{compiled.project.rstrip('/')}/"))
            message = sentences.contains_denied(ask.shown, f'"{name}"')
            return _Refusal(Code.CONTAINS_DENIED, message, None if entry is None else entry.source)
    return None


def _is_control(compiled: Compiled, found: _Names) -> bool:
    if compiled.control_files_open:
        return False
    display = compiled.flavour.display if compiled.native else None
    return any(is_control_file(name, split(fold(name)), display) for name in found.names)


def _refused_by_kind(compiled: Compiled, ask: _Ask, target: Located) -> _Refusal | None:
    """What only a look at the file tells: a device, a FIFO, a socket, a second name."""
    if stat.S_ISDIR(target.mode):
        return None
    if not stat.S_ISREG(target.mode):
        return _Refusal(Code.SPECIAL_FILE, sentences.special_file(ask.access, ask.shown))
    if target.links < 2:
        return None
    entry = same_file(target.device, target.inode, compiled.second_names(ask.access))
    return None if entry is None else _refused_by_entry(compiled, ask, entry, Subtree())
