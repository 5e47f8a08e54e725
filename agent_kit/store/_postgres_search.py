"""Candidates of a search in PostgreSQL: found by grams, compared on the server, ranked here.

Every page that answers a query is counted. For the order, each one's parts that hold a term are known;
the texts of the first ``MAX_CANDIDATES`` are looked at whole, as a folder's pages are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from agent_kit.store.grams import inner, keepable, numbers, of_term, unmarked
from agent_kit.store.names import PageId
from agent_kit.store.search import UNSPACED, Folded, Match, least_pairs, matches, pairs_in, rank

if TYPE_CHECKING:
    from agent_kit.store._postgres_link import Session

__all__ = ["MAX_CANDIDATES", "ranked"]

MAX_CANDIDATES: Final = 300
"""Most pages of one search whose texts are read to rank them; the best by what is known without."""

_MAX_CHARACTERS: Final = 20_000_000  # of all these texts
_UNSPACED: Final = re.compile(UNSPACED)
_NONE: Final = "@"  # the code of a term that a page doesn't hold: chr(64)
# How strongly a page holds a term by where it stands: nowhere, in a word, as a word; as search.py has it.
_IN_TEXT: Final = (0.0, 1.0, 3.0)
_IN_NAMES: Final = (0.0, 6.0, 18.0)
_IN_SLUG: Final = (0.0, 3.0)

# One character for each term. CASE stops a look at a text where its answer is known.
_CODE: Final = """chr(64 + 9 * ({in_slug})::int
    + CASE WHEN NOT ({in_text}) THEN 0 WHEN strpos(text, %({key}_word)s) > 0 THEN 2 ELSE 1 END
    + CASE WHEN NOT ({in_names}) THEN 0 WHEN strpos(names, %({key}_word)s) > 0 THEN 6 ELSE 3 END)"""
_HOLDS: Final = "strpos({column}, %({key})s) > 0"
_HOLDS_PAIRS: Final = """(strpos({column}, %({key})s) > 0 OR (
    SELECT count(*) FROM unnest(%({key}_pairs)s::text[]) AS pair WHERE strpos({column}, pair) > 0
) >= %({key}_least)s)"""
# "text || ''" unpacks a text once, however many terms are looked for; OFFSET 0 keeps the planner from
# working things out twice.
_FOUND: Final = """
SELECT key, type, slug, size, codes FROM (
    SELECT key, type, slug, size, {codes} AS codes FROM (
        SELECT key, type, slug, size, text || '' AS text, names, folded FROM pages
        WHERE base = %(base)s AND ({grams}) AND (%(retired)s OR NOT retired)
            AND (%(type_key)s::text IS NULL OR type_key = %(type_key)s)
        OFFSET 0
    ) AS unpacked OFFSET 0
) AS found WHERE codes <> %(nothing)s
"""
_SEARCHED: Final = """
SELECT count(*) FROM pages
WHERE base = %(base)s AND (%(type_key)s::text IS NULL OR type_key = %(type_key)s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One term in SQL: the code of a page, what its grams must be, and the values of both."""

    code: str
    grams: str
    values: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    key: str
    match: Match


def ranked(
    session: Session,
    terms: Sequence[str],
    *,
    base: str,
    type_key: str | None,
    retired: bool,
    shown: Callable[[PageId], bool],
) -> list[tuple[float, PageId]]:
    """Every page that answers the terms and is ``shown``, best first."""
    terms = [keepable(term) for term in terms]
    values = {"base": base, "type_key": type_key, "retired": retired}
    rows = [row for row in _found(session, terms, values) if shown(row.match.page.id)]
    if not rows:
        return []
    counted = session.execute(_SEARCHED, values).fetchone()
    searched = int(counted[0]) if counted else 0
    texts = _looked_at(session, _first(rows, searched), base=base)
    found = [_exactly(row, texts, terms) for row in rows]
    return rank(found, searched=searched)


def _found(session: Session, terms: Sequence[str], values: dict[str, Any]) -> list[_Row]:
    asked = [_asked(f"t{at}", term, values["base"]) for at, term in enumerate(terms)]
    query = _FOUND.format(
        codes=" || ".join(term.code for term in asked),
        grams=" OR ".join(term.grams for term in asked),
    )
    given = {**values, "nothing": _NONE * len(terms)}
    for term in asked:
        given |= term.values
    return [_row(*row) for row in session.execute(query, given)]


def _asked(key: str, term: str, base: str) -> _Asked:
    pairs = sorted(pairs_in(term))
    holds = _HOLDS_PAIRS if pairs else _HOLDS
    columns = {"in_text": "text", "in_names": "names", "in_slug": "folded"}
    word = inner(term) if _UNSPACED.search(term) else f"\x1f{inner(term)}\x1f"
    values: dict[str, object] = {key: inner(term), f"{key}_word": word}
    if pairs:
        least = least_pairs(len(pairs))
        values |= {f"{key}_pairs": [inner(pair) for pair in pairs], f"{key}_least": least}
        # Whoever has enough of the pairs has one of any so many.
        values[f"{key}_grams"] = numbers(pairs[: len(pairs) - least + 1], base=base)
    else:
        values[f"{key}_grams"] = numbers(of_term(term), base=base)
    return _Asked(
        code=_CODE.format(
            key=key, **{part: holds.format(column=c, key=key) for part, c in columns.items()}
        ),
        grams=f"grams {'&&' if pairs else '@>'} %({key}_grams)s::integer[]",
        values=values,
    )


def _row(key: str, type: str, slug: str, size: int, codes: str) -> _Row:  # noqa: A002
    page = Folded(id=PageId(type=type, slug=slug), text="", names="", size=size)
    return _Row(key=key, match=Match(page=page, strengths=_about(codes)))


@lru_cache(maxsize=1024)
def _about(codes: str) -> tuple[float, ...]:
    """How strongly a page holds each term, by the parts of it that hold one."""
    given = [ord(code) - ord(_NONE) for code in codes]
    return tuple(
        _IN_TEXT[number % 3] + _IN_NAMES[number // 3 % 3] + _IN_SLUG[number // 9]
        for number in given
    )


def _first(rows: Sequence[_Row], searched: int) -> list[str]:
    """The keys of the rows whose texts are worth a look."""
    if len(rows) > MAX_CANDIDATES:
        keys = {row.match.page.id: row for row in rows}
        order = rank([row.match for row in rows], searched=searched)
        rows = [keys[found] for _, found in order[:MAX_CANDIDATES]]
    chosen: list[str] = []
    size = 0
    for row in rows:
        size += row.match.page.size
        if size > _MAX_CHARACTERS and chosen:
            break
        chosen.append(row.key)
    return chosen


def _looked_at(session: Session, keys: Sequence[str], *, base: str) -> dict[str, tuple[str, str]]:
    query = "SELECT key, text, names FROM pages WHERE base = %s AND key = ANY(%s)"
    found = session.execute(query, (base, list(keys)))
    return {key: (unmarked(text), unmarked(names)) for key, text, names in found}


def _exactly(row: _Row, texts: dict[str, tuple[str, str]], terms: Sequence[str]) -> Match:
    if row.key not in texts:
        return row.match
    text, names = texts[row.key]
    return matches(replace(row.match.page, text=text, names=names), terms) or row.match
