"""Folded text as words for a full-text index, and a term of a query as what it looks for there.

A run of letters and digits is a word; in scripts without spaces every character is one, so that a run
of them is found wherever it stands, as a phrase; a symbol such as an emoji is one, too. Punctuation is
none: what is found is looked at once more by :mod:`agent_kit.store.search`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from agent_kit.store.search import MAX_QUERY, UNSPACED

__all__ = ["expression", "from_word", "of_pairs", "to_word", "tokens_of"]

_TOKEN: Final = re.compile(rf"{UNSPACED}|(?:(?!{UNSPACED})\w)+|[^\w\s]")
_ONE: Final = re.compile(UNSPACED)
# Symbols, the underscore, and marks that make other letters.
_KEPT: Final = ("So", "Sc", "Sm", "Sk", "Pc", "Mn", "Mc", "Me")
# What FTS5's own tokenizer leaves whole, for sure; any other word gets letters in its place.
_PLAIN: Final = re.compile(
    "(?!zq)[0-9a-z\u00df-\u00f6\u00f8-\u00ff\u0430-\u045f\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fcb"
    "\uac00-\ud7a3]+"
)
_MARKED: Final = "zq"
_LONGEST: Final = 4_000  # characters: FTS5 cuts a word at 32,768 bytes
_MOST: Final = 400  # words of the vocabulary that are looked for in the place of one
_MOST_ENDS: Final = 20  # at either end of a phrase


def tokens_of(folded: str) -> list[str]:
    """The words of a folded text, in order.

    >>> tokens_of("kb-42: 知识 c++")
    ['kb', '42', '知', '识', 'c', '+', '+']
    """
    return [piece for token in _TOKEN.findall(folded) if _counts(token) for piece in _pieces(token)]


def _pieces(token: str) -> list[str]:
    """A word that is too long for FTS5, in parts that have all that a query may look for."""
    if len(token) <= _LONGEST:
        return [token]
    return [token[at : at + _LONGEST] for at in range(0, len(token), _LONGEST - MAX_QUERY)]


def _counts(token: str) -> bool:
    return len(token) > 1 or token.isalnum() or unicodedata.category(token) in _KEPT


def to_word(token: str) -> str:
    """A token as FTS5 keeps it.

    >>> to_word("知"), to_word("🚀"), from_word(to_word("🚀"))
    ('知', 'zqf09f9a80', '🚀')
    """
    if _PLAIN.fullmatch(token):
        return token
    return _MARKED + token.encode("utf-8", "surrogatepass").hex()


def from_word(word: str) -> str:
    """The token that FTS5 keeps as ``word``."""
    if not word.startswith(_MARKED):
        return word
    return bytes.fromhex(word.removeprefix(_MARKED)).decode("utf-8", "surrogatepass")


def expression(term: str, vocabulary: str) -> str | None:
    """What FTS5 must find where a term stands, also within words; ``None``: it can't say.

    ``vocabulary`` has a line break before and after each token of all pages.
    """
    tokens = tokens_of(term)
    if not tokens:
        return None
    if len(tokens) == 1:
        return " OR ".join(_phrase([token]) for token in _with(tokens[0], vocabulary, *_ANYWHERE))
    first = _with(tokens[0], vocabulary, *_AT_ITS_END)[:_MOST_ENDS]
    last = _with(tokens[-1], vocabulary, *_AT_ITS_START)[:_MOST_ENDS]
    middle = tokens[1:-1]
    return " OR ".join(_phrase([start, *middle, end]) for start in first for end in last)


def of_pairs(term: str) -> str | None:
    """What FTS5 must find of a run without spaces that stands nowhere as a whole: a pair of it."""
    if len(term) < 3 or not _ONE.search(term):
        return None
    pairs = sorted({term[at : at + 2] for at in range(len(term) - 1)})
    return " OR ".join(_phrase(tokens) for pair in pairs if (tokens := tokens_of(pair))) or None


_ANY: Final = r"[^\n]*"
_ANYWHERE: Final = (_ANY, _ANY)
_AT_ITS_END: Final = (_ANY, "")
_AT_ITS_START: Final = ("", _ANY)


def _with(token: str, vocabulary: str, before: str, after: str) -> list[str]:
    """The tokens that hold it, the shortest first; itself when there is none."""
    if _ONE.fullmatch(token):
        return [token]
    found = re.findall(rf"(?<=\n){before}{re.escape(token)}{after}(?=\n)", vocabulary)
    return sorted(found, key=len)[:_MOST] or [token]


def _phrase(tokens: Iterable[str]) -> str:
    return " + ".join(f'"{to_word(token)}"' for token in tokens)
