"""Denied patterns: gitignore's language over absolute paths, found in nearly constant time.

``pathspec`` decides what a pattern matches. Asking it about ten thousand patterns one after another
would take milliseconds, so each pattern is filed under something that a matching path must have: a
component of a fixed name, an extension, the head or tail of a component. Only the patterns filed
under what a path really has are tried on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from agent_kit.scope.flavour import Flavour, Malformed
from agent_kit.scope.text import fold

__all__ = ["MAX_ALTERNATIVES", "Pattern", "PatternIndex", "is_pattern", "parse_pattern", "unescaped"]

MAX_ALTERNATIVES = 1000
_MAGIC = re.compile(r"(?<!\\)(?:\\\\)*[*?\[]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r"([*?\[\]\\])")


@dataclass(frozen=True, slots=True)
class Pattern:
    """One alternative of one configured pattern.

    ``source`` is the entry as configured. ``absolute`` is the gitignore pattern over absolute
    paths: it begins with ``/``, or with ``**/`` when it applies everywhere. ``fixed`` is the
    canonical folder that every match lies in, ``None`` when it applies everywhere.
    """

    source: str
    absolute: str
    fixed: str | None
    regex: str


def is_pattern(text: str) -> bool:
    """Whether an entry is a pattern: it has an unescaped ``*``, ``?`` or ``[``."""
    return _MAGIC.search(text) is not None


def unescaped(text: str) -> str:
    """``text`` without the backslashes that escape a character."""
    return _ESCAPED.sub(r"\1", text)


def parse_pattern(
    source: str, project: str, home: str | None, flavour: Flavour
) -> tuple[Pattern, ...]:
    """The alternatives of a pattern entry; none when it can only be a literal name.

    Raises Malformed with what is wrong: a comment, a negation, a climb, too many alternatives.
    """
    text = source.replace("\\", "/") if flavour.name == "windows" else source
    found: list[Pattern] = []
    for alternative in _alternatives(text):
        _refuse(alternative)
        absolute, fixed = _anchored(alternative, project, home, flavour)
        regex = _regex(absolute)
        if regex is None:
            return ()
        found.append(Pattern(source, absolute, fixed, regex))
    return tuple(found)


def _alternatives(text: str) -> list[str]:
    if "{" not in text:
        return [text]
    import bracex  # here, not at import: most scopes have no braces

    try:
        return list(dict.fromkeys(bracex.expand(text, keep_escapes=True, limit=MAX_ALTERNATIVES)))
    except bracex.ExpansionLimitException:
        raise Malformed(f"it has more than {MAX_ALTERNATIVES:,} alternatives") from None


def _refuse(pattern: str) -> None:
    if pattern.startswith(("#", "!")):
        raise Malformed(f"a pattern can't begin with '{pattern[0]}'; write '\\{pattern}' for the name")
    if not pattern.strip("/ "):
        raise Malformed("it names no file")
    if ".." in pattern.split("/"):
        raise Malformed("'..' has no place in a pattern")


def _anchored(
    pattern: str, project: str, home: str | None, flavour: Flavour
) -> tuple[str, str | None]:
    """The pattern over absolute paths, and the folder that it is fixed to."""
    names = [name for name in pattern.split("/") if name != "."]
    inner = [name for name in names[1:-1] if name]
    names = [names[0], *inner, *names[-1:]] if len(names) > 1 else names
    if names[0] == "**" or len([name for name in names if name]) == 1 and names[0]:
        return "/".join(names if names[0] == "**" else ["**", *names]), None
    at = next(i for i, name in enumerate(names) if name and is_pattern(name))
    head = unescaped("/".join(names[:at])) or ("/" if at else ".")
    fixed = flavour.entry(head, project, home)
    stem = "" if fixed == "/" else _SPECIAL.sub(r"\\\1", fixed)
    return "/".join([stem, *names[at:]]), fixed


def _regex(pattern: str) -> str | None:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern  # 37 ms, so not at import

    try:
        regex, _ = GitIgnoreSpecPattern.pattern_to_regex(fold(pattern))
    except ValueError as error:
        raise Malformed("it isn't a gitignore pattern") from error
    # The group tells pathspec a folder's match from a file's; many patterns can't share its name.
    return None if regex is None else str(regex).replace("(?P<ps_d>", "(?:")


@dataclass(slots=True)
class _Bucket:
    """Patterns filed under one thing. They are compiled when the first path has it."""

    patterns: list[Pattern] = field(default_factory=list)
    joined: re.Pattern[str] | None = None

    def match(self, path: str) -> Pattern | None:
        if self.joined is None:
            self.joined = re.compile("|".join(f"(?:{p.regex})" for p in self.patterns), re.DOTALL)
        if self.joined.match(path) is None:
            return None
        return next(p for p in self.patterns if re.match(p.regex, path, re.DOTALL))


_HEAD = 3  # characters of a component's head or tail that file a pattern


class PatternIndex:
    """Patterns, filed. ``match`` says which one denies a path, if any."""

    __slots__ = ("_exact", "_ext", "_heads", "_rest", "_tails")

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._exact: dict[str, _Bucket] = {}
        self._ext: dict[str, _Bucket] = {}
        self._heads: dict[str, _Bucket] = {}
        self._tails: dict[str, _Bucket] = {}
        self._rest: list[_Bucket] = []
        rest = _Bucket()
        for pattern in patterns:
            places = list(self._places(fold(pattern.absolute)))
            # The emptiest place: ten thousand patterns of one extension go under their folders.
            table, key = min(places, key=_crowd, default=({"": rest}, ""))
            table.setdefault(key, _Bucket()).patterns.append(pattern)
        if rest.patterns:
            self._rest.append(rest)

    def _places(self, absolute: str) -> Iterator[tuple[dict[str, _Bucket], str]]:
        for name in absolute.rstrip("/ ").split("/"):
            if not name or "\\" in name or name == "**":
                continue
            magic = [at for at, char in enumerate(name) if char in "*?["]
            if not magic:
                yield self._exact, name
                continue
            if "[" not in name:
                tail = name[magic[-1] + 1 :]
                if "." in tail:
                    yield self._ext, tail.rpartition(".")[2]
                elif tail:
                    yield self._tails, tail[-_HEAD:]
            if head := name[: magic[0]]:
                yield self._heads, head[:_HEAD]

    def match(self, path: str, parts: Sequence[str]) -> Pattern | None:
        """The first pattern found that matches folded canonical ``path`` or a folder above it.

        ``parts`` are the path's components. With a trailing ``/`` the path counts as a folder.
        """
        for bucket in self._buckets(parts):
            if (found := bucket.match(path[1:])) is not None:
                return found
        return None

    def _buckets(self, parts: Sequence[str]) -> Iterator[_Bucket]:
        yield from self._rest
        for table, keys in (
            (self._exact, _whole),
            (self._ext, _extension),
            (self._heads, _head),
            (self._tails, _tail),
        ):
            if table:
                for name in parts:
                    for key in keys(name):
                        if (bucket := table.get(key)) is not None:
                            yield bucket


def _crowd(place: tuple[dict[str, _Bucket], str]) -> int:
    bucket = place[0].get(place[1])
    return 0 if bucket is None else len(bucket.patterns)


def _whole(name: str) -> tuple[str, ...]:
    return (name,)


def _extension(name: str) -> tuple[str, ...]:
    return (name.rpartition(".")[2],)


def _head(name: str) -> tuple[str, ...]:
    return (name[:1], name[:2], name[:3])


def _tail(name: str) -> tuple[str, ...]:
    return (name[-1:], name[-2:], name[-3:])
