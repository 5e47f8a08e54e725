"""A search in a folder of pages: by the index, or where that can't be used in the pages themselves.

Before each search the index is brought up to what the folder holds. Where the folder is watched, the files
are looked at that the kernel names; otherwise, and at the first search, all of them, by name, size and
times; those that differ are read. So a page that was changed by hand or by a version-control system is
found as well.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

from agent_kit.store.disk import open_folder
from agent_kit.store.errors import StoreError
from agent_kit.store.finding import Answer, Question, answer
from agent_kit.store.folder import Place, load, reason_of, scan
from agent_kit.store.index import PageIndex, State, transaction
from agent_kit.store.names import name_key
from agent_kit.store.page import Page
from agent_kit.store.rows import Entry, Words, differing, drop_all, is_known, mend, sums, tidy
from agent_kit.store.search import Hit, folded, matches, rank, snippet
from agent_kit.store.survey import (
    RACY,
    Look,
    Survey,
    Where,
    can_be_kept,
    files_of,
    look_at,
    survey,
)
from agent_kit.store.watching import FolderWatch

__all__ = ["WATCHED", "Searched", "Searcher"]

_log = logging.getLogger("agent_kit.store")

WATCHED = 200
"""Pages from which a base is watched: fewer are looked at in less than a millisecond."""

_AT_ONCE = 500  # files that are brought up to date while others wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What was found, and the files that are no pages.

    ``unreadable`` would be pages, by their path in the root, with the reason; ``others`` can't be any.
    """

    answer: Answer
    others: Sequence[tuple[str, str]] = ()
    unreadable: Sequence[tuple[str, str]] = ()


@dataclass(slots=True, kw_only=True)
class _Known:
    """What was seen when everything was looked at; until then nothing is known.

    ``young`` are files that were changed just before they were read, by the time from which a later change
    would be told.
    """

    state: State
    root: tuple[int, int]
    pages: int
    survey: Survey
    young: dict[Where, float] = field(default_factory=dict)
    words: Words = field(default_factory=Words)


class Searcher:
    """Searches in ``root``, an absolute path. The index is in the user's cache folder, or in memory."""

    def __init__(self, root: Path, *, in_memory: bool) -> None:
        self._root = root
        self._index = PageIndex(None if in_memory else str(root))
        self._watch = FolderWatch(str(root))
        self._lock = threading.Lock()
        self._known: _Known | None = None

    def search(self, question: Question) -> Searched:
        """The pages that hold one of the terms. Raises ``FileNotFoundError`` when there is no root."""
        with open_folder(self._root) as root:
            try:
                with self._lock, self._index.used(root) as database:
                    return self._by_index(database, root, question)
            except (sqlite3.Error, OSError, UnicodeError) as error:
                _log.warning("the index of %s can't be used: %s", self._root, error)
            return self._by_reading(root, question)

    def forget(self) -> None:
        """Remove the index, with what it knew of pages that are gone."""
        with self._lock:
            self._index.forget()

    # --- by the index ------------------------------------------------------------------------------

    def _by_index(self, database: sqlite3.Connection, root: int, question: Question) -> Searched:
        known = self._bring_up_to_date(database, root)
        if known.survey.linked:  # one may be a second name of what is closed
            question = replace(question, narrows=True)
        with transaction(database, "BEGIN"):  # nobody writes between two statements
            self._check_state(known)
            found = Answer(hits=(), total=0)
            if question.terms:
                found = answer(database, question, known.pages)
            faults = database.execute(
                "SELECT folder || '/' || file, fault, slug FROM pages WHERE fault IS NOT NULL"
            ).fetchall()
        return Searched(
            answer=found,
            others=known.survey.others + [row[:2] for row in faults if not row[2]],
            unreadable=[row[:2] for row in faults if row[2]],
        )

    def _bring_up_to_date(self, database: sqlite3.Connection, root: int) -> _Known:
        """What is known of the folder as it is now; nothing, when it fails halfway."""
        known, self._known = self._known, None
        status = os.fstat(root)
        here = (status.st_dev, status.st_ino)
        changed = self._watch.changed()
        if (
            known is None
            or changed is None
            or known.state != self._index.state()
            or known.root != here
            or not all(can_be_kept(*where) for where in changed)
        ):
            known = self._look_at_all(database, root, here)
        else:
            now, linked = time.monotonic(), known.survey.linked
            grown = [where for where, then in known.young.items() if then < now]
            for where in grown:
                del known.young[where]
            others = [w for w in linked if not is_known(database, w, look_at(root, w))]
            self._mend(database, root, {*changed, *grown, *others}, known)
        self._known = known
        return known

    def _look_at_all(
        self, database: sqlite3.Connection, root: int, here: tuple[int, int]
    ) -> _Known:
        state, before = self._index.state(), sums(database)
        pages = sum(count for count, _ in before.values())
        if pages >= WATCHED:
            self._watch.start(self._folders)
        else:  # one of before knows no folder that is new
            self._watch.stop()
        seen = survey(root)
        known = _Known(state=state, root=here, pages=pages, survey=seen)
        changed: list[Where] = []
        for folder, total in seen.sums.items():
            if total is None or before.get(folder, (0, 0))[1] != total:
                changed += differing(database, folder, files_of(root, folder))
        for folder in before.keys() - seen.sums.keys():
            changed += drop_all(database, folder)
        self._mend(database, root, changed, known)
        if len(changed) > _AT_ONCE:
            tidy(database)
        if changed:
            known.pages = sum(count for count, _ in sums(database).values())
        return known

    def _mend(
        self,
        database: sqlite3.Connection,
        root: int,
        changed: Collection[Where],
        known: _Known,
    ) -> None:
        """Bring the index up to what these files are now, a part of them at a time."""
        names = iter(changed)
        while some := [*islice(names, _AT_ONCE)]:
            with transaction(database, "BEGIN IMMEDIATE"):
                self._check_state(known)
                for where in some:
                    look = look_at(root, where)
                    if look is not None and look.mark is None:
                        known.young[where] = time.monotonic() + RACY
                    if look is not None and look.linked:
                        known.survey.linked.add(where)
                    mend(database, where, look, partial(_lasting, root, known), known.words)

    def _check_state(self, known: _Known) -> None:
        """Raises ``OSError`` when another process has made the tables anew since they were looked at."""
        if self._index.state() != known.state:
            self._known = None
            raise OSError("its tables were made anew")

    def _folders(self) -> Iterator[str]:
        with os.scandir(self._root) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    yield entry.name

    # --- by reading --------------------------------------------------------------------------------

    def _by_reading(self, root: int, question: Question) -> Searched:
        scanned = scan(root)
        found, pages, unreadable = [], {}, []
        for place in scanned.places:
            try:
                page, _ = load(place, root=root)
            except (StoreError, OSError) as error:
                unreadable.append((f"{place.folder}/{place.file}", reason_of(error)))
                continue
            match = matches(folded(page), question.terms) if question.terms else None
            if match is not None and _counts(question, place, page):
                found.append(match)
                pages[page.id] = page
        ranked = rank(found, searched=len(scanned.places))[question.offset : question.end]
        hits = (_hit(pages[known], score, question.terms) for score, known in ranked)
        return Searched(
            answer=Answer(hits=tuple(hits), total=len(found)),
            others=scanned.others,
            unreadable=unreadable,
        )


def _counts(question: Question, place: Place, page: Page) -> bool:
    return (
        (question.kind is None or name_key(place.id.type) == question.kind)
        and (question.retired or not page.is_retired)
        and (question.shows is None or question.shows((place.folder, place.file)))
    )


def _hit(page: Page, score: float, terms: Sequence[str]) -> Hit:
    return Hit(id=page.id, title=page.title, snippet=snippet(page, terms), score=score)


def _lasting(root: int, known: _Known, where: Where, look: Look) -> Entry:
    """What a file holds; one that can't be read now is looked at again soon."""
    found = _entry(root, where, look)
    if not found.lasts:
        known.young[where] = time.monotonic() + RACY
    return found


def _entry(root: int, where: Where, look: Look) -> Entry:
    if look.fault:
        return Entry(fault=look.fault)
    try:
        place = Place(id=look.id, folder=where[0], file=where[1])
        page, _ = load(place, root=root)
    except StoreError as error:
        return Entry(fault=reason_of(error))
    except OSError as error:
        return Entry(fault=reason_of(error), lasts=False)
    line = replace(page, body=" ".join(page.body.split()))
    return Entry(page=folded(line), title=page.title, body=line.body, retired=page.is_retired)
