"""Whether a store of pages keeps what :class:`agent_kit.store.DocumentStore` promises.

Each claim is a function that gets ``open_base``: called with a name it opens the base of that name,
empty at first, and a second time the same one again, as another process would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from agent_kit.store.documents import MAX_NEW_PAGES, ChangeKind, DocumentStore
from agent_kit.store.errors import StoreCode, StoreError
from agent_kit.store.page import MAX_PAGE, NewPage, Page

__all__ = ["check_document_store", "document_store_claims"]

OpenBase = Callable[[str], DocumentStore]
Claim = Callable[[OpenBase], None]

_CLAIMS: Final[list[Claim]] = []


def check_document_store(open_base: OpenBase) -> None:
    """Check every claim; an ``ExceptionGroup`` of those that don't hold.

    ``open_base`` gets a name and opens the base of that name: empty at first, and with a name that was
    given before the same base again, as another process would open it.
    """
    failed = []
    for claim in _CLAIMS:
        try:
            claim(lambda name, claim=claim: open_base(f"{claim.__name__}-{name}"))  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001 - all that fail are told at once
            error.add_note(f"claim: {claim.__name__}")
            failed.append(error)
    if failed:
        raise ExceptionGroup("what a DocumentStore promises doesn't hold", failed)


def document_store_claims() -> Iterator[tuple[str, Claim]]:
    """The claims by name, for ``pytest.mark.parametrize``: each is called with ``open_base``."""
    for claim in _CLAIMS:
        yield claim.__name__, claim


def _claim(check: Claim) -> Claim:
    _CLAIMS.append(check)
    return check


def _new(slug: str, body: str = "text", *, type: str = "note", **more: Any) -> NewPage:  # noqa: A002
    return NewPage(
        type=type, title=more.pop("title", f"Title of {slug}"), slug=slug, body=body, **more
    )


def _ids(store: DocumentStore, **given: Any) -> list[str]:
    return [str(known) for known in store.list(**given).ids]


def _found(store: DocumentStore, query: str, **given: Any) -> list[str]:
    return [str(hit.id) for hit in store.search(query, **given).hits]


def _refused(code: StoreCode, call: Callable[[], object]) -> StoreError:
    try:
        call()
    except StoreError as error:
        refusal = error
    else:
        raise AssertionError(f"it was not refused as {code}")
    assert refusal.code is code, f"refused as {refusal.code}, not {code}: {refusal}"
    assert "\n" not in str(refusal), refusal
    return refusal


# --- reading --------------------------------------------------------------------------------------


@_claim
def a_new_base_is_empty(open_base: OpenBase) -> None:
    store = open_base("a")
    assert (store.list().ids, store.search("x").total, store.history().total) == ((), 0, 0)
    _refused(StoreCode.NOT_FOUND, lambda: store.read("note/x"))


@_claim
def two_bases_never_meet(open_base: OpenBase) -> None:
    one, other = open_base("a"), open_base("b")
    one.create([_new("x", "needle")])
    assert _ids(other) == []
    assert _found(other, "needle") == []
    other.create([_new("x", "other")])
    assert open_base("a").read("note/x").body.strip() == "needle"


@_claim
def what_was_made_is_read_by_whoever_opens_the_base(open_base: OpenBase) -> None:
    made = open_base("a").create(
        [_new("x", "Zeile\n\n- eins\n", aliases=("Ex", "Iks"), fields={"quote": "so: ja"})]
    )
    page = open_base("a").read("note/x")
    assert page.version == made[0].version
    assert (page.title, page.aliases, page.body) == (
        "Title of x",
        ("Ex", "Iks"),
        "\nZeile\n\n- eins\n",
    )
    assert page.fields["quote"] == "so: ja"
    assert page.fields["type"] == "note"
    assert page.text.endswith(page.body)
    assert page.fault is None


@_claim
def ids_are_listed_in_order_and_by_type(open_base: OpenBase) -> None:
    store = open_base("a")
    store.create([_new("b"), _new("a"), _new("c", type="Person")])
    assert _ids(store) == ["Person/c", "note/a", "note/b"]
    assert _ids(store, type="note") == ["note/a", "note/b"]
    assert _ids(store, type="PERSON") == ["Person/c"]
    assert _ids(store, type="none") == []


@_claim
def a_name_is_read_without_regard_to_case_and_unicode_form(open_base: OpenBase) -> None:
    store = open_base("a")
    store.create([_new("Café", "c"), _new("知识", "z"), _new("straße", "s")])
    for written in ("note/Café", "NOTE/CAFE\u0301", "note/知识", "note/STRASSE"):
        assert store.read(written).body.strip() in "czs", written


# --- names ----------------------------------------------------------------------------------------

_BAD_NAMES: Final = (
    "", " ", ".", "..", "../x", "a/b", "/abs", "a\\b", "a:b", "x.", "x ", "NUL", "con", "COM1",
    "a\0b", "a\nb", "a\ud800b", "a\u202eb", "CLAUDE.md", "x" * 300,
)  # fmt: skip


@_claim
def a_name_that_some_platform_refuses_is_refused_before_anything_is_touched(
    open_base: OpenBase,
) -> None:
    store = open_base("a")
    pages = [
        *(_new(name or "..") for name in _BAD_NAMES),
        *(_new("x", type=name) for name in _BAD_NAMES),
        _new("CLAUDE"),  # a later session would read CLAUDE.md as instructions
    ]
    for page in pages:
        _refused(StoreCode.BAD_NAME, lambda page=page: store.create([_new("good"), page]))  # type: ignore[misc]
    assert _ids(store) == []


@_claim
def names_that_differ_in_case_or_unicode_form_alone_are_one(open_base: OpenBase) -> None:
    store = open_base("a")
    store.create([_new("Café")])
    for same in ("café", "CAFE\u0301", "Ｃafé"):
        _refused(StoreCode.EXISTS, lambda same=same: store.create([_new(same)]))  # type: ignore[misc]
    _refused(StoreCode.EXISTS, lambda: store.create([_new("y", type="Note")]))
    _refused(StoreCode.EXISTS, lambda: store.create([_new("q"), _new("Q")]))
    assert _ids(store) == ["note/Café"]


# --- making ---------------------------------------------------------------------------------------


@_claim
def several_pages_are_made_or_none(open_base: OpenBase) -> None:
    store = open_base("a")
    store.create([_new("x", "first")])
    _refused(StoreCode.EXISTS, lambda: store.create([_new("new"), _new("x", "second")]))
    assert (_ids(store), store.read("note/x").body.strip()) == (["note/x"], "first")
    made = store.create([_new(f"p{number}") for number in range(MAX_NEW_PAGES)])
    assert [page.id.slug for page in made] == [f"p{number}" for number in range(MAX_NEW_PAGES)]
    _refused(StoreCode.TOO_LARGE, lambda: store.create([_new(f"q{n}") for n in range(51)]))
    _refused(StoreCode.TOO_LARGE, lambda: store.create([]))


@_claim
def a_text_that_cannot_be_kept_is_refused(open_base: OpenBase) -> None:
    store = open_base("a")
    for body in ("a\ud800b", "a\0b"):
        _refused(StoreCode.BAD_TEXT, lambda body=body: store.create([_new("x", body)]))  # type: ignore[misc]
    _refused(StoreCode.TOO_LARGE, lambda: store.create([_new("x", "ä" * (MAX_PAGE // 2))]))
    _refused(StoreCode.BAD_TEXT, lambda: store.create([_new("x", "---\ntitle: y\n---\n")]))
    _refused(StoreCode.BAD_TEXT, lambda: store.create([_new("x", title="two\nlines")]))
    assert _ids(store) == []


# --- changing -------------------------------------------------------------------------------------


def _one(store: DocumentStore, body: str = "one two three") -> Page:
    return store.create([_new("x", body)])[0]


@_claim
def an_edit_changes_one_place_and_no_other_byte(open_base: OpenBase) -> None:
    store = open_base("a")
    page = _one(store)
    after = store.edit("note/x", version=page.version, old="two", new="2")
    assert after.text == page.text.replace("two", "2")
    assert open_base("a").read("note/x").text == after.text
    assert after.version != page.version


@_claim
def what_stands_nowhere_or_twice_is_not_edited(open_base: OpenBase) -> None:
    store = open_base("a")
    page = _one(store, "aaa b")
    for old in ("zzz", "aa", ""):
        _refused(
            StoreCode.NOT_ONCE,
            lambda old=old: store.edit("note/x", version=page.version, old=old, new="n"),  # type: ignore[misc]
        )
    assert store.read("note/x").version == page.version


@_claim
def a_change_of_an_older_version_is_refused_with_the_current_page(open_base: OpenBase) -> None:
    store, other = open_base("a"), open_base("a")
    page = _one(store)
    now = other.edit("note/x", version=page.version, old="one", new="1")
    for change in (
        lambda: store.edit("note/x", version=page.version, old="two", new="2"),
        lambda: store.rewrite("note/x", version=page.version, body="new"),
        lambda: store.retire("note/x", version=page.version),
        lambda: store.supersede("note/x", version=page.version, by=_new("y")),
        lambda: store.edit("note/x", version="", old="two", new="2"),
    ):
        error = _refused(StoreCode.STALE, change)
        assert isinstance(error.current, Page)
        assert error.current.version == now.version
    assert store.read("note/x").text == now.text
    assert _ids(store) == ["note/x"]


@_claim
def a_rewrite_keeps_the_fields_and_takes_the_new_title(open_base: OpenBase) -> None:
    store = open_base("a")
    (page,) = store.create([_new("x", "old", aliases=("Ex",), fields={"quote": "q"})])
    after = store.rewrite("note/x", version=page.version, body="new text\n", title="Other")
    assert (after.title, after.aliases, after.fields["quote"]) == ("Other", ("Ex",), "q")
    assert after.body.strip() == "new text"
    assert "old" not in after.text
    assert open_base("a").read("note/x").version == after.version
    _refused(
        StoreCode.BAD_TEXT,
        lambda: store.rewrite("note/x", version=after.version, body="a\0b"),
    )


@_claim
def a_retired_page_is_read_and_listed_but_found_only_when_asked_for(open_base: OpenBase) -> None:
    store = open_base("a")
    page = _one(store, "needle")
    after = store.retire("note/x", version=page.version, reason="it was wrong")
    assert (after.fields["status"], after.fields["reason"]) == ("retired", "it was wrong")
    assert after.body.strip() == "needle"
    other = open_base("a")
    assert (_ids(other), _found(other, "needle")) == (["note/x"], [])
    assert _found(other, "needle", retired=True) == ["note/x"]
    _refused(StoreCode.RETIRED, lambda: store.retire("note/x", version=after.version))


@_claim
def a_page_is_superseded_by_a_new_one_or_nothing_happens(open_base: OpenBase) -> None:
    store = open_base("a")
    page = _one(store, "needle")
    _refused(
        StoreCode.EXISTS, lambda: store.supersede("note/x", version=page.version, by=_new("X"))
    )
    assert store.read("note/x").version == page.version
    old, new = store.supersede("note/x", version=page.version, by=_new("y", "needle, better"))
    assert (old.fields["status"], old.fields["superseded_by"]) == ("superseded", "note/y")
    assert str(new.id) == "note/y"
    assert _found(open_base("a"), "needle") == ["note/y"]


@_claim
def a_deleted_page_is_gone_from_everywhere(open_base: OpenBase) -> None:
    store = open_base("a")
    _one(store, "needle")
    store.create([_new("y", "needle")])
    assert str(store.delete("NOTE/x")) == "note/x"
    other = open_base("a")
    assert (_ids(other), _found(other, "needle")) == (["note/y"], ["note/y"])
    assert [str(change.id) for change in other.history().changes] == ["note/y"]
    _refused(StoreCode.NOT_FOUND, lambda: store.read("note/x"))
    _refused(StoreCode.NOT_FOUND, lambda: store.delete("note/x"))


@_claim
def the_history_tells_each_change_newest_first(open_base: OpenBase) -> None:
    store = open_base("a")
    page = _one(store)
    edited = store.edit("note/x", version=page.version, old="one", new="1")
    rewritten = store.rewrite("note/x", version=edited.version, body="new")
    old, new = store.supersede("note/x", version=rewritten.version, by=_new("y"))
    store.retire("note/y", version=new.version)
    told = open_base("a").history()
    assert [(change.kind, str(change.id)) for change in told.changes] == [
        (ChangeKind.RETIRED, "note/y"),
        (ChangeKind.SUPERSEDED, "note/x"),
        (ChangeKind.CREATED, "note/y"),
        (ChangeKind.REWRITTEN, "note/x"),
        (ChangeKind.EDITED, "note/x"),
        (ChangeKind.CREATED, "note/x"),
    ]
    assert [change.version for change in told.changes[1::2]] == [
        old.version,
        rewritten.version,
        page.version,
    ]
    assert told.changes[0].when >= told.changes[-1].when
    some = store.history("NOTE/X", offset=1, limit=2)
    assert (some.total, [change.kind for change in some.changes]) == (
        4,
        [ChangeKind.REWRITTEN, ChangeKind.EDITED],
    )


# --- searching ------------------------------------------------------------------------------------

_TEXTS: Final = {
    "zh": "权限模型在知识库中的用法",
    "ja": "検索の仕組みはひらがなとカタカナでも動く",
    "ko": "문서를 검색할 수 있습니다",
    "ar": "هذا كتابٌ عن اللُّغة العربية",
    "ru": "Ёлка стоит в лесу",
    "el": "Η γλώσσα των Ελλήνων",
    "fr": "Un café à l’hôtel, naïve Œuvre",
    "mark": "KB-42 a:b 3.14 it's “quoted” C++ AND NOT *",
    "emoji": "launch 🚀 day",
}
_QUERIES: Final = (
    ("权限", "zh"),  # two characters inside a run
    ("知识库", "zh"),
    ("検索", "ja"),
    ("カタカナ", "ja"),
    ("검색", "ko"),  # a word with an ending
    ("كتاب", "ar"),  # without its marks
    ("елка", "ru"),
    ("γλωσσα", "el"),
    ("cafe", "fr"),
    ("CAFÉ", "fr"),
    ("hotel", "fr"),
    ("oeuvre", "fr"),
    ("KB-42", "mark"),
    ("a:b", "mark"),
    ("3.14", "mark"),
    ("it’s", "mark"),
    ('"quoted"', "mark"),
    ("🚀", "emoji"),
)


@_claim
def a_word_of_any_script_is_found_where_it_stands(open_base: OpenBase) -> None:
    store = open_base("a")
    store.create([_new(slug, body) for slug, body in _TEXTS.items()])
    for query, slug in _QUERIES:
        found = _found(store, query)
        assert found[:1] == [f"note/{slug}"], f"{query!r} finds {found}"


@_claim
def a_query_is_text_and_never_syntax(open_base: OpenBase) -> None:
    store = open_base("a")
    store.create([_new("x", "plain words")])
    for query in (
        "",
        " ",
        "*",
        '"',
        "'",
        "a OR b",
        "NEAR(a b)",
        "x*",
        "-plain",
        "(",
        "\\",
        "%",
        "_",
    ):
        store.search(query)
    assert store.search("").total == 0
    assert _found(store, "plain AND nothing")[:1] == ["note/x"]


@_claim
def the_page_that_is_about_it_comes_first_and_shows_where(open_base: OpenBase) -> None:
    store = open_base("a")
    filler = "other words stand here " * 50
    store.create(
        [
            _new("mentions", f"{filler} photosynthesis {filler}"),
            _new("about", "How plants make sugar.", title="Photosynthesis"),
            _new("none", filler),
        ]
    )
    found = store.search("photosynthesis")
    assert [str(hit.id) for hit in found.hits] == ["note/about", "note/mentions"]
    assert found.total == 2
    assert "photosynthesis" in found.hits[1].snippet
    assert len(found.hits[1].snippet) < 300


@_claim
def hits_come_in_slices_that_add_up(open_base: OpenBase) -> None:
    store = open_base("a")
    store.create([_new(f"p{number:02}", "needle") for number in range(25)])
    slices = [_found(store, "needle", offset=at, limit=10) for at in (0, 10, 20)]
    assert [len(part) for part in slices] == [10, 10, 5]
    assert len({known for part in slices for known in part}) == 25
    assert store.search("needle", offset=20, limit=10).total == 25
    assert _found(store, "needle", type="none") == []


@_claim
def a_search_sees_every_change_that_was_finished_before(open_base: OpenBase) -> None:
    store, other = open_base("a"), open_base("a")
    page = _one(store, "alpha beta gamma")
    assert _found(other, "alpha") == ["note/x"]
    store.edit("note/x", version=page.version, old="alpha", new="omega")
    assert (_found(other, "alpha"), _found(other, "omega")) == ([], ["note/x"])
    store.delete("note/x")
    assert (_found(other, "omega"), other.search("omega").total) == ([], 0)


# --- several at once ------------------------------------------------------------------------------


@_claim
def many_writers_at_once_lose_no_update(open_base: OpenBase) -> None:
    open_base("a").create([_new("log", "start")])

    def write(number: int) -> None:
        store = open_base("a")
        store.create([_new(f"page{number}")])
        while True:
            page = store.read("note/log")
            try:
                store.edit("note/log", version=page.version, old="start", new=f"start\n- {number}")
            except StoreError as error:
                if error.code not in (StoreCode.STALE, StoreCode.BUSY):
                    raise
            else:
                return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(16)))
    store = open_base("a")
    lines = store.read("note/log").body.split("start", 1)[1].split("\n- ")[1:]
    assert sorted(int(line) for line in lines) == list(range(16))
    assert len(_ids(store)) == 17
    assert store.history(limit=100).total == 33


@_claim
def of_many_who_want_one_name_one_gets_it(open_base: OpenBase) -> None:
    def make(number: int) -> bool:
        try:
            open_base("a").create([_new("Same" if number % 2 else "same")])
        except StoreError as error:
            if error.code not in (StoreCode.EXISTS, StoreCode.BUSY):
                raise
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(make, range(16))) == 1
