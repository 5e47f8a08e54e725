"""What of a scope and of rules reaches nothing: it looks like something that holds, and holds nothing."""

from __future__ import annotations

import fnmatch
import os
import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_kit.scope import Code, FileScope, explain_file_scope
from agent_kit.scope.flavour import FLAVOURS, Flavour
from agent_kit.scope.patterns import (
    Pattern,
    has_open_brace,
    is_pattern,
    parse_pattern,
    stem,
    unescaped,
)
from agent_kit.session.config import SessionConfig
from agent_kit.session.paths import absolute, inside, resolved

if TYPE_CHECKING:
    from agent_kit.policy.compiled import RuleList
    from agent_kit.policy.rule_sets import RuleSets
    from agent_kit.policy.rules import FilePermission

__all__ = ["reach_notes", "rule_reach_notes"]

_ROOT: Final = "a leading / is the file system's root, not the project's"
_VARIABLE: Final = "variables aren't read here"
_NAMED_HOME: Final = "of homes only your own is read, as ~/"
_OPEN_BRACKET: Final = "its bracket never closes, so it is that name alone"
_OPEN_BRACE: Final = "has a brace that never closes, which is part of the name"
_BRACE: Final = (
    "braces mean alternatives only in an entry that has *, ? or [ as well: write one entry for each"
)
_NO_BANG: Final = "an exclamation mark takes nothing back here: it is part of the name"
_PROBE: Final = "a-name-that-no-pattern-is-about.probe"
_VARIABLES: Final = re.compile(r"\$\{?\w")
_VERBS: Final = {"deny": "closes nothing", "interrupt": "asks about nothing"}
_DOES: Final = {"read": "reading", "write": "writing"}


@dataclass(frozen=True, slots=True)
class _Aim:
    """One alternative of a pattern or a path: what it means, its folder, and the names below that."""

    text: str
    fixed: str
    below: tuple[str, ...]

    @property
    def is_missing(self) -> bool:
        return not os.path.lexists(self.fixed)

    def meets(self, folder: str) -> bool:
        """Whether something in (or above) a resolved folder may match."""
        fixed = resolved(self.fixed)
        if inside(fixed, folder):
            return True
        if not inside(folder, fixed):
            return False
        for name, segment in zip(_parts(folder, fixed), self.below, strict=False):
            if segment == "**":
                return True
            if segment and not _may_match(name, segment):
                return False
        return True


def _parts(folder: str, above: str) -> list[str]:
    return folder[len(above.rstrip("/")) + 1 :].split("/")


def _may_match(name: str, segment: str) -> bool:
    """Whether one component of a pattern may match a folded name. In doubt it may."""
    folded = unicodedata.normalize("NFC", segment).casefold()
    if not is_pattern(segment):
        return unescaped(folded) == name
    return bool(re.search(r"[\[\\]", folded)) or fnmatch.fnmatchcase(name, folded)


def _aim_of(pattern: Pattern) -> _Aim | None:
    """``None`` for one that applies everywhere."""
    if pattern.fixed is None:
        return None
    below = pattern.absolute[len(stem(pattern.fixed)) + 1 :]
    return _Aim(pattern.absolute, pattern.fixed, tuple(below.split("/")))


def _named(path: Path, is_folder: bool) -> _Aim:
    if is_folder:
        return _Aim(str(path), str(path), ("**",))
    return _Aim(str(path), str(path.parent), (path.name,))


# --- the scope ------------------------------------------------------------------------------------


def reach_notes(config: SessionConfig, scope: FileScope) -> Iterator[str]:
    """``denied_paths`` that close nothing, folders that are closed as a whole, and none that is open."""
    session = _folders(scope)
    for text in map(str, config.denied_paths):
        yield from _denied_notes(text, scope, session)
    yield from _closed_notes(config, scope)
    if not (scope.searchable_dirs or scope.writable_dirs or scope.tool_only_dirs):
        yield "no folder is open: name one in extra_readable_dirs, extra_writable_dirs or workspace"


def _folders(scope: FileScope) -> list[str]:
    """Every folder that the session has to do with, resolved."""
    texts = [scope.project_dir, *(entry.dir for entry in scope.tool_only_dirs)]
    texts += [*scope.searchable_dirs, *scope.writable_dirs, *scope.also_readable]
    bases = _bases(scope)
    return [resolved(absolute(text, *bases)) for text in dict.fromkeys(texts)]


def _bases(scope: FileScope) -> tuple[Path, Path]:
    return Path(scope.project_dir), Path(scope.home or os.path.expanduser("~"))


def _denied_notes(text: str, scope: FileScope, session: Collection[str]) -> Iterator[str]:
    patterns: tuple[Pattern, ...] = ()
    if is_pattern(text, scope.platform):
        project, home = map(str, _bases(scope))
        patterns = parse_pattern(text, project, home, FLAVOURS[scope.platform])
    if patterns:
        if has_open_brace(text):
            yield f"denied_paths={text!r} {_OPEN_BRACE}"
        aims = [_aim_of(pattern) for pattern in patterns]
    else:
        path = absolute(unescaped(text), *_bases(scope))
        is_there = os.path.lexists(path) or os.path.lexists(absolute(text, *_bases(scope)))
        if not is_there and (why := _odd(text, scope)):
            yield f"denied_paths={text!r} closes nothing: there is no such file, and {why}"
            return
        if not is_there and "/" not in text:
            yield (
                f"denied_paths={text!r} names one path, which doesn't exist: write '**/{text}' for"
                " the name anywhere"
            )
            return
        aims = [_named(path, text.endswith("/"))]
    if said := _idle(f"denied_paths={text!r} closes nothing", text, aims, scope, session):
        yield said


def _odd(text: str, scope: FileScope) -> str | None:
    """Why a literal name may have been meant as a pattern."""
    if is_pattern(text, scope.platform):
        return _OPEN_BRACKET
    if "{" in text.replace("\\{", "") and not _VARIABLES.search(text):
        return _BRACE
    return _NO_BANG if text.startswith("!") else None


def _idle(
    what: str, text: str, aims: Sequence[_Aim | None], scope: FileScope, session: Collection[str]
) -> str | None:
    """The note on a path or pattern none of whose alternatives meets a folder of the session."""
    found = [aim for aim in aims if aim is not None]
    if len(found) < len(aims) or any(_is_met(aim, session) for aim in found):
        return None
    aim = next((aim for aim in found if not aim.is_missing), found[0])
    hint = _hint(text, aim, scope)
    if aim.is_missing:
        return f"{what}: there is no {aim.fixed}{hint}"
    return f"{what} that is open to file tools: {aim.text} is in no folder of the session{hint}"


def _is_met(aim: _Aim, session: Collection[str]) -> bool:
    return not aim.is_missing and any(map(aim.meets, session))


def _hint(text: str, aim: _Aim, scope: FileScope) -> str:
    """What may have been meant, of a text that is not what it looks like."""
    if text.startswith("/"):
        in_project = os.path.lexists(f"{scope.project_dir}{aim.fixed}")
        return f" ({_ROOT})" if aim.is_missing or in_project else ""
    if text.startswith("~") and not text.startswith("~/"):
        return f" ({_NAMED_HOME})"
    return f" ({_VARIABLE})" if _VARIABLES.search(text) else ""


def _closed_notes(config: SessionConfig, scope: FileScope) -> Iterator[str]:
    """Folders that are opened in one field and closed as a whole in another."""
    for field in ("extra_writable_dirs", "extra_readable_dirs"):
        for text in map(str, getattr(config, field)):
            if (entry := _closing(str(absolute(text, *_bases(scope))), scope)) is not None:
                yield f"{field}={text!r} opens nothing: {entry!r} in denied_paths closes all of it"


def _closing(folder: str, scope: FileScope) -> str | None:
    """The denied entry that closes a whole folder, if one does: whatever a file in it is called."""
    decision = explain_file_scope(scope, "Read", {"file_path": f"{folder}/{_PROBE}"})
    closed = (Code.DENIED_PATH, Code.DENIED_PATTERN)
    return decision.entry if decision.code in closed else None


# --- rules ----------------------------------------------------------------------------------------


def rule_reach_notes(
    scope: FileScope, rules: RuleSets | None, denied: Sequence[str]
) -> Iterator[str]:
    """Rules that close or ask about nothing that there is, and that allow what the scope doesn't open.

    Of one that an earlier rule always covers that alone is said, elsewhere. ``denied`` are the
    patterns of ``deny_paths``.
    """
    if rules is None and not denied:
        return
    session = _folders(scope)
    for text in denied:
        project, home = map(str, _bases(scope))
        if has_open_brace(text):
            yield f"deny_paths: {text!r} {_OPEN_BRACE}"
        aims = _rule_aims(text, project, home, FLAVOURS[scope.platform])
        if said := _idle(f"deny_paths: {text!r} closes nothing", text, aims, scope, session):
            yield said
    if rules is None:
        return
    shadowed = {(shadow.field, shadow.rule) for shadow in rules.shadows}
    for listed in (rules.session, rules.agent, *rules.subagents.values()):
        for number, rule in enumerate(listed.rules):
            if (listed.field, number) not in shadowed:
                yield from _rule_notes(f"{listed.field}[{number}]", rule, listed, scope, session)


def _rule_aims(text: str, project: str, home: str | None, flavour: Flavour) -> list[_Aim | None]:
    from agent_kit.policy.patterns import parse_rule_pattern  # loaded where there are rules

    return [_aim_of(pattern) for pattern in parse_rule_pattern(text, project, home, flavour)]


def _rule_notes(
    name: str,
    rule: FilePermission,
    listed: RuleList,
    scope: FileScope,
    session: Collection[str],
) -> Iterator[str]:
    texts = {
        text: _rule_aims(text, listed.project, listed.home, listed.flavour) for text in rule.paths
    }
    yield from (f"{name}: {text!r} {_OPEN_BRACE}" for text in texts if has_open_brace(text))
    if (verb := _VERBS.get(str(rule.mode))) is not None:
        for text, aims in texts.items():
            if said := _idle(f"{name}: {text!r} {verb}", text, aims, scope, session):
                yield said
        return
    every = [aim for aims in texts.values() for aim in aims]
    if not any(_opens(str(operation), every, scope) for operation in rule.operations):
        listing = ", ".join(map(repr, texts))
        how = " and ".join(_DOES[str(operation)] for operation in rule.operations)
        yield f"{name} allows nothing: {how} {listing} is what the scope doesn't open, and no rule can"


def _opens(operation: str, aims: Sequence[_Aim | None], scope: FileScope) -> bool:
    """Whether the scope opens something for ``"read"`` or ``"write"`` where an aim may match.

    Folders that are reached through tools count: their tools ask the rules.
    """
    texts = (
        scope.writable_dirs
        if operation == "write"
        else (scope.readable_dirs or scope.searchable_dirs)
    )
    folders = [absolute(text, *_bases(scope)) for text in texts]
    folders += [absolute(entry.dir, *_bases(scope)) for entry in scope.tool_only_dirs]
    closed = [*map(str, scope.read_only_dirs)] if operation == "write" else []
    return any(
        aim is None or (aim.meets(resolved(folder)) and not _is_closed(aim, closed, scope))
        for aim in aims
        for folder in folders
    )


def _is_closed(aim: _Aim, read_only: Sequence[str], scope: FileScope) -> bool:
    """Whether all of an aim's folder is read-only, or denied."""
    originals = (resolved(absolute(text, *_bases(scope))) for text in read_only)
    return any(inside(resolved(aim.fixed), each) for each in originals) or (
        _closing(aim.fixed, scope) is not None
    )
