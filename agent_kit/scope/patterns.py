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

__all__ = [
    "MAX_ALTERNATIVES",
    "Pattern",
    "PatternIndex",
    "is_pattern",
    "parse_pattern",
    "unescaped",
]

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

    @property
    def regex(self) -> str:
        """An expression over folded canonical paths without their first slash."""
        regex = _regex(self.absolute)
        if regex is None:
            raise Malformed("it isn't a gitignore pattern")
        return regex


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
        if _may_be_broken(absolute) and _regex(absolute) is None:
            return ()
        found.append(Pattern(source, absolute, fixed))
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
        raise Malformed(
            f"a pattern can't begin with '{pattern[0]}'; write '\\{pattern}' for the name"
        )
    if not pattern.strip("/ "):
        raise Malformed("it names no file")
    if ".." in pattern.split("/"):
        raise Malformed("'..' has no place in a pattern")


def _anchored(
    pattern: str, project: str, home: str | None, flavour: Flavour
) -> tuple[str, str | None]:
    """The pattern over absolute paths, and the folder that it is fixed to."""
    if "/" not in pattern.rstrip("/"):
        return "**/" + pattern, None
    names = pattern.split("/")
    if "." in names or "" in names[1:-1]:
        names = [names[0], *(n for n in names[1:-1] if n and n != "."), names[-1]]
    if names[0] == "**":
        return "/".join(names), None
    at = next(i for i, name in enumerate(names) if _MAGIC.search(name))
    head = unescaped("/".join(names[:at])) or ("/" if at else ".")
    fixed = flavour.entry(head, project, home)
    stem = "" if fixed == "/" else _SPECIAL.sub(r"\\\1", fixed)
    return "/".join([stem, *names[at:]]), fixed


def _may_be_broken(pattern: str) -> bool:
    """Whether it is worth asking pathspec: only brackets and a last backslash can go wrong."""
    return "[" in pattern or pattern.endswith("\\")


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
            # A named group each would run into the limit of groups; the second look is rare.
            self.joined = re.compile("|".join(f"(?:{p.regex})" for p in self.patterns), re.DOTALL)
        if self.joined.match(path) is None:
            return None
        return next(p for p in self.patterns if re.match(p.regex, path, re.DOTALL))


_MAX_KEY = 8  # characters of a component's head or tail that file a pattern


class PatternIndex:
    """Patterns, filed. ``match`` says which one denies a path, if any."""

    __slots__ = ("_exact", "_ext", "_heads", "_rest", "_tails")

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._exact: dict[str, _Bucket] = {}
        self._ext: dict[str, _Bucket] = {}
        heads: dict[str, _Bucket] = {}
        tails: dict[str, _Bucket] = {}
        self._rest: dict[str, _Bucket] = {}
        for pattern in patterns:
            # The emptiest place: ten thousand patterns of one extension go under their folders.
            places = self._places(fold(pattern.absolute), heads, tails)
            table, key = min(places, key=_crowd, default=(self._rest, ""))
            table.setdefault(key, _Bucket()).patterns.append(pattern)
        self._heads, self._tails = _by_length(heads), _by_length(tails)

    def _places(
        self, absolute: str, heads: dict[str, _Bucket], tails: dict[str, _Bucket]
    ) -> Iterator[tuple[dict[str, _Bucket], str]]:
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
                    yield tails, tail[-_MAX_KEY:]
            if head := name[: magic[0]]:
                yield heads, head[:_MAX_KEY]

    def match(self, path: str, parts: Sequence[str]) -> Pattern | None:
        """The first pattern found that matches folded canonical ``path`` or a folder above it.

        ``parts`` are the path's components. With a trailing ``/`` the path counts as a folder.
        """
        for bucket in self._buckets(parts):
            if (found := bucket.match(path[1:])) is not None:
                return found
        return None

    def _buckets(self, parts: Sequence[str]) -> list[_Bucket]:
        found = list(self._rest.values())
        if (exact := self._exact) and not exact.keys().isdisjoint(parts):
            found += [exact[name] for name in parts if name in exact]
        if ext := self._ext:
            found += [ext[end] for n in parts if (end := n.rpartition(".")[2]) in ext]
        for length, heads in self._heads.items():
            found += [heads[head] for n in parts if (head := n[:length]) in heads]
        for length, tails in self._tails.items():
            found += [tails[tail] for n in parts if (tail := n[-length:]) in tails]
        return found


def _by_length(table: dict[str, _Bucket]) -> dict[int, dict[str, _Bucket]]:
    sorted_out: dict[int, dict[str, _Bucket]] = {}
    for key, bucket in table.items():
        sorted_out.setdefault(len(key), {})[key] = bucket
    return sorted_out


def _crowd(place: tuple[dict[str, _Bucket], str]) -> int:
    bucket = place[0].get(place[1])
    return 0 if bucket is None else len(bucket.patterns)
