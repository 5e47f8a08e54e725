"""What an index keeps of each file: the tables, and one file's rows put in, kept or dropped.

Whoever writes holds the database's lock and looks at the file under it, so that of two who write one
file's rows the later one has seen the file later.
"""

from __future__ import annotations

import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agent_kit.store.names import name_key
from agent_kit.store.search import Folded
from agent_kit.store.survey import Look, Where
from agent_kit.store.tokens import TOKENIZER, is_word, tokens_of

__all__ = [
    "VERSION",
    "Entry",
    "Words",
    "differing",
    "drop_all",
    "is_known",
    "make",
    "mend",
    "sums",
    "tidy",
]

_LAYOUT: Final = 3
VERSION: Final = _LAYOUT * 100_000 + int(unicodedata.unidata_version.replace(".", ""))
"""Of the tables, and of how a text becomes words, which Unicode's tables decide as well: tables of another one
are made anew."""

_NAMES: Final = ("pages", "texts", "standing", "words", "vocabulary", "parts")
# A page that a search may leave out, because it is retired or none, has a number below zero.
_TABLES: Final = (
    """CREATE TABLE pages (
        number INTEGER PRIMARY KEY, folder TEXT NOT NULL, file TEXT NOT NULL, mark INTEGER,
        kind TEXT NOT NULL, type TEXT NOT NULL, slug TEXT NOT NULL, fault TEXT,
        UNIQUE (folder, file))""",
    "CREATE INDEX marks ON pages (folder, mark)",
    "CREATE INDEX faults ON pages (folder, file) WHERE fault IS NOT NULL",
    """CREATE TABLE texts (
        number INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL, text TEXT NOT NULL,
        names TEXT NOT NULL, slug TEXT NOT NULL, size INTEGER NOT NULL)""",
    f"""CREATE VIRTUAL TABLE words USING fts5(
        text, names, slug, content='', tokenize="{TOKENIZER}")""",
    "CREATE VIRTUAL TABLE standing USING fts5vocab(words, 'row')",
    "CREATE TABLE vocabulary (number INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE)",
    """CREATE VIRTUAL TABLE parts USING fts5(
        word, content='vocabulary', content_rowid='number',
        tokenize='trigram case_sensitive 1')""",
    "CREATE INDEX lengths ON vocabulary (length(word), word)",
    f"PRAGMA user_version = {VERSION}",
)
_KNOWN: Final = "SELECT number, mark FROM pages WHERE folder = ? AND file = ?"
_MOST_KNOWN: Final = 100_000  # words that are kept in mind


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A file as the index keeps it: a page, or why it is none.

    ``body`` is the text that a line of it is shown from. ``lasts``: a later look would find the same, as
    long as the file isn't changed.
    """

    page: Folded | None = None
    title: str = ""
    body: str = ""
    retired: bool = False
    fault: str | None = None
    lasts: bool = True


class Words(set[str]):
    """Words that the vocabulary has, or that it needn't have: each is looked up once while many are added."""


def make(database: sqlite3.Connection) -> None:
    """The tables, empty; of others of these names nothing is left."""
    for name in _NAMES:
        database.execute(f"DROP TABLE IF EXISTS {name}")
    for statement in _TABLES:
        database.execute(statement)


def tidy(database: sqlite3.Connection) -> None:
    """Put together what many changes have left in parts, so that a search looks in one place."""
    database.execute("INSERT INTO words (words) VALUES ('optimize')")
    database.execute("INSERT INTO parts (parts) VALUES ('optimize')")


def sums(database: sqlite3.Connection) -> dict[str, tuple[int, int | None]]:
    """How many files of each folder are known, and the sum of their marks, ``None`` where one has none."""
    rows = database.execute(
        "SELECT folder, count(*), count(mark), sum(mark & 0x7fffffff), sum(mark >> 31)"
        " FROM pages GROUP BY folder"
    )
    return {
        folder: (count, (high << 31) + below if count == marked else None)
        for folder, count, marked, below, high in rows
    }


def differing(
    database: sqlite3.Connection, folder: str, files: Iterable[tuple[str, int | None]]
) -> list[Where]:
    """The files of a folder that aren't known as they are: new, changed, gone, or never to be told."""
    rows = database.execute("SELECT file, mark FROM pages WHERE folder = ?", (folder,))
    known = dict(rows.fetchall())
    found = [
        (folder, file) for file, mark in files if known.pop(file, None) != mark or mark is None
    ]
    return found + [(folder, file) for file in known]


def drop_all(database: sqlite3.Connection, folder: str) -> list[Where]:
    """Every file that is known of a folder."""
    return differing(database, folder, ())


def is_known(database: sqlite3.Connection, where: Where, look: Look | None) -> bool:
    """Whether a file is known as it is now."""
    row = database.execute(_KNOWN, where).fetchone()
    if row is None or look is None:
        return row is None and look is None
    return look.mark is not None and bool(row[1] == look.mark)


def mend(
    database: sqlite3.Connection,
    where: Where,
    look: Look | None,
    load: Callable[[Where, Look], Entry],
    words: Words,
) -> None:
    """Bring the rows of one file up to what it is now; ``load`` reads it when it has changed."""
    row = database.execute(_KNOWN, where).fetchone()
    if look is None:
        if row is not None:
            _drop(database, row[0])
    elif row is None or row[1] != look.mark or look.mark is None:
        _put(database, None if row is None else row[0], where, look, load(where, look), words)


def _put(
    database: sqlite3.Connection,
    number: int | None,
    where: Where,
    look: Look,
    entry: Entry,
    words: Words,
) -> None:
    mark = look.mark if entry.lasts else None
    before = None if number is None else _text(database, number)
    after = _row(entry)
    if number is not None:
        as_before = before == after and _fault(database, number) == entry.fault
        if as_before and (number < 0) == _is_aside(entry):
            database.execute("UPDATE pages SET mark = ? WHERE number = ?", (mark, number))
            return
        _drop(database, number)
    if number is None or (number < 0) != _is_aside(entry):
        number = _free(database, aside=_is_aside(entry))
    kind = name_key(look.id.type)
    row = (number, *where, mark, kind, look.id.type, look.id.slug, entry.fault)
    database.execute("INSERT INTO pages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    if after is not None:
        database.execute("INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?)", (number, *after))
        found = _words(after)
        _learn(database, found, words)
        database.execute(
            "INSERT INTO words (rowid, text, names, slug) VALUES (?, ?, ?, ?)",
            (number, *map(" ".join, found)),
        )


def _is_aside(entry: Entry) -> bool:
    return entry.page is None or entry.retired


def _free(database: sqlite3.Connection, *, aside: bool) -> int:
    if aside:
        return min(database.execute("SELECT min(number) FROM pages").fetchone()[0] or 0, 0) - 1
    return max(database.execute("SELECT max(number) FROM pages").fetchone()[0] or 0, 0) + 1


def _row(entry: Entry) -> tuple[Any, ...] | None:
    page = entry.page
    if page is None:
        return None
    return entry.title, entry.body, page.text, page.names, page.slug, page.size


def _text(database: sqlite3.Connection, number: int) -> tuple[Any, ...] | None:
    statement = "SELECT title, body, text, names, slug, size FROM texts WHERE number = ?"
    row: tuple[Any, ...] | None = database.execute(statement, (number,)).fetchone()
    return row


def _fault(database: sqlite3.Connection, number: int) -> str | None:
    row = database.execute("SELECT fault FROM pages WHERE number = ?", (number,)).fetchone()
    return None if row is None else row[0]


def _drop(database: sqlite3.Connection, number: int) -> None:
    text = _text(database, number)
    if text is not None:
        database.execute(
            "INSERT INTO words (words, rowid, text, names, slug) VALUES ('delete', ?, ?, ?, ?)",
            (number, *map(" ".join, _words(text))),
        )
        database.execute("DELETE FROM texts WHERE number = ?", (number,))
    database.execute("DELETE FROM pages WHERE number = ?", (number,))


def _words(row: Sequence[Any]) -> tuple[list[str], list[str], list[str]]:
    _, _, text, names, slug, _ = row
    return tokens_of(text), tokens_of(names), tokens_of(slug)


def _learn(database: sqlite3.Connection, found: Iterable[list[str]], words: Words) -> None:
    """Add words to the vocabulary. None is ever taken out: whether one still stands somewhere ``standing`` tells."""
    new = set[str]().union(*found) - words
    possible = sorted(filter(is_word, new))
    kept = _kept(database, possible)
    for word in (word for word in possible if word not in kept):
        done = database.execute("INSERT INTO vocabulary (word) VALUES (?)", (word,))
        database.execute("INSERT INTO parts (rowid, word) VALUES (?, ?)", (done.lastrowid, word))
    if len(words) > _MOST_KNOWN:
        words.clear()
    words.update(new)


def _kept(database: sqlite3.Connection, asked: Sequence[str]) -> set[str]:
    statement = "SELECT 1 FROM vocabulary WHERE word = ?"
    return {word for word in asked if database.execute(statement, (word,)).fetchone()}
