"""What keeps pages: the protocol that a folder and a database both follow, and the values of it.

:func:`agent_kit.testing.check_document_store` says of a store whether it keeps what this promises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol

from agent_kit.store.names import PageId
from agent_kit.store.page import NewPage, Page
from agent_kit.store.search import Hit

__all__ = [
    "MAX_NEW_PAGES",
    "MAX_REASON",
    "Change",
    "ChangeKind",
    "DocumentStore",
    "Found",
    "History",
    "Listing",
    "Unusable",
]

MAX_NEW_PAGES: Final = 50
"""Most pages that one call makes."""

MAX_REASON: Final = 300
"""Longest reason for retiring a page, in characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """What is served as no page, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The ids of the pages, in order, and what is no page."""

    ids: tuple[PageId, ...]
    unusable: tuple[Unusable, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One slice of a search's hits, best first; ``total`` counts all of them."""

    hits: tuple[Hit, ...]
    total: int
    unusable: tuple[Unusable, ...] = ()


class ChangeKind(StrEnum):
    """What a store was told to do."""

    CREATED = "created"
    EDITED = "edited"
    REWRITTEN = "rewritten"
    RETIRED = "retired"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change that was made through a store. ``version`` is the page's afterwards.

    ``by`` is what the store was opened with, such as a session's name; ``""`` when nothing.
    """

    when: datetime
    kind: ChangeKind
    id: PageId
    version: str
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One slice of the changes, newest first; ``total`` counts all that are kept."""

    changes: tuple[Change, ...]
    total: int


class DocumentStore(Protocol):
    """Pages with ids ``type/slug``, that several processes share.

    Methods block. They raise :class:`StoreError` for what the caller can mend, whose sentence may be
    shown to the model, and ``OSError`` for what the machine refuses. Promised of each:

    - A change is there as a whole or not at all, whenever the process is killed; several new pages
      likewise.
    - A change names the ``version`` that it started from. When the page has another one by now it is
      refused with ``STALE`` and the ``current`` page: no update is lost, none is merged.
    - Ids are compared without regard to case and Unicode form. A name that could leave a folder, that
      some platform refuses, or that can't be encoded is refused before anything is touched.
    - A search sees every change that was finished before it.
    """

    @property
    def read_only(self) -> bool:
        """Whether every change is refused."""

    def list(self, *, type: str | None = None) -> Listing:  # noqa: A002 - the pages' own word
        """The pages, of one type or of all, ordered by id; also those that are retired."""

    def read(self, written: str | PageId) -> Page:
        """The page with this id; case and Unicode form don't matter when only one page fits."""

    def search(
        self,
        query: str,
        *,
        type: str | None = None,  # noqa: A002
        retired: bool = False,
        offset: int = 0,
        limit: int = 20,
    ) -> Found:
        """The pages that hold words of the query, best first. An empty query finds none.

        A query is text in any script, never syntax. ``retired`` finds retired pages, too.
        """

    def create(self, pages: Sequence[NewPage]) -> tuple[Page, ...]:
        """Make 1 to ``MAX_NEW_PAGES`` pages, all or none; the pages, in the order given."""

    def edit(self, written: str | PageId, *, version: str, old: str, new: str) -> Page:
        """Put ``new`` in the place of ``old``, which must stand exactly once; the page after it.

        Every other byte stays.
        """

    def rewrite(
        self, written: str | PageId, *, version: str, body: str, title: str | None = None
    ) -> Page:
        """Put ``body`` in the place of what follows the front matter, which stays but for ``updated``,
        and ``title`` when one is given; the page after it."""

    def retire(self, written: str | PageId, *, version: str, reason: str = "") -> Page:
        """Mark a page as no longer valid; the page after it. It stays readable, and is found no more.

        Its front matter says so: ``status: retired``, and the ``reason``.
        """

    def supersede(self, written: str | PageId, *, version: str, by: NewPage) -> tuple[Page, Page]:
        """Make a page and retire the one that it takes the place of, both or neither; old and new.

        The old one's front matter says ``status: superseded`` and ``superseded_by``.
        """

    def delete(self, written: str | PageId) -> PageId:
        """Remove the page for good, with what the history says of it; its id."""

    def history(
        self, written: str | PageId | None = None, *, offset: int = 0, limit: int = 50
    ) -> History:
        """The changes that were made through stores, of one page or of all, newest first."""

    def path_of(self, written: str | PageId) -> Path:
        """The absolute path by which a session's rules judge the page. Raises as :meth:`read` does."""

    def new_path(self, page: NewPage) -> Path:
        """The same of a new page. Raises :class:`StoreError` for one that can't be."""
