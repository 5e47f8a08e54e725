"""Many processes on one PostgreSQL base at once, some of them killed, in real processes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from agent_kit.store import NewPage
from agent_kit.store.documents import ChangeKind
from agent_kit.store.postgres import PostgresStore

PROCESSES = 8
KILLS = 40
MOST_SECONDS = 40.0

# Starts the workers as its own children, which takes no time, and says who they are. Each counts in one
# page, makes pages by twos and supersedes one by another; its file says what was acknowledged.
_WORKERS = """
import os, signal, sys, traceback
from agent_kit.store import NewPage, StoreCode, StoreError
from agent_kit.store.postgres import PostgresStore
import psycopg, frontmatter, yaml

def new(slug, body): return NewPage(type="pair", title=slug, slug=slug, body=body)

def work(dsn):
    store, number = PostgresStore(dsn), 0
    while True:
        number += 1
        me = f"{os.getpid()}-{number}"
        try:
            page = store.read("count/er")
            now = int(page.body.split()[-1])
            body = f"{me} " * 2000 + str(now + 1)
            store.rewrite("count/er", version=page.version, body=body)
            print("counted", me, flush=True)
        except StoreError as error:
            if error.code not in (StoreCode.STALE, StoreCode.BUSY):
                raise
        a, b = store.create([new(f"a-{me}", "x" * 3000), new(f"b-{me}", "y" * 3000)])
        print("made", me, flush=True)
        store.supersede(a.id, version=a.version, by=new(f"c-{me}", "z"))
        print("superseded", me, flush=True)

def open_at_once(dsn):
    os.read(go, 1)
    store = PostgresStore(dsn)
    store.create([new(f"p{os.getpid()}", "x")])
    print(store.list().ids != (), flush=True)

go, start = os.pipe()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
for line in sys.stdin:
    if line == "go\\n":
        os.write(start, b"x" * 100)
        continue
    what, file = line.split()
    if (child := os.fork()) == 0:
        out = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(out, 1), os.dup2(out, 2)
        try:
            {"work": work, "open": open_at_once}[what](sys.argv[1])
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    print(child, flush=True)
"""


class Workers:
    """Child processes that are there at once, each with a file of what it said."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self._folder = folder
        self._files = count()
        self._parent = subprocess.Popen(
            [sys.executable, "-c", _WORKERS, dsn],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._parent.stdout.readline() == "ready\n"

    def tell(self, line: str) -> None:
        self._parent.stdin.write(f"{line}\n")
        self._parent.stdin.flush()

    def start(self, what: str) -> int:
        self.tell(f"{what} {self._folder / str(next(self._files))}")
        return int(self._parent.stdout.readline())

    def said(self) -> list[str]:
        """The whole lines that were said so far."""
        texts = (path.read_text() for path in self._folder.iterdir())
        return [line for text in texts for line in text.split("\n")[:-1]]

    def end(self) -> None:
        self._parent.stdin.close()
        self._parent.wait()
        self._parent.stdout.close()


@pytest.fixture
def workers(fresh: str, tmp_path: Path) -> Iterator[Workers]:
    made = Workers(fresh, tmp_path)
    yield made
    made.end()


def test_killed_workers_lose_no_acknowledged_change_and_leave_no_half_one(
    fresh: str, workers: Workers
) -> None:
    store = PostgresStore(fresh)
    store.create([NewPage(type="count", title="er", body="0")])
    chance = random.Random(7)
    alive = [workers.start("work") for _ in range(PROCESSES)]
    killed, enough, end = 0, False, time.monotonic() + MOST_SECONDS
    while not (killed >= KILLS and enough) and time.monotonic() < end:
        time.sleep(chance.uniform(0.02, 0.2))
        os.kill(alive.pop(chance.randrange(PROCESSES)), signal.SIGKILL)
        killed += 1
        alive.append(workers.start("work"))
        acknowledged = Counter(line.split()[0] for line in workers.said())
        enough = all(acknowledged[kind] > 20 for kind in ("counted", "made", "superseded"))
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.5)  # the server ends what they had begun
    lines = [line.split() for line in workers.said()]
    acknowledged = Counter(line[0] for line in lines)
    assert enough, lines[-20:]
    assert acknowledged.keys() == {"counted", "made", "superseded"}, lines

    page = store.read("count/er")
    *words, last = page.body.split()
    assert acknowledged["counted"] <= int(last) <= acknowledged["counted"] + killed + PROCESSES
    assert (len(words), len(set(words))) == (2000, 1), "a page of two writers"
    told = store.history("count/er", limit=100_000)
    assert [change.kind for change in told.changes].count(ChangeKind.REWRITTEN) == int(last)

    found = {(known.slug[0], known.slug[2:]) for known in store.list(type="pair").ids}
    pairs = {me for letter, me in found if letter == "a"}
    assert pairs == {me for letter, me in found if letter == "b"}
    assert pairs >= {line[1] for line in lines if line[0] == "made"}
    newer = {me for letter, me in found if letter == "c"}
    assert newer >= {line[1] for line in lines if line[0] == "superseded"}
    for me in pairs:
        status = store.read(f"pair/a-{me}").fields.get("status")
        assert (status == "superseded") == (me in newer)
    assert store.search("xxx", limit=1).total == len(pairs) - len(newer)


def test_eight_that_open_an_empty_database_at_once_make_one_set_of_tables(
    fresh: str, workers: Workers
) -> None:
    for _ in range(PROCESSES):
        workers.start("open")
    workers.tell("go")
    end = time.monotonic() + 30
    while len(said := workers.said()) < PROCESSES and time.monotonic() < end:
        time.sleep(0.05)
    assert said == ["True"] * PROCESSES
    assert len(PostgresStore(fresh).list().ids) == PROCESSES
    with psycopg.connect(fresh) as session:
        assert session.execute("SELECT version FROM agent_kit.migrations").fetchall() == [(1,)]
