"""Pages: bytes kept, front matter read when it can be, plain text otherwise."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent_kit.store import NewPage, Page, PageId, StoreCode, StoreError
from agent_kit.store.page import MAX_PAGE, encoded, page_from_bytes, text_of

ID = PageId(type="note", slug="x")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def page(data: bytes | str) -> Page:
    return page_from_bytes(ID, data.encode() if isinstance(data, str) else data, changed=0)


def test_front_matter_gives_the_title_and_the_fields_of_ones_own() -> None:
    read = page("---\ntitle: A title\nmine: [1, 2]\naliases: [b, c]\n---\n\nBody\n")
    assert (read.title, read.fields["mine"], read.aliases) == ("A title", [1, 2], ("b", "c"))
    assert read.body == "\nBody\n"
    assert read.fault is None


NOT_FRONT_MATTER = [
    ("---\na: b: c\n---\ntext", "it is no valid YAML", "an unquoted colon"),
    ("---\na:\tb: c\n---\ntext", "it is no valid YAML", "a tab"),
    ("---\n**bold**\n---\ntext", "it is no valid YAML", "a ruled block"),
    ("---\njust words\n---\ntext", "it is no list of fields", "a text"),
    ("---\n- a\n---\ntext", "it is no list of fields", "a list"),
    ("---\na: 2020-13-45\n---\ntext", "it is no valid YAML", "no such month: ValueError"),
    ("---\na: " + "9" * 5000 + "\n---\ntext", "it is no valid YAML", "too many digits"),
    ("---\na: !!timestamp zz\n---\ntext", "it is no valid YAML", "AttributeError in PyYAML"),
    ("---\na: !!python/object/apply:os.system [x]\n---\n", "it is no valid YAML", "code"),
    ("---\na: " + "[" * 5000 + "\n---\ntext", "it is no valid YAML", "nesting"),
    ("---\na: \x07\n---\ntext", "it is no valid YAML", "a control character"),
]


@pytest.mark.parametrize(
    ("text", "fault"),
    [row[:2] for row in NOT_FRONT_MATTER],
    ids=[row[2] for row in NOT_FRONT_MATTER],
)
def test_a_block_that_is_no_front_matter_is_plain_text(text: str, fault: str) -> None:
    read = page(text)
    assert (read.fault, read.body, read.fields) == (fault, text, {})


@pytest.mark.parametrize(
    "text", ["", "text", "---\nno end", "--- \n", "----\na: 1\n----\n", "----"]
)
def test_a_page_without_front_matter_is_its_text(text: str) -> None:
    read = page(text)
    assert (read.text, read.body, read.fault, read.title) == (text, text, None, "x")


def test_a_title_is_the_first_heading_when_no_field_gives_one() -> None:
    assert page("text\n\n# The  heading \n").title == "The heading"


def test_a_title_with_line_breaks_stays_on_one_line() -> None:
    assert page('---\ntitle: "a\\nid: other/page\\u202E"\n---\n').title == "a id: other/page\\u202e"


def test_windows_line_ends_and_a_byte_order_mark_are_read_through() -> None:
    read = page(b"\xef\xbb\xbf---\r\ntitle: T\r\n---\r\nA\r\n")
    assert (read.title, read.body, read.text[0]) == ("T", "A\r\n", "-")


@pytest.mark.parametrize("data", [b"\xff\xfea\0", b"\xfe\xff\0a", b"caf\xe9", b"\xed\xa0\x80"])
def test_a_page_that_is_not_utf_8_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(StoreError, match='"note/x" can\'t be read: it is not UTF-8 text') as caught:
        page(data)
    assert caught.value.code is StoreCode.UNREADABLE


def test_the_version_changes_with_every_byte() -> None:
    assert page("a\n").version != page("a\r\n").version
    assert len(page("a").version) == 16


def test_a_new_page_reads_back_as_it_was_given() -> None:
    new = NewPage(
        type="note",
        title='A "title": 知识 🎉',
        body="# H\n\nB",
        aliases=("no", "1.0"),
        fields={"k": "v"},
    )
    read = page(text_of(new, updated=NOW))
    assert (read.title, read.aliases) == ('A "title": 知识 🎉', ("no", "1.0"))
    assert (read.fields["type"], str(read.fields["updated"]), read.fields["k"]) == (
        "note",
        "2026-01-02",
        "v",
    )
    assert read.body == "\n# H\n\nB\n"


@pytest.mark.parametrize("title", ["", "  ", "a\nb", "a\0b", "a\x1bb", "x" * 201, "a\u2028b"])
def test_a_title_that_is_not_one_short_line_is_refused(title: str) -> None:
    with pytest.raises(StoreError) as caught:
        text_of(NewPage(type="note", title=title, body=""), updated=NOW)
    assert caught.value.code is StoreCode.BAD_TEXT


def test_a_body_with_front_matter_of_its_own_is_refused() -> None:
    with pytest.raises(StoreError, match="leave the front matter out"):
        text_of(NewPage(type="note", title="t", body="---\ntitle: t\n---\nx"), updated=NOW)


def test_a_body_that_opens_with_a_rule_is_kept() -> None:
    read = page(text_of(NewPage(type="note", title="t", body="---\n**b**\n---\nx"), updated=NOW))
    assert read.body == "\n---\n**b**\n---\nx\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [("a\ud800", "bad-text"), ("a\0", "bad-text"), ("x" * (MAX_PAGE + 1), "too-large")],
)
def test_text_that_cant_be_a_page_is_refused(text: str, code: str) -> None:
    with pytest.raises(StoreError) as caught:
        encoded(text, "The page")
    assert caught.value.code == code
    assert len(str(caught.value)) < 200


def test_what_one_reader_changes_in_the_fields_no_other_reader_sees() -> None:
    data = b"---\naliases: [a, b]\n---\n"
    first, second = (page_from_bytes(PageId(type="n", slug="x"), data, changed=0) for _ in "ab")
    aliases = first.fields["aliases"]
    assert isinstance(aliases, list)
    aliases.append("c")
    assert second.aliases == ("a", "b")
    assert page_from_bytes(PageId(type="n", slug="x"), data, changed=0).aliases == ("a", "b")
