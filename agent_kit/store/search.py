"""Search in pages: a query is text in any script, never syntax.

Case, accents and the forms of quotes and hyphens don't count. A word is found wherever it stands;
whole words count more than beginnings, beginnings more than the inside of a word. Scripts without
spaces need no word list: their text is compared character by character, and a longer run that
stands nowhere as a whole is looked for by its pairs of characters.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent_kit.store.names import PageId, shown
from agent_kit.store.page import Page

__all__ = [
    "MAX_QUERY",
    "UNSPACED",
    "Folded",
    "Hit",
    "fold",
    "folded",
    "matches",
    "rank",
    "snippet",
    "snippet_of",
    "terms_of",
]

MAX_QUERY = 400
"""How much of a query is looked at, in characters."""

SNIPPET = 240
"""Longest snippet, in characters."""

# Accents only: the marks of kana, Hangul and Indic scripts make other letters and stay.
_ACCENTS = re.compile(
    "[\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0"
    "\ufe20-\ufe2f\u00ad\u200b-\u200f\u2060\ufeff]"
)
_SAME = (
    dict.fromkeys("‘’‚‛′`´", "'")
    | dict.fromkeys("“”„‟″«»", '"')
    | dict.fromkeys("‐‑‒–—−", "-")
    | {"ø": "o", "ł": "l", "đ": "d", "ı": "i", "æ": "ae", "œ": "oe"}
)
_VARIANT = re.compile(f"[{''.join(_SAME)}]")  # far faster than str.translate on a long text
UNSPACED = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""A character of a script that is written without spaces, as a regular expression."""

_UNSPACED = re.compile(UNSPACED)
_PUNCTUATION = "\"'.,;:!?()[]{}<>*_¿¡。、「」『』《》"  # folded: wide forms are plain by then
_CHUNK = 20_000  # characters that are folded at once to find a snippet
_WHOLE, _START, _INSIDE = 3.0, 2.0, 1.0
_IN_TITLE, _IN_ID = 6.0, 3.0
_NAMED = 500.0  # for a page that is called what was asked for
_HALF = 0.5  # a run found by its pairs counts so much


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A page that a query found. ``score`` only orders the hits of one search."""

    id: PageId
    title: str
    snippet: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """What of a page is searched: its text, its names, its id, each folded; ``size`` in characters."""

    id: PageId
    text: str
    names: str
    size: int

    @property
    def slug(self) -> str:
        return fold(str(self.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """How well one page answers each term of a query, from 0; ``named``: they are a name of its."""

    page: Folded
    strengths: tuple[float, ...]
    named: bool = False


def fold(text: str) -> str:
    """The text with everything levelled that a search must not tell apart.

    >>> fold("CAFÉ “Łódź”"), fold("ﬁｎ")
    ('cafe "lodz"', 'fin')
    """
    if text.isascii():
        return text.lower().replace("`", "'")
    whole = text.replace("´", "'").replace("″", '"')  # NFKD would take these two apart
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", whole))
    return _VARIANT.sub(_plain, unicodedata.normalize("NFC", bare).casefold())


def _plain(variant: re.Match[str]) -> str:
    return _SAME[variant.group()]


def terms_of(query: str) -> tuple[str, ...]:
    """The words of a query, folded, each once; punctuation on its own counts as a word.

    >>> terms_of('KB-42 "it’s"'), terms_of("  ")
    (('kb-42', "it's"), ())
    """
    words = fold(query[:MAX_QUERY]).split()
    return tuple(dict.fromkeys(_bare(word) for word in words))


def _bare(word: str) -> str:
    """The word without the punctuation around it, unless it is nothing else."""
    return word.strip(_PUNCTUATION).lstrip("#" + _PUNCTUATION) or word  # "#tag", but "c#"


def folded(page: Page) -> Folded:
    """A page as it is searched."""
    return Folded(
        id=page.id,
        text=fold("\n".join((page.body, *page.values))),
        names=fold("\n".join((page.title, *page.aliases))),
        size=len(page.text),
    )


def matches(page: Folded, terms: Sequence[str]) -> Match | None:
    """How a page answers the terms; ``None`` when it has none of them."""
    slug = page.slug
    strengths = tuple(
        _strength(term, page.text)
        + _IN_TITLE * _strength(term, page.names)
        + _IN_ID * _strength(term, slug)
        for term in terms
    )
    if not any(strengths):
        return None
    return Match(page=page, strengths=strengths, named=_is_named(terms, page.names))


def _is_named(terms: Sequence[str], names: str) -> bool:
    """Whether the terms are one of the page's names, as a whole."""
    return any(terms_of(name) == tuple(terms) for name in names.split("\n"))


def _strength(term: str, text: str) -> float:
    """How strongly a text holds a term: how often (damped), and how much of a word it is."""
    count = text.count(term)
    if count:
        return _place(term, text) * (1 + math.log(count))
    return _by_pairs(term, text)


def _place(term: str, text: str) -> float:
    if _UNSPACED.search(term):
        return _WHOLE
    if re.search(rf"(?<!\w){re.escape(term)}(?!\w)", text):
        return _WHOLE
    return _START if re.search(rf"(?<!\w){re.escape(term)}", text) else _INSIDE


def _by_pairs(term: str, text: str) -> float:
    """A run without spaces by its pairs of characters: questions are never a page's own words."""
    if not (pairs := pairs_in(term)):
        return 0.0
    found = sum(pair in text for pair in pairs)
    return _HALF * found / len(pairs) if found >= least_pairs(len(pairs)) else 0.0


def pairs_in(term: str) -> frozenset[str]:
    """The pairs of characters of a run without spaces; of two characters, and of other words, there are none."""
    if len(term) < 3 or not _UNSPACED.search(term):
        return frozenset()
    return frozenset(term[at : at + 2] for at in range(len(term) - 1))


def least_pairs(count: int) -> int:
    """How many of a run's pairs a text must have: a question has few of the page's own words."""
    return min(count, max(2, math.ceil(count / 4)))


def rank(found: Iterable[Match], *, searched: int) -> list[tuple[float, PageId]]:
    """The matches, best first: rare terms count more, then the id decides.

    A page that answers every term stands before one that answers some.
    """
    found = list(found)
    terms = range(len(found[0].strengths)) if found else range(0)
    weights = [
        math.log(1 + searched / (1 + sum(match.strengths[term] > 0 for match in found)))
        for term in terms
    ]
    scored = [(_score(match, weights), match.page.id) for match in found]
    return sorted(scored, key=lambda pair: (-pair[0], str(pair[1])))


def _score(match: Match, weights: Sequence[float]) -> float:
    answered = sum(strength > 0 for strength in match.strengths) / len(match.strengths)
    size = 1 + math.log1p(match.page.size / 1000)
    worth = sum(weight * value for weight, value in zip(weights, match.strengths, strict=True))
    return 1000 * answered**2 + worth / size + (_NAMED if match.named else 0)


def snippet(page: Page, terms: Sequence[str]) -> str:
    """One line of the page's body around the first term that stands in it."""
    body = " ".join(page.body.split())
    return _shown(body, _window(body, terms))


def snippet_of(body: str, text: str, terms: Sequence[str]) -> str:
    """The same of a body that is one line, and of its folded text, to which more may be added."""
    end = text.find("\n")
    if (len(text) if end < 0 else end) != len(body):  # folding has moved something
        return _shown(body, _window(body, terms))
    places = [place for term in terms if 0 <= (place := text.find(term)) < len(body)]
    return _shown(body, _around(min(places, default=0)))


def _shown(body: str, window: slice) -> str:
    return ("…" if window.start else "") + shown(body[window], SNIPPET)


def _around(place: int) -> slice:
    begin = max(0, place - SNIPPET // 3)
    return slice(begin, begin + SNIPPET + 1)


def _window(body: str, terms: Sequence[str]) -> slice:
    """Where in the body the first term stands, give or take what folding moved."""
    for start in range(0, len(body), _CHUNK):
        chunk = body[start : start + _CHUNK + MAX_QUERY]
        folded = fold(chunk)
        places = [place for term in terms if (place := folded.find(term)) >= 0]
        if places:
            place = min(places)
            return _around(
                start + (place if len(folded) == len(chunk) else _unfolded(chunk, place))
            )
    return _around(0)


def _unfolded(chunk: str, place: int) -> int:
    """The position in a text of a position in its folded form.

    Folding a prefix gives a prefix, accents at the cut aside, so halving finds it.
    """
    low, high = 0, len(chunk)
    while low < high:
        middle = (low + high) // 2
        if len(fold(chunk[:middle])) < place:
            low = middle + 1
        else:
            high = middle
    return low
