"""Lock 2 for rules: what ``FilePermission`` and ``deny_paths`` deny, in the CLI's own language.

A deny rule of the CLI beats everything and holds for every agent. So a rule becomes one only where
it denies all that the CLI would refuse by it; any other is left to the gate, and named. What counts
(measured on CLI 2.1.332):

* A Read rule refuses the writing tools, too. So one that denies reading alone is made only where nothing
  could be written, or where it has no fixed folder (``**/.env``), which closes such names to writing as well.
* A rule for a link refuses what the link leads to, by its own name as well.
* Most classes, ``?`` and some last characters mean something else (``agent_kit.sdk._spelling``). One
  ``?`` by itself only misses what is beyond U+FFFF: then there is a rule, and it is named as well.

What the CLI refuses beside, however a rule is written:

* Names that differ in case only. Where another rule speaks of such a name, none is made.
* A name in decomposed Unicode, by a pattern for its base letter (``e*`` for ``e`` and an accent).
* A link that leads to an open file, where its own name matches (to ``deny_paths`` only the file's
  counts) or that of another link on the way.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from agent_kit.policy.compiled import RuleList, _Builder, compile_rules
from agent_kit.policy.patterns import RulePattern, normal
from agent_kit.policy.rules import Operation, RuleVerdict
from agent_kit.scope.compiled import Mark
from agent_kit.scope.decision import Access
from agent_kit.scope.disk import Unresolvable
from agent_kit.scope.file_scope import FileScope
from agent_kit.scope.patterns import is_pattern, unescaped
from agent_kit.scope.text import is_well_formed, shown
from agent_kit.scope.tools import FILE_TOOLS
from agent_kit.sdk._spelling import _TOKEN, _TRIMMED, _pattern, exact, names_of, unicode_forms

__all__ = ["PermissionRules", "permission_rules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRules:
    """``deny`` are the CLI's rules, none twice; ``unsaid`` has a sentence for each rule it can't hold.

    ``unfiltered`` names those of the latter that deny reading anywhere (``**/.env``): only a rule of
    the CLI would keep what they match out of a search, so a search must be judged without it.

    ``ask`` are rules of the CLI's for what Edit could guess at: it tells whether the old text is in a
    file before any hook runs, but not of a file that it would ask about before it reads it, and that
    was not read in the session (measured on CLI 2.1.332).
    """

    deny: tuple[str, ...] = ()
    unsaid: tuple[str, ...] = ()
    unfiltered: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()


def permission_rules(
    lists: Sequence[RuleList],
    deny_paths: Sequence[str],
    scope: FileScope,
    tools: Collection[str],
    *,
    replaceable: Sequence[RuleList] = (),
) -> PermissionRules:
    """The CLI's rules for what ``lists`` and ``deny_paths`` (patterns) deny to every agent.

    ``lists`` hold for every agent of the session, ``replaceable`` for some only: of those no rule is
    made. ``tools`` are the tools of all agents. The patterns of ``deny_paths`` are relative to the
    project of ``scope``. Links are looked up as when the lists were compiled; nothing else is.

    Raises ConfigError for a faulty pattern in ``deny_paths``.

    >>> scope = FileScope(project_dir="/work")
    >>> rule = {"operations": ["write"], "paths": ["policies/**"], "mode": "deny"}
    >>> listed = compile_rules([rule], project_dir="/work")
    >>> permission_rules([listed], [], scope, ["Read", "Write"]).deny
    ('Edit(//work/policies/*)', 'Edit(//work/policies/*/**)')
    """
    everywhere = (*lists, _authorized(deny_paths, scope))
    session = _Session(
        items=[item for listed in everywhere for item in _items(listed)],
        writable=_writable(scope, tools),
    )
    for operation in (Operation.WRITE, Operation.READ):  # the second depends on the first
        session.settle(operation)
    some = [item for listed in replaceable for item in _items(listed)]
    for item in (item for item in some if item.denies):
        for word in item.operations:
            session.leave(item, word, _REPLACEABLE)
    return PermissionRules(
        deny=tuple(dict.fromkeys(session.rules())),
        unsaid=tuple(_sentence(name, rule) for name, rule in session.left.items()),
        unfiltered=tuple(name for name, rule in session.left.items() if rule.unfiltered),
        ask=tuple(dict.fromkeys(session.asking(some) if "Edit" in tools else ())),
    )


class _Reach(NamedTuple):
    """What all that a pattern matches begins with, once a slash is added: without case, and with it."""

    caseless: str
    exact: str

    def meets(self, other: _Reach) -> bool:
        """Whether both may match a name, as the CLI compares."""
        mine, theirs = self.caseless, other.caseless
        return mine.startswith(theirs) or theirs.startswith(mine)

    def meets_exactly(self, other: _Reach) -> bool:
        """Whether they may when case counts."""
        mine, theirs = self.exact, other.exact
        return mine.startswith(theirs) or theirs.startswith(mine)


@dataclass(frozen=True, slots=True, eq=False)
class _Item:
    """One pattern of one rule, called ``name``. ``real`` is the folder that it is fixed to, links followed."""

    listed: RuleList
    number: int
    name: str
    operations: frozenset[str]
    denies: bool
    allows: bool
    pattern: RulePattern
    reach: _Reach
    real: str

    @property
    def is_whole(self) -> bool:
        """Whether it matches all that begins with its reach."""
        pattern = self.pattern
        return bool(pattern.literal) or pattern.segments == ("**",) or pattern.folded == "**/*"


@dataclass(slots=True)
class _Left:
    """A rule that is not, or not wholly, among the CLI's: why, and for which operations."""

    all: frozenset[str]  # operations of the rule
    reasons: dict[str, set[str]] = field(default_factory=dict)
    unfiltered: bool = False


_TOOL: Final = {Operation.READ: "Read", Operation.WRITE: "Edit"}
_WRITERS: Final = frozenset(
    name for name, tool in FILE_TOOLS.items() if tool.access is Access.WRITE
)


@dataclass(slots=True)
class _Session:
    """All patterns of a session, and what becomes of them. ``writable``: where a file tool may write."""

    items: list[_Item]
    writable: list[_Reach]
    left: dict[str, _Left] = field(default_factory=dict)
    _said: dict[tuple[_Item, Operation], tuple[str, ...]] = field(default_factory=dict)
    _unwritable: list[str] = field(default_factory=list)  # caseless beginnings
    _edit_bodies: set[str] = field(default_factory=set)

    def rules(self) -> Iterator[str]:
        for item in self.items:
            for operation in Operation:
                for body in self._said.get((item, operation), ()):
                    yield f"{_TOOL[operation]}({body})"
                    if body != _ALL:
                        yield f"{_TOOL[operation]}({body}/**)"

    def asking(self, some: Iterable[_Item]) -> Iterator[str]:
        """Rules for what may not be read unasked, can be written, and is not closed by ``rules``."""
        for item in (*self.items, *some):
            if item.allows or Operation.READ not in item.operations:
                continue
            if any(self._holds(item, word) for word in Operation) or not self._is_writable(item):
                continue
            for body in _wide(item.pattern, item.listed.flavour.name):
                yield f"Read({body})"
                if body != _ALL:
                    yield f"Read({body}/**)"

    def _holds(self, item: _Item, operation: Operation) -> bool:
        """Whether the CLI's own rules close all that the item denies."""
        bodies = self._said.get((item, operation), ())
        return bool(bodies) and not any("?" in body for body in bodies)

    def settle(self, operation: Operation) -> None:
        """Say, or leave, what is denied of one operation."""
        about = [item for item in self.items if operation in item.operations]
        others = [item for item in about if not item.denies]
        for item in about:
            if item.denies:
                self._settle(item, operation, others)

    def _settle(self, item: _Item, operation: Operation, others: list[_Item]) -> None:
        bodies = _bodies(item.pattern, item.listed.flavour.name)
        reason = _flaw(item.pattern) or self._objection(item, operation, bodies, others)
        if reason is not None:
            self.leave(item, operation, reason)
            return
        if "?" in bodies[0]:  # it has no other meaning there
            self.leave(item, operation, _NARROW)
        self._said[item, operation] = bodies
        if operation is Operation.WRITE:
            self._edit_bodies.update(bodies)
            if item.is_whole:
                self._unwritable.append(item.reach.caseless)

    def leave(self, item: _Item, operation: str, reason: str) -> None:
        rule = self.left.setdefault(item.name, _Left(item.operations))
        told = reason.replace("{}", f'"{shown(item.pattern.source)}"')
        rule.reasons.setdefault(told, set()).add(operation)
        if operation is Operation.READ and item.pattern.fixed is None:
            rule.unfiltered = True

    def _objection(
        self, item: _Item, operation: Operation, bodies: tuple[str, ...], others: list[_Item]
    ) -> str | None:
        """Why the CLI would refuse by these ``bodies`` what the rules don't, if it would."""
        if _is_link(item):
            return _LINK
        for other in others:
            if not other.reach.meets(item.reach):
                continue
            if other.listed is item.listed and other.number < item.number:
                return f"{other.name} comes first, and may say otherwise of some of {{}}"
            if not other.reach.meets_exactly(item.reach):
                return f"{other.name} speaks of what differs from {{}} in case only"
        # Without a fixed folder it is said all the same: nothing else would keep what it denies out of
        # a search, and a search can't be refused wherever such a name might be.
        anywhere = item.pattern.fixed is None
        if operation is Operation.READ and not anywhere and self._may_be_written(item, bodies):
            return _WRITING
        return None

    def _is_writable(self, item: _Item) -> bool:
        return any(reach.meets(item.reach) for reach in self.writable)

    def _may_be_written(self, item: _Item, bodies: tuple[str, ...]) -> bool:
        if not self._is_writable(item):
            return False
        if self._edit_bodies.issuperset(bodies):
            return False
        mine = item.reach.caseless  # a folder's rule doesn't hold a file in its place
        mine = mine[:-1] if item.pattern.literal else mine
        return not any(mine.startswith(beginning) for beginning in self._unwritable)


def _authorized(deny_paths: Sequence[str], scope: FileScope) -> RuleList:
    return compile_rules(
        [
            {"operations": tuple(Operation), "paths": [pattern], "mode": "deny"}
            for pattern in deny_paths
        ],
        project_dir=scope.project_dir,
        home=scope.home,
        field="deny_paths",
        platform=scope.platform,
    )


def _items(listed: RuleList) -> list[_Item]:
    """The patterns of a list, under each name of their folders."""
    builder = _Builder(listed.flavour, listed.native)
    builder.project, builder.home = listed.project, listed.home
    return [
        _Item(
            listed=listed,
            number=number,
            name=f"{listed.field}[{number}]",
            operations=frozenset(listed.rules[number].operations),
            denies=mode is RuleVerdict.DENY,
            allows=mode is RuleVerdict.ALLOW,
            pattern=pattern,
            reach=_reach(pattern),
            real=builder._real.get(pattern.fixed or "/", pattern.fixed or "/"),
        )
        for number, mode, pattern in list(builder.patterns(listed.rules, listed.field, []))
    ]


def _writable(scope: FileScope, tools: Collection[str]) -> list[_Reach]:
    if _WRITERS.isdisjoint(tools):
        return []
    opened = scope._compiled.opened_paths
    return [_as_reach(_joined(path, "")) for path, mark in opened if mark is Mark.WRITE]


def _joined(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{name}"


_LEADING: Final = re.compile(r"(?:\\.|[^*?\[\\])*", re.DOTALL)


def _reach(pattern: RulePattern) -> _Reach:
    if pattern.fixed is None:
        return _Reach("", "")
    if (path := _beginning(pattern)) is not None:
        return _as_reach(path + "/")
    leading = _LEADING.match(pattern.segments[0])
    return _as_reach(_joined(pattern.fixed, unescaped(leading[0] if leading else "")))


def _as_reach(text: str) -> _Reach:
    folded = unicodedata.normalize("NFD", unicodedata.normalize("NFD", text).casefold())
    while unicodedata.combining(folded[-1]):  # what follows may come before these
        folded = folded[:-1]
    return _Reach(folded, text)


def _beginning(pattern: RulePattern) -> str | None:
    """The canonical path that a pattern begins with, where that is more than its folder."""
    first = pattern.segments[0]
    if pattern.fixed is None or not first or is_pattern(first):
        return None
    return _joined(pattern.fixed, unescaped(first))


def _is_link(item: _Item) -> bool:
    """Whether the path that the pattern begins with leads elsewhere, under any of its names."""
    if (path := _beginning(item.pattern)) is None:
        return False
    try:
        return any(
            normal(item.listed.locate(name).path)
            != normal(_joined(item.real, name.rpartition("/")[2]))
            for name in names_of(path)
        )
    except Unresolvable:
        return True


_ALL: Final = "//**"
_ANY: Final = "several '?' in {} may be one character to the CLI"
_CLASS: Final = "the CLI reads the brackets in {} otherwise"
_END: Final = "the CLI's searches don't see the white space at the end of a name in {}"
_FOLDERS: Final = "{} is for folders, which the CLI can't tell from files"
_LETTER: Final = "the CLI has no way to write a '?', a backslash or half a character, as in {}"
_LINK: Final = "{} is a link, or can't be followed, and the CLI would close what it leads to"
_NARROW: Final = "'?' in {} is no character beyond U+FFFF to the CLI"
_REPLACEABLE: Final = "it holds for some agents, and a rule of the CLI for all"
_WRITING: Final = "a rule of the CLI against reading {} would be one against writing, too"


def _bodies(pattern: RulePattern, platform: str) -> tuple[str, ...]:
    """What stands in the rules of a pattern; right for one that has no flaw."""
    if (literal := pattern.literal) is None:
        return tuple(_pattern(form, platform) for form in unicode_forms(pattern.folded))
    spelled = (exact(name, platform) for name in names_of(literal))
    return tuple(body for body in spelled if body is not None)


def _wide(pattern: RulePattern, platform: str) -> tuple[str, ...]:
    """As :func:`_bodies`, with more rather than less where the CLI reads a pattern otherwise."""
    bodies = _bodies(pattern, platform)
    if _flaw(pattern) is None and bodies and not any("?" in body for body in bodies):
        return bodies
    if pattern.fixed in (None, "/"):
        return (_ALL,)
    spelled = [exact(name, platform) for name in names_of(pattern.fixed or "/")]
    return tuple(_ALL if body is None else body for body in spelled)


_TWO: Final = re.compile(r"(?<!\\)\?\**\?")  # with no text between
_ENDS: Final = _TRIMMED.replace(" ", "")


def _flaw(pattern: RulePattern) -> str | None:
    """Why the CLI reads a pattern otherwise, if it does."""
    names = pattern.folded.lstrip("/").split("/")
    if not {*names} - {"**", "*", ""} and pattern.folded not in ("/**", "/*", "**/*"):
        return _FOLDERS
    if not is_well_formed(pattern.folded):  # the real name of a folder may be no text
        return _LETTER
    if any(_TWO.search(name) for name in names):
        return _ANY
    if pattern.literal is None and any(name[-1:] in _ENDS for name in names if name):
        return _END
    for token in (token for name in names for token in _TOKEN.finditer(name)):
        if (token[1] or token[6] or " ") in "?\\":
            return _LETTER
        if token[6] == "[" or (token[5] is not None and not _is_plain_class(token[4], token[5])):
            return _CLASS
    return None


_PLAIN_CLASS: Final = re.compile(r"(?:[0-9]-[0-9]|[a-z]-[a-z]|[A-Z]-[A-Z]|[A-Za-z0-9_.])+")
_RANGE: Final = re.compile(r"(.)-(.)")


def _is_plain_class(negated: str, body: str) -> bool:
    """Whether the CLI reads a class as gitignore does. ``[A-Z]`` alone would be ``[a-z]``, too."""
    if negated or _PLAIN_CLASS.fullmatch(body) is None:
        return False
    ranges = set(_RANGE.findall(body))
    both = {(low.swapcase(), high.swapcase()) for low, high in ranges}
    return both == ranges and all(low <= high for low, high in ranges)


_MOST: Final = 3  # reasons that a sentence tells


def _sentence(name: str, rule: _Left) -> str:
    left = frozenset[str]().union(*rule.reasons.values())
    part = "" if left == rule.all else " for reading" if Operation.READ in left else " for writing"
    told = "; ".join([*rule.reasons][:_MOST])
    more = len(rule.reasons) - _MOST
    rest = f"; {more} more of its patterns can't, either" if more > 0 else ""
    return (
        f"{name} is left to the gate{part}, the CLI's own rules can't hold all of it: {told}{rest}."
    )
