"""The patterns of rules: gitignore's language over absolute paths, where case counts.

Which file a pattern means is settled in ``agent_kit.scope.patterns``; there denied names are compared
without their case, here with it. A pattern that can match nothing is never made: a rule that holds
nothing looks like one that holds.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from agent_kit.scope.flavour import Flavour, Malformed
from agent_kit.scope.patterns import (
    Pattern,
    ended,
    is_pattern,
    parse_pattern,
    regex_of,
    stem,
    unescaped,
)
from agent_kit.scope.text import is_well_formed

__all__ = ["RulePattern", "fits_name", "normal", "parse_rule_pattern", "pattern_remedy"]


@dataclass(frozen=True, slots=True)
class RulePattern(Pattern):
    """One alternative of one pattern. ``fixed`` is ``None`` when it applies everywhere."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "folded", ended(self.absolute))

    @property
    def regex(self) -> str:
        """An expression over canonical paths without their first slash; a folder ends in one."""
        return _exact(self.folded)

    @property
    def segments(self) -> tuple[str, ...]:
        """The components below ``fixed``, the last one empty when only folders match."""
        if self.fixed is None:
            return tuple(self.folded.split("/"))
        return tuple(self.folded[len(stem(self.fixed)) + 1 :].split("/"))

    @property
    def literal(self) -> str | None:
        """The canonical path that is all this pattern names, if it is one."""
        segments = self.segments
        if self.fixed is None or len(segments) > 1 or is_pattern(segments[0]):
            return None
        return f"{self.fixed.rstrip('/')}/{unescaped(segments[0])}"


def normal(path: str) -> str:
    """``path`` in the one Unicode form in which names are compared (NFC)."""
    return path if path.isascii() else unicodedata.normalize("NFC", path)


def parse_rule_pattern(
    source: str, project: str, home: str | None, flavour: Flavour
) -> tuple[RulePattern, ...]:
    """The alternatives of a pattern. Raises Malformed with what is wrong and what to write instead.

    ``project`` and ``home`` are canonical; a relative pattern with a slash is below the first, one
    without applies everywhere, as in gitignore.
    """
    text = _HERE.sub("/", normal(source))
    if (bare := text.rstrip("/")) in (".", "~"):
        return (_folder(source, flavour.entry(bare, project, home)),)
    if _HERE.search(source) and "/" not in bare:
        text = "./" + text  # "notes/." is no name that may be anywhere
    found = parse_pattern(text, project, home, flavour)
    if not found:
        raise Malformed(
            f"a bracket in it never closes; write {text.replace('[', chr(92) + '[')!r} for the name"
        )
    return tuple(_checked(source, pattern) for pattern in found)


def _folder(source: str, path: str) -> RulePattern:
    if path == "/":
        return RulePattern(source, "/**", "/")
    return RulePattern(source, stem(path), path.rpartition("/")[0] or "/")


_HERE: Final = re.compile(r"(?:/+\.)+/*\Z")  # a folder, however often it says so
_STARS: Final = re.compile(r"/\*{3,}\Z")  # at the end as much as two
_RUN: Final = re.compile(r"(?:/\*\*(?=/|\Z)){2,}")  # as much as one alone


def _checked(source: str, pattern: Pattern) -> RulePattern:
    absolute = _STARS.sub("/**", "/" + pattern.absolute.removeprefix("/"))
    absolute = _RUN.sub("/**", absolute)
    fixed: str | None = pattern.fixed or "/"
    if absolute.startswith("/**/") and absolute != "/**/":  # no folder, and no fixed one
        absolute, fixed = absolute[1:], None
    found = RulePattern(source, absolute, fixed)
    if "." in found.segments:
        raise Malformed("'.' names no file in a pattern; write the folder without it")
    if "[" in absolute and not _is_sound(found.folded):
        raise Malformed("a bracket in it has no meaning; write the characters out, as [abc]")
    return found


def _is_sound(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            re.compile(_exact(text))
    except (re.error, FutureWarning):
        return False
    return True


def _exact(text: str) -> str:
    regex = regex_of(text)
    assert regex is not None, "parse_rule_pattern has asked"
    if regex.endswith("|$)"):  # "$" would also match before a line break at the end of a name
        regex = regex[:-2] + r"\Z)"
    return _CLASS.sub(_within_name, regex) if "[" in text else regex


# An escaped character, or a class, which in a path never matches what divides names: "[^/]" is what
# the library itself writes for "*" and "?", which may match nothing at all.
_CLASS: Final = re.compile(r"\\.|\[\^?\]?[^\]]*\]", re.DOTALL)


def _within_name(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith("\\") or match[0] == "[^/]" else f"(?!/){match[0]}"


@lru_cache(maxsize=4096)
def _name_regex(segment: str) -> re.Pattern[str]:
    return re.compile(_exact("/" + segment), re.DOTALL)


def fits_name(segment: str, name: str) -> bool:
    """Whether one component of a pattern, other than ``**``, matches a name."""
    if not is_pattern(segment):
        return unescaped(segment) == name
    return _name_regex(segment).match(name) is not None


_NO_TEXT: Final = "give a pattern as text, relative to the project or absolute."


def pattern_remedy(source: object, flavour: Flavour) -> str | None:
    """What to write instead of a pattern that can't be one, or ``None``."""
    if not isinstance(source, str):
        return _NO_TEXT
    if not source.strip():
        return "it is empty; write '**' for everything, '.' for the project."
    if not is_well_formed(source):
        return "no name can hold a NUL or half of a character; leave it out."
    if ".." in source.replace("\\", "/").split("/"):
        plain = posixpath.normpath(source)
        instead = f"write {plain!r}" if ".." not in plain.split("/") else "write an absolute path"
        return f"'..' has no place in a pattern; {instead}."
    if source.startswith("/") and not set(source.rstrip(" ").split("/")) - {"", "."}:
        return "it names no file; write '/**' for everything, '.' for the project."
    root = "/" if flavour.name == "posix" else "/c:"
    try:
        parse_rule_pattern(source, root, root, flavour)
    except Malformed as error:
        return f"{error}."
    return None
