"""The index is a cache: it finds what reading every page would find, and losing it loses nothing."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agent_kit.store import MarkdownStore, NewPage
from agent_kit.store.index import INDEX_FOLDER, MAX_CANDIDATES, Entry, PageIndex
from agent_kit.store.names import PageId
from agent_kit.store.search import Folded, fold, matches, terms_of
from agent_kit.store.searching import Searcher
from agent_kit.store.tokens import from_word, to_word, tokens_of
from agent_kit.testing import document_store_claims

CLAIMS = dict(document_store_claims())


@pytest.fixture
def never_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the index can't answer fails."""

    def fails(*_: object) -> None:
        raise AssertionError("the pages were read")

    monkeypatch.setattr(Searcher, "_by_reading", fails)


@pytest.fixture
def has_no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> Iterator[None]:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(PageIndex, "up_to_date", fails)


@pytest.mark.usefixtures("never_reads")
@pytest.mark.parametrize("claim", CLAIMS)
def test_the_folder_store_keeps_by_its_index(claim: str, tmp_path: Path) -> None:
    CLAIMS[claim](lambda name: MarkdownStore(tmp_path / name))


@pytest.mark.usefixtures("has_no_index")
@pytest.mark.parametrize("claim", CLAIMS)
def test_the_folder_store_keeps_without_an_index(claim: str, tmp_path: Path) -> None:
    CLAIMS[claim](lambda name: MarkdownStore(tmp_path / name))


def found(store: MarkdownStore, query: str) -> list[str]:
    return [str(hit.id) for hit in store.search(query).hits]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    MarkdownStore(tmp_path).create(
        [NewPage(type="note", title=name, slug=name, body=f"needle {name}") for name in "ab"]
    )
    return tmp_path


@pytest.mark.usefixtures("never_reads")
def test_a_page_that_is_changed_by_hand_is_found_at_the_next_search(root: Path) -> None:
    store, page = MarkdownStore(root), root / "note" / "a.md"
    assert found(store, "needle") == ["note/a", "note/b"]
    page.write_text("thread")  # in its place, as an editor may
    assert (found(store, "thread"), found(store, "needle")) == (["note/a"], ["note/b"])
    page.unlink()
    assert found(store, "thread") == []
    (root / "new").mkdir()
    (root / "new" / "c.md").write_text("thread")
    page.symlink_to(root / "new" / "c.md")
    assert found(store, "thread") == ["new/c"]


@pytest.mark.usefixtures("never_reads")
def test_a_change_of_the_same_size_and_times_is_found(root: Path) -> None:
    store, page = MarkdownStore(root), root / "note" / "a.md"
    before = page.stat()
    assert found(store, "needle") == ["note/a", "note/b"]
    page.write_bytes(page.read_bytes().replace(b"needle", b"thread"))
    os.utime(page, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert found(store, "needle") == ["note/b"]


@pytest.mark.usefixtures("never_reads")
def test_what_git_checks_out_is_found(root: Path) -> None:
    store = MarkdownStore(root)

    def git(*words: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        words = ("git", "-C", str(root), *who, *words)
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    assert found(store, "needle") == ["note/a", "note/b"]
    git("add", "-A")
    assert INDEX_FOLDER not in git("status", "--porcelain")
    git("commit", "-qm", "one")
    store.edit("note/a", version=store.read("note/a").version, old="needle", new="thread")
    assert found(store, "thread") == ["note/a"]
    git("checkout", "-q", "--", "note/a.md")
    assert (found(store, "thread"), found(store, "needle")) == ([], ["note/a", "note/b"])


@pytest.mark.parametrize(
    "how", ["deleted", "garbage", "cut", "empty", "another version", "without a table"]
)
def test_an_index_that_is_lost_or_broken_is_made_anew(root: Path, how: str) -> None:
    store, index = MarkdownStore(root), root / INDEX_FOLDER / "pages.sqlite"
    assert found(store, "needle") == ["note/a", "note/b"]
    data = index.read_bytes()
    if how == "deleted":
        shutil.rmtree(root / INDEX_FOLDER)
    elif how == "another version":
        with sqlite3.connect(index) as database:
            database.execute("PRAGMA user_version = 99")
        database.close()
    elif how == "without a table":
        with sqlite3.connect(index) as database:
            database.execute("DROP TABLE pages")
        database.close()
    else:
        index.write_bytes(
            {"garbage": b"x" * 9000, "cut": data[: len(data) // 2], "empty": b""}[how]
        )
    for each in (store, MarkdownStore(root), MarkdownStore(root)):
        assert found(each, "needle") == ["note/a", "note/b"]
    with sqlite3.connect(index) as database:
        assert database.execute("SELECT count(*) FROM pages").fetchone() == (2,)
    database.close()


def test_a_folder_that_cannot_be_written_is_searched_by_reading(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "mkdir", lambda *_: (_ for _ in ()).throw(PermissionError(13, "no")))
    assert found(MarkdownStore(root), "needle") == ["note/a", "note/b"]
    assert not (root / INDEX_FOLDER).exists()


@pytest.mark.usefixtures("never_reads")
def test_a_read_only_store_keeps_its_index_in_memory(root: Path) -> None:
    store = MarkdownStore(root, read_only=True)
    for query in ("needle", "needle"):
        assert found(store, query) == ["note/a", "note/b"]
    assert not (root / INDEX_FOLDER).exists()


def test_an_index_folder_that_is_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / INDEX_FOLDER).symlink_to(tmp_path / "elsewhere")
    assert found(MarkdownStore(root), "needle") == ["note/a", "note/b"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("file", ["pages.sqlite", "pages.sqlite-journal", "pages.sqlite-wal"])
def test_a_file_of_the_index_that_is_a_link_is_not_followed(
    root: Path, tmp_path_factory: pytest.TempPathFactory, file: str
) -> None:
    """SQLite would follow it, and a database of somebody's that has a table "pages" would lose it."""
    other = tmp_path_factory.mktemp("other") / "theirs.sqlite"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE pages (theirs)")
    database.close()
    data = other.read_bytes()
    (root / INDEX_FOLDER).mkdir()
    (root / INDEX_FOLDER / file).symlink_to(other)
    assert found(MarkdownStore(root), "needle") == ["note/a", "note/b"]
    assert other.read_bytes() == data


@pytest.mark.parametrize("private", [False, True])
def test_what_was_removed_for_good_stands_in_no_file(tmp_path: Path, private: bool) -> None:
    store = MarkdownStore(tmp_path / "base", private=private, keeps_history=False)
    store.create(
        [NewPage(type="n", title=t, slug=t, body=f"canary {t}") for t in ("secret", "other")]
    )
    assert found(store, "canary") == ["n/other", "n/secret"]
    assert ((tmp_path / "base" / INDEX_FOLDER).exists()) is not private
    store.delete("n/secret")
    held = [p for p in tmp_path.rglob("*") if p.is_file() and b"secret" in p.read_bytes()]
    assert held == []
    assert found(store, "canary") == ["n/other"]


@pytest.mark.usefixtures("never_reads")
@pytest.mark.parametrize("letter", ["a", "ж", "ạ̈", "𞤀"])
def test_a_word_of_any_length_is_found_from_within(tmp_path: Path, letter: str) -> None:
    """FTS5 cuts a word at 32,768 bytes, wherever that is."""
    store = MarkdownStore(tmp_path)
    for length in (3_990, 20_000):
        word = f"{letter * length}needle{letter * length}"
        store.create([NewPage(type="n", title="t", slug=f"p{length}", body=word)])
    assert sorted(found(store, f"{letter}needle{letter}")) == ["n/p20000", "n/p3990"]


@pytest.mark.usefixtures("never_reads")
def test_what_a_session_may_not_see_is_neither_found_nor_counted(root: Path) -> None:
    assert found(MarkdownStore(root), "needle") == ["note/a", "note/b"]  # indexed by another one
    (root / "note" / "bad.md").write_bytes(b"\xff")
    for closed in ("a.md", "bad.md"):
        store = MarkdownStore(root, permits=lambda path, closed=closed: path.name != closed)  # type: ignore[misc]
        done = store.search("needle")
        seen = {"a.md": (1, ["note/bad"]), "bad.md": (2, [])}[closed]
        assert (done.total, [file.name for file in done.unusable]) == seen


@pytest.mark.usefixtures("never_reads")
def test_more_pages_than_are_looked_at_are_counted(tmp_path: Path) -> None:
    store = MarkdownStore(tmp_path)
    (tmp_path / "note").mkdir()
    many = MAX_CANDIDATES + 50
    for number in range(many):
        (tmp_path / "note" / f"{number}.md").write_text("needle " + "hay " * (number % 7))
    (tmp_path / "note" / "0.md").write_text("# Needle\n\nneedle and thread")
    assert store.search("needle").total == many
    assert found(store, "needle")[0] == "note/0"
    assert found(store, "needle thread")[0] == "note/0"
    assert store.search("needle", offset=many - 55, limit=5).hits != ()


WRITER = """
import sys
from pathlib import Path
from agent_kit.store import MarkdownStore, NewPage
store = MarkdownStore(Path(sys.argv[1]))
for number in range(10):
    word = f"w{sys.argv[2]}x{number}"
    store.create([NewPage(type="n", title=word, slug=word, body=f"needle {word}")])
    assert [hit.id.slug for hit in store.search(word).hits] == [word], word
"""


def test_processes_that_write_and_search_at_once_find_their_own(tmp_path: Path) -> None:
    words = (sys.executable, "-W", "error", "-c", WRITER, str(tmp_path))
    running = [
        subprocess.Popen((*words, name), stderr=subprocess.PIPE, text=True) for name in "abcd"
    ]
    for process in running:
        assert process.wait(60) == 0, process.communicate()
        process.communicate()
    assert MarkdownStore(tmp_path).search("needle").total == 40


# --- the index against reading ---------------------------------------------------------------------

_LETTERS = "abéß知识検검색がﾃ🚀_-'.\"* \nकर्ไ"


@settings(max_examples=150, deadline=None)
@given(
    texts=st.lists(st.text(_LETTERS, max_size=30), min_size=1, max_size=6),
    query=st.text(_LETTERS, min_size=1, max_size=6),
)
def test_the_index_finds_what_reading_finds(texts: list[str], query: str) -> None:
    pages = {
        ("n", f"{number}.md"): Folded(
            id=PageId(type="n", slug=f"z{number}"), text=fold(text), names="", size=len(text)
        )
        for number, text in enumerate(texts)
    }
    terms = terms_of(query)
    assume(terms)
    read = {known for known, page in pages.items() if matches(page, terms)}
    whole = {known for known, page in pages.items() if any(t in page.text for t in terms)}
    with PageIndex(None).up_to_date(
        dict.fromkeys(pages, ""), lambda where: Entry(page=pages[where])
    ) as index:
        asked = index.candidates(terms, lambda *_: True)
        indexed = {("n", f"{p.id.slug[1:]}.md") for p in asked.pages if matches(p, terms)}
    # A run that stands somewhere as a whole isn't looked for by its pairs of characters elsewhere.
    assert whole <= indexed <= read
    assert asked.more == 0


@given(st.text())
def test_a_token_is_kept_as_one_word_and_comes_back(text: str) -> None:
    for token in tokens_of(fold(text)):
        assert from_word(to_word(token)) == token
        assert to_word(token).isalnum()


# --- a base that is watched ------------------------------------------------------------------------


@pytest.fixture
def watched(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MarkdownStore]:
    """A store that looks at the folder only when something has changed there."""
    monkeypatch.setattr("agent_kit.store.searching.WATCHED", 1)
    store = MarkdownStore(root)
    assert [found(store, "needle") for _ in range(3)] == [["note/a", "note/b"]] * 3
    assert store._searcher._watch.is_unchanged(), "this test needs a file system that is watched"
    return store


def _scans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    from agent_kit.store import searching

    scans: list[int] = []
    real = searching.scan
    monkeypatch.setattr(searching, "scan", lambda root: scans.append(1) or real(root))
    return scans


@pytest.mark.usefixtures("never_reads")
def test_a_base_that_nobody_changes_is_not_looked_at_again(
    watched: MarkdownStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans = _scans(monkeypatch)
    for _ in range(5):
        assert found(watched, "needle") == ["note/a", "note/b"]
    assert scans == []


CHANGES: dict[str, str] = {
    "in its place": "echo thread > note/a.md",
    "by another file": "echo thread > x; mv x note/a.md; rm -f x",
    "a new page": "echo thread > note/c.md",
    "in a new folder": "mkdir n; echo thread > n/c.md",
    "a folder moved here": "mkdir .x; echo thread > .x/c.md; mv .x n",
    "mapped into memory": "python3 -c \"import mmap; f = open('note/a.md', 'r+b');"
    " m = mmap.mmap(f.fileno(), 6); m[:] = b'thread'\"",
    "with times as before": "touch -r note/a.md .t; echo thread > note/a.md; touch -r .t note/a.md",
    "a folder swapped": "cp -r note .n; echo thread > .n/a.md; mv note .o; mv .n note",
}


@pytest.mark.usefixtures("never_reads")
@pytest.mark.parametrize("how", CHANGES)
def test_a_change_in_a_watched_base_is_found_at_the_next_search(
    watched: MarkdownStore, root: Path, how: str
) -> None:
    subprocess.run(["/bin/sh", "-ec", CHANGES[how]], cwd=root, check=True)
    assert len(found(watched, "thread")) == 1
    for each in ("note/a.md", "note/c.md", "n/c.md"):
        (root / each).unlink(missing_ok=True)
    assert found(watched, "thread") == []


@pytest.mark.usefixtures("never_reads")
def test_a_watched_base_that_was_moved_or_deleted_is_empty(
    watched: MarkdownStore, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root.rename(tmp_path_factory.mktemp("elsewhere") / "base")
    assert found(watched, "needle") == []
    (root / "note").mkdir(parents=True)
    (root / "note" / "new.md").write_text("needle")
    assert found(watched, "needle") == ["note/new"]


@pytest.mark.usefixtures("never_reads")
def test_a_base_that_shrinks_is_not_watched_by_what_was_there(
    watched: MarkdownStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_kit.store.searching.WATCHED", 2)
    (root / "note" / "b.md").unlink()
    assert found(watched, "needle") == ["note/a"]
    (root / "new").mkdir()
    assert found(watched, "needle") == ["note/a"]
    (root / "new" / "c.md").write_text("needle")  # in a folder that no watch knows
    assert found(watched, "needle") == ["new/c", "note/a"]


def test_a_child_process_looks_for_itself(watched: MarkdownStore, root: Path) -> None:
    (root / "note" / "a.md").unlink()
    child = os.fork()
    if child == 0:
        os._exit(0 if found(watched, "needle") == ["note/b"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert found(watched, "needle") == ["note/b"]
