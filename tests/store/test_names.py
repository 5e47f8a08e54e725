"""Names: any script, one spelling, never a way out of the folder."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_kit.scope.control import CONTROL_NAMES
from agent_kit.store import (
    PageId,
    StoreCode,
    StoreError,
    page_id,
    page_name,
    person_folder,
    shown,
    slug_from,
)
from agent_kit.store.names import MAX_NAME, file_name, is_control_name, name_key

REFUSED_NAMES = [
    ("", "it is empty"),
    ("   ", "it is empty"),
    (".", 'it begins with "."'),
    ("..", 'it begins with "."'),
    ("foo/..", "would leave the folder"),
    ("a/b", "would leave the folder"),
    ("/abs", "would leave the folder"),
    ("a\\b", "would leave the folder on Windows"),
    (".hidden", 'it begins with "."'),
    ("~root", 'it begins with "~"'),
    ("a:b", "isn't allowed in file names"),
    ("what?", "isn't allowed in file names"),
    ("x.", "ends with a dot"),
    ("x ", "ends with a space"),
    (" x", "begins or ends with a space"),
    ("a\nb", "U+000A is a control character"),
    ("a\0b", "U+0000 is a control character"),
    ("a\x7fb", "U+007F is a control character"),
    ("a\u202eb", "U+202E is an invisible character"),
    ("a\u2028b", "U+2028 is a line separator"),
    ("a\ud800b", "U+D800 can't be encoded"),
    ("NUL", "a device"),
    ("con", "a device"),
    ("con.old", "a device"),
    ("COM1", "a device"),
    ("lpt9.txt", "a device"),
    ("com¹", "a device"),
    ("CLAUDE", "read it as instructions"),
    ("claude.local", "read it as instructions"),
    ("Agents", "read it as instructions"),
    ("ＣＬＡＵＤＥ", "read it as instructions"),
    ("CLAUDE\u200d", "read it as instructions"),
    ("CLAUDE\ufe0f", "read it as instructions"),
    ("AGENT\u017f", "read it as instructions"),
    ("CLAUDE.md", "read it as instructions"),
    ("config.fish", "read it as instructions"),
    ("x" * (MAX_NAME + 1), "more than 80 characters"),
    ("学" * 70, "more than 80 characters or 200 bytes"),
    ("a#b", "can't stand in a link"),
]


@pytest.mark.parametrize(("name", "reason"), REFUSED_NAMES)
def test_a_name_that_some_platform_or_session_would_misread_is_refused(
    name: str, reason: str
) -> None:
    with pytest.raises(StoreError) as caught:
        page_name(name)
    assert reason in str(caught.value)
    assert caught.value.code is StoreCode.BAD_NAME
    str(caught.value).encode("utf-8")


# Case, width, characters that some file system ignores, and letters that fold into others.
DISGUISES = (str, str.upper, str.title, str.swapcase, lambda name: "".join(map(_wide, name)),
             lambda name: f"{name[:2]}\u200c{name[2:]}", lambda name: f"{name}\ufe0f",
             lambda name: f"\u00ad{name}", lambda name: name.replace("s", "\u017f"))  # fmt: skip


def _wide(char: str) -> str:
    return chr(ord(char) + 0xFEE0) if char.isalnum() else char


@pytest.mark.parametrize("disguise", DISGUISES)
def test_no_file_gets_the_name_of_a_control_file(disguise: Callable[[str], str]) -> None:
    for name in map(disguise, CONTROL_NAMES):
        assert is_control_name(name)
        for make in (page_name, file_name):
            with pytest.raises(StoreError) as caught:
                make(name)
            assert caught.value.code is StoreCode.BAD_NAME
        with pytest.raises(StoreError, match="a later session would") as caught:
            file_name(name)
        suggested = str(caught.value).rsplit('"', 2)[1]
        assert file_name(suggested) == suggested


@pytest.mark.parametrize(
    "name",
    ["report [final] #2.pdf", "x" * 200, "claude.txt", "my-CLAUDE.md", "config", "HEAD", "a^b.csv",
     "❤\ufe0f.md", "知识 库.md", "CLAUDE.md.txt", "envrc"],
)  # fmt: skip
def test_a_file_may_have_any_other_name(name: str) -> None:
    assert file_name(unicodedata.normalize("NFD", name)) == unicodedata.normalize("NFC", name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [row for row in REFUSED_NAMES if "instructions" not in row[1] and "link" not in row[1]
     and "80" not in row[1]]
    + [("x" * 201, "more than 200 bytes"), ("学" * 67, "more than 200 bytes")],
)  # fmt: skip
def test_a_file_s_name_is_one_on_every_platform(name: str, reason: str) -> None:
    with pytest.raises(StoreError) as caught:
        file_name(name)
    assert reason in str(caught.value)
    assert "Choose another" in str(caught.value)


ALLOWED_NAMES = [
    "photosynthesis",
    "KB-42",
    "café",
    "知识库",
    "データ",
    "한국어",
    "тест",
    "می‌خواهم",
    "कर्म",
    "v1.2",
    "console",
    "nullable",
    "a" * MAX_NAME,
    "claude-monet",
    "🎉",
]


@pytest.mark.parametrize("name", ALLOWED_NAMES)
def test_a_name_in_any_script_is_taken_in_nfc(name: str) -> None:
    assert page_name(unicodedata.normalize("NFD", name)) == unicodedata.normalize("NFC", name)


@pytest.mark.parametrize(
    "text",
    [
        "../out",
        "/abs",
        "a/../../b",
        "..",
        "",
        "foo/..",
        "../x",
        "a",
        "a/",
        "/a",
        "a/b/c",
        "a/.b",
        ".git/config",
        "a\\b/c",
        "a/b\0",
        "a/b\n",
        "a/ ",
        "a/\ud800",
        "C:\\a/b\\c",
        None,
        3,
    ],
)
def test_an_id_that_is_not_two_plain_components_is_refused(text: object) -> None:
    if text == "a/b\n":
        assert page_id(text) == PageId(type="a", slug="b")  # trimmed, as a person would
        return
    with pytest.raises(StoreError) as caught:
        page_id(text)
    assert caught.value.code is StoreCode.BAD_NAME


def test_an_id_may_be_written_with_the_files_suffix() -> None:
    assert str(page_id("note/x.md")) == "note/x"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Foo", "foo"),
        ("café", "cafe\u0301"),
        ("STRASSE", "straße"),
        ("ﬁn", "fin"),
        ("a\u200cb", "ab"),
        ("ℌello", "hello"),
    ],
)
def test_names_that_some_disk_takes_for_one_have_one_key(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


def test_names_that_differ_by_an_accent_have_two_keys() -> None:
    assert name_key("resume") != name_key("résumé")


@given(st.text())
def test_every_title_gives_a_slug_that_is_a_name(title: str) -> None:
    assert page_name(slug_from(title)) == slug_from(title)


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("What is photosynthesis?", "what-is-photosynthesis"),
        ("../../etc/passwd", "etc-passwd"),
        ("con", "con-page"),
        ("AGENTS", "agents-page"),
        ("कर्म योग", "कर्म-योग"),
        ("C++ / Rust", "c-rust"),
    ],
)
def test_a_slug_keeps_the_words_of_its_title(title: str, slug: str) -> None:
    assert slug_from(title) == slug


@given(st.text(min_size=1), st.text(min_size=1))
def test_two_people_never_share_a_folder_even_on_a_disk_that_ignores_case(
    one: str, other: str
) -> None:
    try:
        folders = person_folder(one), person_folder(other)
    except StoreError:
        return
    assert (name_key(folders[0]) == name_key(folders[1])) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Ada", "ada"), ("José", "Jose\u0301"), ("a/b", "a-b"), ("ada", "ada "), ("陈", "王")],
)
def test_people_whose_names_look_alike_have_their_own_folders(one: str, other: str) -> None:
    assert person_folder(one) != person_folder(other)


@pytest.mark.parametrize("person", ["../../root", "..", "/etc", "a\0b", "NUL", "x" * 1000, "a\nb"])
def test_a_persons_folder_is_one_plain_component(person: str) -> None:
    assert page_name(person_folder(person)) == person_folder(person)


@pytest.mark.parametrize("person", ["", "  ", "\ud800"])
def test_a_person_without_a_name_that_can_be_written_is_refused(person: str) -> None:
    with pytest.raises(StoreError):
        person_folder(person)


@given(st.text())
def test_what_is_shown_is_one_line_that_can_be_encoded(text: str) -> None:
    line = shown(text)
    line.encode("utf-8")
    assert len(line.splitlines()) <= 1
