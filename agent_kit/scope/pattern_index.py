"""Denied patterns, found in nearly constant time.

Asking ``pathspec`` about ten thousand patterns one after another would take milliseconds, so each
pattern is filed under something that a matching path must have: a component of a fixed name, an
extension, or three characters in a row. Only the patterns filed under what a path really has are
tried on it. What fixes less than that is joined to one expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from agent_kit.scope.patterns import Pattern

__all__ = ["PatternIndex"]


@dataclass(slots=True)
class _Bucket:
    """Patterns filed under one thing. They are compiled when the first path has it."""

    patterns: list[Pattern] = field(default_factory=list)
    joined: re.Pattern[str] | None = None

    def match(self, path: str) -> Pattern | None:
        if self.joined is None:
            self.joined = re.compile("|".join(f"({p.regex})" for p in self.patterns), re.DOTALL)
        match = self.joined.match(path)
        if match is None:
            return None
        assert match.lastindex is not None, "each alternative is a group, and the only one in it"
        return self.patterns[match.lastindex - 1]


_Key = str | tuple[str, ...]
_Table = dict[_Key, _Bucket]

_ROOM: Final = 4  # patterns of a bucket: trying them takes about as long as finding them
_FEW: Final = 8  # patterns that cost less to try than a path's three characters in a row to look up
_MAGIC: Final = re.compile(r"[*?]+")


class PatternIndex:
    """Patterns, filed. ``match`` says which one denies a path, if any."""

    __slots__ = ("_exact", "_ext", "_grams", "_rest")

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._exact: _Table = {}
        self._ext: _Table = {}
        self._grams: _Table = {}
        rest = _Bucket()
        for pattern in patterns:
            self._place(pattern.folded, rest).patterns.append(pattern)
        if sum(len(bucket.patterns) for bucket in self._grams.values()) <= _FEW:
            rest.patterns += [p for bucket in self._grams.values() for p in bucket.patterns]
            self._grams = {}
        self._rest = [rest] if rest.patterns else []

    def _place(self, folded: str, rest: _Bucket) -> _Bucket:
        """The first bucket with room, or else the emptiest.

        So ten thousand patterns of one extension go under something else that they fix.
        """
        best, crowd = rest, 0
        for table, key in self._places(folded):
            bucket = table.get(key)
            if bucket is None:
                bucket = table[key] = _Bucket()
            size = len(bucket.patterns)
            if size < _ROOM:
                return bucket
            if best is rest or size < crowd:
                best, crowd = bucket, size
        return best

    def _places(self, folded: str) -> Iterator[tuple[_Table, _Key]]:
        """What a matching path must have, from its end: that is where patterns differ."""
        for name in reversed(folded.rstrip("/").split("/")):
            if not name or "\\" in name or name == "**":
                continue
            runs = _runs(name)
            if len(runs) == 1:
                yield self._exact, name
                continue
            if "." in runs[-1]:
                yield self._ext, runs[-1].rpartition(".")[2]
            for run in ("/" + runs[0], *runs[1:-1], runs[-1] + "/"):
                yield from (
                    (self._grams, gram) for gram in zip(run, run[1:], run[2:], strict=False)
                )

    def match(self, path: str, parts: Sequence[str]) -> Pattern | None:
        """The first pattern found that matches folded canonical ``path`` or a folder above it.

        ``parts`` are the path's components. With a trailing ``/`` the path counts as a folder.
        """
        for bucket in self._buckets(path, parts):
            if (found := bucket.match(path[1:])) is not None:
                return found
        return None

    def _buckets(self, path: str, parts: Sequence[str]) -> list[_Bucket]:
        found = self._rest[:]
        if (exact := self._exact) and not exact.keys().isdisjoint(parts):
            found += [exact[name] for name in parts if name in exact]
        if ext := self._ext:
            for after in path.split(".")[1:]:
                if (bucket := ext.get(after.partition("/")[0])) is not None:
                    found.append(bucket)
        if grams := self._grams:
            text = path + "/"
            hits = grams.keys() & zip(text, text[1:], text[2:], strict=False)
            found += [grams[hit] for hit in sorted(hits)] if hits else ()
        return found


def _runs(name: str) -> list[str]:
    """The fixed texts of a component, the first from its start and the last to its end.

    One that has brackets is looked at outside of them only. ``[a]b*c[d]e`` gives "", "e".
    """
    if "[" not in name:
        return _MAGIC.split(name)
    head = name[: name.index("[")]
    tail = name[name.rindex("]") + 1 :] if "]" in name else ""
    return [_MAGIC.split(head)[0], "" if "[" in tail else _MAGIC.split(tail)[-1]]
