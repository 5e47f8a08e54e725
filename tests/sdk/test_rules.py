"""The rule writer, by its text. What the CLI makes of the rules: tests/e2e/test_rules_on_the_cli.py."""

from __future__ import annotations

import subprocess
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.sdk.rules import (
    RuleSet,
    allow_rules,
    control_file_rules,
    deny_rules,
    edit_rules,
    pattern_rules,
    spell,
    write_rules,
)

NFC = "/srv/caf\u00e9"
NFD = unicodedata.normalize("NFD", NFC)

SPELLED = [
    ("/srv/agent/.env", "//srv/agent/.env"),
    ("/", "//"),
    ("/srv/", "//srv"),  # a rule with a slash at its end matches no file
    ("//srv//a/./b/../c", "//srv/a/c"),
    ("/w/a[1]{2}!#*b", r"//w/a\[1\]\{2\}\!\#\*b"),
    ("/w/a?b", "//w/a?b"),
    ("/w/a\\b", "//w/a?b"),
    ("/w/a*", r"//w/a[\*]"),  # a star at the end would be a wildcard again
    ("/w/**", r"//w/\*[\*]"),
    ("/w/a*/b", r"//w/a\*/b"),
    ("/w/a ", "//w/a\\ "),
    ("/w/a  ", "//w/a \\ "),
    ("/w/a /b", "//w/a /b"),
    ("/w/ a", "//w/ a"),
    ("/w/a\t", "//w/a?"),
    ("/w/a\n", "//w/a?"),
    ("/w/a\tb", "//w/a\tb"),
    ("/w/a\u3000", "//w/a[\u3000]"),
    ("/w/a\x85", "//w/a[\x85]"),
    ("/w/a (1), 'b': \"c\"", "//w/a (1), 'b': \"c\""),
    ("/w/a)b(", "//w/a)b("),
    ("/w/~", "//w/~"),
    ("/w/-rf", "//w/-rf"),
    ("/w/..data", "//w/..data"),
    ("/w/a\nb", "//w/a\nb"),
    ("/w/\U0001f600", "//w/\U0001f600"),
    ("/w/\udcff", "//w/?"),  # a byte that is no UTF-8
    ("/c:/x", "//c:/x"),  # a folder that is called "c:"
]


@pytest.mark.parametrize(("path", "spelled"), SPELLED)
def test_a_posix_path_is_spelled_literally(path: str, spelled: str) -> None:
    assert spell(path) == spelled


WINDOWS = [
    ("C:\\Users\\ada\\.env", "//c/Users/ada/.env"),
    ("C:/Users/ada/.env", "//c/Users/ada/.env"),
    ("/c/Users/ada/.env", "//c/Users/ada/.env"),
    ("\\\\?\\C:\\Users\\ada\\.env", "//c/Users/ada/.env"),
    ("/c:/Users/ada/.env", "//c/Users/ada/.env"),  # canonical
    ("D:\\a\\..\\b\\", "//d/b"),
    ("C:\\", "//c"),
    ("C:", "//c"),
    ("\\\\server\\share\\k", "//server/share/k"),
    ("\\\\?\\UNC\\server\\share\\k", "//server/share/k"),
    ("/unc:/server/share/k", "//server/share/k"),
    ("C:\\a [1]", r"//c/a \[1\]"),
    ("C:\\a.txt::$DATA", None),
    ("C:\\a.", None),
    ("C:\\con", None),
    ("\\\\.\\C:", None),
]


@pytest.mark.parametrize(("path", "spelled"), WINDOWS)
def test_a_windows_path_is_spelled_without_a_colon(path: str, spelled: str | None) -> None:
    assert spell(path, platform="windows") == spelled


@pytest.mark.parametrize(
    ("path", "platform"),
    [
        ("", "posix"),
        ("a", "posix"),
        ("~/a", "posix"),
        ("C:\\a", "posix"),
        ("a", "windows"),
        ("\\a", "windows"),
        ("C:a", "windows"),
        ("~/a", "windows"),
    ],
)
def test_a_relative_path_is_refused(path: str, platform: str) -> None:
    with pytest.raises(ValueError, match="is not an absolute path"):
        spell(path, platform=platform)


def test_a_nul_has_no_spelling() -> None:
    assert spell("/w/a\0b") is None
    assert deny_rules("/w/a\0b") == ()


def test_a_denied_path_has_four_rules() -> None:
    assert deny_rules("/srv/.env") == (
        "Read(//srv/.env)",
        "Read(//srv/.env/**)",
        "Edit(//srv/.env)",
        "Edit(//srv/.env/**)",
    )


def test_a_root_is_denied_whole() -> None:
    assert deny_rules("/") == ("Read(//**)", "Edit(//**)")
    assert deny_rules("C:\\", platform="windows")[:2] == ("Read(//c)", "Read(//c/**)")


def test_a_read_only_path_keeps_reading() -> None:
    assert edit_rules("/srv/sources") == ("Edit(//srv/sources)", "Edit(//srv/sources/**)")


def test_both_unicode_forms_are_denied() -> None:
    spelled = {rule[5:-1] for rule in deny_rules(NFC) if "**" not in rule}
    assert spelled == {"/" + NFC, "/" + NFD}
    assert deny_rules(NFC) == tuple(
        sorted(deny_rules(NFD), key=lambda rule: unicodedata.normalize("NFC", rule) != rule)
    )


def test_a_name_in_neither_form_is_denied_as_it_is_too() -> None:
    mixed = "/srv/caf\u00e9/cafe\u0301"
    assert f"Read(/{mixed})" in deny_rules(mixed)
    assert len(deny_rules(mixed)) == 12


def test_white_space_at_the_end_is_denied_for_the_judge_and_for_the_search() -> None:
    assert [rule for rule in deny_rules("/w/a\u3000") if "**" not in rule] == [
        "Read(//w/a[\u3000])",
        "Edit(//w/a[\u3000])",
        "Read(//w/a???)",
        "Edit(//w/a???)",
    ]


def test_a_screenshot_is_denied_under_both_of_its_names() -> None:
    assert "Read(//w/at 9.41\u202fAM.png)" in deny_rules("/w/at 9.41 AM.png")
    assert "Read(//w/at 9.41 AM.png)" in deny_rules("/w/at 9.41\u202fAM.png")


ALLOWED = [
    ("/srv/notes", "//srv/notes"),
    ("/srv/a[1]*", r"//srv/a\[1\][\*]"),
    ("/srv/a\t", "//srv/a[\t]"),
    ("/srv/a ", "//srv/a\\ "),
    (NFC, "/" + NFC),  # allowing is exact
    ("/srv/a?", None),
    ("/srv/a\\/b", None),
    ("/srv/\udcff", None),
    ("/srv/a\0", None),
]


@pytest.mark.parametrize(("folder", "spelled"), ALLOWED)
def test_an_allowed_folder_has_one_rule_that_names_no_other(
    folder: str, spelled: str | None
) -> None:
    reading = () if spelled is None else (f"Read({spelled}/**)",)
    writing = () if spelled is None else (f"Edit({spelled}/**)",)
    assert allow_rules(folder) == reading
    assert allow_rules(folder, write=True) == writing


def test_allowing_the_root_allows_everything() -> None:
    assert allow_rules("/") == ("Read(//**)",)


PATTERNS = [
    ("**/.env", ["//**/.env"]),
    ("*.pem", ["//**/*.pem"]),
    ("/srv/**/*.key", ["//srv/**/*.key"]),
    ("src/*.key", [r"//w/\[x\]/src/*.key"]),  # below the project, whose name is literal
    ("~/.ssh/id_*", ["//home/ada/.ssh/id_*"]),
    ("*.{key,pem}", ["//**/*.key", "//**/*.pem"]),
    ("a{*,b{1..2}}", ["//**/a*", "//**/ab1", "//**/ab2"]),
    ("{src/a,b*}", [r"//w/\[x\]/src/a", "//**/b*"]),
    ("{.env,*.pem}", ["//**/.env", "//**/*.pem"]),
    (r"\{a,b\}*", [r"//**/\{a,b\}*"]),
    ("n{o*", [r"//**/n\{o*"]),
    ("[a-c0-9x]*", ["//**/[a-c0-9x]*"]),
    ("[!a]b", ["//**/?b"]),  # the language has no negated class
    ("[^a]b", ["//**/?b"]),
    ("[]x]b", ["//**/?b"]),
    ("[z-a]b", ["//**/?b"]),
    ("[\U0001f600]b", ["//**/*b"]),
    (r"a\*b*", [r"//**/a[\*]b*"]),
    (r"*\?", ["//**/*[>-@]"]),  # with a plain ? every name would match
    (r"*\\", ["//**/*[[-^]"]),
    ("*\\ ", ["//**/*\\ "]),
    ("*.pem  ", ["//**/*.pem"]),
    ("*\t", ["//**/*[\t]"]),
    ("**", ["//**"]),
    ("*", ["//**"]),
    ("/*", ["//**"]),
    ("build*/", ["//**/build*/*"]),  # what is in the folder
    ("/srv/s*/**", ["//srv/s*/*"]),
    ("a**b", ["//**/a*b"]),
    ("./a*//b", [r"//w/\[x\]/a*/b"]),
    ("[a", [r"//w/\[x\]/\[a"]),  # no pattern: a name
]


@pytest.mark.parametrize(("pattern", "bodies"), PATTERNS)
def test_a_pattern_becomes_the_rules_that_mean_the_same(pattern: str, bodies: list[str]) -> None:
    rules = pattern_rules(pattern, project_dir="/w/[x]", home="/home/ada")
    expected = [
        rule
        for body in bodies
        for tool in ("Read", "Edit")
        for rule in ([f"{tool}({body})"] + [f"{tool}({body}/**)"] * (body != "//**"))
    ]
    assert list(rules) == expected


@pytest.mark.parametrize(
    ("pattern", "body"),
    [
        ("**/.env*", "//**/.env*"),
        ("src\\*.key", "//c/w/src/*.key"),
        ("D:\\srv\\**\\*.key", "//d/srv/**/*.key"),
        ("/d:/srv/*.key", "//d/srv/*.key"),  # canonical
    ],
)
def test_a_windows_pattern_has_no_colon_and_no_backslash(pattern: str, body: str) -> None:
    assert pattern_rules(pattern, project_dir="C:\\w", platform="windows")[0] == f"Read({body})"


@pytest.mark.parametrize("pattern", ["#x*", "!x*", "a/../*", "{1..2000}*", "*\\"])
def test_a_text_that_is_no_pattern_is_a_fault(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        pattern_rules(pattern)


def test_a_pattern_that_stops_no_search_is_denied_as_the_gate_compares_it_too() -> None:
    assert "Read(//**/strasse.md)" in pattern_rules("**/stra\u00dfe.md")
    assert "Read(//**/.env)" in pattern_rules("**/.e\u200bnv")
    assert not any("strasse" in each for each in pattern_rules("a/*/stra\u00dfe.md"))


def test_both_unicode_forms_of_a_pattern_are_denied() -> None:
    assert [rule for rule in pattern_rules("*\u00e9") if rule.startswith("Read(//**/*")][::2] == [
        "Read(//**/*\u00e9)",
        "Read(//**/*e\u0301)",
    ]


def test_control_files_are_closed_to_writing_at_any_depth() -> None:
    assert control_file_rules("/w/a?", names=("claude.md", ".git")) == (
        "Edit(//w/a?/**/claude.md)",
        "Edit(//w/a?/**/claude.md/**)",
        "Edit(//w/a?/**/.git)",
        "Edit(//w/a?/**/.git/**)",
    )
    assert control_file_rules("/", names=(".git",))[0] == "Edit(//**/.git)"


def test_the_whole_set_is_in_order_and_without_duplicates() -> None:
    rules = write_rules(
        denied_literals=["/w/.env", "/w/.env/", "/w/\0"],
        denied_patterns=["*.pem", "*.pem", "!x*"],
        read_only_dirs=["/w/sources", "/w/.env"],
        control_dirs=["/w/drafts"],
        readable_dirs=["/w/sources", "/w/drafts", "/w/a?"],
        writable_dirs=["/w/drafts"],
        project_dir="/w",
        control_names=(".git",),
    )
    assert rules == RuleSet(
        deny=(
            *deny_rules("/w/.env"),
            *pattern_rules("*.pem"),
            *edit_rules("/w/sources"),
            *control_file_rules("/w/drafts", names=(".git",)),
        ),
        allow=("Read(//w/sources/**)", "Read(//w/drafts/**)", "Edit(//w/drafts/**)"),
        unspellable=("/w/\0", "!x*"),
        inexact=("/w/a?",),
    )


def test_nothing_given_is_nothing_written() -> None:
    assert write_rules() == RuleSet()


NAMES = st.text(
    st.one_of(st.sampled_from("[]*{}!#?\\ \t\n().,:\"'~-/\u3000\u00e9\udcff"), st.characters()),
    min_size=1,
).filter(lambda text: "\0" not in text)


@given(NAMES)
def test_every_rule_is_well_formed_whatever_a_file_is_called(name: str) -> None:
    rules = write_rules(
        denied_literals=["/" + name],
        read_only_dirs=["/" + name],
        control_dirs=["/" + name],
        readable_dirs=["/" + name],
    )
    assert rules.unspellable == ()
    for rule in (*rules.deny, *rules.allow):
        assert rule.startswith(("Read(//", "Edit(//"))
        assert not rule.startswith(("Read(///", "Edit(///"))
        assert rule.endswith(")")
        assert rule.encode()  # it can be sent
        assert not rule[:-1].endswith("/")
        assert not rule[:-1].endswith(("\t", "\n", "\u3000"))
    assert len(set(rules.deny)) == len(rules.deny)


@given(st.text(st.sampled_from("ab*?[]!^\\/{},- \t\u00e9.#"), min_size=1))
@example("?//")
def test_a_pattern_becomes_rules_or_a_fault_whatever_it_is(pattern: str) -> None:
    rules = write_rules(denied_patterns=[pattern], project_dir="/w")
    assert bool(rules.deny) != bool(rules.unspellable)
    for rule in rules.deny:
        assert rule.startswith(("Read(//", "Edit(//"))
        assert not rule.startswith(("Read(///", "Edit(///"))


def test_the_rule_writer_needs_neither_the_sdk_nor_mcp() -> None:
    code = (
        "import sys, agent_kit.sdk.rules, agent_kit.scope.mentions;"
        "print([m for m in ('claude_agent_sdk', 'mcp', 'pathspec', 'bracex') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_braces_in_the_projects_own_path_are_no_alternatives() -> None:
    scope = FileScope(project_dir="/w/{a,b}", searchable_dirs=["."], denied_paths=["src/*.key"])
    (pattern,) = scope._compiled.patterns
    assert pattern_rules(pattern.absolute)[0] == r"Read(//w/\{a,b\}/src/*.key)"
    assert check_file_scope(scope, "Read", {"file_path": "/w/{a,b}/src/x.key"}) is not None
    assert check_file_scope(scope, "Read", {"file_path": "/w/{a,b}/src/x.txt"}) is None


@pytest.mark.parametrize("entry", [r"C:\*.key", "C:/*.key", r"c:\x.*"])
def test_a_pattern_at_the_root_of_a_drive_is_not_one_of_the_project(entry: str) -> None:
    scope = FileScope(
        project_dir=r"C:\w", searchable_dirs=["C:/"], denied_paths=[entry], platform="windows"
    )
    assert check_file_scope(scope, "Read", {"file_path": r"C:\x.key"}) is not None
    assert check_file_scope(scope, "Read", {"file_path": r"C:\w\y.txt"}) is None
