"""Links and hard links on a real disk: a file counts under every name that leads to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agent_kit.scope import (
    Access,
    Code,
    Decision,
    FileScope,
    ToolOnlyDir,
    check_file_scope,
    explain_file_scope,
    identity,
)
from agent_kit.scope.identity import same_file
from agent_kit.scope.index import Entry, Rank
from agent_kit.testing import tree

FOREST = [
    "p/sources/a.md=a",
    "p/sources/sub/b.md=b",
    "p/drafts/d.md=d",
    "p/knowledge/k.md=k",
    "p/vault/deep/key=k",
    "p/secret.txt=s",
    "p/README.md=r",
    "out/o.md=o",
    # links inside the readable folder
    "p/sources/to-out => ../../out",
    "p/sources/to-out-file => ../../out/o.md",
    "p/sources/to-vault => ../vault",
    "p/sources/to-deep => to-vault/deep",
    "p/sources/to-secret => ../secret.txt",
    "p/sources/chain => chain2",
    "p/sources/chain2 => to-secret",
    "p/sources/to-knowledge => ../knowledge",
    "p/sources/to-missing => ../../out/missing",
    "p/sources/to-drafts => ../drafts",
    "p/sources/to-project => ..",
    "p/sources/inner => sub",
    "p/sources/to-proc => /proc/self/environ",
    "p/sources/to-root => /proc/self/root",
    "p/sources/to-dev => /dev",
    # links elsewhere
    "p/drafts/to-sources => ../sources",
    "p/drafts/to-readme => ../README.md",
    "p/drafts/to-new => ../new.md",
    "p/to-sources => sources",
    "p/linked => ../elsewhere",
    "elsewhere/e.md=e",
    "elsewhere/key.pem=k",
]


def scope_of(root: Path, **fields: Any) -> FileScope:
    given: dict[str, Any] = {
        "project_dir": root / "p",
        "writable_dirs": ["drafts"],
        "searchable_dirs": ["sources", "drafts"],
        "read_only_dirs": ["sources"],
        "denied_paths": ["secret.txt", "vault"],
        "tool_only_dirs": [ToolOnlyDir(dir="knowledge", instead="its tools")],
    }
    return FileScope(**{**given, **fields})


def judged(scope: FileScope, tool: str, path: str, **more: str) -> Decision:
    field = "path" if tool in ("Grep", "Glob", "LS") else "file_path"
    decision = explain_file_scope(scope, tool, {field: path, **more})
    assert check_file_scope(scope, tool, {field: path, **more}) == decision.message
    return decision


@pytest.mark.parametrize(
    ("tool", "path", "code"),
    [
        ("Read", "sources/a.md", Code.OK),
        ("Read", "sources/inner/b.md", Code.OK),
        ("Read", "to-sources/a.md", Code.OK),  # from outside into it
        ("Read", "sources/to-drafts/d.md", Code.OK),
        ("Read", "sources/to-project/sources/a.md", Code.OK),
        ("Read", "sources/to-out", Code.OUTSIDE_READABLE),
        ("Read", "sources/to-out/o.md", Code.OUTSIDE_READABLE),
        ("Read", "sources/to-out/new", Code.OUTSIDE_READABLE),
        ("Read", "sources/to-out-file", Code.OUTSIDE_READABLE),
        ("Read", "sources/to-missing", Code.OUTSIDE_READABLE),
        ("Read", "sources/to-project/README.md", Code.OUTSIDE_READABLE),
        ("Read", "sources/to-secret", Code.DENIED_PATH),
        ("Read", "sources/chain", Code.DENIED_PATH),
        ("Read", "sources/to-vault/deep/key", Code.DENIED_PATH),
        ("Read", "sources/to-deep/key", Code.DENIED_PATH),
        ("Read", "sources/to-deep/key/none", Code.DENIED_PATH),
        ("Read", "sources/to-project/vault/new", Code.DENIED_PATH),
        ("Read", "sources/to-knowledge/k.md", Code.TOOLS_ONLY),
        ("Read", "sources/to-proc", Code.SPECIAL_FILE),
        ("Read", "sources/to-root/etc/passwd", Code.SPECIAL_FILE),
        ("Read", "sources/to-dev/null", Code.SPECIAL_FILE),
        ("Write", "drafts/d.md", Code.OK),
        ("Write", "sources/to-drafts/d.md", Code.READ_ONLY),  # under the name as written
        ("Write", "drafts/to-sources/a.md", Code.READ_ONLY),
        ("Write", "drafts/to-sources/new/x.md", Code.READ_ONLY),
        ("Write", "drafts/to-readme", Code.OUTSIDE_WRITABLE),
        ("Write", "drafts/to-new", Code.OUTSIDE_WRITABLE),
        ("Grep", "sources/inner", Code.OK),
        ("Grep", "sources/to-out", Code.OUTSIDE_SEARCHABLE),
        ("Grep", "sources/to-vault", Code.DENIED_PATH),
        ("Grep", "sources/to-knowledge", Code.TOOLS_ONLY),
        ("Grep", "sources/to-project", Code.CONTAINS_TOOLS_ONLY),
        ("Glob", "sources/to-out", Code.OUTSIDE_READABLE),
        ("Glob", "sources/to-deep", Code.DENIED_PATH),
        ("LS", "sources/to-project", Code.CONTAINS_TOOLS_ONLY),
        ("LS", "sources/to-dev", Code.SPECIAL_FILE),
    ],
)
def test_a_link_counts_as_what_it_leads_to(
    tmp_path: Path, tool: str, path: str, code: Code
) -> None:
    scope = scope_of(tree(tmp_path, FOREST))
    assert judged(scope, tool, path).code is code
    assert judged(scope, tool, f"{tmp_path}/p/{path}").code is code


def test_a_glob_pattern_starts_where_its_links_lead(tmp_path: Path) -> None:
    scope = scope_of(tree(tmp_path, FOREST))
    project = f"{tmp_path}/p"
    for pattern, code in {
        "sources/inner/*": Code.OK,
        "sources/to-out/*": Code.OUTSIDE_READABLE,
        f"{project}/sources/to-out/*": Code.OUTSIDE_READABLE,
        f"{project}/sources/to-deep/*": Code.DENIED_PATH,
        f"{project}/sources/{{to-out,inner}}/*": Code.OUTSIDE_READABLE,
    }.items():
        found = explain_file_scope(scope, "Glob", {"pattern": pattern})
        assert found.code is code, pattern


def test_no_refusal_says_where_a_link_points(tmp_path: Path) -> None:
    scope = scope_of(tree(tmp_path, FOREST))
    for name in ("to-out", "to-out-file", "to-missing", "to-secret", "chain", "to-deep", "to-proc"):
        for tool in ("Read", "Write", "Grep", "LS"):
            found = judged(scope, tool, f"sources/{name}")
            said = (found.message or "").replace(f"sources/{name}", "")
            for told in (*Path(found.target or "").parts[-2:], "secret.txt", "vault", "environ"):
                assert told not in said
            assert found.target is not None
            assert found.target != f"{tmp_path}/p/sources/{name}"  # the operator is told


@pytest.mark.parametrize("configured", ["linked", "../elsewhere"])
@pytest.mark.parametrize("asked", ["linked", "../elsewhere"])
def test_a_configured_folder_counts_under_both_of_its_names(
    tmp_path: Path, configured: str, asked: str
) -> None:
    tree(tmp_path, FOREST)
    opened = scope_of(
        tmp_path, writable_dirs=[configured], searchable_dirs=[configured], read_only_dirs=[]
    )
    for tool, path in (("Read", "e.md"), ("Write", "e.md"), ("Grep", ""), ("Glob", "")):
        assert judged(opened, tool, f"{asked}/{path}").code is Code.OK
    whole = {"writable_dirs": [".", ".."], "searchable_dirs": [".", ".."], "tool_only_dirs": []}
    denied = scope_of(tmp_path, **{**whole, "denied_paths": [configured]})
    assert judged(denied, "Read", f"{asked}/e.md").code is Code.DENIED_PATH
    assert judged(denied, "Grep", "..").code is Code.CONTAINS_DENIED
    read_only = scope_of(tmp_path, **{**whole, "read_only_dirs": [configured]})
    assert judged(read_only, "Write", f"{asked}/e.md").code is Code.READ_ONLY
    assert judged(read_only, "Read", f"{asked}/e.md").code is Code.OK
    tools = scope_of(
        tmp_path, **{**whole, "tool_only_dirs": [ToolOnlyDir(dir=configured, instead="x")]}
    )
    assert judged(tools, "Read", f"{asked}/e.md").code is Code.TOOLS_ONLY
    assert judged(tools, "LS", "..").code is Code.CONTAINS_TOOLS_ONLY


def test_a_project_below_a_link_is_one_under_both_names(tmp_path: Path) -> None:
    tree(tmp_path, FOREST)
    os.symlink(".", tmp_path / "via")
    scope = scope_of(tmp_path / "via")
    for cwd in (f"{tmp_path}/via/p", f"{tmp_path}/p"):
        for path, code in {
            "sources/a.md": Code.OK,
            "secret.txt": Code.DENIED_PATH,
            "knowledge/k.md": Code.TOOLS_ONLY,
            "README.md": Code.OUTSIDE_READABLE,
        }.items():
            found = explain_file_scope(scope, "Read", {"file_path": path}, cwd=cwd)
            assert found.code is code
            assert explain_file_scope(scope, "Read", {"file_path": f"{cwd}/{path}"}).code is code


def test_a_link_swapped_since_construction_is_followed_to_where_it_leads_now(
    tmp_path: Path,
) -> None:
    tree(tmp_path, FOREST)
    scope = scope_of(tmp_path, writable_dirs=["linked"], searchable_dirs=["linked", "drafts"])
    assert judged(scope, "Read", "linked/e.md").code is Code.OK
    for place, target in (("p/linked", "../out"), ("p/drafts", "../out")):
        path = tmp_path / place
        path.rename(tmp_path / f"{place}-before")
        path.symlink_to(target)
    assert judged(scope, "Read", "linked/o.md").code is Code.OUTSIDE_READABLE
    assert judged(scope, "Write", "linked/new").code is Code.OUTSIDE_WRITABLE
    assert judged(scope, "Read", "drafts/o.md").code is Code.OUTSIDE_READABLE
    assert judged(scope, "Read", f"{tmp_path}/elsewhere/e.md").code is Code.OK


def test_a_denied_link_stays_denied_when_it_leads_elsewhere(tmp_path: Path) -> None:
    tree(tmp_path, FOREST)
    scope = scope_of(tmp_path, searchable_dirs=[".."], denied_paths=["linked", "linked/key.*"])
    (tmp_path / "p/linked").unlink()
    (tmp_path / "p/linked").symlink_to("../out")
    assert judged(scope, "Read", "linked/o.md").code is Code.DENIED_PATH
    assert judged(scope, "Read", f"{tmp_path}/elsewhere/e.md").code is Code.DENIED_PATH


def test_the_untrimmed_name_of_a_link_is_denied_as_written(tmp_path: Path) -> None:
    tree(tmp_path, [*FOREST, "p/sources/ odd => a.md"])
    scope = scope_of(tmp_path, denied_paths=[" odd*"])
    found = explain_file_scope(scope, "Read", {"file_path": " odd"}, cwd=f"{tmp_path}/p/sources")
    assert found.code is Code.DENIED_PATTERN


def test_a_denied_path_that_appears_later_is_denied_as_written_and_as_it_leads(
    tmp_path: Path,
) -> None:
    tree(tmp_path, FOREST)
    scope = scope_of(tmp_path, denied_paths=["sources/later", "out-later"])
    (tmp_path / "p/sources/later").symlink_to("a.md")
    assert judged(scope, "Read", "sources/later").code is Code.DENIED_PATH
    (tmp_path / "p/sources/innocent").symlink_to("../out-later")
    assert judged(scope, "Read", "sources/innocent").code is Code.DENIED_PATH


def test_a_denied_pattern_holds_for_the_name_as_written_and_for_the_target(tmp_path: Path) -> None:
    tree(tmp_path, [*FOREST, "p/sources/innocent => ../../elsewhere/key.pem"])
    os.symlink("a.md", tmp_path / "p/sources/looks-like.pem")
    scope = scope_of(tmp_path, searchable_dirs=["sources", "/"], denied_paths=["*.pem"])
    for name in ("innocent", "looks-like.pem"):
        assert judged(scope, "Read", f"sources/{name}").code is Code.DENIED_PATTERN


def test_the_screenshot_that_the_cli_opens_instead_is_judged_as_well(tmp_path: Path) -> None:
    """For a missing ``x AM.png`` it tries the name with U+202F, and the other way round."""
    tree(
        tmp_path,
        [
            *FOREST,
            "p/sources/out\u202fAM.png => ../../out/o.md",
            "p/sources/shut PM.png => ../secret.txt",
            "p/sources/fine\u202fAM.png=x",
        ],
    )
    scope = scope_of(tmp_path, denied_paths=["secret.txt", "sources/named\u202fPM.png"])
    for name, code in {
        "out AM.png": Code.OUTSIDE_READABLE,
        "shut\u202fPM.png": Code.DENIED_PATH,
        "named PM.png": Code.DENIED_PATH,
        "fine AM.png": Code.OK,
        "none AM.png": Code.OK,
        "out AM.jpg": Code.OK,
    }.items():
        for path in (f"sources/{name}", f"{tmp_path}/p/sources/{name}", f" sources/sub/../{name}"):
            assert judged(scope, "Read", path).code is code, path


# --- climbing after a link ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "code"),
    [
        # the CLI collapses the text; the kernel would follow the link first
        ("sources/inner/../a.md", Code.OK),
        ("sources/to-out/../a.md", Code.OK),
        ("sources/to-deep/../key", Code.DENIED_PATH),  # to the kernel it is vault/key
        ("sources/to-knowledge/../knowledge/x", Code.TOOLS_ONLY),
        ("sources/to-drafts/../secret.txt", Code.DENIED_PATH),
        ("sources/to-drafts/../README.md", Code.OK),  # sources/README.md
        ("sources/to-proc/../x", Code.SPECIAL_FILE),
        ("sources/missing/../a.md", Code.OK),
        ("sources/a.md/../a.md", Code.OK),
        ("sources/../secret.txt", Code.DENIED_PATH),
        ("sources/../../p/sources/a.md", Code.OK),
    ],
)
def test_a_climb_after_a_link_is_denied_in_either_reading(
    tmp_path: Path, path: str, code: Code
) -> None:
    scope = scope_of(tree(tmp_path, FOREST))
    assert judged(scope, "Read", path).code is code


@pytest.mark.parametrize("tool", ["mcp__fs__read", "LaterTool"])
def test_of_tools_that_read_paths_themselves_every_reading_must_be_allowed(
    tmp_path: Path, tool: str
) -> None:
    """An MCP server may leave the climb to the kernel, and trim nothing."""
    tree(tmp_path, [*FOREST, "p/drafts/x  => ../../out/o.md"])
    os.symlink("../../out/o.md", tmp_path / "p/drafts/odd ")
    scope = scope_of(
        tmp_path,
        searchable_dirs=["sources", "drafts"],
        writable_dirs=["sources", "drafts"],
        read_only_dirs=[],
        mcp_file_tools={"mcp__fs__read": {"path": "read"}},
    )
    for path in ("sources/to-drafts/../README.md", "drafts/odd ", f"{tmp_path}/p/drafts/odd "):
        assert judged(scope, "Read", path).code is Code.OK
        refused = explain_file_scope(scope, tool, {"path": path}).code
        assert refused in (Code.OUTSIDE_READABLE, Code.OUTSIDE_WRITABLE)
    assert explain_file_scope(scope, tool, {"path": "sources/inner/../a.md"}).code is Code.OK


# --- hard links -----------------------------------------------------------------------------------

TWINS = [
    "p/sources/secret-twin == p/secret.txt",
    "p/drafts/key-twin == p/vault/deep/key",
    "p/drafts/original-twin == p/sources/sub/b.md",
    "p/drafts/knowledge-twin == p/knowledge/k.md",
    "p/drafts/own-twin == p/drafts/d.md",
    "p/drafts/readme-twin == p/README.md",
    "p/drafts/to-twin => key-twin",
]


@pytest.mark.parametrize(
    ("path", "reading", "writing"),
    [
        ("sources/secret-twin", Code.DENIED_PATH, Code.READ_ONLY),
        ("drafts/key-twin", Code.DENIED_PATH, Code.DENIED_PATH),
        ("drafts/to-twin", Code.DENIED_PATH, Code.DENIED_PATH),
        ("drafts/original-twin", Code.OK, Code.READ_ONLY),
        ("drafts/knowledge-twin", Code.TOOLS_ONLY, Code.TOOLS_ONLY),
        ("drafts/own-twin", Code.OK, Code.OK),
        ("drafts/readme-twin", Code.OK, Code.OK),  # neither closed nor an original
        ("sources/sub/b.md", Code.OK, Code.READ_ONLY),
    ],
)
def test_a_hard_link_is_the_file_that_it_shares(
    tmp_path: Path, path: str, reading: Code, writing: Code
) -> None:
    scope = scope_of(tree(tmp_path, [*FOREST, *TWINS]))
    for tool in ("Read", "Grep"):
        found = judged(scope, tool, path)
        assert found.code is reading
    for tool in ("Write", "Edit"):
        assert judged(scope, tool, path).code is writing
    assert judged(scope, "Read", path).entry == {
        Code.DENIED_PATH: "secret.txt" if "secret" in path else "vault",
        Code.TOOLS_ONLY: "knowledge",
    }.get(reading)


def test_a_hard_link_to_a_denied_file_named_through_a_link_is_that_file(tmp_path: Path) -> None:
    tree(tmp_path, [*FOREST, *TWINS, "p/alias => vault/deep"])
    scope = scope_of(tmp_path, denied_paths=["alias"])
    assert judged(scope, "Read", "drafts/key-twin").code is Code.DENIED_PATH


def test_a_read_does_not_look_through_the_originals(tmp_path: Path) -> None:
    """They may be many, and a second name of one may be read."""
    compiled = scope_of(tree(tmp_path, FOREST))._compiled
    sources = f"{tmp_path}/p/sources"
    for access in Access:
        names = {path for path, _ in compiled.second_names(access)}
        assert (sources in names) == (access is Access.WRITE)
        assert {f"{tmp_path}/p/vault", f"{tmp_path}/p/knowledge"} < names


def test_what_is_named_by_a_pattern_is_not_looked_for_by_identity(tmp_path: Path) -> None:
    """Documented: a pattern names no file to compare with."""
    scope = scope_of(tree(tmp_path, [*FOREST, *TWINS]), denied_paths=["secret*"])
    assert judged(scope, "Read", "secret.txt").code is Code.DENIED_PATTERN
    assert judged(scope, "Read", "sources/secret-twin").code is Code.DENIED_PATTERN  # by its name
    os.rename(tmp_path / "p/sources/secret-twin", tmp_path / "p/sources/twin")
    assert judged(scope, "Read", "sources/twin").code is Code.OK


ENTRY = Entry(Rank.DENIED, "x", "x")


def test_what_can_not_be_looked_at_is_passed_over(tmp_path: Path) -> None:
    tree(tmp_path, ["d/e/f=1", "twin == d/e/f"])
    found = os.stat(tmp_path / "twin")
    for closed, expected in (
        ([f"{tmp_path}/missing", f"{tmp_path}/d/e/f/x", "/a\0b", "\ud800"], None),
        ([f"{tmp_path}/missing", f"{tmp_path}/d"], ENTRY),
        ([f"{tmp_path}/twin"], ENTRY),
    ):
        same = same_file(found.st_dev, found.st_ino, [(path, ENTRY) for path in closed])
        assert same is expected
    assert same_file(found.st_dev + 1, found.st_ino, [(f"{tmp_path}/d", ENTRY)]) is None


def test_a_file_that_vanishes_during_the_look_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, ["d/f=1", "twin == d/f"])
    found = os.stat(tmp_path / "twin")

    class Gone:
        path = "gone"

        def is_dir(self, *, follow_symlinks: bool) -> bool:
            raise FileNotFoundError(2, "No such file or directory")

    real = os.scandir
    monkeypatch.setattr(identity.os, "scandir", lambda path: [Gone(), *real(path)])
    assert same_file(found.st_dev, found.st_ino, [(f"{tmp_path}/d", ENTRY)]) is ENTRY


def test_a_folder_that_vanishes_during_the_look_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, ["d/f=1", "twin == d/f"])

    def refuse(_path: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(identity.os, "scandir", refuse)
    assert same_file(1, 2, [(f"{tmp_path}/d", ENTRY)]) is None
