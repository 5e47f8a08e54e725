"""A search in a folder of pages: by the index, or where that can't be used in the pages themselves."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_kit.store.disk import open_folder
from agent_kit.store.errors import StoreError
from agent_kit.store.folder import Place, Scan, load, reason_of, scan
from agent_kit.store.index import Entry, PageIndex, Stamp, Wanted, Where
from agent_kit.store.names import PageId
from agent_kit.store.search import Folded, Match, folded, matches, rank
from agent_kit.store.watching import FolderWatch

__all__ = ["WATCHED", "Searched", "Searcher"]

_log = logging.getLogger("agent_kit.store")


WATCHED = 1000
"""Pages from which a base is watched: fewer are listed in a few milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """Pages with their scores, best first, and how many ``more`` there are that were not ranked.

    ``others`` are files that can't be read as pages, by their path in the root, with the reason, beside
    those of the ``scanned`` folder.
    """

    scanned: Scan
    ranked: Sequence[tuple[float, PageId]] = ()
    more: int = 0
    others: Sequence[tuple[str, str]] = ()


class Searcher:
    """Searches in ``root``, an absolute path. The index lies there, or is kept in memory."""

    def __init__(self, root: Path, *, in_memory: bool) -> None:
        self._root = root
        self._index = PageIndex(None if in_memory else str(root))
        self._watch = FolderWatch(str(root))
        self._lock = threading.Lock()
        self._looked: _Looked | None = None

    def search(self, terms: Sequence[str], counts: Wanted) -> Searched:
        """The pages that hold one of the terms. Raises ``FileNotFoundError`` when there is no root."""
        looked = self._look()
        if not looked.places or not terms:
            return Searched(scanned=looked.scan)
        try:
            return self._by_index(terms, looked, counts)
        except (sqlite3.Error, OSError, UnicodeError) as error:
            _log.warning("the index of %s can't be used: %s", self._root, error)
        return self._by_reading(terms, looked, counts)

    def forget(self) -> None:
        """Remove the index, with what it knew of pages that are gone."""
        self._index.forget()

    def _look(self) -> _Looked:
        """What the folder holds now."""
        with self._lock:
            if self._looked is not None and self._watch.is_unchanged():
                return self._looked
            if self._looked is not None and len(self._looked.places) >= WATCHED:
                self._watch.start(self._folders)
            else:  # one of before knows no folder that is new
                self._watch.stop()
            with open_folder(self._root) as root:
                self._looked = _Looked.of(scan(root))
            return self._looked

    def _folders(self) -> Iterator[str]:
        with os.scandir(self._root) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and not entry.name.startswith("."):
                    yield entry.name

    def _by_index(self, terms: Sequence[str], looked: _Looked, counts: Wanted) -> Searched:
        with (
            open_folder(self._root) as root,
            self._index.up_to_date(
                looked.stamps, lambda where: _entry(looked.places[where], root)
            ) as index,
        ):
            found = index.candidates(terms, counts)
            others = [("/".join(where), fault) for where, fault in index.faults()]
        ranked = rank(_matching(found.pages, terms), searched=len(looked.places))
        return Searched(scanned=looked.scan, ranked=ranked, more=found.more, others=others)

    def _by_reading(self, terms: Sequence[str], looked: _Looked, counts: Wanted) -> Searched:
        pages, others = [], []
        with open_folder(self._root) as root:
            for where, place in looked.places.items():
                entry = _entry(place, root)
                if entry.page is None:
                    others.append(("/".join(where), entry.fault or ""))
                elif counts(where, place.id, entry.retired):
                    pages.append(entry.page)
        ranked = rank(_matching(pages, terms), searched=len(looked.places))
        return Searched(scanned=looked.scan, ranked=ranked, others=others)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Looked:
    """A scan, with its pages by their place."""

    scan: Scan
    places: Mapping[Where, Place]
    stamps: Mapping[Where, Stamp]

    @classmethod
    def of(cls, found: Scan) -> _Looked:
        places = {(place.folder, place.file): place for place in found.places}
        stamps = {where: place.stamp for where, place in places.items()}
        return cls(scan=found, places=places, stamps=stamps)


def _matching(pages: Sequence[Folded], terms: Sequence[str]) -> Iterator[Match]:
    return (match for page in pages if (match := matches(page, terms)) is not None)


def _entry(place: Place, root: int) -> Entry:
    try:
        page, _ = load(place, root=root)
    except (StoreError, OSError) as error:
        return Entry(fault=reason_of(error))
    return Entry(page=folded(page), retired=page.is_retired)
