"""Where a Glob starts. What the CLI makes of each pattern was measured on 2.1.332."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_kit.scope import Code, FileScope, check_file_scope, explain_file_scope
from agent_kit.scope.flavour import POSIX, Malformed
from agent_kit.scope.globs import climbs, starts

PROJECT = "/nowhere/p"
SCOPE = FileScope(
    project_dir=PROJECT,
    home=f"{PROJECT}/home",
    readable_dirs=["sources", "home", "/abs"],
    denied_paths=["sources/secret", "sources/*.key"],
)


def code(
    pattern: str, path: str | None = None, scope: FileScope = SCOPE, cwd: str | None = None
) -> Code:
    call = {"pattern": pattern} if path is None else {"pattern": pattern, "path": path}
    decision = explain_file_scope(scope, "Glob", call, cwd=cwd)
    assert check_file_scope(scope, "Glob", call, cwd=cwd) == decision.message
    return decision.code


CLIMBING = [
    "..",
    "../*",
    "a/../*",
    "*/..",
    "*/../*",
    "**/../../*",
    "/abs/../*",
    "{..,x}/*",
    "{x,..}/*",
    "x{/..,}/*",
    "{a/../b,c}",
    "@(..)/*",
    "+(..)/*",
    "?(..)/*",
    "*(..)/*",
    "!(..)/*",
    "@(x|..)/*",
    "@(..|x)/*",
    ".{.,x}/*",
    "{.,x}./*",
    ".{.}/*",
    "{..}/*",
    "[.][.]/*",
    ".[.]/*",
    "[..]./*",
    "\\.\\./*",
    "\\../*",
    ".\\./*",
    "\\..",
    "{a,{b,..}}/*",
    "{a,b/{c,..}}/*",
    "..{a,b}/*",  # none, but nobody writes it by chance
]


@pytest.mark.parametrize("pattern", CLIMBING)
@pytest.mark.parametrize("path", [None, "sources", "/abs"])
def test_a_pattern_that_climbs_is_refused(pattern: str, path: str | None) -> None:
    assert code(pattern, path) is Code.CLIMBS
    message = check_file_scope(SCOPE, "Glob", {"pattern": pattern, "path": path or "."})
    shown = pattern.replace("\\", "\\\\")
    assert message == f'Glob can\'t use "{shown}": a pattern can\'t climb with "..".'


@pytest.mark.parametrize(
    "pattern",
    ["*", "...", "..a", "a..", "a..b/*", "{..a,b}", "{1..3}", "*.{md,txt}", ".*", "./*", ".", "{.,a}/*",
     "[.]a/*", "*..", "a/..b/c", "\\.a", "a.b"],
)  # fmt: skip
def test_dots_that_are_no_climb_are_fine(pattern: str) -> None:
    assert not climbs(pattern)
    assert code(pattern, "sources") is Code.OK


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        # below the path, or the folder of the call
        ("*.md", "sources", Code.OK),
        ("**/*.md", "sources/", Code.OK),
        ("", "sources", Code.OK),
        ("*", None, Code.OUTSIDE_READABLE),
        ("", None, Code.OUTSIDE_READABLE),
        ("*", "", Code.OUTSIDE_READABLE),
        ("sources/*", None, Code.OK),
        ("sources/sub/**", None, Code.OK),
        ("sub/*", "sources", Code.OK),
        ("*", "sources/*", Code.OK),  # a path has no magic
        ("*", "{sources,x}", Code.OUTSIDE_READABLE),
        ("*", "sources/..", Code.OUTSIDE_READABLE),
        ("*", "sources/../sources", Code.OK),
        # a name without a slash is looked for at any depth, so it starts at the path
        ("sources", None, Code.OUTSIDE_READABLE),
        ("a.md", None, Code.OUTSIDE_READABLE),
        ("a.md", "sources", Code.OK),
        ("secret", "sources", Code.DENIED_PATH),
        ("sources/a.md", None, Code.OK),
        ("sources/secret", None, Code.DENIED_PATH),
        ("a.key", "sources", Code.DENIED_PATTERN),
        ("*.key", "sources", Code.OK),  # the CLI's own rule filters the hits
        ("secret/*", "sources", Code.DENIED_PATH),
        ("SECRET/x/*", "sources", Code.DENIED_PATH),
        ("*", "sources/secret", Code.DENIED_PATH),
        # braces in the fixed folders
        ("{sources,x}/*", None, Code.OUTSIDE_READABLE),
        ("{a,b}/*", "sources", Code.OK),
        ("{a,secret}/*", "sources", Code.DENIED_PATH),
        ("{secret,a}", "sources", Code.DENIED_PATH),
        ("{a,b}.md", "sources", Code.OK),
        ("a/{b,/etc}/*", "sources", Code.OK),
        ("{/etc,a}/*", "sources", Code.OUTSIDE_READABLE),
        ("{/abs,a}/*", "sources", Code.OK),
        ("{a,~/../x}/*", "sources", Code.CLIMBS),
        # absolute: the path is not looked at
        ("/abs/*", None, Code.OK),
        ("/abs/*", "/etc", Code.OK),
        ("/abs/x", None, Code.OK),
        ("/abs", None, Code.OUTSIDE_READABLE),  # its folder is the root
        ("/*", "sources", Code.OUTSIDE_READABLE),
        ("/", "sources", Code.OUTSIDE_READABLE),
        ("//abs/*", "sources", Code.OK),
        ("/etc/*", "sources", Code.OUTSIDE_READABLE),
        ("/e*/passwd", "sources", Code.OUTSIDE_READABLE),
        ("/abs/{x,y}/*", "sources", Code.OK),
        ("/{abs,etc}/*", "sources", Code.OUTSIDE_READABLE),
        ("/[a]bs/*", "sources", Code.OUTSIDE_READABLE),
        ("/proc/self/root/abs/*", "sources", Code.SPECIAL_FILE),
        (f"{PROJECT}/sources/secret/*", None, Code.DENIED_PATH),
        (f"{PROJECT}/sources/secret", None, Code.DENIED_PATH),
        # the pattern's ~ and spaces are not read by the CLI; both readings must be allowed
        ("~/*", "sources", Code.OK),
        ("~/*", "/etc", Code.OUTSIDE_READABLE),
        ("~/a", "sources", Code.OK),
        ("~", "sources", Code.OK),
        ("~x/*", "sources", Code.OK),
        ("~x/**", "/etc", Code.OUTSIDE_READABLE),
        ("~*", "sources", Code.OK),
        (" /abs/*", "sources", Code.OK),
        (" /abs/*", "/etc", Code.OUTSIDE_READABLE),
        (" /etc/*", "sources", Code.OUTSIDE_READABLE),
        ("\ufeff/etc/*", "sources", Code.OUTSIDE_READABLE),
        (" x/*", "sources", Code.OK),
    ],
)
def test_a_glob_starts_at_its_path_and_the_fixed_folders_of_its_pattern(
    pattern: str, path: str | None, expected: Code
) -> None:
    assert code(pattern, path) is expected


def test_a_glob_without_a_path_starts_in_the_folder_of_the_call() -> None:
    assert code("*", cwd=f"{PROJECT}/sources") is Code.OK
    assert code("x/*", cwd=f"{PROJECT}/sources") is Code.OK
    assert code("*", cwd=PROJECT) is Code.OUTSIDE_READABLE
    assert code("secret/*", cwd=f"{PROJECT}/sources") is Code.DENIED_PATH
    assert explain_file_scope(SCOPE, "Glob", {}, cwd=f"{PROJECT}/sources").code is Code.OK
    assert explain_file_scope(SCOPE, "Glob", {"path": "sources"}).code is Code.OK


@pytest.mark.parametrize(
    "name", ["@(link)", "+(l)", "!(l)", "a\\b", "a@(b", "\\o", "plain", "(x)", "~l"]
)
def test_the_fixed_folders_are_followed_through_links(tmp_path: Path, name: str) -> None:
    """The CLI goes to the folders before the first of ``* ? [ {``, ripgrep reads only the rest."""
    (tmp_path / "out").mkdir()
    (tmp_path / "p" / "in").mkdir(parents=True)
    (tmp_path / "p" / name).symlink_to(tmp_path / "out")
    (tmp_path / "p" / "fine").symlink_to(tmp_path / "p" / "in")
    scope = FileScope(project_dir=tmp_path / "p", searchable_dirs=["."])
    assert code(f"{tmp_path}/p/{name}/*", scope=scope) is Code.OUTSIDE_READABLE
    assert code(f"{tmp_path}/p/{name}/{{a,b}}/*", scope=scope) is Code.OUTSIDE_READABLE
    assert code(f"{tmp_path}/p/fine/*", scope=scope) is Code.OK


@pytest.mark.parametrize("pattern", ["~/*", "~/x", " ~/x/*", "/nowhere/home/*"])
def test_a_pattern_in_the_home_folder_needs_that_open_as_well(pattern: str) -> None:
    scope = FileScope(project_dir=PROJECT, home="/nowhere/home", readable_dirs=["sources"])
    assert code(pattern, "sources", scope) is Code.OUTSIDE_READABLE
    opened = FileScope(project_dir=PROJECT, home="/nowhere/home", readable_dirs=["sources", "~"])
    assert code(pattern, "sources", opened) is Code.OK


def test_what_another_reader_takes_for_magic_is_no_fixed_folder() -> None:
    """Where extended patterns count, ``@(x)`` is no folder of that name."""
    for name in ("@(x)", "+(x)", "!(x)", "a\\b"):
        scope = FileScope(project_dir=PROJECT, readable_dirs=[name])
        assert code(f"{name}/*", scope=scope) is Code.OUTSIDE_READABLE
        assert code("*", name, scope) is Code.OK


@pytest.mark.parametrize("name", ["*", "[x]", "a?", "{a}"])
def test_what_the_cli_takes_for_magic_is_no_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / name).symlink_to("/etc")
    scope = FileScope(project_dir=tmp_path / "p", searchable_dirs=["."])
    assert code(f"{tmp_path}/p/{name}/*", scope=scope) is Code.OK


@pytest.mark.parametrize(
    "pattern",
    [
        "{a,b}" * 10,
        "{1..1001}",
        "{1..99999999999}/x",
        "{a," * 101 + "}" * 101,
        "{" * 20_000,
        "{" + ",".join(f"d{at}/x" for at in range(65)) + "}/*",
    ],
)
def test_too_many_alternatives_are_refused_at_once(pattern: str) -> None:
    for text in (pattern, f".{pattern}"):
        assert code(text, "sources") is Code.MALFORMED


def test_sixty_four_starts_are_not_too_many() -> None:
    names = [f"d{at}" for at in range(63)]
    pattern = "{" + ",".join(f"{name}/x*" for name in names) + "}"
    assert len(starts("sources", pattern, POSIX)) == 64
    assert code(pattern, "sources") is Code.OK


def test_the_sentence_quotes_where_the_glob_starts() -> None:
    for call, quoted in (
        ({"pattern": "*"}, "."),
        ({"pattern": "a/b/*"}, "a/b"),
        ({"pattern": "a/*", "path": "x"}, "x/a"),
        ({"pattern": "a/*", "path": "x/"}, "x/a"),
        ({"pattern": "*", "path": "/etc"}, "/etc"),
        ({"pattern": "/etc/*"}, "/etc/"),
    ):
        message = check_file_scope(SCOPE, "Glob", call)
        assert message is not None
        assert message.startswith(f'Glob can\'t list "{quoted}": listing is only allowed inside')


PIECES = st.sampled_from(
    [
        "a",
        "..",
        ".",
        "/",
        "/",
        "{",
        "}",
        ",",
        "*",
        "?",
        "[",
        "]",
        "@(",
        ")",
        "|",
        "\\",
        "~",
        " ",
        "{a,b}",
    ]
)
PATTERNS = st.lists(PIECES, max_size=8).map("".join)


@given(PATTERNS)
def test_a_plain_climb_never_goes_unseen(pattern: str) -> None:
    try:
        seen = climbs(pattern)
    except Malformed:
        return
    if ".." in pattern.split("/"):
        assert seen


@given(PATTERNS, st.sampled_from(["here", "/abs", ".", " "]))
def test_a_relative_pattern_starts_at_its_path_or_below(pattern: str, path: str) -> None:
    try:
        if climbs(pattern):
            return
        found = starts(path, pattern, POSIX)
    except Malformed:
        return
    assert found
    here = "." if path == " " else path
    for text, tail in found:
        assert text == here or (tail == "" and text.endswith("/"))
        assert not tail.startswith("/")
    if not pattern.lstrip(" ").startswith(("/", "~", "{")):
        assert {text for text, _ in found} == {here}
