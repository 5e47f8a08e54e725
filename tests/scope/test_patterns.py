"""Denied patterns: gitignore's language, over absolute paths, whatever the case."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from agent_kit.scope import Code, ConfigError, FileScope, explain_file_scope
from agent_kit.scope.flavour import POSIX, WINDOWS, Malformed
from agent_kit.scope.pattern_index import PatternIndex
from agent_kit.scope.patterns import Pattern, alternatives, is_pattern, parse_pattern, unescaped
from agent_kit.scope.text import fold

PROJECT = "/nowhere/p"


def code(entries: list[str], path: str, **fields: str) -> Code:
    scope = FileScope(
        project_dir=PROJECT,
        searchable_dirs=["/"],
        writable_dirs=["/"],
        denied_paths=entries,
        home="/nowhere/home",
        **fields,
    )
    return explain_file_scope(scope, "Read", {"file_path": path}).code


@pytest.mark.parametrize(
    ("entry", "denied", "free"),
    [
        # no slash, or **/ in front: everywhere, also outside the project
        (
            "**/.env",
            [".env", "a/b/.env", "/srv/.env", "/.env", ".env/x", "A/.ENV"],
            [".envrc", "env"],
        ),
        ("*.pem", ["a.pem", "x/y.pem", "/srv/k.PEM", "a.pem/in"], ["a.pem.txt", "pem", "a.pe"]),
        ("*", ["a", "/srv/x/y"], []),
        ("**", ["a", "/srv/x/y"], []),
        ("*.pem ", ["a.pem"], ["a.pem x"]),
        ("*.pem\\ ", ["a.pem /in"], ["a.pem"]),
        ("id_?sa*", ["id_rsa", "/home/u/.ssh/id_dsa.pub"], ["id_ecdsa", "id_sa"]),
        # other relative patterns: below the project
        (
            "keys/*.pem",
            ["keys/a.pem", "keys/a.pem/x"],
            ["x/keys/a.pem", "/keys/a.pem", "keys/x/a.pem"],
        ),
        ("secrets/**", ["secrets/a", "secrets/a/b"], ["secrets2/a", "/secrets/a", "x/secrets/a"]),
        ("./*.key", ["a.key"], ["x/a.key", "/a.key"]),
        ("a//b/./*.key", ["a/b/x.key"], ["a/x.key"]),
        ("a*//b/./c.key", ["a1/b/c.key"], ["a1/c.key"]),
        ("ke?s//", ["x/keys/a.pem"], ["x/key/a.pem"]),
        ("**//keys/./*.pem", ["x/keys/a.pem", "/keys/a.pem"], ["keys/x/a.pem"]),
        ("a*/**/z", ["a1/z", "a1/b/c/z", "a/z/q"], ["z", "b/a1/z"]),
        # absolute
        ("/srv/**/*.key", ["/srv/a.key", "/srv/x/y/a.key"], ["/srvx/a.key", "srv/a.key", "a.key"]),
        ("/**/.env", ["/.env", ".env", "/x/.env"], ["env"]),
        ("/*", ["/x", "/x/y", "a"], []),
        ("~/.ssh/id_*", ["/nowhere/home/.ssh/id_rsa", "~/.ssh/id_x"], ["/root/.ssh/id_rsa"]),
        # folders only: what is missing may become one
        ("x*/", ["x1", "x1/a", "/srv/xy/b"], ["ax/a"]),
        ("x*/  ", ["x1", "/srv/xy/b"], ["ax/a"]),
        # alternatives
        ("*.{pem,key}", ["a.pem", "b.key"], ["a.{pem,key}", "a.pe"]),
        (
            "{*.pem,conf/secret.txt}",
            ["x/a.pem", "conf/secret.txt"],
            ["conf/other", "x/conf/secret.txt"],
        ),
        ("{*.pem,secret.txt}", ["a.pem", "x/secret.txt"], ["secrets.txt"]),
        ("{*.pem,conf/x/}", ["a.pem", "conf/x/y"], ["conf/y"]),
        ("a{1..3}*", ["a1", "a2z"], ["a4", "a"]),
        (r"\{a,b\}*", ["{a,b}", "{a,b}c"], ["a", "b"]),
        # brackets
        ("*.[kp]em", ["a.kem", "a.PEM"], ["a.xem"]),
        ("*.[!k]em", ["a.pem"], ["a.kem", "a.KEM"]),
        ("*.[^k]em", ["a.pem"], ["a.kem"]),
        ("v[0-9].x", ["v1.x"], ["va.x"]),
        ("[A-_]x", ["Zx", "zx", "ax", "_x", "^x"], ["0x"]),
        ("[A-z]x", ["_x", "Bx"], ["0x"]),
        ("[Z-a]x", ["Zx", "zx", "ax", "_x"], ["bx"]),
        ("a[[]b", ["a[b"], ["ab", "axb", "a[[]b]"]),
        ("a[]]b", ["a]b"], ["ab"]),
        ("a[:x]b", ["a:b", "axb"], ["ayb", "a[:x]b"]),  # no class: it only begins like one
        ("a[\\]b*", ["a\\b1"], ["ab"]),
        ("[z-a]x", ["qx", "zx"], ["x", "qqx"]),  # an empty range: any character, to be safe
        ("a[b--c]d", ["abd", "aqd"], ["ad"]),  # nobody knows: any character
        # escapes
        (r"\*.pem*", ["*.pem", "*.pem2"], ["a.pem"]),
        (r"a\[b\]*", ["a[b]", "a[b]c"], ["ab"]),
        (r"\#*", ["#x"], ["x"]),
        (r"\!*", ["!x"], ["x"]),
        # Unicode forms and case
        ("se\u00f1as*", ["sen\u0303as.txt", "SE\u00d1AS", "SEN\u0303AS2"], ["senas"]),
        ("SEN\u0303AS*", ["se\u00f1as"], ["senas"]),
        ("stra\u00dfe*", ["STRASSE1", "strasse"], ["strase"]),
        (
            "?.key",
            ["\u0130.key", "\u00df.key", "I\u0307.key", "\u00e9.key", "e\u0301.key"],
            ["ab.key"],
        ),
        ("[\u00e9x]*", ["\u00c9a", "e\u0301a"], ["ea"]),
        ("*.k\u0065y", ["a.\u212aey"], ["a.ke"]),  # the Kelvin sign folds to k
        (".cl*ude", [".cl\u200caude", ".claude"], [".clude2"]),
    ],
)
def test_a_pattern_denies_what_gitignore_would(
    entry: str, denied: list[str], free: list[str]
) -> None:
    for path in denied:
        assert code([entry], path) is Code.DENIED_PATTERN, path
    for path in free:
        assert code([entry], path) is Code.OK, path


def test_an_entry_without_magic_is_a_name() -> None:
    for entry in ("a{b,c}", "a]b", "#x", "!x", "a\\b", "secret", r"\*.pem", r"a\?", r"a\[b]"):
        assert code([entry], f"{PROJECT}/{entry}") is Code.DENIED_PATH
        assert code([entry], f"x/{entry}") is Code.OK
    assert code(["a{b,c}"], "ab") is Code.OK
    assert code(["secret/"], "secret") is Code.DENIED_PATH
    assert code([".//x/./secret/"], "x/secret/a") is Code.DENIED_PATH


def test_an_entry_whose_magic_is_all_escaped_is_the_name_it_spells() -> None:
    assert code([r"a\*b"], "a*b") is Code.DENIED_PATH
    assert code([r"a\*b"], "axb") is Code.OK
    assert code([r"a\\*b"], "a\\xb") is Code.DENIED_PATTERN  # an escaped backslash, then a star


@pytest.mark.parametrize("entry", ["a[b", "dir/a[b", "a[", "x[!", "[]"])
def test_a_bracket_that_never_closes_makes_it_a_name(entry: str) -> None:
    assert code([entry], entry) is Code.DENIED_PATH
    assert code([entry], f"{entry}c") is Code.OK


def test_a_pattern_that_exists_under_its_very_name_is_denied_as_well(tmp_path: Path) -> None:
    (tmp_path / "notes[1].md").touch()
    (tmp_path / "notes1.md").touch()
    scope = FileScope(project_dir=tmp_path, searchable_dirs=["."], denied_paths=["notes[1].md"])

    def found(name: str) -> Code:
        return explain_file_scope(scope, "Read", {"file_path": name}).code

    assert found("notes[1].md") is Code.DENIED_PATH
    assert found("notes1.md") is Code.DENIED_PATTERN
    assert found("notes2.md") is Code.OK
    assert explain_file_scope(scope, "Grep", {"path": "."}).code is Code.CONTAINS_DENIED
    absent = FileScope(project_dir=tmp_path, searchable_dirs=["."], denied_paths=["other[1].md"])
    assert explain_file_scope(absent, "Read", {"file_path": "other[1].md"}).code is Code.OK


@pytest.mark.parametrize("kind", ["file", "folder", "missing"])
def test_a_pattern_for_folders_spares_existing_files_only(tmp_path: Path, kind: str) -> None:
    if kind == "file":
        (tmp_path / "x1").touch()
    elif kind == "folder":
        (tmp_path / "x1").mkdir()
    scope = FileScope(project_dir=tmp_path, searchable_dirs=["."], denied_paths=["x*/"])
    for path in ("x1", f"{tmp_path}/x1"):
        found = explain_file_scope(scope, "Read", {"file_path": path}).code
        assert found is (Code.OK if kind == "file" else Code.DENIED_PATTERN)


@pytest.mark.parametrize(
    ("entry", "remedy"),
    [
        ("#*", "a pattern can't begin with '#'; write '\\#*' for the name."),
        ("!*.md", "a pattern can't begin with '!'; write '\\!*.md' for the name."),
        ("{a*,/}", "it names no file."),
        ("{a*,!b}", "a pattern can't begin with '!'; write '\\!b' for the name."),
        ("../*.pem", "'..' has no place in a pattern."),
        ("a/../*.pem", "'..' has no place in a pattern."),
        ("*.pem/..", "'..' has no place in a pattern."),
        ("{x,..}/*.pem", "'..' has no place in a pattern."),
        ("*{1..1001}", "it has more than 1,000 alternatives."),
        ("*{1..99999999999}", "it has more than 1,000 alternatives."),
        ("*" + "{a,b}" * 10, "it has more than 1,000 alternatives."),
        ("*" + "{a," * 101 + "}" * 101, "it has more than 100 braces."),
        ("*" + "{" * 20000, "it has more than 100 braces."),
        ("*x\\", "it isn't a gitignore pattern."),
        ("*[[:alpha:]]", "it has a class, [[:alpha:]]: write the characters out."),
        ("*[a[.x.]]", "it has a class, [a[.x.]]: write the characters out."),
    ],
)
def test_what_gitignore_would_ignore_in_silence_is_a_fault(entry: str, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        FileScope(project_dir=PROJECT, denied_paths=[entry, "fine*"])
    [fault] = caught.value.faults
    assert (fault.field, fault.value, fault.remedy) == ("denied_paths", entry, remedy)


def test_a_thousand_alternatives_are_not_too_many() -> None:
    assert len(alternatives("*{1..1000}")) == 1000
    assert code(["*.{1..1000}"], "a.1000") is Code.DENIED_PATTERN


def test_a_home_that_nobody_knows_is_a_fault_of_the_pattern() -> None:
    with pytest.raises(ConfigError, match="there is no home folder for '~'"):
        FileScope(project_dir="C:\\p", denied_paths=["~/*.pem"], platform="windows")


def test_a_pattern_holds_under_every_name_of_its_folder(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "keys").mkdir(parents=True)
    (real / "keys" / "a.key").touch()
    (tmp_path / "project").symlink_to("real")
    (tmp_path / "vault").symlink_to("real/keys")
    for entry in ("keys/*.key", f"{tmp_path}/project/*/a.key", f"{tmp_path}/vault/*.key"):
        scope = FileScope(
            project_dir=tmp_path / "project", searchable_dirs=["."], denied_paths=[entry]
        )
        for cwd in ("project", "real"):  # the CLI tells the real one
            found = explain_file_scope(
                scope, "Read", {"file_path": "keys/a.key"}, cwd=f"{tmp_path}/{cwd}"
            )
            assert (found.code, found.entry) == (Code.DENIED_PATTERN, entry)
            assert (
                explain_file_scope(
                    scope,
                    "Grep",
                    {"path": "keys" if "vault" in entry else "."},
                    cwd=f"{tmp_path}/{cwd}",
                ).code
                is Code.CONTAINS_DENIED
            )


# --- Windows ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "denied", "free"),
    [
        ("C:\\p\\secrets\\*.pem", ["secrets\\a.pem", "C:/P/SECRETS/a.PEM"], ["a.pem"]),
        ("secrets\\*.pem", ["secrets/a.pem"], ["x\\secrets\\a.pem"]),
        ("**\\.env", ["a\\.env"], ["env"]),
        ("\\\\srv\\share\\*.pem", ["\\\\SRV\\share\\a.pem"], ["C:\\srv\\share\\a.pem"]),
        ("\\\\?\\C:\\p\\*.pem", ["a.pem"], ["x\\a.pem"]),
        ("/c/p/*.pem", ["a.pem"], ["x\\a.pem"]),
        ("~\\*.pem", ["C:\\home\\a.pem", "~\\a.pem"], ["a.pem"]),
        ("*.", ["x*."], []),  # a pattern, and no name on Windows
    ],
)
def test_on_windows_a_backslash_divides(entry: str, denied: list[str], free: list[str]) -> None:
    scope = FileScope(
        platform="windows",
        project_dir="C:\\p",
        home="C:\\home",
        searchable_dirs=["C:\\", "\\\\srv\\share"],
        denied_paths=[entry],
    )
    for path in denied:
        found = explain_file_scope(scope, "Read", {"file_path": path}).code
        assert found in (Code.DENIED_PATTERN, Code.MALFORMED), path
        assert (found is Code.MALFORMED) == path.endswith(".")
    for path in free:
        assert explain_file_scope(scope, "Read", {"file_path": path}).code is Code.OK, path


def test_an_extended_length_path_is_no_pattern() -> None:
    assert not is_pattern("\\\\?\\C:\\secret", "windows")
    assert is_pattern("\\\\?\\C:\\secre?", "windows")
    scope = FileScope(
        platform="windows",
        project_dir="C:\\p",
        searchable_dirs=["C:\\"],
        denied_paths=["\\\\?\\C:\\p\\secret", "D:\\other\\x"],
    )
    assert explain_file_scope(scope, "Read", {"file_path": "secret"}).code is Code.DENIED_PATH


# --- laws ---------------------------------------------------------------------------------------

NAMES = st.text(alphabet="abAé.-_ ß", min_size=1, max_size=4).filter(
    lambda name: name not in (".", "..")
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))
PIECES = st.sampled_from(
    ["a", "b", "A", "ab", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[a-b]", "[]-]", ".", "-", " ",
     "\\*", "\\ ", "_", "[^b]", "[b", "***", "]", "\\a", "é"]
)  # fmt: skip
GLOBS = (
    st.lists(PIECES, min_size=1, max_size=7)
    .map("".join)
    .filter(lambda text: is_pattern(text) and ".." not in text.split("/"))
)


def absolutes(texts: list[str]) -> list[tuple[str, Pattern]]:
    """Each pattern that gitignore would take, with its absolute form."""
    found = []
    for text in texts:
        try:
            found += [(text, each) for each in parse_pattern(text, "/a", "/b", POSIX)]
        except Malformed:
            continue
    return found


def matches(pattern: str, path: str) -> bool:
    """What pathspec says, but for the case of the characters in brackets."""
    [compiled] = GitIgnoreSpec.from_lines([pattern]).patterns
    return re.search(compiled.regex.pattern, path, re.IGNORECASE) is not None


# So many that patterns are filed; none of them fits a path of NAMES.
FILLERS = [
    pattern
    for at in range(60)
    for pattern in parse_pattern(f"filler{at}*/{{*.q{at},q{at}*}}", "/a", "/b", POSIX)
]


@settings(max_examples=150)
@given(st.lists(GLOBS, min_size=1, max_size=6), st.lists(PATHS, max_size=6), st.booleans())
@example(["*/"], ["/a", "/a/b"], False)
@example(["**/"], ["/a", "/a/b"], False)
@example(["a*/"], ["/a", "/a/b", "/b/ab"], True)
@example(["/*/a "], ["/b/a"], False)
@example(["[ab]-[ab]"], ["/a-b", "/x/b-a"], False)
def test_the_index_agrees_with_pathspec(texts: list[str], paths: list[str], folder: bool) -> None:
    parsed = absolutes(texts)
    patterns = [pattern for _, pattern in parsed]
    index, filed = PatternIndex(patterns), PatternIndex([*patterns, *FILLERS])
    slash = "/" if folder else ""
    for path in paths:
        folded = fold(path)
        found = index.match(folded + slash, folded + "/")
        assert filed.match(folded + slash, folded + "/") == found
        for text, pattern in parsed:
            if matches(pattern.folded, folded[1:] + slash):
                assert found is not None, text
        if found is not None:
            assert matches(found.folded, folded[1:] + slash)


@settings(max_examples=150)
@given(GLOBS.filter(str.isascii), PATHS.filter(str.isascii), st.booleans())
def test_a_denied_pattern_denies_what_pathspec_matches_in_any_case(
    text: str, path: str, folder: bool
) -> None:
    """Against the pattern as a person wrote it, below the root as the project."""
    try:
        scope = FileScope(project_dir="/", searchable_dirs=["/"], denied_paths=[text])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            spec = GitIgnoreSpec.from_lines([text.lower(), text])
    except (ConfigError, re.error):  # a fault, or a range that pathspec stumbles over
        return
    name = path.lower() if not folder else path.lower() + "/x"
    if os.path.lexists(name.upper()):  # whether it is a folder would count
        return
    if not (spec.match_file(name[1:]) or spec.match_file(name[1:] + "/")):
        return
    found = explain_file_scope(scope, "Read", {"file_path": name.upper() + "/."}).code
    assert found in (Code.DENIED_PATTERN, Code.DENIED_PATH)


@given(st.text(alphabet="ab\\*[", max_size=6))
def test_unescaped_leaves_no_escape(text: str) -> None:
    assert unescaped(text.replace("\\", "\\\\")) == text
    if not is_pattern(text):
        assert not is_pattern(text.replace("\\", "\\\\").replace("*", "\\*").replace("[", "\\["))


def test_many_patterns_are_found_as_one_is() -> None:
    shapes = ["*.ext%d", "name%d*", "/srv/d%d/**/*.key", "sub%d/*.key", "**/x%d/.env", "*t%d", "f%d*.md",
              "?%d", "[ab]%d", "a[xy]b%d*", "*%d[ab]"]  # fmt: skip
    hits = ["q.ext%d", "name%dz", "/srv/d%d/a/b.key", "sub%d/z.key", "q/x%d/.env", "zt%d", "f%dq.md",
            "_%d", "b%d", "axb%dq", "z%db"]  # fmt: skip
    entries = [shape % at for at in range(200) for shape in shapes]
    scope = FileScope(project_dir=PROJECT, searchable_dirs=["/"], denied_paths=entries)
    for at in (0, 7, 199):
        for shape, hit in zip(shapes, hits, strict=True):
            found = explain_file_scope(scope, "Read", {"file_path": hit % at})
            assert found.code is Code.DENIED_PATTERN, hit % at
            alone = FileScope(project_dir=PROJECT, searchable_dirs=["/"], denied_paths=[shape % at])
            assert explain_file_scope(alone, "Read", {"file_path": hit % at}).entry == shape % at
    for miss in ("q.ext200", "xname1", "/srv/d300/a.pem", "f1.txt", "c300"):
        assert explain_file_scope(scope, "Read", {"file_path": miss}).code is Code.OK, miss


def test_a_windows_pattern_needs_no_drive_to_apply_everywhere() -> None:
    [pattern] = parse_pattern("*.pem", "/c:/p", None, WINDOWS)
    assert (pattern.absolute, pattern.fixed) == ("**/*.pem", None)
