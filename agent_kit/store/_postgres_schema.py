"""The tables of :mod:`agent_kit.store.postgres`, made and changed in steps that are kept in order.

A step is never edited once it was released: another one is added. What Python folds and what it makes a
key of is kept in the tables; a change of :func:`~agent_kit.store.search.fold` or
:func:`~agent_kit.store.names.name_key` needs a step that writes every page again.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from agent_kit.store.errors import StoreCode, StoreError

if TYPE_CHECKING:
    from agent_kit.store._postgres_link import Link, Session

__all__ = ["STEPS", "prepare"]

# Every text is compared byte by byte ("C"): no server's language decides what is equal or found.
_FIRST: Final = (
    """
    CREATE TABLE types (
        base text COLLATE "C" NOT NULL,
        key  text COLLATE "C" NOT NULL,
        name text COLLATE "C" NOT NULL,
        PRIMARY KEY (base, key)
    )
    """,
    # data: the bytes of a Markdown file. text, names, folded: what a search compares. grams: its index.
    """
    CREATE TABLE pages (
        base     text COLLATE "C" NOT NULL,
        key      text COLLATE "C" NOT NULL,
        type_key text COLLATE "C" NOT NULL,
        type     text COLLATE "C" NOT NULL,
        slug     text COLLATE "C" NOT NULL,
        data     bytea NOT NULL,
        changed  timestamptz NOT NULL,
        retired  boolean NOT NULL,
        size     integer NOT NULL,
        text     text COLLATE "C" NOT NULL,
        names    text COLLATE "C" NOT NULL,
        folded   text COLLATE "C" NOT NULL,
        grams    integer[] NOT NULL,
        PRIMARY KEY (base, key)
    )
    """,
    # A search reads text, and never grams: the one lies with its row, the other apart.
    "ALTER TABLE pages ALTER text SET STORAGE MAIN, ALTER grams SET STORAGE EXTERNAL",
    "CREATE INDEX pages_of_type ON pages (base, type_key)",
    "CREATE INDEX pages_with_grams ON pages USING gin (grams)",
    """
    CREATE TABLE changes (
        number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        base    text COLLATE "C" NOT NULL,
        key     text COLLATE "C" NOT NULL,
        type    text COLLATE "C" NOT NULL,
        slug    text COLLATE "C" NOT NULL,
        kind    text COLLATE "C" NOT NULL,
        version text COLLATE "C" NOT NULL,
        by      text COLLATE "C" NOT NULL,
        at      timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    "CREATE INDEX changes_of_page ON changes (base, key, number)",
)

STEPS: Final[tuple[tuple[str, ...], ...]] = (_FIRST,)
"""What makes each version of the tables from the one before; the first makes version 1."""


def prepare(link: Link, schema: str, *, read_only: bool) -> None:
    """Bring the schema to the newest version, once for all who open it at the same time.

    Nothing but reading rights is needed where it is there. Raises :class:`StoreError` for a database
    that a newer agent-kit has changed, for one that doesn't keep UTF-8, and with ``read_only``, which
    changes nothing, for a schema that isn't of the newest version.
    """
    with link.transaction(writes=False) as session:
        version = _version(session, schema)
    if version == len(STEPS):
        return
    if read_only:
        raise _unusable(_OLDER if version else _MISSING)
    with link.transaction(writes=True) as session:
        _migrate(session, schema)


def _migrate(session: Session, schema: str) -> None:
    session.execute("SELECT pg_advisory_xact_lock(%s)", (_lock_number(schema),))
    version = _version(session, schema)
    if version == 0:
        # "IF NOT EXISTS" alone asks for the right to make one even where there is nothing to do.
        query = "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = %s"
        if session.execute(query, (schema,)).fetchone() is None:
            session.execute(f"CREATE SCHEMA {schema}")
        session.execute(
            "CREATE TABLE migrations ("
            "version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp())"
        )
    for number, step in enumerate(STEPS[version:], start=version + 1):
        for statement in step:
            session.execute(statement)
        session.execute("INSERT INTO migrations (version) VALUES (%s)", (number,))


def _version(session: Session, schema: str) -> int:
    """The version of the tables; 0: there are none."""
    from psycopg import sql

    # The catalogue's own table: to_regclass may answer from a cache that is older than the lock.
    found = session.execute(
        "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = %s"
        " AND tablename = 'migrations'), current_setting('server_encoding')",
        (schema,),
    ).fetchone()
    is_there, encoding = found or (False, "")
    if encoding != "UTF8":
        raise _unusable("The database doesn't keep UTF-8 text: it can't hold pages.")
    if not is_there:
        return 0
    query = sql.SQL("SELECT max(version) FROM {}").format(sql.Identifier(schema, "migrations"))
    newest = session.execute(query).fetchone()
    version = int((newest or (0,))[0] or 0)
    if version > len(STEPS):
        raise _unusable("The database was changed by a newer agent-kit than this one.")
    return version


_MISSING: Final = (
    "The database holds no pages, and this session may only read: its tables are made by the first"
    " session that may write."
)
_OLDER: Final = (
    "The database's tables are older than this agent-kit, and this session may only read: they are"
    " brought up to date by the first session that may write."
)


def _unusable(why: str) -> StoreError:
    return StoreError(
        f"{why} Nothing was changed. Tell the person who runs this session.",
        code=StoreCode.UNAVAILABLE,
    )


def _lock_number(schema: str) -> int:
    digest = hashlib.sha256(f"agent-kit migrations of {schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
