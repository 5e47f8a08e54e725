"""Windows texts, judged on any machine by what they say."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_kit.scope import (
    Code,
    ConfigError,
    FileScope,
    ToolOnlyDir,
    check_file_scope,
    control,
    explain_file_scope,
)
from agent_kit.scope.compiled import compile_scope
from agent_kit.scope.decision import Access
from agent_kit.scope.disk import Located
from agent_kit.scope.flavour import WINDOWS, Malformed
from agent_kit.scope.judge import _plainly_allowed

PROJECT = "C:\\work\\course"
SCOPE = FileScope(
    platform="windows",
    project_dir=PROJECT,
    home="C:\\Users\\ada",
    writable_dirs=["drafts", "\\\\srv\\share\\out"],
    searchable_dirs=["sources", "drafts", "\\\\srv\\share\\out"],
    read_only_dirs=["sources"],
    denied_paths=["agent.config.json", "~\\.ssh", "D:\\vault", "**/.env"],
    tool_only_dirs=[ToolOnlyDir(dir="knowledge", instead="its tools")],
)
WIDE = FileScope(
    platform="windows",
    project_dir=PROJECT,
    home="C:\\Users\\ada",
    writable_dirs=["C:\\"],
    searchable_dirs=["C:\\", "D:\\", "\\\\srv\\share"],
    denied_paths=["agent.config.json", "~\\.ssh", "D:\\vault", "\\\\srv\\share\\x", "C:\\c\\odd"],
)


def code(path: str, scope: FileScope = SCOPE, tool: str = "Read", cwd: str | None = None) -> Code:
    field = "path" if tool in ("Grep", "Glob", "LS") else "file_path"
    decision = explain_file_scope(scope, tool, {field: path}, cwd=cwd)
    assert check_file_scope(scope, tool, {field: path}, cwd=cwd) == decision.message
    return decision.code


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        # one folder, many spellings
        ("sources\\a.md", Code.OK),
        ("sources/a.md", Code.OK),
        ("SOURCES\\A.MD", Code.OK),
        (".\\sources\\.\\\\a.md", Code.OK),
        ("C:\\work\\course\\sources\\a.md", Code.OK),
        ("c:/WORK/course/sources/a.md", Code.OK),
        ("\\work\\course\\sources\\a.md", Code.OK),  # the project's drive
        ("/work/course/sources/a.md", Code.OK),
        ("C:sources\\a.md", Code.OK),  # relative to the drive's folder
        ("\\\\?\\C:\\work\\course\\sources\\a.md", Code.OK),
        ("//?/c:/work/course/sources/a.md", Code.OK),
        ("\\\\srv\\share\\out\\a.md", Code.OK),
        ("//SRV/SHARE/out/a.md", Code.OK),
        ("\\\\?\\UNC\\srv\\share\\out\\a.md", Code.OK),
        ("sources\\..\\drafts\\a", Code.OK),
        ("sources/...../a", Code.MALFORMED),
        # outside
        ("README.md", Code.OUTSIDE_READABLE),
        ("sources\\..\\a", Code.OUTSIDE_READABLE),
        ("C:\\Windows\\win.ini", Code.OUTSIDE_READABLE),
        ("\\Windows\\win.ini", Code.OUTSIDE_READABLE),
        ("D:\\work\\course\\sources\\a.md", Code.OUTSIDE_READABLE),
        ("\\\\srv\\other\\out\\a.md", Code.OUTSIDE_READABLE),
        ("\\\\other\\share\\out\\a.md", Code.OUTSIDE_READABLE),
        ("/srv/share/out/a.md", Code.OUTSIDE_READABLE),  # no share: a folder of this drive
        ("\\\\srv\\share\\..\\share\\out\\a", Code.OUTSIDE_READABLE),  # a share is not climbed over
        ("~\\a", Code.OUTSIDE_READABLE),
        ("~/a", Code.OUTSIDE_READABLE),
        # refused whatever they might name
        ("D:sources\\a.md", Code.MALFORMED),
        ("\\\\.\\C:\\work\\course\\sources\\a.md", Code.MALFORMED),
        ("\\\\.\\PhysicalDrive0", Code.MALFORMED),
        ("\\\\?\\Volume{b75e2c83-0000-0000-0000-602f00000000}\\a", Code.MALFORMED),
        ("\\\\?\\GLOBALROOT\\Device\\x", Code.MALFORMED),
        ("\\\\?\\sources\\a.md", Code.MALFORMED),
        ("\\??\\C:\\work\\course\\sources\\a.md", Code.MALFORMED),
        ("\\\\?\\UNC\\.\\pipe\\x", Code.MALFORMED),
        ("\\\\srv", Code.MALFORMED),
        ("\\\\srv\\", Code.MALFORMED),
        ("\\\\..\\share\\out", Code.MALFORMED),
        ("\\\\srv\\..\\out", Code.MALFORMED),
        ("sources\\a.md::$DATA", Code.MALFORMED),
        ("sources\\a.md:stream", Code.MALFORMED),
        ("sources::$INDEX_ALLOCATION\\a.md", Code.MALFORMED),
        ("sources\\a.md.", Code.MALFORMED),
        ("sources.\\a.md", Code.MALFORMED),
        ("sources \\a.md", Code.MALFORMED),
        ("sources\\...\\a.md", Code.MALFORMED),
        ("sources\\.. \\a.md", Code.MALFORMED),
        ("SOURCE~1\\a.md", Code.MALFORMED),
        ("sources\\LONGNA~1.MD", Code.MALFORMED),
        ("sources\\a.md\0", Code.MALFORMED),
        ("sources\\" + "x" * 255, Code.OK),
        ("sources\\" + "x" * 256, Code.MALFORMED),
    ],
)
def test_a_text_is_read_as_windows_reads_it(path: str, expected: Code) -> None:
    assert code(path) is expected


@pytest.mark.parametrize(
    "name",
    ["NUL", "nul", "NUL.txt", "con", "CON.tar.gz", "prn", "AUX.md", "COM1", "com9.log", "COM0",
     "LPT1", "lpt9.x", "COM\u00b9", "com\u00b2.txt", "LPT\u00b3", "CONIN$", "CONOUT$", "NUL .txt", "AUX  .x"],
)  # fmt: skip
def test_a_device_is_refused_under_every_name(name: str) -> None:
    for path in (name, f"sources\\{name}", f"sources\\{name}\\a.md", f"{PROJECT}\\sources\\{name}"):
        assert code(path) is Code.MALFORMED


@pytest.mark.parametrize(
    "name", ["NULL", "console", "COM10", "LPT", "COM", "auxiliary.md", "a.nul", "x CON", "CONIN"]
)
def test_a_name_that_only_looks_like_a_device_is_a_name(name: str) -> None:
    assert code(f"sources\\{name}") is Code.OK


@pytest.mark.parametrize(
    "path",
    [
        "agent.config.json",
        "AGENT.CONFIG.JSON",
        "C:\\Work\\Course\\agent.config.json",
        "C:agent.config.json",
        "\\work\\course\\agent.config.json",
        "\\\\?\\C:\\work\\course\\agent.config.json",
        "/c/work/course/agent.config.json",
        "\\c\\work\\course\\agent.config.json",
        "/C/work/course/sources/../agent.config.json",
        "sources\\..\\agent.config.json",
        "\u212a\\..\\agent.config.json",
        " agent.config.json ",
        "~\\.ssh\\id_rsa",
        "~/.ssh/id_rsa",
        "c:/users/ADA/.SSH",
        "/c/Users/ada/.ssh/id_rsa",
        "D:\\vault\\a",
        "/d/vault/a",
        "d:/VAULT",
        "//SRV/share/X",
        "\\\\?\\unc\\srv\\share\\x\\y",
        "/c/odd",  # as C:\c\odd
        "C:\\c\\odd\\x",
    ],
)
@pytest.mark.parametrize("tool", ["Read", "Write", "Grep", "LS"])
def test_a_denied_file_is_denied_in_every_spelling(path: str, tool: str) -> None:
    assert code(path, WIDE, tool) is Code.DENIED_PATH


def test_git_bash_paths_must_be_allowed_in_both_readings() -> None:
    both = FileScope(
        platform="windows", project_dir=PROJECT, searchable_dirs=["C:\\work", "C:\\c\\work"]
    )
    assert code("/c/work/a", both) is Code.OK
    for searchable in ("C:\\work", "C:\\c\\work"):
        one = FileScope(platform="windows", project_dir=PROJECT, searchable_dirs=[searchable])
        assert code("/c/work/a", one) is Code.OUTSIDE_READABLE
    drive = FileScope(platform="windows", project_dir=PROJECT, searchable_dirs=["D:\\", "C:\\d"])
    assert code("/d", drive) is Code.OK


def test_a_tilde_and_a_backslash_must_be_allowed_in_both_readings() -> None:
    assert code("~\\x", WIDE) is Code.OK
    for searchable in ("~", "."):
        one = FileScope(
            platform="windows", project_dir=PROJECT, home="C:\\h", searchable_dirs=[searchable]
        )
        assert code("~\\x", one) is Code.OUTSIDE_READABLE
        assert code("~/x", one) is (Code.OK if searchable == "~" else Code.OUTSIDE_READABLE)


def test_allowing_ignores_case_and_no_more() -> None:
    assert code("s\u00f6urces", WIDE) is Code.OK
    scope = FileScope(
        platform="windows", project_dir=PROJECT, searchable_dirs=["stra\u00dfe\\\u00e9"]
    )
    assert code("STRA\u00dfE\\\u00c9\\x", scope) is Code.OK
    for path in (
        "strasse\\\u00e9",
        "\u017ftra\u00dfe\\\u00e9",
        "stra\u00dfe\\e\u0301",
        "s\u200ctra\u00dfe\\\u00e9",
    ):
        assert code(path, scope) is Code.OUTSIDE_READABLE


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.md", "sources", Code.OK),
        ("sources\\*.md", None, Code.OK),
        ("sources/*.md", None, Code.OK),
        ("C:\\work\\course\\sources\\*", "D:\\", Code.OK),
        ("..\\..\\*", "sources", Code.CLIMBS),
        ("x\\..\\*", "sources", Code.CLIMBS),
        ("{..,x}\\*", "sources", Code.CLIMBS),
        ("x\\.{.,y}\\*", "sources", Code.CLIMBS),
        ("D:\\*", "sources", Code.OUTSIDE_READABLE),
        ("\\*", "sources", Code.CONTAINS_TOOLS_ONLY),
        ("\\\\srv\\other\\*", "sources", Code.OUTSIDE_READABLE),
        ("\\\\srv\\share\\out\\*", None, Code.OK),
        ("C:*", "sources", Code.CONTAINS_TOOLS_ONLY),
        ("~\\*", "sources", Code.OUTSIDE_READABLE),
        ("sources.\\*", None, Code.MALFORMED),
        ("knowledge\\*", None, Code.TOOLS_ONLY),
    ],
)
def test_a_glob_divides_at_either_slash(pattern: str, path: str | None, expected: Code) -> None:
    call = {"pattern": pattern} if path is None else {"pattern": pattern, "path": path}
    assert explain_file_scope(SCOPE, "Glob", call).code is expected


def test_sentences_show_windows_paths() -> None:
    message = check_file_scope(SCOPE, "Read", {"file_path": "C:\\x"})
    assert message == (
        '"C:\\\\x" can\'t be read: reading is only allowed inside sources/, drafts/,'
        " \\\\srv\\share\\out\\ and your own plugins and run folder."
    )
    found = explain_file_scope(SCOPE, "Read", {"file_path": "sources/a"})
    expected = "C:\\work\\course\\sources\\a"
    assert (found.target, found.readings) == (expected, (expected,))
    assert explain_file_scope(SCOPE, "Read", {"file_path": "//SRV/share/Out/a"}).target == (
        "\\\\srv\\share\\Out\\a"
    )


@pytest.mark.parametrize(
    ("path", "cwd", "expected"),
    [
        ("a.md", "C:\\work\\course\\sources", Code.OK),
        ("a.md", "sources", Code.OK),
        ("..\\sources\\a.md", "C:/work/course/drafts", Code.OK),
        ("a.md", "\\\\srv\\share\\out", Code.OK),
        ("\\out\\a.md", "\\\\srv\\share\\x", Code.OK),  # the share is the root
        ("C:a.md", "\\\\srv\\share\\out", Code.MALFORMED),
        ("C:a.md", "D:\\x", Code.MALFORMED),
        ("D:..\\x", "D:\\x\\y", Code.OUTSIDE_READABLE),
        ("a.md", "\\\\.\\x", Code.MALFORMED),
    ],
)
def test_relative_texts_stand_on_the_folder_of_the_call(
    path: str, cwd: str, expected: Code
) -> None:
    assert code(path, cwd=cwd) is expected


# --- configured texts -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "faults"),
    [
        (
            {"project_dir": "work"},
            {"project_dir": "write a plain path: it names no drive."},
        ),
        (
            {"project_dir": "/work", "writable_dirs": ["x"]},
            {"project_dir": "write a plain path: it names no drive."},
        ),
        (
            {"project_dir": PROJECT, "writable_dirs": ["D:x"], "home": "\\\\.\\x"},
            {
                "home": "write a plain path: it names a device.",
                "writable_dirs": "write a plain path: it is relative to another drive's folder.",
            },
        ),
        (
            {"project_dir": PROJECT, "searchable_dirs": ["NUL"], "denied_paths": ["ab::$DATA"]},
            {
                "searchable_dirs": "write a plain path: it is a device.",
                "denied_paths": "write a plain path: it names a stream.",
            },
        ),
        (
            {
                "project_dir": PROJECT,
                "tool_only_dirs": [ToolOnlyDir(dir="a.", instead="x")],
                "also_readable": ["GIT~1"],
                "tool_results_dir": "~",
            },
            {
                "tool_only_dirs": "write a plain path: a component ends in a dot or a space.",
                "also_readable": "write a plain path: it holds a short (8.3) name.",
                "tool_results_dir": "write a plain path: there is no home folder for '~'.",
            },
        ),
    ],
)
def test_a_configured_text_that_can_not_be_read_is_a_fault(
    fields: dict[str, Any], faults: dict[str, str]
) -> None:
    with pytest.raises(ConfigError) as caught:
        FileScope(platform="windows", **fields)
    assert {fault.field: fault.remedy for fault in caught.value.faults} == faults
    assert len(caught.value.faults) == len(faults)  # each once


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("C:\\", "/c:"),
        ("C:", "/c:/base"),
        ("c:/A", "/c:/A"),
        ("/d/A/b", "/d:/A/b"),
        ("/d", "/d:"),
        ("x", "/c:/base/x"),
        ("\\x", "/c:/x"),
        ("..\\..\\..\\x", "/c:/x"),
        ("\\\\SRV\\Share", "/unc:/srv/Share"),
        ("\\\\?\\UNC\\SRV\\Share\\x", "/unc:/srv/Share/x"),
        ("~", "/c:/home"),
        ("~\\x", "/c:/home/x"),
    ],
)
def test_a_configured_text_has_one_canonical_path(text: str, canonical: str) -> None:
    assert WINDOWS.entry(text, "/c:/base", "/c:/home") == canonical


@pytest.mark.parametrize(
    ("canonical", "shown"),
    [("/c:", "C:\\"), ("/c:/A/b", "C:\\A\\b"), ("/unc:/srv/Share/x", "\\\\srv\\Share\\x")],
)
def test_a_canonical_path_is_displayed_as_windows_writes_it(canonical: str, shown: str) -> None:
    assert WINDOWS.display(canonical) == shown
    assert WINDOWS.entry(shown, "/z:", None) == canonical


PARTS = st.lists(
    st.sampled_from(["a", "B", "..", ".", "", "C:", "c", "srv", "?", "~", " ", "a.", "NUL", "x y"]),
    max_size=6,
)


@given(
    PARTS,
    st.lists(st.sampled_from("\\/"), min_size=7, max_size=7),
    st.sampled_from(["", "\\", "\\\\", "//?/"]),
)
def test_a_reading_is_canonical_or_refused(parts: list[str], slashes: list[str], lead: str) -> None:
    text = lead + "".join(part + slash for part, slash in zip(parts, slashes, strict=False))
    try:
        readings = WINDOWS.readings(text, "/c:/base", "/c:/home")
    except Malformed:
        return
    for path in readings.cli:
        assert re.match(r"/[a-z]:(/|\Z)|/unc:/[^/]+/[^/]+", path)
        assert not {"", ".", ".."} & set(path[1:].split("/"))
        assert WINDOWS.absolute(WINDOWS.display(path), "/c:/base") == path


# --- on Windows itself ----------------------------------------------------------------------------


def test_what_is_asked_of_the_disk_is_written_as_windows_writes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a stub for the disk: hard links and bare repositories are looked for in its own names."""
    monkeypatch.setattr("agent_kit.scope.compiled.locate", lambda path: Located(path))
    monkeypatch.setattr("agent_kit.scope.compiled.os.getcwd", lambda: "C:\\work")
    compiled, faults = compile_scope(SCOPE, native=True)
    assert compiled is not None
    assert faults == []
    names = [path for path, _ in compiled.second_names(Access.WRITE)]
    assert "C:\\work\\course\\sources" in names
    assert "D:\\vault" in names
    listed: list[str] = []

    def listdir(path: str) -> list[str]:
        listed.append(path)
        return ["HEAD", "objects", "refs"]

    monkeypatch.setattr(control.os, "listdir", listdir)
    assert control.is_control_file(
        "/c:/work/drafts/x.git/hooks/pre-commit",
        ["c:", "work", "drafts", "x.git", "hooks", "pre-commit"],
        compiled.flavour.display,
    )
    assert listed == ["C:\\work\\drafts\\x.git"]


def test_on_windows_there_is_no_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plain texts have a drive, and ``/c:/x`` is none of them."""
    monkeypatch.setattr("agent_kit.scope.compiled.locate", lambda path: Located(path))
    monkeypatch.setattr("agent_kit.scope.compiled.os.getcwd", lambda: "C:\\work")
    compiled, _ = compile_scope(WIDE, native=True)
    assert compiled is not None
    assert not _plainly_allowed(compiled, "file_path", 1, {"file_path": "/c:/work/a"})
    assert not _plainly_allowed(WIDE._compiled, "file_path", 1, {"file_path": "/c:/work/a"})


def test_a_foreign_flavour_leaves_the_disk_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_more: object) -> None:
        raise AssertionError("the disk was asked")

    for name in ("lstat", "stat", "listdir", "scandir", "open", "readlink", "getcwd"):
        monkeypatch.setattr(f"os.{name}", refuse)
    scope = FileScope(
        platform="windows",
        project_dir=PROJECT,
        searchable_dirs=["."],
        writable_dirs=["."],
        denied_paths=["notes[1].md", "x"],
    )
    for tool, path in (("Write", "a\\hooks\\config"), ("Read", "x"), ("Grep", "y"), ("Read", "~")):
        code(path, scope, tool)


def test_a_posix_scope_on_windows_is_judged_by_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_kit.scope.file_scope.NATIVE", "windows")
    scope = FileScope(platform="posix", project_dir="/p", searchable_dirs=["."], denied_paths=["x"])
    monkeypatch.setattr("os.lstat", None)  # the disk is left alone
    monkeypatch.setattr("os.open", None)
    for path, expected in (
        ("a/../b", Code.OK),
        (" a ", Code.OK),
        ("a/../x", Code.DENIED_PATH),
        (" x", Code.DENIED_PATH),
        ("/p/a", Code.OK),
        ("../a", Code.OUTSIDE_READABLE),
        ("~", Code.MALFORMED),
    ):
        assert code(path, scope) is expected


@pytest.mark.parametrize("exists", [True, False])
def test_a_pattern_that_is_a_name_on_windows_is_denied_as_well(
    monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    """With a stub for the disk. A text such as ``*.`` is a pattern, and no name."""
    asked: list[str] = []

    def lexists(path: str) -> bool:
        asked.append(path)
        return exists

    monkeypatch.setattr("agent_kit.scope.compiled.locate", lambda path: Located(path))
    monkeypatch.setattr("agent_kit.scope.compiled.os.getcwd", lambda: "C:\\work")
    monkeypatch.setattr("agent_kit.scope.compiled.os.path.lexists", lexists)
    scope = FileScope(platform="windows", project_dir=PROJECT, denied_paths=["notes[1].md", "*."])
    compiled, faults = compile_scope(scope, native=True)
    assert faults == []
    assert compiled is not None
    assert asked == ["C:\\work\\course\\notes[1].md"]
    assert [path for path, _ in compiled.closed_paths] == (
        ["/c:/work/course/notes[1].md"] if exists else []
    )
