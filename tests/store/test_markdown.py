"""The store on a real disk: links, odd names, edits, refusals."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_kit.store import MAX_NEW_PAGES, MarkdownStore, NewPage, StoreCode, StoreError
from agent_kit.store.folder import MAX_FILE
from agent_kit.store.history import HISTORY_NAME
from agent_kit.store.lock import LOCK_NAME
from agent_kit.store.page import MAX_PAGE

SECRET = "canary-of-the-outside"


def new(slug: str, body: str = "text", type: str = "note") -> NewPage:  # noqa: A002
    return NewPage(type=type, title=f"Title of {slug}"[:200], slug=slug, body=body)


def tree(root: Path) -> dict[str, bytes]:
    """Every visible file below the root, and its bytes."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    }


def leftovers(root: Path) -> list[str]:
    return [path.name for path in root.rglob(".*") if path.name not in (LOCK_NAME, HISTORY_NAME)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "base"
    (folder / "note").mkdir(parents=True)
    (folder / "note" / "good.md").write_bytes(b"# Good\n\nneedle\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text(f"{SECRET} needle\n", encoding="utf-8")
    return folder


@pytest.fixture
def store(root: Path) -> MarkdownStore:
    return MarkdownStore(root)


# What is there


def test_a_store_without_a_folder_is_empty_and_makes_it_at_the_first_write(tmp_path: Path) -> None:
    store = MarkdownStore(tmp_path / "a" / "b")
    assert store.list().ids == ()
    assert store.search("x").total == 0
    with pytest.raises(StoreError, match="There is no page"):
        store.read("note/x")
    assert not (tmp_path / "a").exists()
    store.create([new("x")])
    assert store.read("note/x").body == "\ntext\n"


def test_pages_are_files_named_by_type_and_slug(store: MarkdownStore, root: Path) -> None:
    made = store.create([new("知识", type="concept"), new("other")])
    assert [str(page.id) for page in made] == ["concept/知识", "note/other"]
    assert set(tree(root)) == {"concept/知识.md", "note/other.md", "note/good.md"}
    assert leftovers(root) == []


def test_what_create_and_edit_return_is_what_is_read_afterwards(store: MarkdownStore) -> None:
    (made,) = store.create([new("x", "a b")])
    assert store.read("note/x").version == made.version
    edited = store.edit("note/x", version=made.version, old="a b", new="c")
    read = store.read("note/x")
    assert (read.version, read.text) == (edited.version, edited.text)


def test_a_page_written_by_hand_is_there_at_once_and_gone_at_once(
    store: MarkdownStore, root: Path
) -> None:
    file = root / "note" / "hand.md"
    file.write_text("by hand", encoding="utf-8")
    assert store.search("hand").total == 1
    file.write_text("otherwise", encoding="utf-8")
    assert [str(hit.id) for hit in store.search("otherwise").hits] == ["note/hand"]
    file.unlink()
    assert [str(known) for known in store.list().ids] == ["note/good"]
    assert store.search("otherwise").total == 0


def test_a_page_is_found_in_another_case_and_form_when_only_one_fits(
    store: MarkdownStore, root: Path
) -> None:
    (root / "note" / "Cafe\u0301.md").write_text("x", encoding="utf-8")
    assert str(store.read("Note/café").id) == "note/Café"


def test_two_pages_that_differ_only_in_case_are_each_read_by_their_exact_name(
    store: MarkdownStore, root: Path
) -> None:
    for name in ("Ab", "aB"):
        (root / "note" / f"{name}.md").write_text(name, encoding="utf-8")
    assert store.read("note/aB").text == "aB"
    with pytest.raises(StoreError, match='more than one page: write one of "note/Ab", "note/aB"'):
        store.read("note/ab")


# Links and odd files

ODD = [
    ("note/link.md", "a link to a file outside", lambda p, out: p.symlink_to(out / "secret.md")),
    ("note/inner.md", "a link to a page", lambda p, out: p.symlink_to(p.parent / "good.md")),
    ("note/loop.md", "a link to itself", lambda p, out: p.symlink_to(p)),
    ("note/dangling.md", "a link to nothing", lambda p, out: p.symlink_to(out / "none.md")),
    ("note/fifo.md", "a FIFO", lambda p, out: os.mkfifo(p)),
    ("note/folder.md", "a folder", lambda p, out: p.mkdir()),
    ("note/bin.md", "not UTF-8", lambda p, out: p.write_bytes(b"\xff\xfeneedle")),
    ("note/utf16.md", "UTF-16", lambda p, out: p.write_bytes("needle".encode("utf-16"))),
    ("note/huge.md", "too large", lambda p, out: _sparse(p, MAX_FILE + 1)),
]


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)


@pytest.mark.parametrize(("name", "what", "make"), ODD, ids=[row[1] for row in ODD])
def test_an_odd_file_is_named_and_stops_nothing_else(
    store: MarkdownStore, root: Path, tmp_path: Path, name: str, what: str, make: object
) -> None:
    make(root / name, tmp_path / "outside")  # type: ignore[operator]
    odd = name.removesuffix(".md")
    assert [str(hit.id) for hit in store.search("needle").hits] == ["note/good"]
    named = {file.name.removesuffix(".md") for file in store.search("needle").unusable}
    assert named == {odd}
    with pytest.raises(StoreError) as caught:
        store.read(odd)
    assert caught.value.code is StoreCode.UNREADABLE
    assert str(tmp_path) not in str(caught.value)
    with pytest.raises(StoreError):
        store.edit(odd, version="0" * 16, old="needle", new="x")
    with pytest.raises(StoreError, match="exists already"):
        store.create([new(odd.split("/")[1].upper())])


def test_a_socket_is_no_page(
    store: MarkdownStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root / "note")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.md")
        with pytest.raises(StoreError, match="special file"):
            store.read("note/s")


@pytest.mark.parametrize("target", ["outside", "base/note"])
def test_a_type_that_is_a_link_is_not_entered(
    store: MarkdownStore, root: Path, tmp_path: Path, target: str
) -> None:
    (root / "linked").symlink_to(tmp_path / target)
    before = tree(tmp_path / "outside")
    assert [str(known) for known in store.list().ids] == ["note/good"]
    assert SECRET not in str(store.search(SECRET))
    with pytest.raises(StoreError):
        store.read("linked/secret")
    with pytest.raises(StoreError):
        store.create([new("x", type="linked")])
    assert tree(tmp_path / "outside") == before


def test_a_root_that_is_a_link_is_followed_since_a_person_named_it(
    root: Path, tmp_path: Path
) -> None:
    (tmp_path / "by-link").symlink_to(root)
    store = MarkdownStore(tmp_path / "by-link")
    store.create([new("x")])
    assert (root / "note" / "x.md").exists()


def test_an_edit_of_a_page_with_a_second_name_leaves_the_other_name_alone(
    store: MarkdownStore, root: Path, tmp_path: Path
) -> None:
    (root / "note" / "hard.md").hardlink_to(tmp_path / "outside" / "secret.md")
    page = store.read("note/hard")
    store.edit("note/hard", version=page.version, old="needle", new="changed")
    assert (tmp_path / "outside" / "secret.md").read_text() == f"{SECRET} needle\n"
    assert store.read("note/hard").text == f"{SECRET} changed\n"


def test_files_beside_the_types_are_named_as_no_pages(store: MarkdownStore, root: Path) -> None:
    (root / "index.md").write_text("needle")
    (root / "notes.txt").write_text("needle")
    (root / ".git").mkdir()
    (root / ".git" / "x.md").write_text("needle")
    (root / "note" / ".hidden.md").write_text("needle")
    found = store.search("needle")
    assert [str(hit.id) for hit in found.hits] == ["note/good"]
    assert [file.name for file in found.unusable] == ["index.md"]


def test_a_name_on_the_disk_that_is_no_text_is_named_in_print(
    store: MarkdownStore, root: Path
) -> None:
    (root / "note" / "a\nid.md").write_text("x")
    (root / os.fsdecode(b"note/\xff.md")).write_text("x")
    names = [file.name for file in store.list().unusable]
    assert names == ["note/a\\nid.md", "note/\\udcff.md"]


def test_one_broken_front_matter_breaks_no_search(store: MarkdownStore, root: Path) -> None:
    (root / "note" / "broken.md").write_text("---\na: b: c\n---\nneedle")
    assert {str(hit.id) for hit in store.search("needle").hits} == {"note/good", "note/broken"}


# Creating


@pytest.mark.parametrize(
    "bad",
    [
        NewPage(type="..", title="t", body=""),
        NewPage(type="/abs", title="t", body=""),
        NewPage(type="a/../../b", title="t", body=""),
        NewPage(type="", title="t", body=""),
        NewPage(type="note", title="t", body="", slug="../out"),
        NewPage(type="note", title="t", body="", slug="NUL"),
        NewPage(type="note", title="t", body="", slug="con.md"),
        NewPage(type="note", title="t", body="", slug="COM1"),
        NewPage(type="note", title="t", body="", slug="a:b"),
        NewPage(type="note", title="t", body="", slug="x."),
        NewPage(type="note", title="t", body="", slug="x "),
        NewPage(type="note", title="t", body="", slug="CLAUDE"),
        NewPage(type=".claude", title="t", body="", slug="rules"),
        NewPage(type="note", title="", body=""),
        NewPage(type="note", title="t", body="a\ud800"),
        NewPage(type="note", title="t", body="a\0"),
        NewPage(type="note", title="t", body="x" * (MAX_PAGE + 1)),
        NewPage(type="note", title="t", body="", slug="GOOD"),
        NewPage(type="Note", title="t", body="", slug="y"),
        NewPage(type="note", title="t", body="", slug="fine"),
    ],
)
def test_one_page_that_cant_be_made_leaves_the_disk_as_it_was(root: Path, bad: NewPage) -> None:
    store = MarkdownStore(root)
    before = tree(root.parent)
    with pytest.raises(StoreError) as caught:
        store.create([new("fine"), new("other", type="fresh"), bad])
    assert tree(root.parent) == before
    assert not (root / "fresh").exists()
    assert str(root) not in str(caught.value)
    str(caught.value).encode("utf-8")


@pytest.mark.parametrize("count", [0, MAX_NEW_PAGES + 1])
def test_a_call_makes_a_stated_number_of_pages(store: MarkdownStore, count: int) -> None:
    with pytest.raises(StoreError, match="Give 1 to 50 pages"):
        store.create([new(f"x{number}") for number in range(count)])


def test_a_page_that_was_written_by_hand_meanwhile_is_not_overwritten(
    store: MarkdownStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*args: object, **kwargs: object) -> None:
        (root / "note" / "x.md").write_text("by hand")

    monkeypatch.setattr("agent_kit.store.markdown.check_free", meanwhile)
    with pytest.raises(StoreError, match='"note/x" exists already'):
        store.create([new("x")])
    assert (root / "note" / "x.md").read_text() == "by hand"
    assert leftovers(root) == []


# Editing

BODY = "first\nsecond second\nlast\n"


@pytest.mark.parametrize(
    ("old", "reason"),
    [
        ("nowhere", "doesn't stand in"),
        ("", "doesn't stand in"),
        ("second", "stands more than once in"),
        ("SECOND", "doesn't stand in"),
    ],
)
def test_an_edit_needs_exactly_one_occurrence(
    store: MarkdownStore, root: Path, old: str, reason: str
) -> None:
    (page,) = store.create([new("x", BODY)])
    before = tree(root)
    with pytest.raises(StoreError, match=reason) as caught:
        store.edit("note/x", version=page.version, old=old, new="y")
    assert caught.value.code is StoreCode.NOT_ONCE
    assert tree(root) == before


def test_overlapping_occurrences_are_more_than_one(store: MarkdownStore, root: Path) -> None:
    (root / "note" / "x.md").write_bytes(b"xaaay")
    with pytest.raises(StoreError, match="more than once"):
        store.edit("note/x", version=store.read("note/x").version, old="aa", new="b")


SOME_TEXT = st.text(alphabet="ab -\r\n\té知🎉\ufeff", max_size=30)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=SOME_TEXT, head=SOME_TEXT, tail=SOME_TEXT, after=SOME_TEXT, new_text=SOME_TEXT)
def test_every_byte_outside_the_edit_stays(
    root: Path, before: str, head: str, tail: str, after: str, new_text: str
) -> None:
    old = f"{head}Q{tail}"
    file = root / "note" / "x.md"
    file.write_bytes(f"{before}{old}{after}".encode())
    store = MarkdownStore(root)
    store.edit("note/x", version=store.read("note/x").version, old=old, new=new_text)
    assert file.read_bytes() == f"{before}{new_text}{after}".encode()


def test_an_edit_keeps_front_matter_line_ends_and_byte_order_mark(
    store: MarkdownStore, root: Path
) -> None:
    data = b"\xef\xbb\xbf---\r\ntitle:   T   # mine\r\nz: 1\r\na: 'x'\r\n---\r\n\r\nold one\r\nold two\r\n\r\n"
    (root / "note" / "x.md").write_bytes(data)
    page = store.read("note/x")
    store.edit("note/x", version=page.version, old="old one\nold two", new="new\nlines")
    expected = data.replace(b"old one\r\nold two", b"new\r\nlines")
    assert (root / "note" / "x.md").read_bytes() == expected


def test_an_edit_that_replaces_text_by_itself_changes_no_byte(
    store: MarkdownStore, root: Path
) -> None:
    (page,) = store.create([new("x", BODY)])
    before = tree(root)
    store.edit("note/x", version=page.version, old=page.text, new=page.text)
    assert tree(root) == before


@pytest.mark.parametrize("name", ["note/CLAUDE.md", "note/agents.md", "CLAUDE.md/x.md"])
def test_a_page_that_a_later_session_takes_for_instructions_is_read_and_never_changed(
    store: MarkdownStore, root: Path, name: str
) -> None:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("old", encoding="utf-8")
    page = store.read(name)
    for change in (
        lambda: store.edit(name, version=page.version, old="old", new="new"),
        lambda: store.delete(name),
    ):
        with pytest.raises(StoreError, match="would read its file as instructions") as caught:
            change()
        assert caught.value.code is StoreCode.DENIED
    assert (root / name).read_text(encoding="utf-8") == "old"


def test_an_edit_from_an_old_version_is_refused_with_the_current_page(
    store: MarkdownStore, root: Path
) -> None:
    (page,) = store.create([new("x", BODY)])
    other = MarkdownStore(root).edit("note/x", version=page.version, old="first", new="1st")
    with pytest.raises(StoreError) as caught:
        store.edit("note/x", version=page.version, old="last", new="end")
    assert caught.value.code is StoreCode.STALE
    assert caught.value.current == store.read("note/x")
    assert store.read("note/x").version == other.version


def test_an_edit_by_hand_between_look_and_write_is_not_lost(
    store: MarkdownStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (page,) = store.create([new("x", BODY)])
    file = root / "note" / "x.md"

    def by_hand(page: object, data: bytes, old: str, new: str) -> bytes:
        file.write_text("by hand")
        return b"mine"

    monkeypatch.setattr("agent_kit.store.changing.replaced", by_hand)
    with pytest.raises(StoreError) as caught:
        store.edit("note/x", version=page.version, old="last", new="end")
    assert caught.value.code is StoreCode.STALE
    assert file.read_text() == "by hand"
    assert leftovers(root) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [("title: Title of x", "title: a: b"), ("---\ntitle", "title"), ("type: note", "- x")],
)
def test_an_edit_that_would_break_the_front_matter_is_refused(
    store: MarkdownStore, old: str, new: str
) -> None:
    (page,) = store.create([NewPage(type="note", title="Title of x", slug="x", body="b")])
    with pytest.raises(StoreError, match="would break the front matter"):
        store.edit("note/x", version=page.version, old=old, new=new)
    assert store.read("note/x").version == page.version


@pytest.mark.parametrize("new_text", ["a\ud800", "a\0", "x" * (MAX_PAGE + 1)])
def test_text_that_cant_be_written_is_refused_before_anything_is_touched(
    store: MarkdownStore, root: Path, new_text: str
) -> None:
    (page,) = store.create([new("x", BODY)])
    before = tree(root)
    with pytest.raises(StoreError):
        store.edit("note/x", version=page.version, old="last", new=new_text)
    assert tree(root) == before


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_an_edit_keeps_the_files_permissions(store: MarkdownStore, root: Path, mode: int) -> None:
    file = root / "note" / "good.md"
    file.chmod(mode)
    store.edit("note/good", version=store.read("note/good").version, old="needle", new="x")
    assert file.stat().st_mode & 0o777 == mode


# Removing, permissions, disks


def test_a_deleted_page_is_gone_and_its_name_free(store: MarkdownStore) -> None:
    assert str(store.delete("note/GOOD")) == "note/good"
    with pytest.raises(StoreError, match="There is no page"):
        store.delete("note/good")
    store.create([new("good")])


def test_deleting_a_link_removes_the_link_alone(
    store: MarkdownStore, root: Path, tmp_path: Path
) -> None:
    (root / "note" / "l.md").symlink_to(tmp_path / "outside" / "secret.md")
    store.delete("note/l")
    assert not (root / "note" / "l.md").is_symlink()
    assert (tmp_path / "outside" / "secret.md").exists()


def test_a_private_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    store = MarkdownStore(tmp_path / "mine", private=True)
    store.create([new("x"), new("y")])
    modes = {path.stat().st_mode & 0o077 for path in (tmp_path / "mine").rglob("*.md")}
    assert modes == {0}
    assert (tmp_path / "mine").stat().st_mode & 0o077 == 0
    assert (tmp_path / "mine" / "note").stat().st_mode & 0o077 == 0


def test_a_read_only_store_writes_nothing(root: Path) -> None:
    store = MarkdownStore(root, read_only=True)
    version = store.read("note/good").version
    for write in (
        lambda: store.create([new("x")]),
        lambda: store.edit("note/good", version=version, old="needle", new="x"),
        lambda: store.delete("note/good"),
    ):
        with pytest.raises(StoreError) as caught:
            write()
        assert caught.value.code is StoreCode.READ_ONLY
    assert [path.name for path in root.iterdir()] == ["note"]


def test_a_page_that_the_session_may_not_see_is_as_if_it_were_not_there(root: Path) -> None:
    (root / "note" / "pay.md").write_text("needle")
    store = MarkdownStore(root, permits=lambda path: path.name != "pay.md")
    assert [str(known) for known in store.list().ids] == ["note/good"]
    assert store.search("needle").total == 1
    assert store.search("needle").unusable == ()
    for call in (
        lambda: store.read("note/pay"),
        lambda: store.read("NOTE/pay"),
        lambda: store.edit("note/pay", version="x", old="needle", new="y"),
        lambda: store.delete("note/pay"),
    ):
        with pytest.raises(StoreError, match="There is no page"):
            call()
    with pytest.raises(StoreError) as caught:
        store.create([new("pay")])
    assert caught.value.code is StoreCode.DENIED
    assert (root / "note" / "pay.md").read_text() == "needle"


REFUSALS = [
    ("link", "one", "the new name"),
    ("fsync", "one", "the sync of one page"),
    ("open", "one", "the unfinished file"),
    ("mkdir", "one", "the type's folder"),
    ("fsync", "several", "the sync of several pages"),
    ("open", "several", "the unfinished files"),
    ("replace", "several", "the journal"),
    ("fsync", "edit", "the sync of an edit"),
    ("open", "edit", "the unfinished edit"),
    ("replace", "edit", "the exchange"),
]


@pytest.mark.parametrize(("step", "write"), [r[:2] for r in REFUSALS], ids=[r[2] for r in REFUSALS])
def test_a_disk_that_refuses_leaves_no_part_of_a_page(
    root: Path, monkeypatch: pytest.MonkeyPatch, step: str, write: str
) -> None:
    store = MarkdownStore(root)
    store.create([new("warm")])  # the sweep is over, the lock file is there
    version = store.read("note/good").version
    writes = {
        "one": lambda: store.create([new("x", type="fresh")]),
        "several": lambda: store.create([new("x", type="fresh"), new("y")]),
        "edit": lambda: store.edit("note/good", version=version, old="needle", new="x"),
    }
    before = tree(root)
    real = getattr(os, step)

    def full(*args: object, **kwargs: object) -> object:
        if step == "open" and not str(args[0]).startswith(".tmp-"):
            return real(*args, **kwargs)
        raise OSError(28, "No space left on device", str(root))

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space"):
        writes[write]()
    monkeypatch.undo()
    assert tree(root) == before
    assert not (root / "fresh").exists()
    assert leftovers(root) == []
    writes[write]()


def test_a_disk_without_hard_links_still_takes_new_pages(
    store: MarkdownStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*args: object, **kwargs: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", none)
    store.create([new("x"), new("y")])
    store.create([new("z")])
    assert len(store.list().ids) == 4


@pytest.mark.parametrize("text", ["Ёлка 🎄", "naïve\r\nline", "\ufeffbom"])
def test_text_is_utf_8_whatever_the_process_thinks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr("locale.getpreferredencoding", lambda *_: "ascii")
    store = MarkdownStore(tmp_path)
    store.create([NewPage(type="note", title="t", slug="x", body=f"a{text}b")])
    assert (tmp_path / "note" / "x.md").read_bytes().endswith(f"a{text}b\n".encode())
    assert store.read("note/x").body == f"\na{text}b\n"


@pytest.mark.parametrize("write", ["one", "edit", "delete"])
def test_a_change_that_the_disk_does_not_confirm_is_said_to_be_made(
    root: Path, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    store = MarkdownStore(root)
    store.create([new("warm")])
    version = store.read("note/good").version
    real = os.fsync

    def folders_fail(handle: int) -> None:
        if os.fstat(handle).st_mode & 0o040000:
            raise OSError(5, "Input/output error")
        real(handle)

    monkeypatch.setattr(os, "fsync", folders_fail)
    writes = {
        "one": lambda: store.create([new("x")]),
        "edit": lambda: store.edit("note/good", version=version, old="needle", new="x"),
        "delete": lambda: store.delete("note/good"),
    }
    before = tree(root)
    with pytest.raises(StoreError, match="The change was made") as caught:
        writes[write]()
    assert caught.value.code is StoreCode.UNFINISHED
    assert tree(root) != before


def test_the_history_is_written_into_no_other_file_by_its_second_name(
    root: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "outside" / "secret.md"
    os.link(secret, root / HISTORY_NAME)
    store = MarkdownStore(root)
    store.create([new("one")])
    store.create([new("two")])
    assert secret.read_text("utf-8") == f"{SECRET} needle\n"
    assert [str(change.id) for change in store.history(limit=10).changes] == [
        "note/two",
        "note/one",
    ]
