"""A pattern without a fixed folder stops no search, unless a name is there that the CLI would show."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from agent_kit.scope import FileScope, check_file_scope, explain_file_scope, left_out, odd_names
from agent_kit.scope.decision import Code
from agent_kit.scope.patterns import Pattern
from agent_kit.scope.text import in_script

NFC, NFD = "\u00e9\u00f6", "e\u0301o\u0308"

# the pattern's name, the name on the disk: the CLI's rules match the first ones and not the others
LEFT_OUT = [
    (".env", ".ENV"),
    ("*.pem", "\u00e9.pem"),
    ("*.pem", "\U0001f600.pem"),
    (NFC, NFC),
    (NFC, NFD),
    (NFD, NFC),
    (NFC, NFC.upper()),
    ("stra\u00dfe", "stra\u00dfe"),
    ("stra\u00dfe", "STRASSE"),
    ("\u03bb\u03cc\u03b3\u03bf\u03c2", "\u039b\u038c\u0393\u039f\u03a3"),
    ("?.key", "\u00e9.key"),
    ("[\u00e9].key", "\u00e9.key"),
]
SHOWN = [
    (NFC, "e\u0301\u00f6", "part composed, part not"),
    ("\u1ea1\u0307", "a\u0307\u0323", "marks in another order"),
    ("\u00e5", "\u212b", "a sign that is a letter composed"),
    ("\ud55c\uae00", "\u1112\u1161\u11ab\uae00", "half of it in jamo"),
    (".env", ".e\u200bnv", "a space without width"),
    ("*.pem", "a.pe\u00adm", "a soft hyphen"),
    (".npmrc", ".np\u200dmrc", "a joiner"),
    ("token", "to\u212aen", "the sign for kelvin"),
    ("secret", "\u017fecret", "a long s"),
    ("file", "\ufb01le", "a ligature"),
    ("strasse", "stra\u00dfe", "a letter that folds to two"),
    ("?.key", "e\u0301.key", "two characters that are one"),
    ("?.key", "\U0001f600.key", "one character that is two"),
    ("[a-z].key", "\u212a.key", "a class that holds it when folded"),
    ("[\U0001f600].key", "\U0001f600.key", "a class that the CLI can't have"),
]


def scope(root: Path, *patterns: str, **fields: Any) -> FileScope:
    return FileScope(project_dir=root, searchable_dirs=["."], denied_paths=patterns, **fields)


def search(asked: FileScope, path: str = ".") -> Code:
    return explain_file_scope(asked, "Grep", {"pattern": "x", "path": path}).code


@pytest.mark.parametrize(("pattern", "name"), LEFT_OUT)
@pytest.mark.parametrize("inside", ["", "folder/deep/"])
def test_what_the_cli_leaves_out_stops_no_search(
    tmp_path: Path, pattern: str, name: str, inside: str
) -> None:
    (tmp_path / inside).mkdir(parents=True, exist_ok=True)
    (tmp_path / inside / name).touch()
    asked = scope(tmp_path, f"**/{pattern}")
    assert check_file_scope(asked, "Read", {"file_path": inside + name}) is not None
    assert search(asked) is Code.OK


@pytest.mark.parametrize(("pattern", "name", "_why"), SHOWN)
@pytest.mark.parametrize("inside", ["", "folder/deep/"])
def test_what_the_cli_would_show_stops_a_search(
    tmp_path: Path, pattern: str, name: str, _why: str, inside: str
) -> None:
    (tmp_path / inside).mkdir(parents=True, exist_ok=True)
    (tmp_path / inside / name).touch()
    asked = scope(tmp_path, f"**/{pattern}")
    assert check_file_scope(asked, "Read", {"file_path": inside + name}) is not None
    assert search(asked) is Code.CONTAINS_DENIED
    assert search(scope(tmp_path, "**/other")) is Code.OK
    assert search(scope(tmp_path)) is Code.OK


def test_the_sentence_names_the_file_and_the_decision_the_pattern(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".e\u200bnv").touch()
    found = explain_file_scope(scope(tmp_path, "**/.env"), "Grep", {"pattern": "x", "path": "a"})
    told = '"a" contains "a/.e\\u200bnv", which is off limits: search a folder beside it.'
    assert (found.message, found.entry) == (told, "**/.env")


def test_a_folder_above_that_is_read_otherwise_counts(tmp_path: Path) -> None:
    odd = tmp_path / "e\u0301\u00f6" / "plain"
    odd.mkdir(parents=True)
    (odd / "x.txt").touch()
    asked = scope(tmp_path, f"**/{NFC}/*/x.txt")
    for path in (".", f"{odd.parent.name}", f"{odd.parent.name}/plain"):
        assert search(asked, path) is Code.CONTAINS_DENIED


def test_a_folder_above_that_is_read_alike_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / NFC / "plain").mkdir(parents=True)
    (tmp_path / NFC / "plain" / "x.txt").touch()
    monkeypatch.setattr(odd_names, "_listed", None)
    assert search(scope(tmp_path, f"**/{NFC}/*/x.txt")) is Code.OK
    assert search(scope(tmp_path, "**/x.md"), f"{NFC}/plain") is Code.OK


def test_a_pattern_for_folders_counts_for_folders(tmp_path: Path) -> None:
    (tmp_path / ".e\u200bnv").mkdir()
    assert search(scope(tmp_path, "**/.env/")) is Code.CONTAINS_DENIED
    (tmp_path / ".e\u200bnv").rmdir()
    (tmp_path / ".e\u200bnv").touch()
    assert search(scope(tmp_path, "**/.env/")) is Code.OK


def test_one_file_and_what_is_not_there_may_be_searched(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    asked = scope(tmp_path, "**/.env")
    assert search(asked, "a.txt") is search(asked, "none") is Code.OK


def test_no_link_below_is_followed(tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / ".e\u200bnv").touch()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "beside")
    (tmp_path / "in" / "loop").symlink_to(tmp_path / "in")
    asked = scope(tmp_path, "**/.env")
    assert search(asked, "in") is Code.OK
    assert search(asked, "in/link") is Code.CONTAINS_DENIED


def test_a_folder_that_may_not_be_listed_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shut").mkdir()
    (tmp_path / "shut" / ".e\u200bnv").touch()
    asked, real = scope(tmp_path, "**/.env"), os.scandir
    assert search(asked) is Code.CONTAINS_DENIED

    def shut(folder: str) -> object:
        if str(folder).endswith("shut"):
            raise PermissionError(13, "no")
        return real(folder)

    monkeypatch.setattr(os, "scandir", shut)
    assert search(asked) is Code.OK


def test_what_goes_while_it_is_looked_at_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_folder: object) -> Any:
        raise FileNotFoundError

    (tmp_path / "e\u0301\u00f6").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", gone)
        assert search(scope(tmp_path, "**/.env")) is Code.OK
    with monkeypatch.context() as patched:
        patched.setattr(os, "listdir", gone)
        assert search(scope(tmp_path, "**/.env"), "e\u0301\u00f6") is Code.OK


def test_no_more_is_looked_at_than_so_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    asked = scope(tmp_path, "**/.env")
    too_many = '"." holds too many names to look for what is off limits: search a folder in it.'
    for limit, value in (("_NAMES", 3), ("_SECONDS", -1.0)):
        with monkeypatch.context() as patched:
            patched.setattr(odd_names, limit, value)
            found = explain_file_scope(asked, "Grep", {"pattern": "x"})
            assert (found.code, found.message) == (Code.CONTAINS_DENIED, too_many)
            assert limit == "_SECONDS" or search(asked, "a") is Code.OK
            assert search(scope(tmp_path)) is Code.OK
    assert search(asked) is Code.OK


def test_a_folder_that_stays_the_same_is_listed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / NFC).mkdir()
    (tmp_path / "a").mkdir()
    asked, listed, real = scope(tmp_path, "**/.env"), [], os.scandir

    def counted(folder: Any) -> Any:
        listed.append(Path(folder).name)
        return real(folder)

    monkeypatch.setattr(os, "scandir", counted)
    search(asked)
    search(asked)
    assert len(listed) == 6  # they are young: one may change again at the very same time
    monkeypatch.setattr(odd_names, "_SETTLED", -1)
    monkeypatch.setattr(odd_names, "_known", {})
    search(asked)
    listed.clear()
    assert search(asked) is Code.OK
    assert listed == []
    (tmp_path / "a" / ".e\u200bnv").touch()
    assert search(asked) is search(asked) is Code.CONTAINS_DENIED
    assert set(listed) == {"a"}


def test_what_was_cleared_by_one_scope_is_not_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(odd_names, "_SETTLED", -1)
    (tmp_path / ".e\u200bnv").touch()
    for pattern, code in (("*.md", Code.OK), (".env", Code.CONTAINS_DENIED)):
        asked = scope(tmp_path, pattern)
        assert search(asked) is search(asked) is code


def test_what_is_remembered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odd_names, "_SETTLED", -1)
    monkeypatch.setattr(odd_names, "_REMEMBERED", 2)
    monkeypatch.setattr(odd_names, "_known", {})
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    assert search(scope(tmp_path, "**/.env")) is Code.OK
    assert len(odd_names._known) == 2


def test_a_foreign_scope_looks_at_no_disk(tmp_path: Path) -> None:
    asked = scope(Path("C:/w"), "**/.env", platform="windows", home="C:/h")
    assert search(asked) is Code.OK


@pytest.mark.parametrize("text", ["[z-a]\u00e9", "[a--b]\u00e9"])
def test_a_class_that_nobody_can_read_leaves_nothing_out(text: str) -> None:
    rules = left_out.LeftOut([Pattern(text, f"**/{text}", None)], lambda _path, _folder: True)
    assert not rules.has(f"/w/{text}", folder=False)


def test_what_is_no_utf8_is_what_the_cli_takes_for_it() -> None:
    assert in_script("a\udcff") == "A\ufffd"
    assert in_script("\U0001f600") == "\ud83d\ude00"
    assert in_script("\u00df\u0131\u017f") == "\u00df\u0131\u017f"  # to JavaScript no other case


def test_a_rule_has_the_forms_that_a_pattern_is_left_out_by() -> None:
    assert left_out.rule_forms("**/.env", "**/.env") == ("**/.env",)
    forms = left_out.rule_forms(NFC)
    assert forms == (NFC, unicodedata.normalize("NFD", NFC))
