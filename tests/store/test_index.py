"""The index is a cache: it finds what reading every page would find, and losing it loses nothing."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from agent_kit.store import MarkdownStore, NewPage, rows, survey
from agent_kit.store.finding import MAX_CANDIDATES, Question, answer
from agent_kit.store.index import PageIndex, _is_broken
from agent_kit.store.index_place import index_folder
from agent_kit.store.names import PageId
from agent_kit.store.search import Folded, fold, matches, terms_of
from agent_kit.store.searching import Searcher
from agent_kit.store.survey import RACY, Look
from agent_kit.store.tokens import TOKENIZER, tokens_of
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

    monkeypatch.setattr(PageIndex, "used", fails)


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
    assert "sqlite" not in git("status", "--porcelain")
    git("commit", "-qm", "one")
    store.edit("note/a", version=store.read("note/a").version, old="needle", new="thread")
    assert found(store, "thread") == ["note/a"]
    git("checkout", "-q", "--", "note/a.md")
    assert (found(store, "thread"), found(store, "needle")) == ([], ["note/a", "note/b"])


@pytest.mark.parametrize(
    "how",
    ["deleted", "garbage", "cut", "empty", "another version", "without a table"],
)
def test_an_index_that_is_lost_or_broken_is_made_anew(root: Path, how: str) -> None:
    store, index = MarkdownStore(root), index_folder(root) / "pages.sqlite"
    assert found(store, "needle") == ["note/a", "note/b"]
    data = index.read_bytes()
    if how == "deleted":
        shutil.rmtree(index_folder(root))
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


def test_an_index_whose_texts_are_gone_is_made_anew(root: Path) -> None:
    store, index = MarkdownStore(root), index_folder(root) / "pages.sqlite"
    time.sleep(RACY + 0.1)  # younger files are read again anyway
    assert found(store, "needle") == ["note/a", "note/b"]
    with closing(sqlite3.connect(index)) as database, database:
        database.execute("DELETE FROM texts")
    assert found(store, "needle") == ["note/a", "note/b"]
    assert found(store, "needle") == ["note/a", "note/b"]
    with closing(sqlite3.connect(index)) as database:
        assert database.execute("SELECT count(*) FROM texts").fetchone() == (2,)


@pytest.mark.parametrize(
    ("statement", "is_broken"), [("SELECT 1 FROM absent", True), ("SELEC", False)]
)
def test_a_statement_that_is_not_understood_costs_nobody_the_index(
    statement: str, is_broken: bool
) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        with pytest.raises(sqlite3.Error) as raised:
            database.execute(statement)
    assert _is_broken(raised.value) is is_broken


@pytest.mark.usefixtures("never_reads")
def test_where_no_cache_can_be_kept_the_index_is_in_memory(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "mkdir", lambda *_: (_ for _ in ()).throw(PermissionError(13, "no")))
    store = MarkdownStore(root)
    for _ in range(2):
        assert found(store, "needle") == ["note/a", "note/b"]
    assert not index_folder(root).exists()


@pytest.mark.usefixtures("never_reads")
def test_an_index_that_is_somebody_elses_is_left_and_another_one_kept_in_memory(root: Path) -> None:
    file = index_folder(root) / "pages.sqlite"
    file.mkdir(parents=True)  # root opens any file: SQLite can't open this
    store = MarkdownStore(root)
    for _ in range(2):
        assert found(store, "needle") == ["note/a", "note/b"]
    assert file.is_dir()


@pytest.mark.usefixtures("never_reads")
def test_where_nobody_has_a_home_nothing_is_written_beside_the_program(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "platformdirs.user_cache_path", lambda: Path("~/.cache")
    )  # what it says then
    before = sorted(os.listdir(tmp_path))
    assert found(MarkdownStore(root), "needle") == ["note/a", "note/b"]
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.usefixtures("never_reads")
@pytest.mark.parametrize("read_only", [False, True])
def test_nothing_of_the_index_lies_among_the_pages(root: Path, read_only: bool) -> None:
    before = sorted(root.rglob("*"))
    store = MarkdownStore(root, read_only=read_only)
    for _ in range(2):
        assert found(store, "needle") == ["note/a", "note/b"]
    assert sorted(root.rglob("*")) == before
    assert index_folder(root).stat().st_mode & 0o777 == 0o700


def test_each_root_has_an_index_of_its_own_by_whatever_name_it_is_opened(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(root)
    assert index_folder(tmp_path / "link") == index_folder(root)
    assert index_folder(root / "note") != index_folder(root)


@pytest.mark.usefixtures("never_reads")
def test_the_index_of_a_base_that_is_gone_goes_when_another_one_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda: tmp_path / "cache")

    def index_of(name: str) -> Path:
        MarkdownStore(tmp_path / name).create([NewPage(type="n", title="x", body="needle")])
        assert found(MarkdownStore(tmp_path / name), "needle") == ["n/x"]
        return index_folder(tmp_path / name)

    gone, kept = index_of("gone"), index_of("kept")
    (tmp_path / "cache/agent-kit/pages.index/of-somebody-else").mkdir()
    shutil.rmtree(tmp_path / "gone")
    made = index_of("new")
    assert (gone.exists(), kept.exists(), made.exists()) == (False, True, True)
    assert (tmp_path / "cache/agent-kit/pages.index/of-somebody-else").exists()
    assert found(MarkdownStore(tmp_path / "kept"), "needle") == ["n/x"]


@pytest.mark.usefixtures("never_reads")
@pytest.mark.parametrize("pages", [3, 220], ids=["looked at", "watched"])
def test_a_link_that_leads_to_another_base_answers_from_that_one(
    tmp_path: Path, pages: int
) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "note").mkdir(parents=True)
        for at in range(pages):
            (tmp_path / name / "note" / f"p{at}.md").write_text(f"only {name}word")
    (tmp_path / "current").symlink_to("one")
    by_link, by_name = MarkdownStore(tmp_path / "current"), MarkdownStore(tmp_path / "one")

    def totals(store: MarkdownStore) -> list[int]:
        return [store.search(f"{name}word").total for name in ("one", "two")]

    assert totals(by_link) == totals(by_name) == [pages, 0]
    (tmp_path / "current").unlink()
    (tmp_path / "current").symlink_to("two")
    for _ in range(2):
        assert totals(by_link) == [0, pages]
        assert totals(by_name) == [pages, 0]


@pytest.mark.usefixtures("never_reads")
def test_two_bases_that_have_one_path_never_answer_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in containers that share a cache."""
    monkeypatch.setattr("agent_kit.store.index.index_folder", lambda _: tmp_path / "cache")
    stores = []
    for name in ("one", "two"):
        (tmp_path / name / "note").mkdir(parents=True)
        (tmp_path / name / "note" / "p.md").write_text(f"only {name}word")
        stores.append(MarkdownStore(tmp_path / name))
    for _ in range(3):
        for name, store in zip(("one", "two"), stores, strict=True):
            assert [store.search(f"{n}word").total for n in ("one", "two")] == [
                name == "one",
                name == "two",
            ]


def test_an_index_folder_that_is_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    index_folder(root).parent.mkdir(parents=True, exist_ok=True)
    index_folder(root).symlink_to(tmp_path / "elsewhere")
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
    index_folder(root).mkdir(parents=True)
    (index_folder(root) / file).symlink_to(other)
    assert found(MarkdownStore(root), "needle") == ["note/a", "note/b"]
    assert other.read_bytes() == data


@pytest.mark.parametrize("private", [False, True])
def test_what_was_removed_for_good_stands_in_no_file(tmp_path: Path, private: bool) -> None:
    store = MarkdownStore(tmp_path / "base", private=private, keeps_history=False)
    store.create(
        [NewPage(type="n", title=t, slug=t, body=f"canary {t}") for t in ("secret", "other")]
    )
    assert found(store, "canary") == ["n/other", "n/secret"]
    assert ((index_folder(tmp_path / "base")).exists()) is not private
    MarkdownStore(tmp_path / "base", private=private, keeps_history=False).delete("n/secret")
    for _ in range(2):
        files = [*tmp_path.rglob("*"), *index_folder(tmp_path / "base").rglob("*")]
        assert [p for p in files if p.is_file() and b"secret" in p.read_bytes()] == []
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


class Asked:
    """Lets pages through, says whether it narrows, and counts how often it is asked."""

    def __init__(self, *closed: str, narrows: bool) -> None:
        self.closed, self.says, self.count = closed, narrows, 0

    def __call__(self, path: Path) -> bool:
        self.count += 1
        return path.name not in self.closed

    def narrows(self) -> bool:
        return self.says


@pytest.mark.usefixtures("never_reads")
def test_where_nothing_narrows_only_what_is_shown_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "note").mkdir()
    for number in range(90):
        (tmp_path / "note" / f"{number}.md").write_text("needle")
    for asked in (Asked(narrows=False), Asked(narrows=True)):
        done = MarkdownStore(tmp_path, permits=asked).search("needle", limit=5)
        assert (done.total, len(done.hits)) == (90, 5)
        assert asked.count == (90 if asked.says else 5)


@pytest.mark.usefixtures("never_reads")
def test_what_is_refused_although_nothing_narrows_is_neither_found_nor_counted(root: Path) -> None:
    done = MarkdownStore(root, permits=Asked("a.md", narrows=False)).search("needle")
    assert (done.total, [str(hit.id) for hit in done.hits]) == (1, ["note/b"])


@pytest.mark.usefixtures("never_reads")
def test_a_page_with_a_second_name_is_asked_about_whatever_narrows(root: Path) -> None:
    (root / "note" / "c.md").hardlink_to(root / "note" / "a.md")
    asked = Asked("b.md", narrows=False)
    assert MarkdownStore(root, permits=asked).search("needle", limit=1).total == 2


@pytest.mark.usefixtures("never_reads")
def test_a_page_that_goes_while_the_folder_is_listed_takes_no_other_along(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.listdir

    def listdir(handle: int) -> list[str]:
        listed = real(handle)
        if "a.md" in listed:
            (root / "note" / "a.md").unlink()
        return listed

    store = MarkdownStore(root, read_only=True)
    monkeypatch.setattr("agent_kit.store.survey.os.listdir", listdir)
    assert found(store, "needle") == ["note/b"]


@pytest.mark.usefixtures("never_reads")
def test_a_name_that_is_no_text_is_named_and_stops_nothing(root: Path) -> None:
    (root / "note" / os.fsdecode(b"\xff.md")).write_text("needle")
    (root / os.fsdecode(b"\xfe")).mkdir()
    (root / os.fsdecode(b"\xfe") / "c.md").write_text("needle")
    done = MarkdownStore(root).search("needle")
    assert (done.total, len(done.unusable)) == (2, 2)
    assert {*done.unusable} == {*MarkdownStore(root).list().unusable}


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
    slices = [store.search("needle", offset=at, limit=100).hits for at in range(0, many, 100)]
    assert len({hit.id for hits in slices for hit in hits}) == many
    slices = [store.search("needle hay", offset=at, limit=60).hits for at in range(0, many, 60)]
    assert len({hit.id for hits in slices for hit in hits}) == many


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


@settings(max_examples=150)
@example(texts=["検知识が"], query="知识")
@example(texts=["検知识が", "検知", "識"], query="知")
@example(texts=["av2知识が", "v2 知识", "v2"], query="v2知")
@example(texts=["知v2x", "検知v2x", "知検v2"], query="知v2")
@example(texts=["知.识が"], query="知.识")
@example(texts=["abé-b", "xab-e"], query="ab-e")
@given(
    texts=st.lists(st.text(_LETTERS, max_size=30), min_size=1, max_size=6),
    query=st.text(_LETTERS, min_size=1, max_size=6),
)
def test_the_index_finds_what_reading_finds(texts: list[str], query: str) -> None:
    terms = terms_of(query)
    assume(terms)
    pages = {
        f"z{number}": Folded(
            id=PageId(type="n", slug=f"z{number}"), text=fold(text), names="", size=len(text)
        )
        for number, text in enumerate(texts)
    }
    read = {slug for slug, page in pages.items() if matches(page, terms)}
    whole = {slug for slug, page in pages.items() if any(t in page.text for t in terms)}
    chosen = Question(terms=terms, kind="n", shows=lambda where: where[1] != "z0.md")
    with closing(database_of(pages)) as database:
        done = answer(database, Question(terms=terms), len(pages))
        some = answer(database, chosen, len(pages))
    indexed = {hit.id.slug for hit in done.hits}
    # A run that stands somewhere as a whole isn't looked for by its pairs of characters elsewhere.
    assert whole <= indexed <= read
    assert done.total == len(done.hits) == len(indexed)
    # Whether a page is found doesn't depend on which others are shown.
    assert {hit.id.slug for hit in some.hits} == indexed - {"z0"}
    assert some.total == len(some.hits)


def database_of(pages: dict[str, Folded]) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:", isolation_level=None)
    rows.make(database)
    words = rows.Words()
    for slug, page in pages.items():
        look = Look(id=page.id, mark=1)
        entry = rows.Entry(page=page)
        rows.mend(database, ("n", f"{slug}.md"), look, lambda *_, e=entry: e, words)  # type: ignore[misc]
    return database


@given(st.text())
def test_fts5_keeps_each_token_as_one_word(text: str) -> None:
    tokens = tokens_of(fold(text))
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f'CREATE VIRTUAL TABLE words USING fts5(text, tokenize="{TOKENIZER}")')
        database.execute("CREATE VIRTUAL TABLE kept USING fts5vocab('words', 'row')")
        database.execute("INSERT INTO words VALUES (?)", (" ".join(tokens),))
        kept = {row[0] for row in database.execute("SELECT term FROM kept")}
    assert kept == set(tokens)


# --- a base that is watched ------------------------------------------------------------------------


@pytest.fixture
def watched(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MarkdownStore]:
    """A store that looks at the folder only when something has changed there."""
    monkeypatch.setattr("agent_kit.store.searching.WATCHED", 1)
    store = MarkdownStore(root)
    assert [found(store, "needle") for _ in range(3)] == [["note/a", "note/b"]] * 3
    assert store._searcher._watch.changed() == set(), (
        "this test needs a file system that is watched"
    )
    return store


def test_a_change_costs_a_look_at_one_file(
    watched: MarkdownStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_kit.store import searching

    scans, looks = _scans(monkeypatch), []
    real = searching.look_at
    monkeypatch.setattr(
        searching, "look_at", lambda root, where: looks.append(where) or real(root, where)
    )
    page = watched.read("note/a")
    watched.edit("note/a", version=page.version, old="needle", new="thread")
    assert (found(watched, "thread"), found(watched, "needle")) == (["note/a"], ["note/b"])
    assert (scans, looks) == ([], [("note", "a.md")])


def test_a_change_by_a_name_outside_the_base_is_found(
    watched: MarkdownStore, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("elsewhere") / "other.md"
    other.write_text("needle")
    (root / "note" / "c.md").hardlink_to(other)
    assert "note/c" in found(watched, "needle")
    other.write_text("thread")
    assert found(watched, "thread") == ["note/c"]


def test_a_root_that_is_a_link_is_searched_where_it_leads_now(
    root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_kit.store.searching.WATCHED", 1)
    folder = tmp_path_factory.mktemp("links")
    (folder / "base").symlink_to(root)
    store = MarkdownStore(folder / "base", read_only=True)  # its index lies in no folder
    assert [found(store, "needle") for _ in range(3)] == [["note/a", "note/b"]] * 3
    (folder / "other" / "note").mkdir(parents=True)
    (folder / "other" / "note" / "c.md").write_text("needle")
    (folder / "base").unlink()
    (folder / "base").symlink_to(folder / "other")
    assert found(store, "needle") == ["note/c"]


@pytest.mark.parametrize("at", ["before", "between"])
def test_tables_that_another_process_made_anew_are_not_believed(
    watched: MarkdownStore, root: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    def emptied() -> None:
        with closing(sqlite3.connect(index_folder(root) / "pages.sqlite")) as database, database:
            rows.make(database)

    if at == "before":
        emptied()
        monkeypatch.setattr(Searcher, "_by_reading", None)
    else:
        real = watched._searcher._bring_up_to_date
        monkeypatch.setattr(
            watched._searcher, "_bring_up_to_date", lambda *a: (real(*a), emptied())[0]
        )
    assert found(watched, "needle") == ["note/a", "note/b"]
    assert found(watched, "eedl") == ["note/a", "note/b"]


def test_what_is_asked_for_inside_a_word_is_found_after_the_index_was_lost(
    watched: MarkdownStore, root: Path
) -> None:
    shutil.rmtree(index_folder(root))
    assert found(watched, "eedl") == ["note/a", "note/b"]


def _scans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    from agent_kit.store import searching

    scans: list[int] = []
    real = searching.survey
    monkeypatch.setattr(searching, "survey", lambda root: scans.append(1) or real(root))
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
    "beside a name that is no text": "echo x > \"note/$(printf '\\377')b.md\"; echo thread > note/c.md",
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


def test_a_change_that_could_not_be_looked_at_is_found_as_soon_as_it_can(
    watched: MarkdownStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    (root / "note/a.md").write_text("thread\n", encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr(survey, "open_folder", fails)
        assert found(watched, "thread") == ["note/a"]  # by reading
    assert found(watched, "thread") == ["note/a"]
    assert found(watched, "needle") == ["note/b"]


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
