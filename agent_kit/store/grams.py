r"""Texts as sets of their parts, so that a database finds a term wherever it stands in a text.

A gram is one to three characters in a row without white space, in any script, kept as a number.
A text with a term in it has all grams of the term; the reverse is for whoever looks at the text itself.
Unlike a server's own trigram index it needs no extension, and no server's language changes it.

A marked text has a ``\x1f`` wherever a word begins or ends: a whole word is found by comparing texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from zlib import crc32

from agent_kit.store.search import UNSPACED

__all__ = ["grams_in", "inner", "keepable", "marked", "numbers", "of_term", "unmarked"]

_MARK: Final = "\x1f"  # white space to str.split: it stands in no term
_EDGE: Final = re.compile(r"\b")
_UNSPACED: Final = re.compile(UNSPACED)
_UNKEPT: Final = re.compile("[\0\ud800-\udfff]")  # no database keeps these
_MOST: Final = 16  # grams of one term: more hardly leave fewer texts


def keepable(text: str) -> str:
    """The text with a U+FFFD for each character that a database doesn't keep."""
    return _UNKEPT.sub("\ufffd", text)


def marked(text: str) -> str:
    r"""The text with its words' edges marked.

    >>> marked("kb-42, x")
    '\x1fkb\x1f-\x1f42\x1f, \x1fx\x1f'
    """
    return _EDGE.sub(_MARK, text.replace(_MARK, " "))


def unmarked(text: str) -> str:
    """What :func:`marked` was given."""
    return text.replace(_MARK, "")


def inner(term: str) -> str:
    r"""How a term stands in a marked text, whatever is around it.

    >>> inner("kb-42")
    'kb\x1f-\x1f42'
    """
    return marked(term).strip(_MARK)


def grams_in(texts: Iterable[str]) -> set[str]:
    """Every gram of some texts. In scripts without spaces there is none of three characters.

    >>> sorted(grams_in(["ab cde", "权限f"]))
    ['a', 'ab', 'b', 'c', 'cd', 'cde', 'd', 'de', 'e', 'f', '权', '权限', '限', '限f']
    """
    words = {word for text in texts for word in text.split()}
    pieces = {piece for word in words for piece in _UNSPACED.split(word)}
    return {char for word in words for char in word} | _runs(words, 2) | _runs(pieces, 3)


def _runs(words: Iterable[str], length: int) -> set[str]:
    return {word[at : at + length] for word in words for at in range(len(word) - length + 1)}


def of_term(term: str) -> list[str]:
    """The longest grams of a term, some of them where there are many.

    >>> of_term("exam"), of_term("权限模")
    (['exa', 'xam'], ['权限', '限模'])
    """
    length = min(2 if _UNSPACED.search(term) else 3, len(term))
    grams = list(dict.fromkeys(term[at : at + length] for at in range(len(term) - length + 1)))
    return grams[:: -(-len(grams) // _MOST)]


def numbers(grams: Iterable[str], *, base: str) -> list[int]:
    """The grams as 32-bit numbers, other ones in each base: an index of all leads to none of another's."""
    start = crc32(base.encode())
    found = {crc32(gram.encode(), start) for gram in grams}
    return sorted(number - 2**32 if number >= 2**31 else number for number in found)
