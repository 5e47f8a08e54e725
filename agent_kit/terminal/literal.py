"""What a model wrote, as a person can read it: nothing hidden, nothing that steers the terminal."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from agent_kit.scope.text import fold

__all__ = ["Sign", "is_hidden", "is_literal", "on_rows", "signs", "to_json"]

Sign = tuple[str, bool]
"""One character as it is shown, and whether that is an escape."""

# Printable by their category, and nothing or a blank in a terminal: the Braille blank, the place of
# an object, a note without a head, the blanks among the hieroglyphs.
_BLANK: Final = frozenset("\u2800\ufffc\U0001d159\U00013441\U00013442")

_NOT_ASCII: Final = re.compile(r"[^\n -~]")
_WIDE: Final = frozenset("WFA")  # East_Asian_Width; "A" is wide in some terminals (UAX 11)


@lru_cache(maxsize=4096)
def is_hidden(char: str) -> bool:
    """Whether a character can't be told from what is shown: it steers, combines, or is a blank.

    That is what ``str.isprintable`` denies (controls, bidirectional marks, zero-width and private
    characters, all spaces but one, halves of characters), every combining mark, and what Unicode
    lets a display ignore (variation selectors, tags, fillers).

    >>> [is_hidden(char) for char in ("a", " ", "\\x1b", "\\u202e", "\\u0301", "\\u3164")]
    [False, False, True, True, True, True]
    """
    return (
        not char.isprintable()
        or unicodedata.category(char).startswith("M")
        or char in _BLANK
        or not fold(char)
    )


def is_literal(text: str, encoding: str = "utf-8") -> bool:
    """Whether ``text`` is shown as it is: nothing of it needs an escape. Line breaks need none."""
    if " \n" in text or text.endswith(" "):
        return False
    others = set(_NOT_ASCII.findall(text))
    return not any(_needs_escape(char, encoding) for char in others)


def signs(line: str, encoding: str = "utf-8", *, literal: bool = False) -> Iterator[Sign]:
    """The characters of one line, as they are shown.

    Unless the text that it is from ``is_literal`` a backslash stands there twice, so that an escape
    can't be confused with a text that looks like one. A space at the end is shown as an escape.

    >>> "".join(sign for sign, _ in signs("a\\\\b\\x1b[2J "))
    'a\\\\\\\\b\\\\x1b[2J\\\\x20'
    """
    if literal:
        yield from ((char, False) for char in line)
        return
    last = len(line) - 1
    for place, char in enumerate(line):
        if char == "\\":
            yield "\\\\", True
        elif char == " " and place == last:
            yield "\\x20", True
        elif _needs_escape(char, encoding):
            yield ascii(char)[1:-1], True
        else:
            yield char, False


def on_rows(line: Iterator[Sign], width: int) -> Iterator[list[Sign]]:
    """``line``, broken into rows of at most ``width`` cells; an empty line is one empty row.

    A character counts for the most cells that a terminal may give it, so that no row spills over.
    """
    row: list[Sign] = []
    column = 0
    for sign in line:
        cells = _cells(sign[0])
        if row and column + cells > width:
            yield row
            row, column = [], 0
        row.append(sign)
        column += cells
    yield row


def to_json(value: object, *, indent: int | None = None, encoding: str = "utf-8") -> str:
    """``value`` as JSON that says the same and hides nothing: hidden characters are escaped.

    Raises TypeError, ValueError or RecursionError for what JSON can't say.

    >>> print(to_json({"a": "\\u202eé"}))
    {"a": "\\u202eé"}
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=_as_dict)

    def escape(match: re.Match[str]) -> str:
        char = match.group()
        return json.dumps(char)[1:-1] if _needs_escape(char, encoding) else char

    return _NOT_ASCII.sub(escape, text)


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


@lru_cache(maxsize=4096)
def _needs_escape(char: str, encoding: str) -> bool:
    if is_hidden(char):
        return True
    try:
        char.encode(encoding)
    except UnicodeEncodeError:
        return True
    return False


def _cells(sign: str) -> int:
    if sign.isascii():
        return len(sign)
    wide = unicodedata.east_asian_width(sign) in _WIDE or unicodedata.category(sign) == "So"
    return 2 if wide else 1
