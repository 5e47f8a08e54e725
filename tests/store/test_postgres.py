"""The PostgreSQL store keeps what a DocumentStore promises, on a real server."""

from __future__ import annotations

import importlib
import logging
import random
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import psycopg
import pytest

from agent_kit.store import MarkdownStore, NewPage, PageId, StoreCode, StoreError, person_folder
from agent_kit.store import _postgres_schema as schema_module
from agent_kit.store._postgres_pages import Rows
from agent_kit.store._postgres_search import MAX_CANDIDATES
from agent_kit.store.documents import ChangeKind
from agent_kit.store.postgres import PostgresStore
from agent_kit.store.search import folded, matches, rank, terms_of
from agent_kit.testing import document_store_claims
from tests.store.postgres_server import PASSWORD, Server

CLAIMS = dict(document_store_claims())
_NUMBERS = count()


def _base() -> str:
    return f"base{next(_NUMBERS)}"


def _new(slug: str, body: str = "text", **more) -> NewPage:
    return NewPage(
        type=more.pop("type", "note"), title=more.pop("title", slug), slug=slug, body=body, **more
    )


def _refused(code: StoreCode, call: Callable[[], object]) -> StoreError:
    with pytest.raises(StoreError) as caught:
        call()
    assert caught.value.code is code, caught.value
    return caught.value


def _ids(store: PostgresStore) -> list[str]:
    return [str(known) for known in store.list().ids]


def _name(dsn: str) -> str:
    return psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_postgres_store_keeps(claim: str, shared: str) -> None:
    CLAIMS[claim](lambda name: PostgresStore(shared, base=f"{claim}-{name}"))


# --- bases ----------------------------------------------------------------------------------------


def test_two_people_never_meet_whatever_their_names_have_in_common(shared: str) -> None:
    people = ["ada", "Ada", "ADA", "ad\u0430", "ada ", "ada/..", "a%", "a_a"]
    stores = {name: PostgresStore(shared, base=f"memory/{person_folder(name)}") for name in people}
    for number, store in enumerate(stores.values()):
        store.create([_new("same", f"needle of {number}"), _new(f"own{number}", "needle")])
    for number, store in enumerate(stores.values()):
        assert _ids(store) == sorted(["note/same", f"note/own{number}"])
        assert store.read("note/same").body.strip() == f"needle of {number}"
        assert (store.search("needle").total, store.history().total) == (2, 2)
        others = (number + 1) % len(people)
        _refused(StoreCode.NOT_FOUND, lambda others=others, s=store: s.read(f"note/own{others}"))
    gone = stores["ada"]
    gone.delete("note/same")
    assert stores["Ada"].history("note/same").total == 1


@pytest.mark.parametrize("base", ["", "a\0b", "a\ud800", "x" * 201])
def test_a_base_that_cannot_be_told_from_others_is_refused(base: str) -> None:
    _refused(StoreCode.BAD_NAME, lambda: PostgresStore("", base=base))


def test_a_schema_is_a_plain_name() -> None:
    for schema in ("", "a; drop schema public", 'a"b', "A", "ä"):
        with pytest.raises(ValueError, match="schema"):
            PostgresStore("", schema=schema)


def test_two_schemas_of_one_database_never_meet(fresh: str) -> None:
    PostgresStore(fresh, schema="one").create([_new("x", "needle")])
    other = PostgresStore(fresh, schema="other")
    assert (_ids(other), other.search("needle").total) == ([], 0)


# --- pages ----------------------------------------------------------------------------------------

_FILES = {
    "note/plain": b"no front matter\r\nat all",
    "note/bom": b"\xef\xbb\xbf---\r\ntitle: B\r\n---\r\n\r\nbody\r\n",
    "note/odd": '---\ntitle: "\\ud800"\naliases: ["a\\0b"]\nx: [1, {y: 2}]\n---\nz\x1f\x00\u2028'.encode(),
    "Ort/Café": "---\ntitle: Kaffee\n---\n\n知识\n".encode(),
    "note/broken": b"---\n: : :\n---\nbody",
}


def test_a_page_is_kept_byte_for_byte_as_in_a_folder(shared: str, tmp_path: Path) -> None:
    for name, data in _FILES.items():
        path = tmp_path / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    folder, store = MarkdownStore(tmp_path), PostgresStore(shared, base=_base())
    ids = folder.list().ids
    assert len(ids) == len(_FILES)
    store.bring_in([(known, (tmp_path / f"{known}.md").read_bytes()) for known in ids])
    assert store.list().ids == ids
    for known in ids:
        here, there = store.read(known), folder.read(known)
        assert store.bytes_of(known) == _FILES[str(known)]
        assert (here.version, here.text, here.fields) == (there.version, there.text, there.fields)
    for same in (store, folder):
        page = same.read("note/bom")
        same.retire("note/bom", version=page.version, reason="old")
    assert store.bytes_of("note/bom") == (tmp_path / "note" / "bom.md").read_bytes()


def test_files_that_steer_later_sessions_or_are_no_text_are_not_brought_in(shared: str) -> None:
    store = PostgresStore(shared, base=_base())
    good = (PageId(type="note", slug="good"), b"x")
    for bad, code in (
        ((PageId(type="note", slug="CLAUDE"), b"x"), StoreCode.DENIED),
        ((PageId(type="..", slug="x"), b"x"), StoreCode.BAD_NAME),
        ((PageId(type="note", slug="x/y"), b"x"), StoreCode.BAD_NAME),
        ((PageId(type="note", slug="x"), b"\xff"), StoreCode.UNREADABLE),
        ((PageId(type="note", slug="x"), b"x" * 16_000_001), StoreCode.TOO_LARGE),
        ((PageId(type="note", slug="Good"), b"x"), StoreCode.EXISTS),
    ):
        _refused(code, lambda bad=bad: store.bring_in([good, bad]))
    assert _ids(store) == []


def test_the_longest_names_fit(shared: str) -> None:
    store = PostgresStore(shared, base="b" * 200)
    long = "\ufdfa" * 66  # 198 bytes, and eighteen characters each when compared
    other = long[:-1] + "x"
    store.create([_new(long, type=long, title="l"), _new(other, type=long, title="o")])
    assert store.read(f"{long}/{other}").title == "o"
    _refused(StoreCode.EXISTS, lambda: store.create([_new(long, type=long, title="l")]))


def test_what_the_session_closes_is_not_listed_found_counted_or_read(shared: str) -> None:
    base = _base()
    whole = PostgresStore(shared, base=base, root=Path("/pages"))
    whole.create([_new(slug, "needle") for slug in ("open", "asks", "closed")])
    asked: list[Path] = []

    def permits(path: Path) -> bool:
        asked.append(path)
        return path != Path("/pages/note/closed.md")

    store = PostgresStore(
        shared,
        base=base,
        root=Path("/pages"),
        permits=permits,
        shows=lambda path: path.name != "asks.md",
    )
    assert _ids(store) == ["note/open"]
    assert (store.search("needle").total, store.history().total) == (1, 1)
    _refused(StoreCode.NOT_FOUND, lambda: store.read("note/closed"))
    _refused(StoreCode.NOT_FOUND, lambda: store.delete("note/closed"))
    _refused(StoreCode.DENIED, lambda: store.read("note/asks"))
    _refused(StoreCode.DENIED, lambda: store.create([_new("closed")]))
    _refused(StoreCode.EXISTS, lambda: store.create([_new("Closed")]))
    assert store.path_of("NOTE/asks") == Path("/pages/note/asks.md")
    assert store.new_path(_new("n")) == Path("/pages/note/n.md")
    assert {path.parent for path in asked} == {Path("/pages/note")}


def test_a_read_only_store_refuses_every_change(shared: str) -> None:
    base = _base()
    page = PostgresStore(shared, base=base).create([_new("x")])[0]
    store = PostgresStore(shared, base=base, read_only=True)
    for write in (
        lambda: store.create([_new("y")]),
        lambda: store.bring_in([]),
        lambda: store.edit("note/x", version=page.version, old="text", new="n"),
        lambda: store.rewrite("note/x", version=page.version, body="n"),
        lambda: store.retire("note/x", version=page.version),
        lambda: store.supersede("note/x", version=page.version, by=_new("y")),
        lambda: store.delete("note/x"),
    ):
        _refused(StoreCode.READ_ONLY, write)
    assert _ids(store) == ["note/x"]


def test_the_history_says_by_whom_and_may_be_left_out(shared: str) -> None:
    base = _base()
    PostgresStore(shared, base=base, by="agent \ud800\0").create([_new("x")])
    PostgresStore(shared, base=base, keeps_history=False).create([_new("y")])
    told = PostgresStore(shared, base=base).history()
    assert [(str(change.id), change.by) for change in told.changes] == [
        ("note/x", "agent \\ud800\\x00")
    ]


# --- searching ------------------------------------------------------------------------------------

_ALPHABETS = (
    "ab",
    "abc-",
    "aAäß'’",
    "知识库权限",
    "知a识b",
    "ひらカナ",
    "검색어",
    "เรา",
    "🚀a",
    "à.b_c%",
    "\\a|&!",
)


def _text(chance: random.Random, most: int) -> str:
    words = (
        "".join(chance.choices(chance.choice(_ALPHABETS), k=chance.randint(1, 6)))
        for _ in range(chance.randint(1, most))
    )
    return chance.choice((" ", "\n")).join(words)


@pytest.mark.parametrize("seed", range(6))
def test_a_search_finds_and_orders_what_a_look_at_every_page_does(seed: int, shared: str) -> None:
    chance = random.Random(seed)
    store = PostgresStore(shared, base=_base())
    store.create(
        [
            _new(f"p{n}", _text(chance, 30), title=_text(chance, 4).replace("\n", " "))
            for n in range(40)
        ]
    )
    pages = [folded(store.read(known)) for known in store.list().ids]
    for _ in range(60):
        query = _text(chance, 3)
        terms = terms_of(query)
        found = [match for page in pages if (match := matches(page, terms))]
        order = rank(found, searched=len(pages))
        hits = store.search(query, limit=100)
        assert hits.total == len(order), query
        assert [hit.id for hit in hits.hits] == [known for _, known in order], query


@pytest.mark.parametrize(
    "query", ["\0", "a\0", "\ud800", "%", "%s", "%(base)s", "\x1f", "'; --", "🚀" * 200]
)
def test_whatever_is_asked_for_is_text(query: str, shared: str) -> None:
    store = PostgresStore(shared, base="asked")
    assert store.search(query).total == 0


def test_more_pages_than_are_looked_at_are_all_counted_and_come_in_slices(shared: str) -> None:
    store = PostgresStore(shared, base=_base())
    total = MAX_CANDIDATES + 150
    files = [(PageId(type="note", slug=f"p{n:04}"), b"needles") for n in range(total)]
    store.bring_in(files)
    store.create([_new("about", title="Needle", body="x"), _new("word", "a needle, whole")])
    found = [
        str(hit.id)
        for at in range(0, total + 2, 100)
        for hit in store.search("needle", offset=at, limit=100).hits
    ]
    assert store.search("needle").total == total + 2
    assert found[:2] == ["note/about", "note/word"]
    assert len(found) == len(set(found)) == total + 2


# --- several at once ------------------------------------------------------------------------------


@pytest.mark.parametrize("types_are_there", [True, False])
def test_many_who_want_the_same_names_in_any_order_never_block_each_other(
    types_are_there: bool, shared: str
) -> None:
    names = [f"p{n}" for n in range(30)]

    def make(base: str, number: int) -> StoreCode | None:
        mine = random.Random(number).sample(names, len(names))
        store = PostgresStore(shared, base=base)
        try:
            store.create([_new(name, "text " * 500, type=f"t{name}") for name in mine])
        except StoreError as error:
            return error.code
        return None

    for _ in range(4):
        base = _base()
        if types_are_there:
            PostgresStore(shared, base=base).create([_new("first", type=f"t{n}") for n in names])
        with ThreadPoolExecutor(8) as pool:
            codes = list(pool.map(make, [base] * 8, range(8)))
        assert (codes.count(None), codes.count(StoreCode.EXISTS)) == (1, 7), codes


def test_a_page_that_somebody_else_holds_is_busy_after_the_wait(shared: str) -> None:
    base = _base()
    store = PostgresStore(shared, base=base, lock_timeout=0.2)
    page = store.create([_new("x")])[0]
    with psycopg.connect(shared) as other:
        other.execute("SELECT 1 FROM agent_kit.pages WHERE base = %s FOR UPDATE", (base,))
        _refused(
            StoreCode.BUSY,
            lambda: store.edit("note/x", version=page.version, old="text", new="n"),
        )
        assert store.read("note/x").version == page.version
    store.edit("note/x", version=page.version, old="text", new="n")


def test_an_answer_that_takes_too_long_is_busy(shared: str) -> None:
    store = PostgresStore(shared, base=_base(), statement_timeout=0.1)
    store.create([_new("x")])
    with store._link.transaction(writes=False) as session:  # noqa: SIM117
        with pytest.raises(psycopg.errors.QueryCanceled):
            session.execute("SELECT pg_sleep(5)")
    _refused(StoreCode.BUSY, lambda: _sleep(store))
    assert _ids(store) == ["note/x"]


def _sleep(store: PostgresStore) -> None:
    with store._link.transaction(writes=False) as session:
        session.execute("SELECT pg_sleep(5)")


_FORKS = """
import os, sys
from agent_kit.store import NewPage
from agent_kit.store.postgres import PostgresStore
store = PostgresStore(sys.argv[1], base=sys.argv[2])
store.create([NewPage(type="note", title="x", body="x")])
child = os.fork()
if child == 0:
    store.create([NewPage(type="note", title="y", body="y")])
    store.close()
    sys.exit()
os.waitpid(child, 0)
kept = store._link._idle[0]
print(*store.list().ids, kept is store._link._idle[0])
"""


def test_a_process_that_forks_keeps_its_connection(shared: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FORKS, shared, _base()], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("note/x note/y True\n", "")


# --- the server -----------------------------------------------------------------------------------


def _end_sessions(server: Server, dsn: str) -> None:
    server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        f"WHERE datname = '{_name(dsn)}' AND pid <> pg_backend_pid()"
    )


def test_a_server_that_was_started_again_is_used_by_the_next_call(
    server: Server, shared: str
) -> None:
    store = PostgresStore(shared, base=_base())
    page = store.create([_new("x", "needle")])[0]
    server.stop()
    error = _refused(StoreCode.UNAVAILABLE, lambda: store.read("note/x"))
    assert str(server.folder) not in str(error)
    server.start()
    assert store.read("note/x").version == page.version
    after = store.edit("note/x", version=page.version, old="needle", new="pin")
    server.stop()
    server.start()
    assert store.read("note/x").version == after.version
    assert store.search("pin").total == 1


def test_a_session_that_ends_in_the_middle_changes_nothing(server: Server, fresh: str) -> None:
    page = PostgresStore(fresh).create([_new("x")])[0]
    ends = [True]

    def permits(path: Path) -> bool:  # asked after the page was locked
        if ends.pop() if ends else False:
            _end_sessions(server, fresh)
        return True

    store = PostgresStore(fresh, permits=permits)
    change = lambda: store.edit("note/x", version=page.version, old="text", new="n")  # noqa: E731
    _refused(StoreCode.UNAVAILABLE, change)
    assert store.read("note/x").version == page.version
    assert change().body.strip() == "n"


def test_a_session_that_ends_while_it_keeps_a_change_says_that_it_may_be_there(
    server: Server, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore(fresh)
    store.create([_new("x")])
    real = Rows.note

    def note(self: Rows, *args, **kwargs) -> None:
        real(self, *args, **kwargs)
        _end_sessions(server, fresh)

    monkeypatch.setattr(Rows, "note", note)
    error = _refused(StoreCode.UNAVAILABLE, lambda: store.create([_new("y")]))
    assert "read the page" in str(error)


_DSNS = {
    "refused": f"postgresql://ada:{PASSWORD}@127.0.0.1:1/secretbase",
    "no socket": f"host=/nowhere-at-all user=ada password={PASSWORD} dbname=secretbase",
    "no DSN": f"host=127.0.0.1 password='{PASSWORD} dbname=secretbase",
    "no option": f"host=127.0.0.1 {PASSWORD}=1 user=ada",
    "no address": f"postgresql://ada:{PASSWORD}@[::1/secretbase",
    "no port": f"postgresql://ada:{PASSWORD}@127.0.0.1:{PASSWORD}/secretbase",
    "wrong password": f"host={{folder}} user=guarded dbname=shared password={PASSWORD}-not",
    "no database": f"host={{folder}} user=owner dbname=secretbase password={PASSWORD}",
}


@pytest.mark.parametrize("case", _DSNS)
def test_no_error_and_no_log_tells_a_secret(
    case: str, server: Server, shared: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.execute(
        "DO $$ BEGIN IF to_regrole('guarded') IS NULL THEN "
        f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'; END IF; END $$"
    )
    caplog.set_level(logging.DEBUG)
    store = PostgresStore(_DSNS[case].format(folder=server.folder), connect_timeout=2)
    error = _refused(StoreCode.UNAVAILABLE, lambda: store.read("note/x"))
    for told in ("127.0.0.1", "nowhere", "ada", "secretbase", "guarded", str(server.folder)):
        assert told not in str(error)
    assert str(error).count("\n") == 0
    whole = "".join([*traceback.format_exception(error), repr(store), caplog.text])
    assert PASSWORD not in whole
    assert caplog.records, "an operator is told the cause"


def test_the_right_password_is_used(server: Server, shared: str) -> None:
    PostgresStore(shared, base="guarded").create([_new("x")])
    server.execute(
        "DO $$ BEGIN IF to_regrole('guarded') IS NULL THEN "
        f"CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}'; END IF; END $$"
    )
    server.execute(
        "GRANT USAGE ON SCHEMA agent_kit TO guarded;"
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA agent_kit TO guarded",
        database="shared",
    )
    dsn = f"{server.dsn('shared', role='guarded')} password={PASSWORD}"
    assert _ids(PostgresStore(dsn, base="guarded")) == ["note/x"]


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        store = PostgresStore(f"host=127.0.0.1 port={port} user=a dbname=b", connect_timeout=2)
        begin = time.monotonic()
        _refused(StoreCode.UNAVAILABLE, lambda: store.list())
        assert time.monotonic() - begin < 4


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ImportError, match=r"agent-kit\[postgres\]"):
        PostgresStore("")


def test_the_store_is_imported_without_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in ("link", "pages", "schema", "search"):
        monkeypatch.delitem(sys.modules, f"agent_kit.store._postgres_{name}", raising=False)
    monkeypatch.delitem(sys.modules, "agent_kit.store.postgres", raising=False)
    importlib.import_module("agent_kit.store.postgres")


# --- the tables -----------------------------------------------------------------------------------


def test_a_database_that_a_newer_agent_kit_changed_is_refused(fresh: str) -> None:
    store = PostgresStore(fresh)
    store.create([_new("x")])
    with psycopg.connect(fresh, autocommit=True) as session:
        session.execute("INSERT INTO agent_kit.migrations (version) VALUES (99)")
    error = _refused(StoreCode.UNAVAILABLE, lambda: PostgresStore(fresh).list())
    assert "newer agent-kit" in str(error)
    _refused(StoreCode.UNAVAILABLE, lambda: PostgresStore(fresh).create([_new("y")]))


def test_the_next_steps_are_taken_once_and_together(
    fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    PostgresStore(fresh).create([_new("x")])
    steps = schema_module.STEPS
    broken = (*steps, ("CREATE TABLE more (a int)",), ("nonsense",))
    monkeypatch.setattr(schema_module, "STEPS", broken)
    _refused(StoreCode.UNAVAILABLE, lambda: PostgresStore(fresh).list())
    monkeypatch.setattr(schema_module, "STEPS", broken[:-1])
    assert _ids(PostgresStore(fresh)) == ["note/x"]
    with psycopg.connect(fresh, autocommit=True) as session:
        known = session.execute("SELECT version FROM agent_kit.migrations ORDER BY 1").fetchall()
        assert known == [(1,), (2,)]
        assert session.execute("SELECT count(*) FROM agent_kit.more").fetchone() == (0,)


def test_the_server_needs_no_extension(fresh: str) -> None:
    store = PostgresStore(fresh)
    store.create([_new("x", "知识 words")])
    assert (store.search("知识").total, store.search("ord").total) == (1, 1)
    with psycopg.connect(fresh) as session:
        assert session.execute("SELECT extname FROM pg_extension").fetchall() == [("plpgsql",)]


def test_a_search_of_many_pages_goes_by_the_index(fresh: str) -> None:
    store = PostgresStore(fresh)
    texts = [f"page {number * 7919} text" for number in range(3000)]
    store.bring_in([(PageId(type="note", slug=f"p{n}"), t.encode()) for n, t in enumerate(texts)])
    query = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'pages_with_grams'"
    with psycopg.connect(fresh, autocommit=True) as session:
        session.execute("VACUUM ANALYZE agent_kit.pages")
        before = session.execute(query).fetchone()
        assert store.search("7919").total == sum("7919" in text for text in texts)
        store.close()  # a session that ends tells what it used
        for _ in range(100):
            if session.execute(query).fetchone() != before:
                return
            session.execute("SELECT pg_sleep(0.05), pg_stat_clear_snapshot()")
    pytest.fail("the index was not used")


def test_a_role_that_may_make_nothing_uses_what_is_there(server: Server, fresh: str) -> None:
    role = f"worker{next(_NUMBERS)}"
    server.execute(f"CREATE ROLE {role} LOGIN")
    dsn = server.dsn(_name(fresh), role=role)
    error = _refused(StoreCode.UNAVAILABLE, lambda: PostgresStore(dsn).list())
    assert "rights" in str(error)
    PostgresStore(fresh).create([_new("x", "needle")])
    _refused(StoreCode.UNAVAILABLE, lambda: PostgresStore(dsn).list())
    server.execute(
        f"GRANT USAGE ON SCHEMA agent_kit TO {role};"
        f"GRANT SELECT ON ALL TABLES IN SCHEMA agent_kit TO {role}",
        database=_name(fresh),
    )
    reader = PostgresStore(dsn)
    assert (_ids(reader), reader.search("needle").total) == (["note/x"], 1)
    _refused(StoreCode.UNAVAILABLE, lambda: reader.create([_new("y")]))
    server.execute(
        f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA agent_kit TO {role}",
        database=_name(fresh),
    )
    page = reader.create([_new("y")])[0]
    reader.edit("note/y", version=page.version, old="text", new="n")
    reader.delete("note/x")
    assert [change.kind for change in reader.history().changes] == [
        ChangeKind.EDITED,
        ChangeKind.CREATED,
    ]


def test_a_role_that_owns_the_schema_makes_the_tables_in_it(server: Server, fresh: str) -> None:
    role = f"worker{next(_NUMBERS)}"
    server.execute(f"CREATE ROLE {role} LOGIN")
    server.execute(f"CREATE SCHEMA agent_kit AUTHORIZATION {role}", database=_name(fresh))
    store = PostgresStore(server.dsn(_name(fresh), role=role))
    store.create([_new("x")])
    assert _ids(store) == ["note/x"]


def test_a_database_that_does_not_keep_utf_8_is_refused(server: Server) -> None:
    dsn = server.make_database(f"ascii{next(_NUMBERS)}", encoding="SQL_ASCII")
    error = _refused(StoreCode.UNAVAILABLE, lambda: PostgresStore(dsn).list())
    assert "UTF-8" in str(error)
