"""Rows of pages: looked up, made, changed and noted in a transaction that the store has begun."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_kit.store import refusals
from agent_kit.store.documents import Change, ChangeKind, History
from agent_kit.store.folder import SUFFIX, Permits
from agent_kit.store.grams import grams_in, keepable, marked, numbers
from agent_kit.store.names import PageId, name_key
from agent_kit.store.page import Page, page_from_bytes
from agent_kit.store.search import fold, folded

if TYPE_CHECKING:
    from agent_kit.store._postgres_link import Session

__all__ = ["Rows", "row_key"]

_PAGE: Final = """
SELECT type, slug, data, changed FROM pages WHERE base = %s AND key = %s
"""
_NEW: Final = """
INSERT INTO pages
    (base, key, type_key, type, slug, data, changed, retired, size, text, names, folded, grams)
VALUES (%(base)s, %(key)s, %(type_key)s, %(type)s, %(slug)s, %(data)s, %(changed)s, %(retired)s,
    %(size)s, %(text)s, %(names)s, %(folded)s, %(grams)s)
ON CONFLICT (base, key) DO NOTHING
"""
_CHANGED: Final = """
UPDATE pages SET data = %(data)s, changed = %(changed)s, retired = %(retired)s, size = %(size)s,
    text = %(text)s, names = %(names)s, grams = %(grams)s
WHERE base = %(base)s AND key = %(key)s
"""
_NOTE: Final = """
INSERT INTO changes (base, key, type, slug, kind, version, by) VALUES (%s, %s, %s, %s, %s, %s, %s)
"""
_NEW_TYPE: Final = "INSERT INTO types (base, key, name) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"


def row_key(name: str) -> str:
    """What a name is kept under: the same for all names that are one."""
    return keepable(name_key(name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The pages of one base in one transaction; ``permits`` is asked for paths in ``root``."""

    session: Session
    base: str
    root: Path
    permits: Permits

    def path(self, known: PageId) -> Path:
        return self.root / known.type / (known.slug + SUFFIX)

    def find(self, wanted: PageId, *, to_change: bool = False) -> tuple[Page, bytes]:
        """The page and its bytes; ``to_change`` keeps others from changing it meanwhile."""
        query = f"{_PAGE} FOR UPDATE" if to_change else _PAGE
        row = self.session.execute(query, (self.base, row_key(str(wanted)))).fetchone()
        if row is None or not self.permits(self.path(known := PageId(type=row[0], slug=row[1]))):
            raise refusals.not_found(wanted)
        data = bytes(row[2])
        return page_from_bytes(known, data, changed=row[3].timestamp()), data

    def pages(self, known: Sequence[PageId]) -> list[Page]:
        """These pages, which are there, in this order."""
        keys = [row_key(str(page_id)) for page_id in known]
        query = "SELECT key, data, changed FROM pages WHERE base = %s AND key = ANY(%s)"
        found = {row[0]: row for row in self._rows(query, (self.base, keys))}
        return [
            page_from_bytes(page_id, bytes(found[key][1]), changed=found[key][2].timestamp())
            for page_id, key in zip(known, keys, strict=True)
        ]

    def ids(self, type_key: str | None, *, shown: Callable[[PageId], bool]) -> list[PageId]:
        """The pages that are shown, ordered by id."""
        query = "SELECT type, slug FROM pages WHERE base = %s"
        given: tuple[str, ...] = (self.base,)
        if type_key is not None:
            query, given = f"{query} AND type_key = %s", (self.base, type_key)
        known = (PageId(type=row[0], slug=row[1]) for row in self.session.execute(query, given))
        return sorted(filter(shown, known), key=str)

    def make(self, pages: Sequence[tuple[Page, bytes]]) -> None:
        """Add pages whose names are free, or raise :class:`StoreError`."""
        spelled = self._spelled([page.id.type for page, _ in pages])
        taken = self._taken([page.id for page, _ in pages])
        keys = set(taken)
        for page, _ in pages:
            existing = spelled[row_key(page.id.type)]
            if existing != page.id.type:
                raise refusals.type_spelled(page.id.type, existing)
            if not self.permits(self.path(page.id)):
                raise refusals.denied(page.id)
            key = row_key(str(page.id))
            if key in keys:
                raise refusals.taken(taken.get(key, page.id))
            keys.add(key)
        self._insert(pages)

    def _spelled(self, types: Sequence[str]) -> dict[str, str]:
        """How each type is spelled, by its key. One that is new is spelled as it was given first."""
        given: dict[str, str] = {}
        for name in types:
            given.setdefault(row_key(name), name)
        query = "SELECT key, name FROM types WHERE base = %s AND key = ANY(%s)"
        known = dict(self._rows(query, (self.base, list(given))))
        if new := sorted(given.keys() - known.keys()):  # in one order everywhere: no deadlock
            with self.session.cursor() as cursor:
                cursor.executemany(_NEW_TYPE, [(self.base, key, given[key]) for key in new])
            known = dict(self._rows(query, (self.base, list(given))))
        return known

    def _taken(self, wanted: Sequence[PageId]) -> dict[str, PageId]:
        """The pages that have one of the names, as they may be named to whoever asks."""
        keys = {row_key(str(known)): known for known in reversed(wanted)}
        query = "SELECT key, type, slug FROM pages WHERE base = %s AND key = ANY(%s)"
        found = {}
        for key, type_, slug in self._rows(query, (self.base, list(keys))):
            known = PageId(type=type_, slug=slug)
            found[key] = known if self.permits(self.path(known)) else keys[key]
        return found

    def _insert(self, pages: Sequence[tuple[Page, bytes]]) -> None:
        rows = sorted((self._row(page, data) for page, data in pages), key=lambda row: row["key"])
        with self.session.cursor() as cursor:
            cursor.executemany(_NEW, rows)
            made = cursor.rowcount
        if made != len(rows):  # somebody else was faster since the names were looked up
            taken = self._taken([page.id for page, _ in pages])
            raise refusals.taken(next(iter(taken.values()), pages[0][0].id))

    def put(self, page: Page, data: bytes) -> None:
        """New bytes for a page that :meth:`find` found to be changed."""
        self.session.execute(_CHANGED, self._row(page, data))

    def remove(self, page: Page) -> None:
        """Remove the page, and what the history says of it."""
        given = (self.base, row_key(str(page.id)))
        self.session.execute("DELETE FROM pages WHERE base = %s AND key = %s", given)
        self.session.execute("DELETE FROM changes WHERE base = %s AND key = %s", given)

    def note(self, kind: ChangeKind, pages: Sequence[Page], *, by: str) -> None:
        """Add the changes to the history."""
        rows = [
            (self.base, row_key(str(p.id)), p.id.type, p.id.slug, kind.value, p.version, by)
            for p in pages
        ]
        with self.session.cursor() as cursor:
            cursor.executemany(_NOTE, rows)

    def history(
        self, key: str | None, *, shown: Callable[[PageId], bool], offset: int, limit: int
    ) -> History:
        """The changes of the pages that are shown, newest first."""
        query = (
            "SELECT key, type, slug, count(*) FROM changes "
            "WHERE base = %s AND (%s::text IS NULL OR key = %s) GROUP BY key, type, slug"
        )
        known = {
            (row[0], row[1], row[2]): row[3]
            for row in self._rows(query, (self.base, key, key))
            if shown(PageId(type=row[1], slug=row[2]))
        }
        query = (
            "SELECT at, kind, type, slug, version, by FROM changes "
            "WHERE base = %s AND key = ANY(%s) ORDER BY number DESC OFFSET %s LIMIT %s"
        )
        keys = [name[0] for name in known]
        changes = tuple(
            Change(
                when=row[0],
                kind=ChangeKind(row[1]),
                id=PageId(type=row[2], slug=row[3]),
                version=row[4],
                by=row[5],
            )
            for row in self._rows(query, (self.base, keys, offset, limit))
        )
        return History(changes=changes, total=sum(known.values()))

    def _row(self, page: Page, data: bytes) -> dict[str, Any]:
        """A page as its table keeps it."""
        searched = folded(page)
        slug = fold(str(page.id))
        texts = [keepable(text) for text in (searched.text, searched.names, slug)]
        return {
            "base": self.base,
            "key": row_key(str(page.id)),
            "type_key": row_key(page.id.type),
            "type": page.id.type,
            "slug": page.id.slug,
            "data": data,
            "changed": page.changed,
            "retired": page.is_retired,
            "size": searched.size,
            "text": marked(texts[0]),
            "names": marked(texts[1]),
            "folded": marked(texts[2]),
            "grams": numbers(grams_in(texts), base=self.base),
        }

    def _rows(self, query: str, given: Sequence[object]) -> list[tuple[Any, ...]]:
        return self.session.execute(query, given).fetchall()


def changed_now(page_id: PageId, data: bytes, now: datetime) -> Page:
    """The page that these bytes are from now on."""
    return page_from_bytes(page_id, data, changed=now.timestamp())
