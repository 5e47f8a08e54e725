"""Denied patterns, found in nearly constant time.

Asking ``pathspec`` about ten thousand patterns one after another would take milliseconds. But nearly
every pattern fixes some text, which a matching path must hold, and to look for a text is fast. Few
patterns are tried one by one. Many are filed under four characters in a row of what they fix, and
only those are tried that are filed under what the path has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Final

from agent_kit.scope.patterns import Pattern

__all__ = ["PatternIndex"]

_Gram = tuple[str, str, str, str]

_FEW: Final = 32  # patterns: to try so many takes as long as to look a path up
_ROOM: Final = 12  # patterns under two neighbours: to look for a less crowded place isn't worth it
_LAST: Final = 12  # characters of a text that are looked at: patterns differ at the end of a name
_MAGIC: Final = re.compile(r"[*?]+")


class _Trial:
    """One pattern and the longest text that it fixes. It is compiled when a path holds the text."""

    __slots__ = ("expression", "number", "pattern", "text")

    def __init__(self, number: int, pattern: Pattern, texts: Sequence[str]) -> None:
        self.number = number
        self.pattern = pattern
        self.text = max(texts, key=len)
        if self.text == "/":  # every path holds it
            self.text = next((text for text in texts if text not in ("", "/")), "")
        self.expression: re.Pattern[str] | None = None

    def fits(self, path: str) -> bool:
        if self.expression is None:
            self.expression = re.compile(self.pattern.regex, re.DOTALL)
        return self.expression.match(path[1:]) is not None


class PatternIndex:
    """Patterns, filed. ``match`` says which one denies a path, if any."""

    __slots__ = ("_filed", "_rest")

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._filed: dict[_Gram, list[_Trial]] = {}
        self._rest: list[_Trial] = []
        few = len(patterns) <= _FEW
        for number, pattern in enumerate(patterns):
            texts = _texts(pattern.folded)
            trial = _Trial(number, pattern, texts)
            for place in (self._rest,) if few else self._places(texts):
                place.append(trial)

    def _places(self, texts: Sequence[str]) -> Iterable[list[_Trial]]:
        """Where to file a pattern: under two neighbours, so that every other place of a path will do.

        They are the first with room, or else those with the fewest patterns.
        """
        filed, best, fewest = self._filed, None, -1
        for text in reversed(texts):
            end = text[: -_LAST - 1 : -1]
            for pair in pairwise(zip(end[3:], end[2:], end[1:], end, strict=False)):
                crowd = len(filed.get(pair[0], ())) + len(filed.get(pair[1], ()))
                if best is None or crowd < fewest:
                    best, fewest = pair, crowd
                    if crowd < _ROOM:
                        return [filed.setdefault(gram, []) for gram in pair]
        return (self._rest,) if best is None else [filed.setdefault(g, []) for g in best]

    def match(self, path: str, texts: str) -> Pattern | None:
        """The first pattern that matches folded canonical ``path`` or a folder above it.

        With a trailing ``/`` the path counts as a folder. ``texts`` holds what is looked for: the
        path with a slash at its end, and any other spelling of it.
        """
        found = [trial for trial in self._rest if trial.text in texts]
        if self._filed:
            grams = zip(texts[::2], texts[1::2], texts[2::2], texts[3::2], strict=False)
            for gram in self._filed.keys() & grams:
                for trial in self._filed[gram]:
                    if trial.text in texts:
                        found.append(trial)  # noqa: PERF401 - a comprehension for each is slower
            found.sort(key=_number)
        return next((trial.pattern for trial in found if trial.fits(path)), None) if found else None


_number = attrgetter("number")


def _texts(folded: str) -> list[str]:
    """The texts that a pattern fixes, with the slashes around them, in order. One may be empty."""
    if "[" in folded or "\\" in folded:
        folded = "/".join(map(_outside_brackets, folded.split("/")))
    return _MAGIC.split(folded.rstrip("/") + "/")


def _outside_brackets(name: str) -> str:
    """A component with ``?`` for all from its first bracket to its last; for all, with an escape."""
    if "\\" in name:
        return "?"
    head, bracket, rest = name.partition("[")
    return (
        f"{head}?{rest.rpartition(']')[2].partition('[')[0] if ']' in rest else ''}"
        if bracket
        else head
    )
