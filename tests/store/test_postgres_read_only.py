"""A read-only PostgreSQL store makes and changes nothing, and says what is missing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import psycopg
import pytest

from agent_kit.store import NewPage, StoreCode, StoreError
from agent_kit.store import _postgres_schema as schema_module
from agent_kit.store.postgres import PostgresStore
from tests.store.postgres_server import Server

_NUMBERS = count()
PAGE = NewPage(type="note", title="x", slug="x", body="needle")
READS: dict[str, Callable[[PostgresStore], object]] = {
    "list": lambda store: store.list(),
    "read": lambda store: store.read("note/x"),
    "bytes_of": lambda store: store.bytes_of("note/x"),
    "path_of": lambda store: store.path_of("note/x"),
    "search": lambda store: store.search("needle"),
    "history": lambda store: store.history(),
}


def _held(dsn: str) -> list[tuple[object, ...]]:
    """Every schema, table and row of the database that is not the server's own."""
    with psycopg.connect(dsn) as session:
        schemas = session.execute(
            "SELECT nspname::text, nspacl::text FROM pg_namespace WHERE nspname !~ '^pg_' ORDER BY 1"
        ).fetchall()
        tables = session.execute(
            "SELECT schemaname::text, tablename::text FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
        ).fetchall()
        rows = [
            (name, *row)
            for schema, name in tables
            for row in session.execute(f"SELECT t::text FROM {schema}.{name} t ORDER BY 1")
        ]
    return [*schemas, *tables, *rows]


@pytest.fixture
def reader(server: Server, fresh: str) -> str:
    """The DSN of a role that may read what is in the schema now, and do nothing else."""
    PostgresStore(fresh).create([PAGE])
    database = psycopg.conninfo.conninfo_to_dict(fresh)["dbname"]
    role = f"reader{next(_NUMBERS)}"
    server.execute(f"CREATE ROLE {role} LOGIN")
    server.execute(
        f"GRANT USAGE ON SCHEMA agent_kit TO {role};"
        f"GRANT SELECT ON ALL TABLES IN SCHEMA agent_kit TO {role}",
        database=database,
    )
    return server.dsn(database, role=role)


@pytest.mark.parametrize("call", READS)
def test_it_makes_no_tables_even_where_the_role_may(call: str, fresh: str) -> None:
    before = _held(fresh)
    store = PostgresStore(fresh, read_only=True)
    for _ in range(2):
        with pytest.raises(StoreError, match="made by the first session that may write") as caught:
            READS[call](store)
        assert caught.value.code is StoreCode.UNAVAILABLE
    assert _held(fresh) == before
    PostgresStore(fresh).create([PAGE])
    READS[call](store)  # the same store works once they are there


@pytest.mark.parametrize("call", READS)
def test_it_takes_no_step_to_newer_tables(
    call: str, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    PostgresStore(fresh).create([PAGE])
    steps = (*schema_module.STEPS, ("CREATE TABLE agent_kit.more (a int)",))
    monkeypatch.setattr(schema_module, "STEPS", steps)
    before = _held(fresh)
    with pytest.raises(StoreError, match="older than this agent-kit") as caught:
        READS[call](PostgresStore(fresh, read_only=True))
    assert caught.value.code is StoreCode.UNAVAILABLE
    assert _held(fresh) == before
    assert [str(known) for known in PostgresStore(fresh).list().ids] == ["note/x"]
    READS[call](PostgresStore(fresh, read_only=True))


@pytest.mark.parametrize("call", READS)
def test_a_role_that_may_only_select_reads_all_and_changes_nothing(
    call: str, reader: str, fresh: str
) -> None:
    before = _held(fresh)
    READS[call](PostgresStore(reader, read_only=True))
    assert _held(fresh) == before
    with pytest.raises(StoreError) as caught:
        PostgresStore(reader, read_only=True).create([PAGE])
    assert caught.value.code is StoreCode.READ_ONLY
    with pytest.raises(StoreError) as caught:  # the role's own lock, without the store's
        PostgresStore(reader).create([NewPage(type="note", title="y", slug="y", body="y")])
    assert caught.value.code is StoreCode.UNAVAILABLE
    assert _held(fresh) == before
