"""What the CLI certainly leaves out of a search, since a deny rule of its own matches it.

Its rules are spelled from the patterns in a few Unicode forms (``agent_kit.sdk``), and are read as
JavaScript reads them. Measured on CLI 2.1.332: of all that Grep and Glob find, what a rule matches so is
left out, however ripgrep read the rule before.
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from agent_kit.scope.odd_names import Cleared, Closes, first_odd, is_narrow
from agent_kit.scope.pattern_index import PatternIndex
from agent_kit.scope.patterns import Pattern, ended, regex_of
from agent_kit.scope.text import in_script

__all__ = ["LeftOut", "first_shown", "rule_forms"]


def rule_forms(text: str, folded: str | None = None) -> tuple[str, ...]:
    """The Unicode forms in which a pattern is spelled as a rule: as it is, composed, decomposed.

    ``folded`` is the pattern as it is compared, where that ignores more than the CLI does.
    """
    texts = (text,) if folded is None else (text, folded)
    if all(map(str.isascii, texts)):
        return (text,)
    every = (form for each in texts for form in (each, *_normal(each)))
    return tuple(dict.fromkeys(every))


def _normal(text: str) -> Iterator[str]:
    return (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))


@dataclass(frozen=True, slots=True)
class _Spelled(Pattern):
    """A pattern whose ``absolute`` is in one form already, and not folded any more."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "folded", ended(self.absolute))

    @property
    def regex(self) -> str:
        return regex_of(self.folded) or ""


class LeftOut:
    """Knows what is closed by patterns without a fixed folder, and would be found all the same.

    ``patterns`` are those that the CLI has deny rules for; without any it is false. ``closes`` says of
    a canonical path, and of whether it is a folder, if it is closed: the same each time.
    """

    __slots__ = ("_closes", "_patterns", "_rules", "cleared")

    def __init__(self, patterns: Iterable[Pattern], closes: Closes) -> None:
        self._patterns = tuple(patterns)
        self._closes = closes
        self._rules: tuple[PatternIndex, PatternIndex] | None = None
        self.cleared: Cleared = {}

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def shows(self, path: str, folder: bool) -> bool:
        """Whether canonical ``path`` is closed, and the CLI may show it in a search."""
        return self._closes(path, folder) and not self.has(path, folder)

    def has(self, path: str, folder: bool) -> bool:
        """Whether canonical ``path`` is left out for certain."""
        if self._rules is None:
            self._rules = _indices(self._patterns)
        caseless, exact = self._rules
        end, units = "/" if folder else "", in_script(path)
        if caseless.match(units + end, units + "/") is not None:
            return True
        return is_narrow(path) and exact.match(path + end, path + "/") is not None


def first_shown(folder: str, path: str, looks: Collection[LeftOut]) -> tuple[str, bool] | None:
    """The first path below a folder that one of ``looks`` shows, and whether it is a folder.

    ``folder`` is as the system writes it, ``path`` the same canonical. Raises TooManyNames.
    """

    def is_shown(path: str, is_folder: bool) -> bool:
        return any(look.shows(path, is_folder) for look in looks)

    return first_odd(folder, path, is_shown, [look.cleared for look in looks])


def _indices(patterns: Iterable[Pattern]) -> tuple[PatternIndex, PatternIndex]:
    """The rules that are read without case, and those with a class, of which case is left to count."""
    caseless, exact = [], []
    for text in (form for each in patterns for form in rule_forms(each.absolute, each.folded)):
        if "[" not in text:
            caseless.append(_Spelled(text, in_script(text), None))
        elif _is_sound(pattern := _Spelled(text, text, None)):
            exact.append(pattern)
    return PatternIndex(caseless), PatternIndex(exact)


def _is_sound(pattern: Pattern) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(pattern.regex)
    except (re.error, FutureWarning):
        return False
    return True
