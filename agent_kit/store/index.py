"""A full-text index of a folder's pages, in SQLite: a cache, which may be deleted at any time.

It lies in a folder of its own in the root, so that whatever closes the pages to file tools closes it,
too. Before each search it is brought up to what the folder holds, by each file's size, times and inode:
a page that was changed by hand or by a version-control system is found as well.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent_kit.store.names import PageId
from agent_kit.store.search import Folded, fold
from agent_kit.store.tokens import expression, from_word, of_pairs, to_word, tokens_of

__all__ = [
    "INDEX_FOLDER",
    "MAX_CANDIDATES",
    "Candidates",
    "Entry",
    "OpenIndex",
    "PageIndex",
    "Stamp",
    "Wanted",
    "Where",
    "stamp_of",
]

INDEX_FOLDER: Final = ".agent-kit.cache"
"""The folder in the root. A ``.gitignore`` in it leaves it out of version control."""

MAX_CANDIDATES: Final = 300
"""Most pages of a search that are looked at whole; of more, the best by the index's own order."""

_NAME: Final = "pages.sqlite"
_ENDINGS: Final = ("", "-journal", "-wal", "-shm")  # of the names of SQLite's files
# Of what goes wrong: another process is at work, or the disk; anything else is a broken file.
_NOT_ITS_FAULT: Final = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_READONLY,
    }
)
_VERSION: Final = 1  # of the tables: those of another one are made anew
_BUSY: Final = 5.0  # seconds that another process may write
_RACY: Final = 2_000_000_000  # nanoseconds within which two changes might leave the same times
_TABLES: Final = (
    """CREATE TABLE pages (
        number INTEGER PRIMARY KEY, folder TEXT NOT NULL, file TEXT NOT NULL, stamp TEXT NOT NULL,
        type TEXT NOT NULL, slug TEXT NOT NULL, retired INTEGER NOT NULL, size INTEGER NOT NULL,
        text TEXT NOT NULL, names TEXT NOT NULL, fault TEXT, UNIQUE (folder, file))""",
    """CREATE VIRTUAL TABLE words USING fts5(
        text, names, slug, content='', tokenize="unicode61 remove_diacritics 0")""",
    "CREATE VIRTUAL TABLE vocabulary USING fts5vocab('words', 'row')",
    f"PRAGMA user_version = {_VERSION}",
)

Where = tuple[str, str]
"""A folder of the root, and a file in it, as the disk spells them."""

Stamp = str
"""What tells a file from itself changed; ``""``: it can't be told, so it is read."""

Wanted = Callable[[Where, PageId, bool], bool]
"""Whether a page counts at all, by its place, its id, and whether it is retired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file as the index keeps it: a page, or why it is none."""

    page: Folded | None = None
    retired: bool = False
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Pages that may answer a query, and how many more there are, which were not looked at."""

    pages: tuple[Folded, ...]
    more: int


def stamp_of(status: os.stat_result) -> Stamp:
    """A file's stamp. One that was changed just now may be changed again with the same times."""
    if time.time_ns() - status.st_ctime_ns < _RACY:
        return ""
    return f"{status.st_mtime_ns} {status.st_ctime_ns} {status.st_size} {status.st_ino}"


class PageIndex:
    """The index of the pages in ``root``, an absolute path; ``None``: one in memory, for itself alone.

    Raises ``sqlite3.Error`` and ``OSError``; a search reads the pages themselves then.
    """

    def __init__(self, root: str | None) -> None:
        self._folder = None if root is None else os.path.join(root, INDEX_FOLDER)
        self._lock = threading.Lock()
        self._opened: tuple[int, sqlite3.Connection] | None = None
        self._vocabulary: tuple[tuple[int, int], str] | None = None
        self._before: tuple[Mapping[Where, Stamp], int, int] | None = None

    @contextlib.contextmanager
    def up_to_date(
        self, stamps: Mapping[Where, Stamp], load: Callable[[Where], Entry]
    ) -> Iterator[OpenIndex]:
        """The index of exactly these files. ``load`` reads one that is new or has changed."""
        with self._lock:
            try:
                database = self._database()
                with self._same(database, stamps, load):
                    yield OpenIndex(database, self._words_of(database))
            except sqlite3.Error as error:
                self._close()
                if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _NOT_ITS_FAULT:
                    self._remove()
                raise

    def forget(self) -> None:
        """Remove the file: what was dropped from it would stand in its free pages."""
        with self._lock:
            self._close()
            self._remove()

    # --- the file ---------------------------------------------------------------------------------

    def _database(self) -> sqlite3.Connection:
        if self._opened is not None:
            if self._opened[0] == os.getpid() and self._is_there():
                return self._opened[1]
            self._close()
        path = ":memory:"
        if self._folder is not None:
            path = _made(self._folder)
        database = sqlite3.connect(
            path, timeout=_BUSY, isolation_level=None, check_same_thread=False
        )
        self._opened = (os.getpid(), database)
        _prepare(database)
        return database

    def _is_there(self) -> bool:
        """Whether nobody has deleted the file."""
        return self._folder is None or os.path.exists(os.path.join(self._folder, _NAME))

    def _remove(self) -> None:
        for ending in _ENDINGS:
            if self._folder is not None:
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self._folder, _NAME + ending))

    def _close(self) -> None:
        opened, self._opened = self._opened, None
        self._vocabulary = self._before = None
        if opened is not None and opened[0] == os.getpid():
            opened[1].close()

    # --- what is in it ----------------------------------------------------------------------------

    @contextlib.contextmanager
    def _same(
        self,
        database: sqlite3.Connection,
        stamps: Mapping[Where, Stamp],
        load: Callable[[Where], Entry],
    ) -> Iterator[None]:
        """A transaction in which the index says what the folder held: another process may have seen it
        earlier, and be about to say so. ``stamps`` that are the very ones of before have not changed."""
        with _transaction(database, "BEGIN"):
            if self._is_as_before(database, stamps):
                yield
                return
        with _transaction(database):
            known = _known(database)
            for where in known.keys() - stamps.keys():
                _drop(database, where)
            for where, stamp in stamps.items():
                if not stamp or known.get(where) != stamp:
                    _drop(database, where)
                    _add(database, where, stamp, load(where))
            state = _state(database)
            yield
        self._before = (stamps, *state)  # only when it was kept

    def _is_as_before(self, database: sqlite3.Connection, stamps: Mapping[Where, Stamp]) -> bool:
        before = self._before
        if before is not None and before[0] is stamps and before[1:] == _state(database):
            return True
        if "" in stamps.values() or _known(database) != stamps:
            return False
        self._before = (stamps, *_state(database))
        return True

    def _words_of(self, database: sqlite3.Connection) -> str:
        """Every token of the pages, with a line break before and after each."""
        state = _state(database)
        if self._vocabulary is None or self._vocabulary[0] != state:
            rows = database.execute("SELECT term FROM vocabulary")
            self._vocabulary = (state, "\n".join(["", *(from_word(row[0]) for row in rows), ""]))
        return self._vocabulary[1]


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """The index while it says what the folder holds."""

    database: sqlite3.Connection
    vocabulary: str

    def candidates(self, terms: Sequence[str], wanted: Wanted) -> Candidates:
        """Every page that answers one of the terms is among them, or counted in ``more``."""
        asked = [self._asked(term) for term in terms]
        each = [f"({one})" for one in asked if one is not None]
        if len(each) < len(asked):  # punctuation alone: every page is looked at
            numbers = [*_those(self._rows(f"{_COLUMNS} pages"), wanted)]
            return Candidates(pages=self._pages(numbers), more=0)
        numbers = self._matching(" OR ".join(each), wanted)
        chosen = numbers[:MAX_CANDIDATES]
        if len(each) > 1 and len(chosen) < len(numbers):
            best = self._matching(" AND ".join(each), wanted)
            chosen = list(dict.fromkeys([*best, *numbers]))[:MAX_CANDIDATES]
        return Candidates(pages=self._pages(chosen), more=len(numbers) - len(chosen))

    def faults(self) -> list[tuple[Where, str]]:
        """The place and the reason of what is no page."""
        rows = self._rows("SELECT folder, file, fault FROM pages WHERE fault IS NOT NULL")
        return [((folder, file), fault) for folder, file, fault in rows]

    def _asked(self, term: str) -> str | None:
        whole = expression(term, self.vocabulary)
        if whole is None or (pairs := of_pairs(term)) is None:
            return whole
        stands = self._rows("SELECT 1 FROM words WHERE words MATCH ? LIMIT 1", whole)
        return whole if stands else pairs

    def _matching(self, asked: str, wanted: Wanted) -> list[int]:
        rows = self._rows(
            f"{_COLUMNS} words JOIN pages ON number = words.rowid WHERE words MATCH ?"
            " ORDER BY bm25(words, 1.0, 6.0, 3.0)",
            asked,
        )
        return [*_those(rows, wanted)]

    def _pages(self, numbers: Sequence[int]) -> tuple[Folded, ...]:
        statement = "SELECT type, slug, text, names, size FROM pages WHERE number = ?"
        rows = (self._rows(statement, number)[0] for number in numbers)
        return tuple(
            Folded(id=PageId(type=row[0], slug=row[1]), text=row[2], names=row[3], size=row[4])
            for row in rows
        )

    def _rows(self, statement: str, *values: object) -> list[Any]:
        return self.database.execute(statement, values).fetchall()


_COLUMNS: Final = "SELECT number, folder, file, type, pages.slug, retired FROM"


def _those(rows: Iterable[Any], wanted: Wanted) -> Iterator[int]:
    for number, folder, file, type_, slug, retired in rows:
        if slug and wanted((folder, file), PageId(type=type_, slug=slug), bool(retired)):
            yield number


def _made(folder: str) -> str:
    """The path of the index in its folder, which is made. Raises ``OSError`` where a link leads away:
    SQLite would follow it, and what it found there would lose its tables."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
        with open(os.path.join(folder, ".gitignore"), "w", encoding="ascii") as ignored:
            ignored.write("*\n")
    path = os.path.join(folder, _NAME)
    for each in (folder, *(path + ending for ending in _ENDINGS)):
        if os.path.islink(each):
            raise OSError(f"{os.path.basename(each)} is a link")
    return path


def _prepare(database: sqlite3.Connection) -> None:
    database.execute("PRAGMA synchronous = OFF")  # a cache: one that broke is made anew
    database.execute("PRAGMA trusted_schema = OFF")
    if _version(database) == _VERSION:
        return
    with _transaction(database):
        if _version(database) == _VERSION:  # somebody else was quicker
            return
        for name in ("vocabulary", "words", "pages"):
            database.execute(f"DROP TABLE IF EXISTS {name}")
        for statement in _TABLES:
            database.execute(statement)


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


@contextlib.contextmanager
def _transaction(database: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    database.execute(begin)
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # some failures have done it already
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _state(database: sqlite3.Connection) -> tuple[int, int]:
    """What is another one whenever somebody has changed the tables: others, and this connection."""
    others = database.execute("PRAGMA data_version").fetchone()[0]
    return int(others), database.total_changes


def _known(database: sqlite3.Connection) -> dict[Where, Stamp]:
    rows = database.execute("SELECT folder, file, stamp FROM pages")
    return {(folder, file): stamp for folder, file, stamp in rows}


def _drop(database: sqlite3.Connection, where: Where) -> None:
    statement = "SELECT number, text, names, type, slug FROM pages WHERE folder = ? AND file = ?"
    row = database.execute(statement, where).fetchone()
    if row is None:
        return
    number, text, names, *known = row
    database.execute(
        "INSERT INTO words (words, rowid, text, names, slug) VALUES ('delete', ?, ?, ?, ?)",
        (number, _words(text), _words(names), _words(fold("/".join(known)))),
    )
    database.execute("DELETE FROM pages WHERE number = ?", (number,))


def _add(database: sqlite3.Connection, where: Where, stamp: Stamp, entry: Entry) -> None:
    page = entry.page
    known = ("", "") if page is None else (page.id.type, page.id.slug)
    text, names, size = ("", "", 0) if page is None else (page.text, page.names, page.size)
    done = database.execute(
        "INSERT INTO pages (folder, file, stamp, type, slug, retired, size, text, names, fault)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*where, stamp, *known, entry.retired, size, text, names, entry.fault),
    )
    database.execute(
        "INSERT INTO words (rowid, text, names, slug) VALUES (?, ?, ?, ?)",
        (done.lastrowid, _words(text), _words(names), _words(fold("/".join(known)))),
    )


def _words(folded: str) -> str:
    return " ".join(map(to_word, tokens_of(folded)))
