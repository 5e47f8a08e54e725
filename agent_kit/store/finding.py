"""The pages that answer a question, by the index alone: found, counted, put in order, shown.

A word that stands in many pages is put in order by FTS5's own ranking, whole words first. Of other questions
the first ``MAX_CANDIDATES`` of that order are ranked as :mod:`agent_kit.store.search` has it. Every page
that answers is counted.

Where pages may be closed, nothing of the answer may tell of them: neither whether a word stands in one nor how
often. FTS5 then names pages that may answer, and of those that are open each is looked at and ranked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from agent_kit.store.names import PageId
from agent_kit.store.search import (
    Folded,
    Hit,
    least_pairs,
    matches,
    pairs_in,
    rank,
    snippet_of,
)
from agent_kit.store.survey import Where
from agent_kit.store.tokens import Asked, asked, pairs_of

__all__ = ["MAX_CANDIDATES", "Answer", "Question", "answer"]

MAX_CANDIDATES: Final = 100
"""Most pages of a search that are ranked by more than the index's own order."""

_SHORT: Final = 3  # characters: the index of parts of words knows no shorter ones
_MOST: Final = 400  # words that are looked for in the place of one
_ENOUGH: Final = 2_000  # pages from which a pair of characters is common
_AT_ONCE: Final = 1_000  # pages whose texts are fetched by one statement
_FEW: Final = 50  # pages that are ranked whatever was asked
# Words that stand in a page: one that is gone from all of them says nothing.
_WITH_PART: Final = """SELECT word FROM vocabulary
    WHERE number IN (SELECT rowid FROM parts WHERE parts MATCH ?)
        AND EXISTS (SELECT 1 FROM standing WHERE term = word)
    ORDER BY length(word), word LIMIT ?"""
_WITH_FEW: Final = """SELECT word FROM vocabulary INDEXED BY lengths
    WHERE instr(word, ?) AND EXISTS (SELECT 1 FROM standing WHERE term = word)
    ORDER BY length(word), word LIMIT ?"""
_ORDER: Final = "bm25(words, 1.0, 20.0, 10.0)"  # a name counts more than many mentions


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The terms of a query, and which pages count: of one ``kind`` (a type's key), also ``retired`` ones,
    those that ``shows`` lets through by their place. ``None``: each one. ``narrows``: it may well refuse one;
    otherwise only what is shown is asked about. The hits are ``limit`` from ``offset``.
    """

    terms: tuple[str, ...]
    kind: str | None = None
    retired: bool = False
    shows: Callable[[Where], bool] | None = None
    narrows: bool = True
    offset: int = 0
    limit: int = 20

    @property
    def end(self) -> int:
        return self.offset + self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The hits, best first, and how many pages there are in all."""

    hits: tuple[Hit, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What FTS5 is asked: one after the other, until there are enough; the last one finds all.

    ``checked``: some of what it finds doesn't answer. ``None`` for the last one: FTS5 can't say.
    """

    tiers: tuple[str, ...]
    widest: str | None
    checked: bool


def answer(database: sqlite3.Connection, question: Question, pages: int) -> Answer:
    """The pages that answer. ``pages`` is about how many there are."""
    finder = _Finder(database, question)
    if question.shows is not None and question.narrows:
        numbers = finder.among_open(question.shows, pages)
        hits = finder.hits(numbers[question.offset : question.end])
        return Answer(hits=tuple(hits), total=len(numbers))
    plan = finder.plan()
    if plan.checked:
        finder.check()
    is_word = len(question.terms) == 1 and not plan.checked
    ranked = _FEW if is_word else MAX_CANDIDATES
    numbers = finder.ordered(plan, max(question.end, ranked + 1))
    total = len(numbers)
    if total > ranked:
        total = finder.total(plan)
    if total <= ranked or not is_word:
        numbers = finder.ranked(numbers[:ranked], pages) + numbers[ranked:]
    chosen = numbers[question.offset : question.end]
    if not all(map(finder.is_shown, chosen)):
        return answer(database, replace(question, narrows=True), pages)
    return Answer(hits=tuple(finder.hits(chosen)), total=total)


@dataclass(frozen=True, slots=True)
class _Finder:
    database: sqlite3.Connection
    question: Question

    def plan(self) -> _Plan:
        """How the terms are asked for."""
        each = [self._asked(term) for term in self.question.terms]
        if any(one.anywhere is None for one in each):  # punctuation alone
            return _Plan(tiers=(), widest=None, checked=True)
        widest = " OR ".join(f"({one.anywhere})" for one in each)
        together = [
            " AND ".join(f"({part})" for part in parts if part)
            for parts in zip(*((one.whole, one.start, one.anywhere) for one in each), strict=True)
        ]
        tiers = tuple(dict.fromkeys(together if len(each) == 1 else [*together, widest]))
        checked = not all(one.exact for one in each)
        return _Plan(tiers=tiers, widest=tiers[-1] if len(each) == 1 else widest, checked=checked)

    def _asked(self, term: str) -> Asked:
        found = asked(term, self._containing)
        pairs = pairs_of(term, self._containing)
        if not pairs or found.anywhere is None or self._count(found.anywhere, 1):
            return found
        whole = self._any_pairs(pairs)
        return Asked(whole=whole, start=whole, anywhere=whole)

    def _any_pairs(self, pairs: Sequence[str]) -> str:
        """What a page that has enough of the pairs has: of some it is one of any of which fewer are left, so
        of the rarest, too."""
        rarest = sorted(pairs, key=lambda pair: self._count(pair, _ENOUGH))
        rarest = rarest[: len(pairs) - least_pairs(len(pairs)) + 1]
        return " OR ".join(f"({pair})" for pair in rarest)

    def _count(self, expression: str, most: int) -> int:
        statement = "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)"
        return int(self._rows(statement, expression, most)[0][0])

    def _containing(self, word: str) -> list[str]:
        try:
            word.encode()
        except UnicodeEncodeError:  # it stands in no page
            return []
        if len(word) >= _SHORT:
            rows = self._rows(_WITH_PART, f'"{word}"', _MOST)
        else:
            rows = self._rows(_WITH_FEW, word, _MOST)
        return [row[0] for row in rows if row[0] != word]

    # --- where pages may be closed ---------------------------------------------------------------------

    def among_open(self, shows: Callable[[Where], bool], pages: int) -> list[int]:
        """The open pages that answer, best first. Nothing that is used of FTS5 depends on the others."""
        plan = _Plan(tiers=(), widest=self._every(), checked=False)
        rows = self._found(plan, "pages.number, pages.folder, pages.file", plan.widest)
        return self.ranked([row[0] for row in rows if shows(row[1:])], pages)

    def _every(self) -> str | None:
        """What every page has that may answer, and others may have; ``None``: FTS5 can't say."""
        each, is_cut = [], False

        def containing(word: str) -> Sequence[str]:
            nonlocal is_cut
            found = self._containing(word)
            is_cut |= len(found) >= _MOST - 1
            return found

        for term in self.question.terms:
            whole, pairs = asked(term, containing).anywhere, pairs_of(term, containing)
            if is_cut or whole is None or len(pairs) < len(pairs_in(term)):
                return None
            each += [f"({whole})", *([self._any_pairs(pairs)] if pairs else ())]
        return " OR ".join(each)

    # --- which ---------------------------------------------------------------------------------------

    def check(self) -> None:
        """Let a statement ask whether a page answers."""
        terms = self.question.terms

        def answers(text: str, names: str, known: str) -> bool:
            type_, _, slug = known.partition("/")
            page = Folded(id=PageId(type=type_, slug=slug), text=text, names=names, size=0)
            return matches(page, terms) is not None

        self.database.create_function("answers", 3, answers)

    def _source(self, plan: _Plan, *, matching: bool) -> tuple[str, list[Any]]:
        """The part of a statement after SELECT that finds the pages that count, and its values."""
        question, values = self.question, []
        table, number = ("words", "words.rowid") if matching else ("pages", "pages.number")
        joined, where = "", []
        if matching:
            where.append("words MATCH ?")
            if question.kind is not None or (question.narrows and question.shows is not None):
                joined += f" CROSS JOIN pages ON pages.number = {number}"
        else:
            where.append("pages.fault IS NULL")
        if not question.retired:
            where.append(f"{number} > 0")
        if question.kind is not None:
            where.append("pages.kind = ?")
            values.append(question.kind)
        if plan.checked:
            joined += f" CROSS JOIN texts ON texts.number = {number}"
            where.append("answers(texts.text, texts.names, texts.slug)")
        return f"FROM {table}{joined} WHERE {' AND '.join(where)}", values

    def total(self, plan: _Plan) -> int:
        """How many pages answer."""
        return int(self._found(plan, "count(*)", plan.widest)[0][0])

    def is_shown(self, number: int) -> bool:
        """Whether a page may be shown."""
        statement = "SELECT folder, file FROM pages WHERE number = ?"
        shows = self.question.shows
        return shows is None or shows(self._rows(statement, number)[0])

    def _found(
        self, plan: _Plan, columns: str, expression: str | None, after: str = "", *more: object
    ) -> list[Any]:
        source, values = self._source(plan, matching=expression is not None)
        first = [] if expression is None else [expression]
        return self._rows(f"SELECT {columns} {source}{after}", *first, *values, *more)

    # --- in which order --------------------------------------------------------------------------------

    def ordered(self, plan: _Plan, most: int) -> list[int]:
        """The first ``most`` pages by the index's own order."""
        if plan.widest is None:
            rows = self._found(plan, "pages.number", None, " ORDER BY pages.number LIMIT ?", most)
            return [row[0] for row in rows]
        numbers: dict[int, None] = {}
        for tier in plan.tiers:
            after = f" ORDER BY {_ORDER}, words.rowid LIMIT ?"
            rows = self._found(plan, "words.rowid", tier, after, most + len(numbers))
            numbers |= dict.fromkeys(row[0] for row in rows)
            if len(numbers) >= most:
                break
        return [*islice(numbers, most)]

    def ranked(self, numbers: Sequence[int], pages: int) -> list[int]:
        """The pages that answer, best first."""
        found, known = [], {}
        for number, type_, slug, text, names, size in self._of(numbers, "text, names, size"):
            page = Folded(id=PageId(type=type_, slug=slug), text=text, names=names, size=size)
            known[page.id] = number
            if (match := matches(page, self.question.terms)) is not None:
                bare = replace(page, text="", names="")  # of many pages the texts aren't kept
                found.append(replace(match, page=bare))
        return [known[id_] for _, id_ in rank(found, searched=pages)]

    def hits(self, numbers: Sequence[int]) -> Iterator[Hit]:
        """The pages as they are shown. The score tells only the order."""
        rows = self._of(numbers, "title, body, text")
        for place, row in enumerate(rows, self.question.offset):
            _, type_, slug, title, body, text = row
            line = snippet_of(body, text, self.question.terms)
            known = PageId(type=type_, slug=slug)
            yield Hit(id=known, title=title, snippet=line, score=1 / (1 + place))

    def _of(self, numbers: Sequence[int], columns: str) -> Iterator[Any]:
        """The number, the type, the slug and columns of the texts of these pages, in this order."""
        source = "FROM texts JOIN pages USING (number)"
        for at in range(0, len(numbers), _AT_ONCE):
            some = numbers[at : at + _AT_ONCE]
            where = f"WHERE number IN ({', '.join('?' * len(some))})"
            rows = self._rows(f"SELECT number, type, pages.slug, {columns} {source} {where}", *some)
            found = {row[0]: row for row in rows}
            if len(found) < len(some):
                raise sqlite3.DatabaseError("there are words without a text")
            yield from (found[number] for number in some)

    def _rows(self, statement: str, *values: object) -> list[Any]:
        return self.database.execute(statement, values).fetchall()
