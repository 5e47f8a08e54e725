"""A search in a folder of pages: by the index, or where that can't be used in the pages themselves."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_kit.store.disk import open_folder
from agent_kit.store.errors import StoreError
from agent_kit.store.folder import Place, Scan, load, reason_of
from agent_kit.store.index import Entry, PageIndex, Wanted
from agent_kit.store.names import PageId
from agent_kit.store.search import Folded, Match, folded, matches, rank

__all__ = ["Searched", "Searcher"]

_log = logging.getLogger("agent_kit.store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """Pages with their scores, best first, and how ``many more`` there are that were not ranked.

    ``others`` are files that can't be read as pages, by their path in the root, with the reason.
    """

    ranked: Sequence[tuple[float, PageId]]
    more: int
    others: Sequence[tuple[str, str]] = ()


class Searcher:
    """Searches in ``root``, an absolute path. The index lies there, or is kept in memory."""

    def __init__(self, root: Path, *, in_memory: bool) -> None:
        self._root = root
        self._index = PageIndex(None if in_memory else str(root))

    def search(self, terms: Sequence[str], scanned: Scan, counts: Wanted) -> Searched:
        """The pages of a scan that hold one of the terms. Raises ``OSError`` when the root is gone."""
        if not scanned.places:
            return Searched(ranked=(), more=0)
        try:
            return self._by_index(terms, scanned, counts)
        except (sqlite3.Error, OSError, UnicodeError) as error:
            _log.warning("the index of %s can't be used: %s", self._root, error)
        return self._by_reading(terms, scanned, counts)

    def _by_index(self, terms: Sequence[str], scanned: Scan, counts: Wanted) -> Searched:
        places = {(place.folder, place.file): place for place in scanned.places}
        stamps = {where: place.stamp for where, place in places.items()}
        with (
            open_folder(self._root) as root,
            self._index.up_to_date(stamps, lambda where: _entry(places[where], root)) as index,
        ):
            found = index.candidates(terms, counts)
            others = [("/".join(where), fault) for where, fault in index.faults()]
        ranked = rank(_matching(found.pages, terms), searched=len(places))
        return Searched(ranked=ranked, more=found.more, others=others)

    def _by_reading(self, terms: Sequence[str], scanned: Scan, counts: Wanted) -> Searched:
        pages, others = [], []
        with open_folder(self._root) as root:
            for place in scanned.places:
                where, entry = (place.folder, place.file), _entry(place, root)
                if entry.page is None:
                    others.append(("/".join(where), entry.fault or ""))
                elif counts(where, place.id, entry.retired):
                    pages.append(entry.page)
        ranked = rank(_matching(pages, terms), searched=len(scanned.places))
        return Searched(ranked=ranked, more=0, others=others)


def _matching(pages: Sequence[Folded], terms: Sequence[str]) -> Iterator[Match]:
    return (match for page in pages if (match := matches(page, terms)) is not None)


def _entry(place: Place, root: int) -> Entry:
    try:
        page, _ = load(place, root=root)
    except (StoreError, OSError) as error:
        return Entry(fault=reason_of(error))
    return Entry(page=folded(page), retired=page.is_retired)
