"""Eight processes on one base for a minute, killed at random; a folder's and a database's."""

from __future__ import annotations

from pathlib import Path

import psycopg

from agent_kit.store import DocumentStore, MarkdownStore, NewPage
from agent_kit.store.postgres import PostgresStore
from tests.store.writers import LOGS, check, write_for

SECONDS = 60.0
KILLS = 60  # at least: one a second, of the about two that are meant


def _start(store: DocumentStore) -> None:
    store.create([NewPage(type="log", title=f"log{n}", body="start") for n in range(LOGS)])


def test_what_a_writer_was_told_is_there_once_and_whole_whoever_is_killed(tmp_path: Path) -> None:
    _start(MarkdownStore(tmp_path))
    told = write_for(
        SECONDS,
        prelude="from pathlib import Path\nfrom agent_kit.store import MarkdownStore",
        opens=f"MarkdownStore(Path({str(tmp_path)!r}))",
    )
    check(MarkdownStore(tmp_path), told)
    assert told.killed > KILLS
    MarkdownStore(tmp_path).create([NewPage(type="last", title="last", body="x")])
    left = [p.name for p in tmp_path.rglob(".*") if p.name.startswith((".tmp-", ".agent-kit.pend"))]
    assert left == []


def test_so_it_is_in_a_database(fresh: str) -> None:
    _start(PostgresStore(fresh))
    told = write_for(
        SECONDS,
        prelude="from agent_kit.store.postgres import PostgresStore",
        opens=f"PostgresStore({fresh!r})",
    )
    _wait_for_sessions(fresh)
    check(PostgresStore(fresh), told)
    assert told.killed > KILLS
    PostgresStore(fresh).create([NewPage(type="last", title="last", body="x")])


def _wait_for_sessions(dsn: str) -> None:
    """Until the server has ended what those who were killed had begun."""
    others = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND backend_type = 'client backend' AND xact_start < now()"
    )
    with psycopg.connect(dsn, autocommit=True) as session:
        for _ in range(600):
            if session.execute(others).fetchone() == (0,):
                return
            session.execute("SELECT pg_sleep(0.05), pg_stat_clear_snapshot()")
    raise AssertionError("sessions of processes that are gone are still there")
