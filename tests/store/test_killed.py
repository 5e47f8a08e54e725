"""Writers that are killed at any step, and many writers at once, in real processes."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_kit.store import MarkdownStore, NewPage, StoreCode, StoreError
from agent_kit.store.journal import JOURNAL_NAME
from agent_kit.store.lock import LOCK_NAME, exclusive
from tests.killing import killed_everywhere, python

# Runs one write again and again, each time in a child that is killed before its next system call
# of the kinds that change the disk, and reports what the next session finds.
KILLER = """
import json, os, shutil, signal, sys
from pathlib import Path
from agent_kit.store import MarkdownStore, NewPage
import agent_kit.store.lock, fcntl, frontmatter, yaml

base, write = Path(sys.argv[1]), sys.argv[2]
STEPS = ("link", "unlink", "rename", "replace", "fsync", "mkdir", "rmdir", "open")

def prepared(root):
    shutil.rmtree(root, ignore_errors=True)
    store = MarkdownStore(root)
    store.create([NewPage(type="old", title="old", slug="old", body="before")])
    return MarkdownStore(root)

def act(store):
    if write == "edit":
        store.edit("old/old", version=store.read("old/old").version, old="before", new="after")
    elif write == "supersede":
        store.supersede("old/old", version=store.read("old/old").version,
                        by=NewPage(type="new", title="new", slug="new", body="after"))
    else:
        store.create([NewPage(type=t, title=s, slug=s, body=s) for t, s in
                      (("a", "one"), ("a", "two"), ("b", "three"))])

def child(store, limit):
    die_before(limit, STEPS)
    act(store)

results = []
for limit in range(500):
    root = base / "base"
    store = prepared(root)
    killed = is_killed(lambda: child(store, limit))
    read_first = MarkdownStore(root)
    ids = [str(known) for known in read_first.list().ids]
    text = read_first.read("old/old").body
    later = MarkdownStore(root)
    later.create([NewPage(type="later", title="later", slug="later", body="x")])
    left = [p.name for p in root.rglob("*") if p.name.startswith((".tmp-", ".agent-kit.pending"))]
    status_field = read_first.read("old/old").fields.get("status")
    results.append({"killed": killed, "ids": ids, "text": text, "left": left,
                    "status": status_field})
    if not killed:
        break
print(json.dumps(results))
"""


def test_pages_made_together_are_all_there_or_none_wherever_the_writer_is_killed(
    tmp_path: Path,
) -> None:
    results = killed_everywhere(KILLER, str(tmp_path), "create", least=10)
    outcomes = {tuple(row["ids"]) for row in results}  # type: ignore[arg-type]
    assert outcomes == {("old/old",), ("a/one", "a/two", "b/three", "old/old")}
    assert {tuple(row["left"]) for row in results} == {()}  # type: ignore[arg-type]


def test_a_page_is_the_old_one_or_the_new_one_wherever_the_writer_is_killed(tmp_path: Path) -> None:
    results = killed_everywhere(KILLER, str(tmp_path), "edit", least=10)
    assert {row["text"] for row in results} == {"\nbefore\n", "\nafter\n"}
    assert {tuple(row["left"]) for row in results} == {()}  # type: ignore[arg-type]


def test_a_page_is_superseded_by_one_that_is_there_wherever_the_writer_is_killed(
    tmp_path: Path,
) -> None:
    results = killed_everywhere(KILLER, str(tmp_path), "supersede", least=10)
    outcomes = {(tuple(row["ids"]), row["status"]) for row in results}  # type: ignore[arg-type]
    assert outcomes == {(("old/old",), None), (("new/new", "old/old"), "superseded")}
    assert {tuple(row["left"]) for row in results} == {()}  # type: ignore[arg-type]


COUNTER = """
import sys
from pathlib import Path
from agent_kit.store import MarkdownStore, NewPage, StoreCode, StoreError

store, me = MarkdownStore(Path(sys.argv[1])), sys.argv[2]
for number in range(15):
    store.create([NewPage(type="note", title=f"{me} {number}", body="x")])
    while True:
        page = store.read("count/count")
        before = page.body.strip()
        try:
            store.edit("count/count", version=page.version, old=f"\\n{before}\\n",
                       new=f"\\n{int(before) + 1}\\n")
            break
        except StoreError as error:
            assert error.code is StoreCode.STALE, error
"""


def test_two_processes_on_one_folder_lose_no_update(tmp_path: Path) -> None:
    store = MarkdownStore(tmp_path)
    store.create([NewPage(type="count", title="count", body="0")])
    writers = [
        subprocess.Popen(python(COUNTER, str(tmp_path), name), stderr=subprocess.PIPE, text=True)
        for name in ("ada", "bob")
    ]
    for writer in writers:
        assert writer.wait(60) == 0, writer.communicate()
        writer.communicate()
    assert store.read("count/count").body.strip() == "30"
    assert len(store.list(type="note").ids) == 30


def test_twenty_threads_at_once_lose_no_page_and_no_edit(tmp_path: Path) -> None:
    store = MarkdownStore(tmp_path)
    store.create([NewPage(type="log", title="log", body="start")])

    def write(number: int) -> None:
        store.create([NewPage(type="note", title=f"page {number}", body="x")])
        while True:
            page = store.read("log/log")
            try:
                store.edit("log/log", version=page.version, old="start", new=f"start\n- {number}")
            except StoreError as error:
                assert error.code is StoreCode.STALE
            else:
                return

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(write, range(20)))
    assert len(store.list(type="note").ids) == 20
    entries = store.read("log/log").body.split("start", 1)[1].split()
    assert sorted(int(entry) for entry in entries if entry != "-") == list(range(20))


def test_twenty_threads_that_want_one_name_make_one_page(tmp_path: Path) -> None:
    def make(number: int) -> bool:
        try:
            MarkdownStore(tmp_path).create(
                [NewPage(type="note", title="t", slug="Same" if number % 2 else "same", body="x")]
            )
        except StoreError as error:
            assert error.code is StoreCode.EXISTS
            return False
        return True

    with ThreadPoolExecutor(20) as pool:
        assert sum(pool.map(make, range(20))) == 1


def test_a_lock_that_is_not_given_back_is_a_plain_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = (
        "import fcntl, sys; lock = open(sys.argv[1], 'a'); fcntl.flock(lock, fcntl.LOCK_EX);"
        "print('held', flush=True); sys.stdin.read()"
    )
    store = MarkdownStore(tmp_path)
    store.create([NewPage(type="note", title="t", body="x")])
    monkeypatch.setattr("agent_kit.store.markdown._LOCK_SECONDS", 0.2)
    with subprocess.Popen(
        python(holder, str(tmp_path / ".agent-kit.lock")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        started = time.monotonic()
        with pytest.raises(StoreError, match="Another session is writing") as caught:
            store.create([NewPage(type="note", title="u", body="x")])
        assert time.monotonic() - started < 10
        assert store.read("note/t").body == "\nx\n"
        process.communicate("")
    assert caught.value.code is StoreCode.BUSY
    store.create([NewPage(type="note", title="u", body="x")])


def test_a_lock_on_a_file_that_was_removed_meanwhile_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = fcntl.flock, iter(range(10))

    def flock(handle: int, operation: int) -> None:
        if next(calls) == 0:
            (tmp_path / LOCK_NAME).unlink()
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with exclusive(tmp_path, timeout=5), open(tmp_path / LOCK_NAME, "a") as other:
        with pytest.raises(BlockingIOError):
            real(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


FORGED = [
    ("not json", "no journal of ours"),
    ("[" * 200_000, "nested too deep"),
    ('[{"folder": "..", "temp": ".tmp-0123456789abcdef", "name": "x.md", "over": ""}]', "climbs"),
    (
        '[{"folder": "note", "temp": ".tmp-0123456789abcdef", "name": "../../x.md", "over": ""}]',
        "climbs by name",
    ),
    (
        '[{"folder": "note", "temp": "good.md", "name": "stolen.md", "over": ""}]',
        "not an unfinished file",
    ),
    (
        '[{"folder": "note", "temp": ".tmp-0123456789abcdef", "name": "good.md", "over": ""}]',
        "over a page",
    ),
    (
        '[{"folder": "linked", "temp": ".tmp-0123456789abcdef", "name": "x.md", "over": ""}]',
        "through a link",
    ),
    (
        '[{"folder": "note", "temp": ".tmp-0123456789abcdef", "name": "good.md", "over": "0123456789abcdef"}]',
        "over another version",
    ),
    (
        '[{"folder": "note", "temp": ".tmp-0123456789abcdef", "name": "good.md", "over": 1}]',
        "over a number",
    ),
    *(
        (
            f'[{{"folder": "note", "temp": ".tmp-0123456789abcdef", "name": "{name}", "over": ""}}]',
            why,
        )
        for name, why in (
            ("CLAUDE.md", "a control file"),
            ("agents.md", "a control file in another case"),
            ("x.py", "no page"),
            (".x.md", "hidden"),
        )
    ),
    (
        '[{"folder": ".claude", "temp": ".tmp-0123456789abcdef", "name": "x.md", "over": ""}]',
        "in a control folder",
    ),
    (
        '[{"folder": "note", "temp": ".tmp-mine", "name": "x.md", "over": ""}]',
        "a name that no store gives",
    ),
    ('{"folder": 1}', "another shape"),
    ("[[]]", "another shape"),
    ('[{"folder": "note", "temp": ".tmp-0123456789abcdef"}]', "a name is missing"),
]


@pytest.mark.parametrize("text", [row[0] for row in FORGED], ids=[row[1] for row in FORGED])
def test_a_journal_that_is_not_ours_moves_nothing(tmp_path: Path, text: str) -> None:
    root = tmp_path / "base"
    (root / "note").mkdir(parents=True)
    (root / "note" / "good.md").write_text("good")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / ".tmp-0123456789abcdef").write_text("outside")
    (tmp_path / ".tmp-0123456789abcdef").write_text("outside")
    for folder in ("note", ".claude"):
        (root / folder).mkdir(exist_ok=True)
        (root / folder / ".tmp-0123456789abcdef").write_text("unfinished")
        (root / folder / ".tmp-mine").write_text("a person's")
    (root / "linked").symlink_to(tmp_path / "outside")
    (root / JOURNAL_NAME).write_text(text)
    store = MarkdownStore(root)
    assert [str(known) for known in store.list().ids] == ["note/good"]
    assert store.read("note/good").text == "good"
    assert sorted(os.listdir(tmp_path)) == [".tmp-0123456789abcdef", "base", "outside"]
    assert os.listdir(tmp_path / "outside") == [".tmp-0123456789abcdef"]
    assert not (root / JOURNAL_NAME).exists()
    assert sorted(os.listdir(root / "note")) == [".tmp-mine", "good.md"]
    assert ".tmp-mine" in os.listdir(root / ".claude")
    assert "x.md" not in os.listdir(root / ".claude")


def test_a_read_only_store_reads_past_a_killed_writers_journal(tmp_path: Path) -> None:
    (tmp_path / "note").mkdir()
    (tmp_path / "note" / "good.md").write_text("good")
    (tmp_path / JOURNAL_NAME).write_text("[]")
    assert MarkdownStore(tmp_path, read_only=True).read("note/good").text == "good"
    assert (tmp_path / JOURNAL_NAME).exists()
