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

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from agent_kit.store import history, refusals
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
from agent_kit.store.disk import (
    FileBytes,
    open_folder,
    publish_over,
    read_file,
    remove_file,
    settle,
    stage,
)
from agent_kit.store.documents import (
    MAX_NEW_PAGES,
    Change,
    ChangeKind,
    Found,
    History,
    Listing,
    Unusable,
)
from agent_kit.store.errors import StoreCode, StoreError
from agent_kit.store.finding import Question
from agent_kit.store.folder import (
    MAX_FILE,
    SUFFIX,
    Permits,
    Place,
    Scan,
    check_free,
    find,
    id_of,
    lets_all,
    load,
    narrowing,
    scan,
)
from agent_kit.store.journal import JOURNAL_NAME, NewFile, recover, write_all
from agent_kit.store.lock import exclusive
from agent_kit.store.names import (
    PageId,
    is_control_name,
    name_key,
    shown,
)
from agent_kit.store.page import (
    NewPage,
    Page,
    page_from_bytes,
)
from agent_kit.store.search import terms_of
from agent_kit.store.searching import Searcher
from agent_kit.store.survey import Where

__all__ = ["MarkdownStore"]

_LOCK_SECONDS = 30.0


class MarkdownStore:
    """The pages in one folder.

    ``root`` is absolute and need not exist yet: it is made at the first write, with its parents.
    ``permits`` is asked for the absolute path of each page; one that it refuses is not listed,
    read or written. One that ``shows`` refuses is not listed, found or read. ``private`` makes files
    and folders for their owner alone. ``read_only`` refuses every write. ``by`` stands in the history
    beside each change; ``keeps_history=False`` keeps none. It is a
    :class:`~agent_kit.store.documents.DocumentStore`.
    """

    def __init__(
        self,
        root: Path,
        *,
        permits: Permits = lets_all,
        shows: Permits = lets_all,
        private: bool = False,
        read_only: bool = False,
        by: str = "",
        keeps_history: bool = True,
    ) -> None:
        self.root = root
        self.read_only = read_only
        self._by = by
        self._keeps_history = keeps_history
        self._permits = permits
        self._shows = shows
        self._private = private
        self._swept = False
        self._journal = os.path.join(root, JOURNAL_NAME)
        self._searcher = Searcher(root, in_memory=private)

    def list(self, *, type: str | None = None) -> Listing:  # noqa: A002 - the pages' own word
        """The pages, of one type or of all, ordered by id."""
        found = self._scan()
        ids = tuple(place.id for place in found.seen(self.root, self._is_shown).of_type(type))
        return Listing(ids=ids, unusable=found.unusable(self.root, self._is_shown))

    def read(self, written: str | PageId) -> Page:
        """The page with this id; case and Unicode form don't matter when only one page fits."""
        known = wanted(written)
        try:
            with self._reading() as root:
                place = self._find(root, known)
                if not self._shows(self._path(place)):
                    raise refusals.denied(place.id)
                return load(place, root=root)[0]
        except FileNotFoundError:
            raise refusals.not_found(known) from None

    def path_of(self, written: str | PageId) -> Path:
        """The absolute path of the page with this id, which :meth:`read` would open. Raises as it does."""
        known = wanted(written)
        try:
            with self._reading() as root:
                return self._path(self._find(root, known))
        except FileNotFoundError:
            raise refusals.not_found(known) from None

    def new_path(self, page: NewPage) -> Path:
        """The absolute path that a new page would get. Raises :class:`StoreError` for one that can't be."""
        known = new_id(page)
        return self.root / known.type / (known.slug + SUFFIX)

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
        question = Question(
            terms=terms_of(query),
            kind=None if type is None else name_key(type),
            retired=retired,
            shows=self._asked,
            narrows=narrowing(self._permits) or narrowing(self._shows),
            offset=offset,
            limit=limit,
        )
        try:
            self._tidy()  # what a killed writer had committed is in place then
            done = self._searcher.search(question)
        except FileNotFoundError:
            return Found(hits=(), total=0)  # nothing was written yet
        unreadable = [
            Unusable(name=shown(name.removesuffix(SUFFIX)), reason=reason)
            for name, reason in done.unreadable
            if self._is_shown(self.root / name)
        ]
        others = Scan(others=[*done.others]).unusable(self.root, self._is_shown)
        return Found(
            hits=done.answer.hits, total=done.answer.total, unusable=(*others, *unreadable)
        )

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
            made = [page_from_bytes(id_of(f), f.data, changed=now.timestamp()) for f in files]
            self._note(root, ChangeKind.CREATED, *made)
        return tuple(made)

    def edit(self, written: str | PageId, *, version: str, old: str, new: str) -> Page:
        """Put ``new`` in the place of ``old``, which must stand exactly once; the page after it.

        Every other byte stays. Raises :class:`StoreError`: ``STALE`` with the ``current`` page
        when ``version`` isn't the page's version any more.
        """
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
        new = _new_file(by, now)
        with self._writing() as root:
            place = self._find_to_change(root, known)
            page, file = self._to_change(place, version, root=root)
            check_free([new], root=root, path=self.root, permits=self._permits)
            data = superseding(id_of(new))(page, file.data)
            old = NewFile(
                folder=place.folder, name=place.file, data=data, over=page.version, mode=file.mode
            )
            write_all([new, old], root=root, private=self._private)
            made = page_from_bytes(id_of(new), new.data, changed=now.timestamp())
            gone = page_from_bytes(place.id, data, changed=now.timestamp())
            self._note(root, ChangeKind.CREATED, made)
            self._note(root, ChangeKind.SUPERSEDED, gone)
        return gone, made

    def _change(
        self,
        written: str | PageId,
        version: str,
        kind: ChangeKind,
        making: Making,
    ) -> Page:
        """The page after ``making`` made other bytes of it, from the version that it has."""
        known = wanted(written)
        with self._writing() as root:
            place = self._find_to_change(root, known)
            page, file = self._to_change(place, version, root=root)
            data = making(page, file.data)
            _put_over(place, data, file, root=root)
            changed = page_from_bytes(place.id, data, changed=datetime.now(UTC).timestamp())
            self._note(root, kind, changed)
        return changed

    def _to_change(self, place: Place, version: str, *, root: int) -> tuple[Page, FileBytes]:
        page, file = load(place, root=root)
        if version.strip() != page.version:
            raise refusals.stale(page)
        return page, file

    def _note(self, root: int, kind: ChangeKind, *pages: Page) -> None:
        """Add the changes to the history. One that can't be written doesn't undo what was done."""
        if not self._keeps_history:
            return
        now = datetime.now(UTC)
        made = [
            Change(when=now, kind=kind, id=page.id, version=page.version, by=self._by)
            for page in pages
        ]
        with suppress(OSError):
            history.append(made, root=root, private=self._private)

    def history(
        self, written: str | PageId | None = None, *, offset: int = 0, limit: int = 50
    ) -> History:
        """The changes that were made through stores, of one page or of all, newest first."""
        key = None if written is None else name_key(str(wanted(written)))
        try:
            with self._reading() as root:
                known = history.changes(root)
        except FileNotFoundError:
            known = []
        chosen = [
            change
            for change in reversed(known)
            if (key is None or name_key(str(change.id)) == key)
            and self._is_shown(self.root / change.id.type / (change.id.slug + SUFFIX))
        ]
        return History(changes=tuple(chosen[offset : offset + limit]), total=len(chosen))

    def delete(self, written: str | PageId) -> PageId:
        """Remove the page for good; its id. Raises :class:`StoreError` when there is none."""
        known = wanted(written)
        with self._writing() as root:
            place = self._find_to_change(root, known)
            with open_folder(place.folder, inside=root) as folder:
                remove_file(place.file, inside=folder)
                settle(folder)
            with suppress(OSError):
                history.forget(place.id, root=root, private=self._private)
            self._searcher.forget()
        return place.id

    def _path(self, place: Place) -> Path:
        return self.root / place.folder / place.file

    def _find(self, root: int, known: PageId) -> Place:
        return find(root, known, path=self.root, permits=self._permits)

    def _find_to_change(self, root: int, known: PageId) -> Place:
        """The page's place, unless a later session takes the file for its instructions."""
        place = self._find(root, known)
        if is_control_name(place.folder) or is_control_name(place.file):
            raise refusals.steers(place.id)
        return place

    @property
    def _asked(self) -> Callable[[Where], bool] | None:
        """Whether the page at a place is shown; ``None``: every page is."""
        if self._permits is lets_all and self._shows is lets_all:
            return None
        return lambda where: self._is_shown(self.root.joinpath(*where))

    def _is_shown(self, path: Path) -> bool:
        return self._permits(path) and self._shows(path)

    def _scan(self) -> Scan:
        try:
            with self._reading() as root:
                return scan(root)
        except FileNotFoundError:
            return Scan()  # nothing was written yet

    @contextmanager
    def _reading(self) -> Iterator[int]:
        """The root's handle, after what a killed writer had committed was put in place."""
        self._tidy()
        with open_folder(self.root) as root:
            yield root

    def _tidy(self) -> None:
        """Put in place what a killed writer had committed."""
        if os.path.exists(self._journal):
            with suppress(OSError, StoreError), self._writing():
                pass

    @contextmanager
    def _writing(self) -> Iterator[int]:
        """The root's handle under the folder's lock, with a killed writer's work tidied up."""
        if self.read_only:
            raise StoreError("These pages are read-only.", code=StoreCode.READ_ONLY)
        self.root.mkdir(mode=0o700 if self._private else 0o777, parents=True, exist_ok=True)
        with exclusive(self.root, timeout=_LOCK_SECONDS), open_folder(self.root) as root:
            if not self._swept or os.path.exists(self._journal):
                recover(root)
                self._swept = True
            yield root


def _new_file(page: NewPage, now: datetime) -> NewFile:
    """The file for a new page. Everything about it is checked before the disk is touched."""
    known, data = new_bytes(page, now)
    return NewFile(folder=known.type, name=known.slug + SUFFIX, data=data)


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
