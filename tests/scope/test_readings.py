"""From a text to the files that it may name: trimming, ``~``, climbing, Unicode, the folder asked from."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_kit.scope import Code, FileScope, ToolOnlyDir, check_file_scope, explain_file_scope
from agent_kit.scope.flavour import POSIX, Malformed, Readings, collapse
from agent_kit.scope.text import ANY_SPACE, JS_SPACE, caseless, fold, is_well_formed, shown

PROJECT = "/nowhere/p"
HOME = "/nowhere/home"


def code(path: object, tool: str = "Read", cwd: str | None = None, **fields: Any) -> Code:
    given_fields: dict[str, Any] = {
        "project_dir": PROJECT,
        "home": HOME,
        "searchable_dirs": ["."],
        "writable_dirs": ["."],
    }
    scope = FileScope(**{**given_fields, **fields})
    field = "path" if tool in ("Grep", "LS", "Glob") else "file_path"
    decision = explain_file_scope(scope, tool, {field: path}, cwd=cwd)
    assert check_file_scope(scope, tool, {field: path}, cwd=cwd) == decision.message
    return decision.code


# --- trimming -------------------------------------------------------------------------------------


def test_what_javascript_trims_is_trimmed() -> None:
    """ECMA-262, WhiteSpace and LineTerminator."""
    spaces = {chr(at) for at in range(0x110000) if unicodedata.category(chr(at)) == "Zs"}
    assert set(JS_SPACE) == spaces | set("\t\n\v\f\r\u2028\u2029\ufeff")
    python = {chr(at) for at in range(0x110000) if not chr(at).strip()}
    assert set(ANY_SPACE) == set(JS_SPACE) | python
    assert python - set(JS_SPACE) == set("\x1c\x1d\x1e\x1f\x85")


@pytest.mark.parametrize("space", sorted(ANY_SPACE), ids=ascii)
@pytest.mark.parametrize("tool", ["Read", "Write", "Grep", "LS"])
def test_white_space_around_a_denied_name_hides_nothing(space: str, tool: str) -> None:
    for path in (f"x{space}", f"{space}x", f"{space}x{space * 2}", f"{space}{PROJECT}/x{space}"):
        assert code(path, tool, denied_paths=["x"]) is Code.DENIED_PATH


@pytest.mark.parametrize("space", sorted(JS_SPACE), ids=ascii)
def test_a_text_is_allowed_as_it_is_when_trimmed(space: str) -> None:
    assert code(f"{space}/etc/passwd") is Code.OUTSIDE_READABLE
    assert code(f"{space}~/x{space}") is Code.OUTSIDE_READABLE
    assert code(f"{space}{PROJECT}/x{space}") is Code.OK
    assert code(f" {space}../x") is Code.OUTSIDE_READABLE


@pytest.mark.parametrize("char", sorted(set(ANY_SPACE) - set(JS_SPACE)), ids=ascii)
def test_what_only_python_trims_belongs_to_the_name(char: str) -> None:
    """The CLI opens ``<project>/\\x1c/etc/passwd``, which is in the project."""
    assert code(f"{char}/etc/passwd") is Code.OK
    assert code(f"{char}~/x") is Code.OK
    assert code(f"x{char}", searchable_dirs=["x"]) is Code.OUTSIDE_READABLE


def test_the_untrimmed_name_is_denied_as_well() -> None:
    assert code(" x", denied_paths=[" x"]) is Code.DENIED_PATH
    assert code("x ", denied_paths=["x "]) is Code.DENIED_PATH
    assert code(" x", denied_paths=["y"]) is Code.OK


# --- the home folder ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("~", Code.OUTSIDE_READABLE),
        ("~/", Code.OUTSIDE_READABLE),
        ("~/x", Code.OUTSIDE_READABLE),
        ("~/../p/x", Code.OK),
        (f"~/../..{PROJECT}/x", Code.OK),
        (" ~/x", Code.OUTSIDE_READABLE),
        # not expanded, so names in the working folder
        ("~x", Code.OK),
        ("~root/x", Code.OK),
        ("~\\x", Code.OK),
        ("~+/x", Code.OK),
        ("./~/x", Code.OK),
        ("$HOME/x", Code.OK),
        ("%USERPROFILE%", Code.OK),
        ("x/~", Code.OK),
    ],
)
def test_a_tilde_is_the_home_folder_where_the_cli_expands_it(path: str, expected: Code) -> None:
    assert code(path) is expected


def test_a_tilde_is_denied_in_both_readings() -> None:
    opened = {"searchable_dirs": [".", HOME]}
    assert code("~/x", **opened) is Code.OK
    assert code("~/x", **opened, denied_paths=["~/x"]) is Code.DENIED_PATH
    assert code("~/x", **opened, denied_paths=["./~/x"]) is Code.DENIED_PATH
    assert code(" ~/x\x1c", **opened, denied_paths=["./~/x\x1c"]) is Code.DENIED_PATH
    assert code("~", "Grep", **opened, denied_paths=[f"{HOME}/y"]) is Code.CONTAINS_DENIED


def test_a_home_that_nobody_knows_makes_a_tilde_malformed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_kit.scope.compiled.os.path.expanduser", lambda text: text)
    assert code("~/x", home=None) is Code.MALFORMED
    assert code("./x", home=None) is Code.OK


def test_the_process_own_home_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", f"{PROJECT}/u")
    assert code("~/x", home=None, searchable_dirs=["u"]) is Code.OK
    assert code("~/x", searchable_dirs=["u"]) is Code.OUTSIDE_READABLE


# --- relative texts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "cwd", "expected"),
    [
        ("x", None, Code.OUTSIDE_READABLE),
        ("x", f"{PROJECT}/in", Code.OK),
        ("x", "in", Code.OK),  # below the project
        ("x", "", Code.OUTSIDE_READABLE),
        ("../x", f"{PROJECT}/in", Code.OUTSIDE_READABLE),
        ("../x", f"{PROJECT}/in/deep", Code.OK),
        ("../in/x", f"{PROJECT}/out", Code.OK),
        ("in/x", f"{PROJECT}/in/..", Code.OK),
        ("in/x", "/elsewhere", Code.OUTSIDE_READABLE),
        (f"{PROJECT}/in/x", "/elsewhere", Code.OK),
        ("../" * 50 + f"{PROJECT}/in/x", "/elsewhere", Code.OK),
        ("x", "~", Code.OUTSIDE_READABLE),
    ],
)
def test_relative_texts_are_relative_to_the_folder_of_the_call(
    path: str, cwd: str | None, expected: Code
) -> None:
    assert code(path, cwd=cwd, searchable_dirs=["in"]) is expected


def test_relative_texts_never_depend_on_the_process(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = FileScope(project_dir=tmp_path, searchable_dirs=["in"], denied_paths=["in/x"])
    for folder in (tmp_path, "/", tmp_path.parent):
        monkeypatch.chdir(folder)
        assert explain_file_scope(scope, "Read", {"file_path": "in/x"}).code is Code.DENIED_PATH
        assert explain_file_scope(scope, "Read", {"file_path": "in/y"}).code is Code.OK


@pytest.mark.parametrize("cwd", [7, b"/", ["/"], "\ud800", "/a\0b", {}])
def test_a_folder_of_the_call_that_is_none_is_a_denial(cwd: Any) -> None:
    assert code("x", cwd=cwd) is Code.MALFORMED
    if not isinstance(cwd, str) or "\0" not in cwd:
        assert code(f"{PROJECT}/x", cwd=cwd) is Code.MALFORMED
    scope = FileScope(project_dir=PROJECT)
    assert explain_file_scope(scope, "Bash", {"command": "x"}, cwd=cwd).code is Code.NOT_JUDGED


# --- Unicode --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ("Secret.TXT", "sEcret.txt"),
        ("se\u00f1as", "sen\u0303as"),
        ("sen\u0303as", "SE\u00d1AS"),
        ("stra\u00dfe", "STRASSE"),
        ("STRASSE", "stra\u00dfe"),
        ("\u1e9e", "ss"),  # capital sharp s
        ("\ufb01le", "FILE"),  # the fi ligature
        ("\u017fecret", "secret"),  # long s
        ("\u212aey", "key"),  # the Kelvin sign
        ("\u212bx", "\u00e5X"),  # the Angstrom sign
        ("\u03c3", "\u03c2"),  # the two small sigmas
        ("\u0130x", "i\u0307X"),
        ("\u1100\u1161", "\uac00"),  # Hangul, taken apart
        ("x\u0323\u0307", "x\u0307\u0323"),  # marks in either order
        ("secret", "sec\u200cret"),  # a volume may drop what can't be seen
        ("secret", "sec\u00adret"),
        ("secret", "\u180e\u115fsec\U000e0041ret\ufe0f"),
    ],
)
def test_case_and_unicode_form_hide_no_denied_name(entry: str, path: str) -> None:
    tools_only = [ToolOnlyDir(dir=entry, instead="x")]
    assert code(f"{path}/x", denied_paths=[entry]) is Code.DENIED_PATH
    assert code(f"{path}/x", tool_only_dirs=tools_only) is Code.TOOLS_ONLY
    assert code(f"{path}/x", "Write", read_only_dirs=[entry]) is Code.READ_ONLY
    assert code(".", "Grep", denied_paths=[f"{path}/x"]) is Code.CONTAINS_DENIED


@pytest.mark.parametrize("path", ["Sources/x", "SOURCES/x", "\u017fources/x", "sourc\u200ces/x"])
def test_allowing_is_exact(path: str) -> None:
    assert code(path, searchable_dirs=["sources"]) is Code.OUTSIDE_READABLE


def test_allowing_takes_one_unicode_form() -> None:
    assert code("se\u00f1as/x", searchable_dirs=["se\u00f1as"]) is Code.OK
    assert code("sen\u0303as/x", searchable_dirs=["se\u00f1as"]) is Code.OUTSIDE_READABLE


@pytest.mark.parametrize("name", ["\u200c", "\u200c\u200d", ".\u200c", "\u2060"])
def test_a_name_of_nothing_that_can_be_seen_is_a_name(name: str) -> None:
    """Folded it is empty, or a dot."""
    entry = ["x"]
    assert code(f"x/{name}/a", denied_paths=entry) is Code.DENIED_PATH
    assert code(f"{name}/x/a", denied_paths=entry) is Code.OK
    assert code(f"{name}", denied_paths=[name]) is Code.DENIED_PATH
    assert code(f"x/{name}", denied_paths=[f"x/{name}/a"]) is Code.OK
    assert code(f"x/{name}", "Grep", denied_paths=[f"x/{name}/a"]) is Code.CONTAINS_DENIED


@pytest.mark.parametrize(
    "half", ["\ud800", "\udfff", "\udc80", "\ud83d", "\ude00\ud83d"], ids=ascii
)
@pytest.mark.parametrize("tool", ["Read", "Write", "Grep", "LS", "Glob", "mcp__x__y", "Later"])
def test_half_a_character_is_refused(half: str, tool: str) -> None:
    """The CLI opens the name with U+FFFD in its place (measured on 2.1.332)."""
    for path in (f"{half}x", f"{PROJECT}/a/{half}", f"~/{half}"):
        scope = FileScope(
            project_dir=PROJECT,
            searchable_dirs=["/"],
            writable_dirs=["/"],
            mcp_file_tools={"mcp__x__y": {"path": "read"}},
        )
        for tool_input in ({"path": path, "pattern": "*"}, {"path": ".", "pattern": f"{path}/*"}):
            if tool == "Glob" or "/" not in tool_input["pattern"]:
                found = explain_file_scope(scope, tool, tool_input)
                assert found.code is Code.MALFORMED
                assert found.message is not None
                found.message.encode()  # and what is said of it can be sent


def test_whole_characters_beyond_the_first_plane_are_fine() -> None:
    assert code("\U0001f600") is Code.OK
    assert is_well_formed("\U0001f600\uffff")
    assert not is_well_formed("\U0001f600\ude00")


# Few letters, so that two texts often differ in case and form only.
LETTERS = st.one_of(
    st.text(max_size=5),
    st.text(
        alphabet="aAsSkKiIeE\u00df\u1e9e\u017f\u212a\u0130\u0131\u0307\u00e9\u0301\u0345\u03b9\u200c",
        max_size=3,
    ),
)


@given(LETTERS, LETTERS)
def test_folding_is_one_form(first: str, second: str) -> None:
    folded = fold(first)
    assert fold(folded) == folded or "\u0345" in unicodedata.normalize("NFD", first)
    for form in ("NFC", "NFD"):
        assert fold(unicodedata.normalize(form, first)) == folded
    if first.casefold() == second.casefold():
        assert folded == fold(second)


@given(LETTERS, LETTERS)
def test_caseless_joins_only_what_differs_in_case(first: str, second: str) -> None:
    assert caseless(caseless(first)) == caseless(first)
    assert len(caseless(first)) == len(first)
    if caseless(first) == caseless(second):
        assert first.upper() == second.upper()
        assert first.lower() == second.lower()


@given(st.text(max_size=300))
def test_what_is_shown_is_one_printable_line(text: str) -> None:
    told = shown(text)
    assert told.isprintable()
    assert told.replace('\\"', "").count('"') == 0
    assert len(told) <= 200 * 10


def test_what_is_no_text_is_shown_in_short() -> None:
    nested: Any = []
    for _ in range(50_000):
        nested = [nested]
    assert shown(nested) == "[[[[[[[...]]]]]]]"
    assert shown(10**5000) == "int"
    assert shown({"a": [1]}) == "{'a': [1]}"
    assert shown(None) == "None"


# --- laws of the text -----------------------------------------------------------------------------

WAYS = st.lists(st.sampled_from([".", "..", "a", "b", "ab", "", "~", " ", "..a"]), max_size=7)
TEXTS = st.tuples(WAYS, st.sampled_from(["", "/", " ", "~/"])).map(
    lambda both: both[1] + "/".join(both[0])
)


@given(TEXTS)
def test_a_canonical_path_has_no_odd_component(text: str) -> None:
    readings = POSIX.readings(text, "/base", "/home")
    for path in (*readings.cli, *readings.other):
        assert path.startswith("/")
        assert path == "/" or not {"", ".", ".."} & set(path[1:].split("/"))
        assert collapse(path) == path


@given(TEXTS, WAYS.map("/".join))
def test_a_tail_lies_below_each_reading(text: str, tail: str) -> None:
    starts = POSIX.readings(text, "/base", "/home")
    found = POSIX.readings(text, "/base", "/home", tail)
    if not tail:
        assert found == starts
    else:
        for each in ("cli", "other"):
            expected = tuple(POSIX.absolute(tail, start) for start in getattr(starts, each))
            assert getattr(found, each) == (
                expected if tail[0] != "/" else tuple(collapse(tail) for _ in expected)
            )
        assert found.physical == tuple(f"{start}/{tail}" for start in starts.physical)


def test_the_usual_text_has_one_reading() -> None:
    assert POSIX.readings("a/b", "/base", None) == Readings(("/base/a/b",))
    assert POSIX.readings("/a", "/base", None) == Readings(("/a",))
    assert POSIX.readings("a/../b", "/base", None) == Readings(("/base/b",), (), ("/base/a/../b",))
    assert POSIX.readings("/a/../b", "/base", None).physical == ("/a/../b",)
    with pytest.raises(Malformed):
        POSIX.readings("~/a", "/base", None)


def test_a_posix_path_shows_and_splits_as_it_is() -> None:
    assert POSIX.display("/a\\b") == "/a\\b"
    assert POSIX.split("a/b\\c") == ["a", "b\\c"]
