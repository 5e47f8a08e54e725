"""Which paths lie inside a folder: whole components, links resolved, everything else refused."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from agent_kit import Code, ConfigError, FileScope, Verdict, check_file_scope, explain_file_scope
from agent_kit.scope.flavour import FLAVOURS
from agent_kit.testing import tree

FIELDS = {
    "Read": "file_path",
    "Write": "file_path",
    "Edit": "file_path",
    "NotebookEdit": "notebook_path",
    "Glob": "path",
    "Grep": "path",
    "LS": "path",
}


def ask(scope: FileScope, tool: str, path: str, **more: object) -> str | None:
    return check_file_scope(scope, tool, {FIELDS[tool]: path, "pattern": "*", **more})


def opened(project: str | Path, folder: str, **more: object) -> FileScope:
    """A scope in which ``folder`` may be read, searched and written."""
    return FileScope(
        project_dir=str(project), writable_dirs=[folder], searchable_dirs=[folder], **more
    )


@pytest.mark.report(21, 22, 23)
@pytest.mark.parametrize("tool", FIELDS)
@pytest.mark.parametrize(
    "sibling",
    [
        "/srv/course2/x",
        "/srv/course-old/x",
        "/srv/course.md",
        "/srv/cours",
        "/srv/course/../course2",
        "/srv/course2",
    ],
)
def test_a_sibling_whose_name_begins_the_same_is_outside(tool: str, sibling: str) -> None:
    scope = opened("/srv/course", "/srv/course", platform="posix")
    assert ask(scope, tool, sibling) is not None
    assert ask(scope, tool, "/srv/course") is None
    assert ask(scope, tool, "/srv/course/x") is None


@pytest.mark.report(21, 22)
def test_a_sibling_of_one_list_is_not_of_another() -> None:
    scope = FileScope(
        project_dir="/w", searchable_dirs=["src"], writable_dirs=["drafts"], platform="posix"
    )
    assert ask(scope, "Read", "/w/src_private/k") is not None
    assert ask(scope, "Write", "/w/drafts-old/x") is not None
    assert ask(scope, "Read", "/w/src/k") is None
    assert ask(scope, "Write", "/w/drafts/x") is None


@pytest.mark.report(24)
@pytest.mark.parametrize("tool", FIELDS)
def test_a_hop_into_a_sibling_is_outside(tool: str, tmp_path: Path) -> None:
    tree(tmp_path, ["course/a.md", "course_old/x.md", "course/sub/"])
    scope = opened(tmp_path / "course", ".")
    for hop in (
        "../course_old/x.md",
        "sub/../../course_old",
        f"{tmp_path}/course/../course_old/x.md",
    ):
        assert ask(scope, tool, hop) is not None
    assert ask(scope, tool, "sub/../a.md") is None


@pytest.mark.report(27)
@pytest.mark.parametrize("tool", FIELDS)
@pytest.mark.parametrize(
    "asked", ["l/hostname", "l", "l/", "chain/hostname", "file", "rel/hostname", "l/new"]
)
def test_a_link_out_of_the_folder_is_where_it_points(tool: str, asked: str, tmp_path: Path) -> None:
    tree(tmp_path, ["etc/hostname=h", "w/notes/", "w/notes/in/x", "w/notes/ok => in"])
    tree(
        tmp_path / "w/notes",
        [
            f"l => {tmp_path}/etc",
            "chain => l",
            f"file => {tmp_path}/etc/hostname",
            "rel => ../../etc",
        ],
    )
    scope = opened(tmp_path / "w", "notes")
    for text in (f"notes/{asked}", f"{tmp_path}/w/notes/{asked}"):
        assert ask(scope, tool, text) is not None
    assert ask(scope, tool, "notes/ok/x") is None


@pytest.mark.report(28)
@pytest.mark.parametrize("tool", FIELDS)
def test_a_missing_file_is_where_its_deepest_existing_folder_is(tool: str, tmp_path: Path) -> None:
    tree(
        tmp_path,
        [
            "outside/b/",
            "w/in/b/",
            f"w/a => {tmp_path}/outside",
            "w/c => in",
            f"w/dangling => {tmp_path}/gone",
        ],
    )
    scope = opened(tmp_path / "w", ".")
    for out in ("a/b/new.md", "a/new/deeper/new.md", "dangling", "dangling/new.md"):
        assert ask(scope, tool, out) is not None
    for inside in ("c/b/new.md", "in/new/deeper/new.md"):
        assert ask(scope, tool, inside) is None


@pytest.mark.report(31)
def test_a_folder_that_is_a_link_is_open_under_both_names(tmp_path: Path) -> None:
    tree(tmp_path, ["real/old.md", "w/", "link => real", "w/up => ../real"])
    for given in ("../link", "../real", "up", str(tmp_path / "link")):
        scope = opened(tmp_path / "w", given)
        for name in ("link", "real", "w/up"):
            for file in ("new.md", "old.md", "new/deeper.md"):
                for tool in ("Write", "Read"):
                    assert ask(scope, tool, str(tmp_path / name / file)) is None, (given, name)
        assert ask(scope, "Write", str(tmp_path / "w" / "new.md")) is not None


@pytest.mark.report(36)
@pytest.mark.parametrize(
    "pattern",
    [
        "/etc/*",
        "/etc/passwd",
        "/*",
        "/",
        "../*",
        "x/../../*",
        "/w/../etc/*",
        "{../etc,x}/*",
        "/w/notes/../*",
    ],
)
def test_a_pattern_can_not_leave_the_folder_that_its_path_names(pattern: str) -> None:
    scope = opened("/w", "notes", platform="posix")
    assert check_file_scope(scope, "Glob", {"path": "/w/notes", "pattern": pattern}) is not None
    for inside in ("*", "/w/notes/*", "sub/*.md", "**/*", "..hidden/*"):
        assert check_file_scope(scope, "Glob", {"path": "/w/notes", "pattern": inside}) is None


@pytest.mark.report(43)
@pytest.mark.parametrize("tool", FIELDS)
@pytest.mark.parametrize(
    "path",
    [
        "/w/a\0b",
        "\0",
        "a\0",
        "/w/" + "x" * 5000,
        "/w/" + "y/" * 3000,
        "\ud800",
        5,
        None,
        ["/w", 5],
        ["/w", "/etc"],
        {},
        True,
        b"/w",
    ],
)
def test_a_path_that_names_no_file_is_denied_and_raises_nothing(
    tool: str, path: object, tmp_path: Path
) -> None:
    for project in (tmp_path, "/w"):
        scope = opened(project, ".")
        decision = explain_file_scope(scope, tool, {FIELDS[tool]: path, "pattern": "x"})
        if path == "\ud800" or (path is None and tool in ("Grep", "Glob", "LS")):
            continue  # a name that a disk can have, and "no path": it is enough that nothing is raised
        assert decision.verdict is Verdict.DENY, decision
        assert decision.message


@pytest.mark.report(46)
@pytest.mark.parametrize("tool", FIELDS)
def test_a_name_too_long_for_the_disk_is_denied(tool: str, tmp_path: Path) -> None:
    scope = opened(tmp_path, ".")
    assert ask(scope, tool, "a" * 256) is not None
    assert ask(scope, tool, "a" * 255) is None


@pytest.mark.report(44)
@pytest.mark.parametrize("tool", FIELDS)
@pytest.mark.parametrize("asked", ["a/x", "a", "b", "self", "self/x", "deep/a"])
def test_links_in_a_circle_are_denied_and_raise_nothing(
    tool: str, asked: str, tmp_path: Path
) -> None:
    tree(tmp_path, ["w/ok", "w/a => b", "w/b => a", "w/self => self", "w/deep => a"])
    decision = explain_file_scope(
        opened(tmp_path / "w", "."), tool, {FIELDS[tool]: f"{tmp_path}/w/{asked}", "pattern": "*"}
    )
    assert decision.verdict is Verdict.DENY
    assert ask(opened(tmp_path / "w", "."), tool, "ok") is None


@pytest.mark.report(45)
@pytest.mark.parametrize("field", ["extra_readable_dirs", "extra_writable_dirs"])
def test_a_circle_among_the_folders_is_a_fault_that_names_the_folder(world, field: str) -> None:
    world.has("project/a => b", "project/b => a")
    with pytest.raises(ConfigError) as caught:
        world.plan(**{field: ["a", "a/inside"]})
    assert [(fault.field, fault.value) for fault in caught.value.faults] == [
        (field, "a"),
        (field, "a/inside"),
    ]
    for fault in caught.value.faults:
        assert "link" in fault.remedy


@pytest.mark.report(45)
def test_a_circle_among_denied_paths_is_denied_and_raises_nothing(world) -> None:
    world.has("project/a => b", "project/b => a", "project/sub/")
    plan = world.plan(denied_paths=["a"], extra_readable_dirs=["sub"])
    assert check_file_scope(plan.scope, "Read", {"file_path": f"{world.project}/a/x"}) is not None


@pytest.mark.report(46)
def test_a_long_text_in_a_field_that_is_no_path_is_not_judged() -> None:
    scope = FileScope(project_dir="/w", platform="posix")
    text = "word " * 5000
    for tool in ("mcp__memory__remember", "mcp__x__write", "Agent", "Bash", "TodoWrite"):
        assert (
            check_file_scope(scope, tool, {"content": text, "text": text, "command": text}) is None
        )
    assert check_file_scope(scope, "Read", {"file_path": text}) is not None
    judged = FileScope(
        project_dir="/w", platform="posix", mcp_file_tools={"mcp__x__write": {"path": "write"}}
    )
    assert check_file_scope(judged, "mcp__x__write", {"path": text}) is not None
    assert check_file_scope(judged, "mcp__x__write", {"content": text}) is None


@pytest.mark.report(47, 48)
@pytest.mark.parametrize("tool", FIELDS)
@pytest.mark.parametrize(
    ("denied", "asked"),
    [
        (".env", ".ENV"),
        (".env", ".Env"),
        ("**/.env", "deep/.ENV"),
        ("Straße.txt", "STRASSE.txt"),
        ("/w/.claude/settings.json", "/w/.CLAUDE/settings.json"),
        ("/w/.claude/settings.json", "/w/.claude/SETTINGS.JSON"),
        (unicodedata.normalize("NFC", "é.txt"), unicodedata.normalize("NFD", "é.txt")),
        (unicodedata.normalize("NFD", "é.txt"), unicodedata.normalize("NFC", "É.txt")),
    ],
)
def test_denying_ignores_case_and_unicode_form_also_for_files_that_do_not_exist(
    tool: str, denied: str, asked: str
) -> None:
    scope = opened("/w", ".", denied_paths=[denied], platform="posix", writable_control_files=True)
    decision = explain_file_scope(scope, tool, {FIELDS[tool]: asked, "pattern": "*"})
    assert decision.code in (Code.DENIED_PATH, Code.DENIED_PATTERN, Code.CONTAINS_DENIED)


@pytest.mark.report(48)
@pytest.mark.parametrize(
    "name", [".CLAUDE/settings.json", ".Mcp.json", "claude.md", "sub/.GIT/hooks/x", "Agents.MD"]
)
def test_a_control_file_is_one_in_any_case(name: str) -> None:
    decision = explain_file_scope(
        opened("/w", ".", platform="posix"), "Write", {"file_path": f"/w/{name}"}
    )
    assert decision.code is Code.CONTROL_FILE


@pytest.mark.report(51)
def test_a_network_share_holds_its_folders_and_is_no_local_folder() -> None:
    scope = FileScope(project_dir="C:\\w", searchable_dirs=["\\\\srv\\share"], platform="windows")
    for inside in (
        "\\\\srv\\share\\d\\f",
        "//srv/share/d/f",
        "\\\\SRV\\Share\\d",
        "\\\\?\\UNC\\srv\\share\\d",
        "\\\\srv\\share",
    ):
        assert ask(scope, "Read", inside) is None, inside
    for outside in (
        "/srv/share/d/f",
        "\\srv\\share\\d\\f",
        "C:\\srv\\share\\d",
        "\\\\srv\\share2\\d",
        "\\\\srv\\other",
    ):
        assert ask(scope, "Read", outside) is not None, outside
    local = FileScope(project_dir="C:\\w", searchable_dirs=["C:\\srv\\share"], platform="windows")
    assert ask(local, "Read", "\\\\srv\\share\\d") is not None


@pytest.mark.report(52)
@pytest.mark.parametrize(
    "folder", ["C:\\a", "D:\\a", "\\\\srv\\share", "\\\\?\\C:\\a", "a", "C:a", "/c/a", "C:/a"]
)
@pytest.mark.parametrize(
    "asked",
    [
        "C:\\a\\b",
        "D:\\b",
        "\\\\?\\C:\\a\\b",
        "\\\\srv\\share\\x",
        "a\\b",
        "C:b",
        "/c/a/b",
        "\\\\.\\C:\\a",
        "\\\\?\\",
        "\\\\",
        ":",
        "C:",
    ],
)
def test_mixed_drives_shares_and_prefixes_raise_nothing(folder: str, asked: str) -> None:
    scope = FileScope(
        project_dir="C:\\w", searchable_dirs=[folder], denied_paths=["D:\\x"], platform="windows"
    )
    for tool, field in FIELDS.items():
        explain_file_scope(scope, tool, {field: asked, "pattern": "*"})


@pytest.mark.report(52)
def test_the_long_path_prefix_is_no_part_of_a_path() -> None:
    for folder, asked in (("C:\\a", "\\\\?\\C:\\a\\b"), ("\\\\?\\C:\\a", "C:\\a\\b")):
        scope = FileScope(project_dir="C:\\w", searchable_dirs=[folder], platform="windows")
        assert ask(scope, "Read", asked) is None
        assert ask(scope, "Read", asked.replace("C:", "D:")) is not None


@pytest.mark.report(53)
@pytest.mark.parametrize(
    "short", ["C:\\PROGRA~1\\x", "secret~1.txt", "C:\\w\\SECRET~12\\x", "a\\B~1"]
)
def test_a_short_name_that_can_not_be_expanded_is_refused(short: str) -> None:
    scope = FileScope(
        project_dir="C:\\w",
        searchable_dirs=["C:\\"],
        denied_paths=["C:\\Program Files"],
        platform="windows",
    )
    assert ask(scope, "Read", short) is not None
    assert ask(scope, "Read", "C:\\w\\~backup.txt") is None
    # On a Windows disk a short name that exists is expanded first; that part runs on Windows only.


@pytest.mark.report(54)
@pytest.mark.parametrize("tool", FIELDS)
@pytest.mark.parametrize(
    "path",
    [
        "/proc/self/environ",
        "/proc/1/environ",
        "/proc/self/root/w/.env",
        "/proc/self/cwd/x",
        "/dev/fd/3",
        "/dev/stdin",
        "/sys/kernel",
        "/proc",
        "/w/../proc/self/environ",
        "//proc/self/environ",
    ],
)
def test_what_the_kernel_shows_as_files_is_closed_though_the_root_is_open(
    tool: str, path: str
) -> None:
    scope = opened("/", "/", denied_paths=["/w/.env"])
    assert ask(scope, tool, path) is not None
    assert ask(scope, tool, "/srv/x") is None


@pytest.mark.report(54)
def test_a_link_into_the_process_files_is_closed_too(tmp_path: Path) -> None:
    tree(tmp_path, ["environ => /proc/self/environ", "proc => /proc", "ok"])
    scope = opened(tmp_path, ".")
    for name in ("environ", "proc/self/environ"):
        assert ask(scope, "Read", f"{tmp_path}/{name}") is not None
    assert ask(scope, "Read", f"{tmp_path}/ok") is None


def test_these_tests_know_every_flavour() -> None:
    assert set(FLAVOURS) == {"posix", "windows"}
    assert os.name == "posix"
