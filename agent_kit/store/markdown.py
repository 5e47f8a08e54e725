"""A folder of Markdown pages, ``<type>/<slug>.md``, that several sessions and people share.

What it promises: a page is its old bytes or its new ones, also after ``kill -9``; several new
pages are all there or none; an edit that started from an older version is refused with the
current page; names never leave the folder, and never meet by case or Unicode form; links and
special files are not followed; what can't be read is named and stops nothing else.

What it does not stop: a program that writes in the folder without taking the lock, between the
moment an edit compares the version and the moment it puts the new bytes in place.

Every call blocks while it reads or writes; call it from a thread when an event loop must not wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agent_kit.store import refusals
from agent_kit.store.disk import (
    FileBytes,
    open_folder,
    publish_over,
    read_file,
    remove_file,
    settle,
    stage,
)
from agent_kit.store.edit import replaced
from agent_kit.store.errors import StoreCode, StoreError
from agent_kit.store.folder import (
    MAX_FILE,
    SUFFIX,
    Permits,
    Place,
    Scan,
    Unusable,
    check_free,
    find,
    id_of,
    load,
    reason_of,
    scan,
)
from agent_kit.store.journal import JOURNAL_NAME, NewFile, recover, write_all
from agent_kit.store.lock import exclusive
from agent_kit.store.names import PageId, is_control_name, page_id, page_name, slug_from
from agent_kit.store.page import NewPage, Page, encoded, page_from_bytes, text_of
from agent_kit.store.search import Hit, Match, matches, rank, snippet, terms_of

__all__ = ["MAX_NEW_PAGES", "Found", "Listing", "MarkdownStore"]

MAX_NEW_PAGES = 50
"""Most pages that one call makes."""

_LOCK_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The ids of the pages, in order, and what in the folder is no page."""

    ids: tuple[PageId, ...]
    unusable: tuple[Unusable, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One slice of a search's hits, best first; ``total`` counts all of them."""

    hits: tuple[Hit, ...]
    total: int
    unusable: tuple[Unusable, ...]


class MarkdownStore:
    """The pages in one folder.

    ``root`` is absolute and need not exist yet: it is made at the first write, with its parents.
    ``permits`` is asked for the absolute path of each page; one that it refuses is not listed,
    read or written. One that ``shows`` refuses is not listed, found or read. ``private`` makes files and folders for their owner alone. ``read_only``
    refuses every write. Methods raise :class:`StoreError` for what the caller can mend and
    ``OSError`` for what the disk refuses.
    """

    def __init__(
        self,
        root: Path,
        *,
        permits: Permits = lambda _path: True,
        shows: Permits = lambda _path: True,
        private: bool = False,
        read_only: bool = False,
    ) -> None:
        self.root = root
        self.read_only = read_only
        self._permits = permits
        self._shows = shows
        self._private = private
        self._swept = False

    def list(self, *, type: str | None = None) -> Listing:  # noqa: A002 - the pages' own word
        """The pages, of one type or of all, ordered by id."""
        found = self._scan()
        ids = tuple(place.id for place in found.of_type(type))
        return Listing(ids=ids, unusable=tuple(found.unusable))

    def read(self, written: str | PageId) -> Page:
        """The page with this id; case and Unicode form don't matter when only one page fits."""
        wanted = _wanted(written)
        try:
            with self._reading() as root:
                place = self._find(root, wanted)
                if not self._shows(self._path(place)):
                    raise refusals.denied(place.id)
                return load(place, root=root)[0]
        except FileNotFoundError:
            raise refusals.not_found(wanted) from None

    def path_of(self, written: str | PageId) -> Path:
        """The absolute path of the page with this id, which :meth:`read` would open. Raises as it does."""
        wanted = _wanted(written)
        try:
            with self._reading() as root:
                return self._path(self._find(root, wanted))
        except FileNotFoundError:
            raise refusals.not_found(wanted) from None

    def new_path(self, page: NewPage) -> Path:
        """The absolute path that a new page would get. Raises :class:`StoreError` for one that can't be."""
        return self.root.joinpath(*_names_of(page))

    def search(
        self,
        query: str,
        *,
        type: str | None = None,  # noqa: A002
        offset: int = 0,
        limit: int = 20,
    ) -> Found:
        """The pages that hold words of the query, best first. An empty query finds none."""
        terms = terms_of(query)
        found = self._scan()
        places = found.of_type(type) if terms else []
        ranked = rank(self._matches(places, terms, found), searched=len(places))
        hits = tuple(
            Hit(id=page.id, title=page.title, snippet=snippet(page, terms), score=score)
            for score, page in ranked[offset : offset + limit]
        )
        return Found(hits=hits, total=len(ranked), unusable=tuple(found.unusable))

    def create(self, pages: Sequence[NewPage]) -> tuple[Page, ...]:
        """Make the pages, all or none; the pages as they are on the disk, in the order given.

        Raises :class:`StoreError` when one of them can't be made; nothing was written then.
        """
        if not 1 <= len(pages) <= MAX_NEW_PAGES:
            raise refusals.too_many(MAX_NEW_PAGES)
        now = datetime.now(UTC)
        files = [_new_file(page, now) for page in pages]
        with self._writing() as root:
            check_free(files, root=root, path=self.root, permits=self._permits)
            try:
                write_all(files, root=root, private=self._private)
            except FileExistsError:
                raise refusals.taken(id_of(files[0])) from None
        made = (page_from_bytes(id_of(f), f.data, changed=now.timestamp()) for f in files)
        return tuple(made)

    def edit(self, written: str | PageId, *, version: str, old: str, new: str) -> Page:
        """Put ``new`` in the place of ``old``, which must stand exactly once; the page after it.

        Every other byte stays. Raises :class:`StoreError`: ``STALE`` with the ``current`` page
        when ``version`` isn't the page's version any more.
        """
        wanted = _wanted(written)
        with self._writing() as root:
            place = self._find_to_change(root, wanted)
            page, file = load(place, root=root)
            if version.strip() != page.version:
                raise refusals.stale(page)
            changed = replaced(page, file.data, old, new)
            _put_over(place, changed, file, root=root)
        return page_from_bytes(place.id, changed, changed=datetime.now(UTC).timestamp())

    def delete(self, written: str | PageId) -> PageId:
        """Remove the page for good; its id. Raises :class:`StoreError` when there is none."""
        wanted = _wanted(written)
        with self._writing() as root:
            place = self._find_to_change(root, wanted)
            with open_folder(place.folder, inside=root) as folder:
                remove_file(place.file, inside=folder)
                settle(folder)
        return place.id

    def _path(self, place: Place) -> Path:
        return self.root / place.folder / place.file

    def _find(self, root: int, wanted: PageId) -> Place:
        return find(root, wanted, path=self.root, permits=self._permits)

    def _find_to_change(self, root: int, wanted: PageId) -> Place:
        """The page's place, unless a later session takes the file for its instructions."""
        place = self._find(root, wanted)
        if is_control_name(place.folder) or is_control_name(place.file):
            raise refusals.steers(place.id)
        return place

    def _is_shown(self, path: Path) -> bool:
        return self._permits(path) and self._shows(path)

    def _scan(self) -> Scan:
        try:
            with self._reading() as root:
                return scan(root, path=self.root, permits=self._is_shown)
        except FileNotFoundError:
            return Scan()  # nothing was written yet

    def _matches(
        self, places: Sequence[Place], terms: Sequence[str], found: Scan
    ) -> Iterator[Match]:
        if not places:
            return
        with open_folder(self.root) as root:
            for place in places:
                try:
                    match = matches(load(place, root=root)[0], terms)
                except (StoreError, OSError) as error:
                    found.skip(str(place.id), reason_of(error))
                else:
                    if match:
                        yield match

    @contextmanager
    def _reading(self) -> Iterator[int]:
        """The root's handle, after what a killed writer had committed was put in place."""
        if (self.root / JOURNAL_NAME).exists():
            with suppress(OSError, StoreError), self._writing():
                pass
        with open_folder(self.root) as root:
            yield root

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """The root's handle under the folder's lock, with a killed writer's work tidied up."""
        if self.read_only:
            raise StoreError("These pages are read-only.", code=StoreCode.READ_ONLY)
        self.root.mkdir(mode=0o700 if self._private else 0o777, parents=True, exist_ok=True)
        with exclusive(self.root, timeout=_LOCK_SECONDS), open_folder(self.root) as root:
            if not self._swept or (self.root / JOURNAL_NAME).exists():
                recover(root)
                self._swept = True
            yield root


def _wanted(written: str | PageId) -> PageId:
    return written if isinstance(written, PageId) else page_id(written)


def _new_file(page: NewPage, now: datetime) -> NewFile:
    """The file for a new page. Everything about it is checked before the disk is touched."""
    folder, name = _names_of(page)
    data = encoded(text_of(page, updated=now), f'"{folder}/{name.removesuffix(SUFFIX)}"')
    return NewFile(folder=folder, name=name, data=data)


def _names_of(page: NewPage) -> tuple[str, str]:
    folder = page_name(page.type, "type")
    slug = page_name(page.slug.removesuffix(SUFFIX)) if page.slug else slug_from(page.title)
    return folder, slug + SUFFIX


def _put_over(place: Place, data: bytes, was: FileBytes, *, root: int) -> None:
    """Put new bytes in the place of the old ones, if those are still there."""
    with open_folder(place.folder, inside=root) as folder:
        temp = stage(data, inside=folder, mode=was.mode, exact_mode=True)
        try:
            _check_unchanged(place, was, folder=folder)
            publish_over(temp, place.file, inside=folder)
        except BaseException:
            remove_file(temp, inside=folder)
            raise
        settle(folder)


def _check_unchanged(place: Place, was: FileBytes, *, folder: int) -> None:
    """That nobody who doesn't take the lock was here since the page was read."""
    now = read_file(place.file, inside=folder, limit=MAX_FILE)
    if now.data != was.data:
        raise refusals.stale(page_from_bytes(place.id, now.data, changed=now.changed))
