"""A full-text index of a folder's pages, in SQLite: a cache, which may be deleted at any time.

It lies in the cache folder of the user whose host it is, by the root's path: it holds the text of every page,
also of those that one session or another is not to see, and whoever may write in the root might put words
into it. It has a write-ahead log: several processes search while one writes, and nothing is synced but when
the log is worked off, in an order that leaves a whole index behind whenever the machine stops, though
perhaps an older one. The files tell that by their marks.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import zlib
from collections.abc import Iterator
from itertools import count
from typing import Final

from agent_kit.store.index_place import ENDINGS, NAME, index_folder, made_in
from agent_kit.store.rows import VERSION, make

__all__ = ["PageIndex", "State", "transaction"]

_log = logging.getLogger("agent_kit.store")

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

# It is somebody else's, or can't be written.
_NOT_MINE: Final = frozenset(
    {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY}
)


def _is_broken(error: sqlite3.Error) -> bool:
    """Whether an error says that the database is of no use. A query that SQLite can't take says nothing of it."""
    if (code := _code(error)) == sqlite3.SQLITE_ERROR:
        return "no such" in str(error)
    return code not in _NOT_ITS_FAULT


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


_BUSY: Final = 5.0  # seconds that another process may write
_SETTINGS: Final = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cache_size = -8000",  # KiB
    "PRAGMA journal_size_limit = 16000000",  # bytes that are left of the log once it is worked off
    "PRAGMA wal_autocheckpoint = 4000",  # pages
    "PRAGMA journal_mode = WAL",  # where it can't be, SQLite goes on with what can
    "PRAGMA synchronous = NORMAL",
)
_OPENINGS = count()
_INHERITED: Final[list[object]] = []  # a child must not even close what its parent has opened

State = tuple[int, int, int]
"""What is another one once the tables are not those of before: opened anew, made anew, or another root's."""


class PageIndex:
    """The index of the pages in ``root``, an absolute path; ``None``: one in memory, for itself alone.

    Raises ``sqlite3.Error`` and ``OSError``; a search reads the pages themselves then. It is used by one
    thread at a time.
    """

    def __init__(self, root: str | None) -> None:
        self._root = root
        self._folder: str | None = None
        self._opened: _Opened | None = None

    @contextlib.contextmanager
    def used(self, root: int) -> Iterator[sqlite3.Connection]:
        """The database of the folder that is open as ``root``. When it turns out to be broken it is removed."""
        try:
            yield self._database(_owner_of(root))
        except sqlite3.Error as error:
            self.close()
            if _is_broken(error):
                self._remove()
            raise

    def state(self) -> State:
        """The state of the database that is used."""
        opened = self._opened
        if opened is None:
            raise OSError("it isn't open")
        tables = opened.database.execute("PRAGMA schema_version").fetchone()[0]
        return opened.number, int(tables), _owner(opened.database)

    def forget(self) -> None:
        """Remove the file: what was dropped from it would stand in its free pages."""
        self.close()
        self._remove()

    def close(self) -> None:
        """Close the database; the next use opens it."""
        opened, self._opened = self._opened, None
        if opened is None:
            return
        if opened.process == os.getpid():
            opened.database.close()
        else:
            _INHERITED.append(opened)

    def _database(self, owner: int) -> sqlite3.Connection:
        """The database, made anew where it is another root's: the same path may lead to several, one after the
        other or in containers that share a cache."""
        opened = self._opened
        if opened is not None:
            is_ours = opened.process == os.getpid() and opened.owner == owner
            if is_ours and opened.file == self._file():
                _own(opened.database, owner)
                return opened.database
            self.close()
            self._folder = None
        try:
            database = _connected(self._path(), owner)
        except sqlite3.OperationalError as error:
            if self._root is None or _code(error) not in _NOT_MINE:
                raise
            self._keep_in_memory(error)
            database = _connected(self._path(), owner)
        self._opened = _Opened(database, self._file(), owner)
        return database

    def _path(self) -> str:
        """Where the database is. Where none can be made it is in memory, from then on."""
        if self._root is None:
            return ":memory:"
        try:
            self._folder = self._folder or str(index_folder(self._root))
            return made_in(self._folder, self._root)
        except OSError as error:
            self._keep_in_memory(error)
            return ":memory:"

    def _keep_in_memory(self, error: Exception) -> None:
        _log.warning("the index of %s is kept in memory: %s", self._root, error)
        self._root = self._folder = None

    def _file(self) -> tuple[int, int] | None:
        """Which file has the index's name: somebody may have deleted it, emptied it, or put another there."""
        if self._folder is None:
            return None
        try:
            status = os.stat(os.path.join(self._folder, NAME), follow_symlinks=False)
        except FileNotFoundError:
            return None
        return (status.st_dev, status.st_ino) if status.st_size else None

    def _remove(self) -> None:
        if self._root is None:
            return
        with contextlib.suppress(OSError):
            folder = self._folder or str(index_folder(self._root))  # another process's, too
            for ending in ENDINGS:
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(folder, NAME + ending))


class _Opened:
    """A database, the file that it is, and the process that opened it: a child has to do it again."""

    def __init__(
        self, database: sqlite3.Connection, file: tuple[int, int] | None, owner: int
    ) -> None:
        self.database = database
        self.file = file
        self.owner = owner
        self.process = os.getpid()
        self.number = next(_OPENINGS)


def _connected(path: str, owner: int) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=_BUSY, isolation_level=None, check_same_thread=False)
    try:
        for setting in _SETTINGS:
            database.execute(setting)
        _own(database, owner)
    except BaseException:
        database.close()
        raise
    return database


def _own(database: sqlite3.Connection, owner: int) -> None:
    """Make the tables anew unless they are of this version, and this root's."""
    if _is_own(database, owner):
        return
    with transaction(database, "BEGIN IMMEDIATE"):
        if not _is_own(database, owner):  # nobody else was quicker
            make(database)
            database.execute(f"PRAGMA application_id = {owner:d}")


def _is_own(database: sqlite3.Connection, owner: int) -> bool:
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    return (version, _owner(database)) == (VERSION, owner)


def _owner(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA application_id").fetchone()[0])


def _owner_of(root: int) -> int:
    """A number of 31 bits for the folder that is open, and no other one."""
    status = os.fstat(root)
    return zlib.crc32(f"{status.st_dev}:{status.st_ino}".encode()) & 0x7FFFFFFF


@contextlib.contextmanager
def transaction(database: sqlite3.Connection, begin: str) -> Iterator[None]:
    """What is done in it is done as a whole or not at all."""
    database.execute(begin)
    try:
        yield
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # some failures have done it already
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")
