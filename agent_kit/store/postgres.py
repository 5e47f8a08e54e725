"""Pages in a PostgreSQL database, which worker processes on many machines share.

What it promises is what :class:`~agent_kit.store.documents.DocumentStore` says, held by the server's
transactions: one process that is killed leaves the old page or the new one. A page is kept as the bytes
of the Markdown file that it would be in a folder, with the same version.

It needs ``agent-kit[postgres]``: psycopg (LGPL-3.0), used as it is published. The server needs no
extension, and a database in UTF-8; any locale will do.

Every call blocks; call it from a thread when an event loop must not wait.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from agent_kit.store import refusals
from agent_kit.store._postgres_link import Waits, link_to, require_driver
from agent_kit.store._postgres_pages import Rows, changed_now, row_key
from agent_kit.store._postgres_schema import prepare
from agent_kit.store._postgres_search import ranked
from agent_kit.store.changing import (
    Making,
    editing,
    new_bytes,
    new_id,
    retiring,
    rewriting,
    superseding,
    wanted,
)
from agent_kit.store.documents import (
    MAX_NEW_PAGES,
    ChangeKind,
    Found,
    History,
    Listing,
)
from agent_kit.store.errors import StoreCode, StoreError
from agent_kit.store.folder import MAX_FILE, SUFFIX, Permits
from agent_kit.store.names import PageId, is_control_name, page_id
from agent_kit.store.page import NewPage, Page
from agent_kit.store.search import Hit, snippet, terms_of

__all__ = ["PostgresStore"]

_MAX_BASE: Final = 200  # bytes
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class PostgresStore:
    """The pages of one base in a database.

    ``dsn`` is what libpq takes; it appears in no error and in no log. ``base`` tells bases apart:
    whatever is in one is never met in another. ``root`` is the absolute folder in which the session's
    rules judge the pages by name; nothing lies there. ``permits`` and ``shows`` are asked for paths in
    it, as :class:`~agent_kit.store.MarkdownStore` asks them. ``read_only`` refuses every write, and
    needs no right but to read; ``by`` stands in the history beside each change; ``keeps_history=False``
    keeps none. ``schema`` is the database's. At the first call its tables are made, or brought up to
    date, by a role that may; a read-only store does neither, and says that they are missing or old.

    The waits are in seconds: to reach the server (at least 1, for each address that it has), for
    somebody else's lock, and for an answer. Raises ``ImportError`` without psycopg, and ``ValueError``
    for a ``schema`` that isn't a plain lower-case name.
    """

    def __init__(
        self,
        dsn: str,
        *,
        base: str = "default",
        root: Path = Path("/knowledge"),
        permits: Permits = lambda _path: True,
        shows: Permits = lambda _path: True,
        read_only: bool = False,
        by: str = "",
        keeps_history: bool = True,
        schema: str = "agent_kit",
        connect_timeout: float = 5.0,
        lock_timeout: float = 30.0,
        statement_timeout: float = 60.0,
    ) -> None:
        require_driver()
        if not _SCHEMA.fullmatch(schema):
            raise ValueError("schema must be a lower-case name such as agent_kit")
        self.root = root
        self._folder = str(root).rstrip("/")
        self.read_only = read_only
        self._base = _checked_base(base)
        self._by = by.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
        self._keeps_history = keeps_history
        self._permits = permits
        self._shows = shows
        self._schema = schema
        waits = Waits(connect=connect_timeout, lock=lock_timeout, statement=statement_timeout)
        self._link = link_to(dsn, schema, waits)
        self._prepared = False

    def list(self, *, type: str | None = None) -> Listing:  # noqa: A002 - the pages' own word
        """The pages, of one type or of all, ordered by id."""
        with self._rows() as rows:
            known = rows.ids(None if type is None else row_key(type), shown=self._is_shown)
        return Listing(ids=tuple(known))

    def read(self, written: str | PageId) -> Page:
        """The page with this id; case and Unicode form don't matter."""
        return self._read(written)[0]

    def bytes_of(self, written: str | PageId) -> bytes:
        """The page as the bytes of a Markdown file. Raises as :meth:`read` does."""
        return self._read(written)[1]

    def _read(self, written: str | PageId) -> tuple[Page, bytes]:
        known = wanted(written)
        with self._rows() as rows:
            page, data = rows.find(known)
        if not self._shows(self._path(page.id)):
            raise refusals.denied(page.id)
        return page, data

    def path_of(self, written: str | PageId) -> Path:
        """The absolute path by which the session's rules judge the page. Raises when there is none."""
        known = wanted(written)
        with self._rows() as rows:
            return self._path(rows.find(known)[0].id)

    def new_path(self, page: NewPage) -> Path:
        """The same of a new page. Raises :class:`StoreError` for one that can't be."""
        return self._path(new_id(page))

    def search(
        self,
        query: str,
        *,
        type: str | None = None,  # noqa: A002
        retired: bool = False,
        offset: int = 0,
        limit: int = 20,
    ) -> Found:
        """The pages that hold words of the query, best first. An empty query finds none."""
        terms = terms_of(query)
        if not terms:
            return Found(hits=(), total=0)
        with self._rows() as rows:
            found = ranked(
                rows.session,
                terms,
                base=self._base,
                type_key=None if type is None else row_key(type),
                retired=retired,
                shown=self._is_shown,
            )
            chosen = found[offset : offset + limit]
            pages = rows.pages([known for _, known in chosen])
        hits = tuple(
            Hit(id=page.id, title=page.title, snippet=snippet(page, terms), score=score)
            for (score, _), page in zip(chosen, pages, strict=True)
        )
        return Found(hits=hits, total=len(found))

    def create(self, pages: Sequence[NewPage]) -> tuple[Page, ...]:
        """Make the pages, all or none; the pages, in the order given."""
        if not 1 <= len(pages) <= MAX_NEW_PAGES:
            raise refusals.too_many(MAX_NEW_PAGES)
        now = datetime.now(UTC)
        made = [_made(page, now) for page in pages]
        with self._rows(writes=True) as rows:
            rows.make(made)
            self._note(rows, ChangeKind.CREATED, *(page for page, _ in made))
        return tuple(page for page, _ in made)

    def bring_in(self, files: Iterable[tuple[PageId, bytes]]) -> tuple[Page, ...]:
        """Make pages of Markdown files as they are, byte for byte, all or none."""
        now = datetime.now(UTC)
        made = [(_brought(known, data, now), data) for known, data in files]
        with self._rows(writes=True) as rows:
            rows.make(made)
            self._note(rows, ChangeKind.CREATED, *(page for page, _ in made))
        return tuple(page for page, _ in made)

    def edit(self, written: str | PageId, *, version: str, old: str, new: str) -> Page:
        """Put ``new`` in the place of ``old``, which must stand exactly once; the page after it."""
        return self._change(written, version, ChangeKind.EDITED, editing(old, new))

    def rewrite(
        self, written: str | PageId, *, version: str, body: str, title: str | None = None
    ) -> Page:
        """Put ``body`` in the place of what follows the front matter; the page after it."""
        change = rewriting(str(written), body, title)
        return self._change(written, version, ChangeKind.REWRITTEN, change)

    def retire(self, written: str | PageId, *, version: str, reason: str = "") -> Page:
        """Mark a page as no longer valid; the page after it. It stays readable, and is found no more."""
        return self._change(written, version, ChangeKind.RETIRED, retiring(reason))

    def supersede(self, written: str | PageId, *, version: str, by: NewPage) -> tuple[Page, Page]:
        """Make a page and retire the one that it takes the place of, both or neither; old and new."""
        known, now = wanted(written), datetime.now(UTC)
        new, new_data = _made(by, now)
        with self._rows(writes=True) as rows:
            page, data = _to_change(rows, known, version)
            rows.make([(new, new_data)])
            data = superseding(new.id)(page, data)
            old = changed_now(page.id, data, now)
            rows.put(old, data)
            self._note(rows, ChangeKind.CREATED, new)
            self._note(rows, ChangeKind.SUPERSEDED, old)
        return old, new

    def delete(self, written: str | PageId) -> PageId:
        """Remove the page for good, with what the history says of it; its id."""
        known = wanted(written)
        with self._rows(writes=True) as rows:
            page, _ = rows.find(known, to_change=True)
            _check_harmless(page)
            rows.remove(page)
        return page.id

    def history(
        self, written: str | PageId | None = None, *, offset: int = 0, limit: int = 50
    ) -> History:
        """The changes that were made through stores, of one page or of all, newest first."""
        key = None if written is None else row_key(str(wanted(written)))
        with self._rows() as rows:
            return rows.history(key, shown=self._is_shown, offset=offset, limit=limit)

    def close(self) -> None:
        """Close the process's unused connections to the database. The store can still be used."""
        self._link.close()

    def _change(
        self,
        written: str | PageId,
        version: str,
        kind: ChangeKind,
        making: Making,
    ) -> Page:
        """The page after ``making`` made other bytes of it, from the version that it has."""
        known = wanted(written)
        with self._rows(writes=True) as rows:
            page, data = _to_change(rows, known, version)
            data = making(page, data)
            changed = changed_now(page.id, data, datetime.now(UTC))
            rows.put(changed, data)
            self._note(rows, kind, changed)
        return changed

    def _note(self, rows: Rows, kind: ChangeKind, *pages: Page) -> None:
        if self._keeps_history:
            rows.note(kind, pages, by=self._by)

    def _path(self, known: PageId) -> Path:
        return Path(f"{self._folder}/{known.type}/{known.slug}{SUFFIX}")  # faster than joining

    def _is_shown(self, known: PageId) -> bool:
        path = self._path(known)
        return self._permits(path) and self._shows(path)

    @contextmanager
    def _rows(self, *, writes: bool = False) -> Iterator[Rows]:
        """The base's rows in a transaction that ends with the block."""
        if writes and self.read_only:
            raise StoreError("These pages are read-only.", code=StoreCode.READ_ONLY)
        if not self._prepared:
            prepare(self._link, self._schema, read_only=self.read_only)
            self._prepared = True
        with self._link.transaction(writes=writes) as session:
            yield Rows(session=session, base=self._base, root=self.root, permits=self._permits)


def _checked_base(base: str) -> str:
    """The base's name. Raises :class:`StoreError` for one that can't be told from others."""
    try:
        size = len(base.encode())
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= _MAX_BASE or "\0" in base:
        raise StoreError(
            f"The name of a base must be text of 1 to {_MAX_BASE} bytes.", code=StoreCode.BAD_NAME
        )
    return base


def _made(page: NewPage, now: datetime) -> tuple[Page, bytes]:
    """A new page and its bytes. Everything about it is checked before the database is touched."""
    known, data = new_bytes(page, now)
    return changed_now(known, data, now), data


def _brought(known: PageId, data: bytes, now: datetime) -> Page:
    page = changed_now(page_id(str(known)), data, now)
    if len(data) > MAX_FILE:
        raise StoreError(f'"{known}" is too large for a page.', code=StoreCode.TOO_LARGE)
    _check_harmless(page)
    return page


def _to_change(rows: Rows, known: PageId, version: str) -> tuple[Page, bytes]:
    page, data = rows.find(known, to_change=True)
    _check_harmless(page)
    if version.strip() != page.version:
        raise refusals.stale(page)
    return page, data


def _check_harmless(page: Page) -> None:
    """That no later session would take the page's file for its instructions."""
    if is_control_name(page.id.type) or is_control_name(page.id.slug + SUFFIX):
        raise refusals.steers(page.id)
