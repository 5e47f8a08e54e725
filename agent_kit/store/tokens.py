"""Folded text as words for a full-text index, and a term of a query as what it looks for there.

A run of letters and digits is a word. In scripts without spaces each character begins a word of two:
itself and the one after it, or itself alone at the end of a run; so that a run of them is found wherever
it stands, two characters by one word, more as a phrase. A symbol such as an emoji is a word, too.
Punctuation is none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from agent_kit.store.search import MAX_QUERY, UNSPACED, pairs_in

__all__ = [
    "TOKENIZER",
    "Asked",
    "Containing",
    "asked",
    "is_word",
    "pairs_of",
    "phrase",
    "tokens_of",
]

_CHARACTERS: Final = UNSPACED[1:-1]
_TOKEN: Final = re.compile(
    rf"[0-9a-z\u0430-\u044f]++(?!\w)"  # most words, found faster than by what comes after
    rf"|[{_CHARACTERS}]+|[^\W{_CHARACTERS}]+|[^\w\s]"
)
_RUN: Final = re.compile(rf"[{_CHARACTERS}]+")
_WORD: Final = re.compile(rf"[^\W{_CHARACTERS}]+")
_FIRST: Final = "\u0e00"  # of the characters of runs
# Symbols, the underscore, and marks that make other letters.
_KEPT: Final = ("So", "Sc", "Sm", "Sk", "Pc", "Mn", "Mc", "Me")
_LONGEST: Final = 4_000  # characters: FTS5 cuts a word at 32,768 bytes

TOKENIZER: Final = "ascii tokenchars '$+<=>^`_|~'"
"""The tokenizer of FTS5 that leaves every word whole: to it what isn't ASCII is part of a word."""

Containing = Callable[[str], Sequence[str]]
"""The words of the pages that hold a text, itself left out, the shortest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What FTS5 must find for a term: as a whole word, at the start of one, anywhere.

    ``exact``: what it finds is what holds the term; otherwise some of it may not. ``None``: FTS5 can't say.
    """

    whole: str | None = None
    start: str | None = None
    anywhere: str | None = None
    exact: bool = False


def tokens_of(folded: str) -> list[str]:
    """The words of a folded text, in order.

    >>> tokens_of("kb-42: 知识库 c++")
    ['kb', '42', '知识', '识库', '库', 'c', '+', '+']
    """
    found: list[str] = []
    for token in _TOKEN.findall(folded):
        if token[0] >= _FIRST and _RUN.match(token):
            found += [token[at : at + 2] for at in range(len(token))]
        elif len(token) > _LONGEST:
            found += _pieces(token)
        elif len(token) > 1 or token.isalnum() or _is_kept(token):
            found.append(token)
    return found


def _pieces(token: str) -> list[str]:
    """A word that is too long for FTS5, in parts that have all that a query may look for."""
    last = len(token) - MAX_QUERY
    return [token[at : at + _LONGEST] for at in range(0, last, _LONGEST - MAX_QUERY)]


def _is_kept(token: str) -> bool:
    return unicodedata.category(token) in _KEPT


def is_word(token: str) -> bool:
    """Whether it is a word of letters and digits, which may stand within a longer one."""
    return _WORD.fullmatch(token) is not None


def asked(term: str, containing: Containing) -> Asked:
    """What to look for where a term stands, also within words."""
    tokens = tokens_of(term)
    if not tokens:
        return Asked()
    if len(tokens) == 1 and is_word(term):
        return _word(term, containing(term))
    exact = tokens == [term] or _RUN.fullmatch(term) is not None
    if _is_at_end_of_run(tokens):  # in a page the run may go on
        tokens = tokens[:-1]
    starts = [tokens[0]]
    if len(tokens) > 1 and is_word(tokens[0]):
        starts += [word for word in containing(tokens[0]) if word.endswith(tokens[0])]
    open_end = is_word(tokens[-1]) or (len(tokens[-1]) == 1 and bool(_RUN.match(tokens[-1])))
    found = " OR ".join(phrase([start, *tokens[1:]], open_end=open_end) for start in starts)
    return Asked(whole=found, start=found, anywhere=found, exact=exact)


def _word(term: str, others: Sequence[str]) -> Asked:
    starts = [word for word in others if word.startswith(term)]
    return Asked(
        whole=phrase([term]),
        start=" OR ".join(phrase([word]) for word in (term, *starts)),
        anywhere=" OR ".join(phrase([word]) for word in (term, *others)),
        exact=True,
    )


def _is_at_end_of_run(tokens: Sequence[str]) -> bool:
    return len(tokens) > 1 and tokens[-2][1:] == tokens[-1] and bool(_RUN.fullmatch(tokens[-1]))


def pairs_of(term: str, containing: Containing) -> list[str]:
    """What FTS5 must find of each pair of characters of a run that stands nowhere as a whole."""
    pairs = sorted(pairs_in(term))
    return [found for pair in pairs if (found := asked(pair, containing).anywhere) is not None]


def phrase(tokens: Iterable[str], *, open_end: bool = False) -> str:
    """The words one after the other; with ``open_end`` the last one may go on."""
    return " + ".join(f'"{token}"' for token in tokens) + (" *" if open_end else "")
