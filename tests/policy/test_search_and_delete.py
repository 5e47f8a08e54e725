"""Searches judge all that they may reach; a deletion is all or nothing; links are followed to judge."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy import FilePermission, check_delete, check_permissions, check_search
from agent_kit.policy import compile_rules as compiled
from agent_kit.policy.rules import Operation
from agent_kit.policy.subtree import _REMEMBERED
from agent_kit.scope import FileScope, odd_names


def rule(mode: str, *paths: str) -> FilePermission:
    return FilePermission(operations=["read", "write"], paths=paths, mode=mode)


def listed(*rules: FilePermission) -> Any:
    return compiled(rules, project_dir="/w", home="/h", native=False)


# --- searches -----------------------------------------------------------------------------------

PRIVATE = listed(rule("interrupt", "/w/private/**"), rule("deny", "/w/closed"))


@pytest.mark.parametrize(
    ("path", "pattern", "verdict"),
    [
        (None, None, "deny"),  # the working folder
        ("  ", None, "deny"),  # which an empty path means, too
        ("", "*.md", "deny"),
        ("notes", None, "allow"),
        ("closed", None, "deny"),
        ("closed/in/it", "*", "deny"),
        ("private", None, "interrupt"),
        ("~/x", None, "allow"),
        # a pattern that names folders reaches those alone
        (".", "notes/*.md", "allow"),
        (".", "private/*.md", "interrupt"),
        (".", "{notes,closed}/*.md", "deny"),
        ("notes", "/w/private/*", "interrupt"),
        ("notes", "/w/closed", "deny"),
        ("notes", "/x/*", "allow"),
        # one that climbs is judged over the folder that it climbs to
        ("notes", "../other/*", "deny"),
        ("notes/a/b", "../*", "allow"),
        ("notes/a", "{..,x}/../*", "deny"),
        ("/w/notes", "@(..)/*", "deny"),
        ("/", "../x", "deny"),
        ("notes", "/w/notes/../x*", "deny"),
        ("notes", "/../x*", "deny"),
        ("/x/y", "../*", "allow"),
    ],
)
def test_a_search_is_judged_where_it_may_reach(
    path: str | None, pattern: str | None, verdict: str
) -> None:
    assert check_search(PRIVATE, path, pattern) == verdict


def test_a_search_is_relative_to_the_working_folder() -> None:
    assert check_search(PRIVATE, None, cwd="/w/notes") == "allow"
    assert check_search(PRIVATE, ".", cwd="private") == "interrupt"
    assert check_search(PRIVATE, "closed", cwd="/") == "allow"


@pytest.mark.parametrize("pattern", ["**/.env", "*.pem", "/**/.env", ".env/"])
def test_a_deny_pattern_with_no_fixed_folder_stops_no_search_and_an_interrupt_pattern_does(
    pattern: str,
) -> None:
    assert check_search(listed(rule("deny", pattern)), ".") == "allow"
    assert check_search(listed(rule("interrupt", pattern)), ".") == "interrupt"
    assert check_search(listed(rule("deny", "/w/x/" + pattern.lstrip("/"))), ".") == "deny"


ODD = "e\u0301\u00f6"  # part composed, part not: the CLI's rules match it in neither form


@pytest.mark.parametrize("name", ["\u00e9\u00f6", "e\u0301o\u0308", ODD])
@pytest.mark.parametrize("inside", ["", "a/b/"])
def test_such_a_pattern_stops_a_search_that_would_show_what_it_denies(
    tmp_path: Path, name: str, inside: str
) -> None:
    (tmp_path / inside).mkdir(parents=True, exist_ok=True)
    (tmp_path / inside / name).touch()
    denied = compiled([rule("deny", "**/\u00e9\u00f6")], project_dir=tmp_path)
    shown = "deny" if name == ODD else "allow"
    assert check_search(denied, ".") == check_search(denied, ".", "**/*") == shown
    assert check_permissions(denied, "read", inside + name) == "deny"
    allowed = [rule("allow", str(tmp_path)), rule("deny", "**/\u00e9\u00f6")]
    assert check_search(compiled(allowed, project_dir=tmp_path), ".") == "allow"
    asks = compiled([rule("allow", "**/x"), rule("deny", "**/y")], project_dir=tmp_path)
    assert check_search(asks, ".") == "allow"


def test_more_names_than_are_looked_at_stop_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(odd_names, "_NAMES", 0)
    rules = [rule("allow", "**/x"), rule("deny", "**/y"), rule("deny", "**/z")]
    denied = compiled(rules, project_dir=tmp_path)
    found = denied.judge_all(Operation.READ, (str(tmp_path),), True, filtered=True)
    assert (found.verdict, found.number) == ("deny", 1)
    assert check_search(compiled(rules[:1], project_dir=tmp_path), ".") == "allow"


def test_a_search_that_starts_in_what_such_a_pattern_denies_is_denied() -> None:
    rules = listed(rule("allow", "/w/.env/open/**"), rule("deny", "**/.env"))
    assert check_search(rules, ".env") == "deny"
    assert check_search(rules, ".env/in") == "deny"
    assert check_search(rules, ".env/open") == "allow"


def test_what_an_earlier_rule_allows_stops_no_search() -> None:
    rules = listed(
        rule("allow", "/w/a/**", "/w/b"),
        rule("deny", "/w/a/x/**", "/w/b/*.pem"),
        rule("interrupt", "**/.env"),
    )
    assert check_search(rules, "a") == "allow"
    assert check_search(rules, "b/c") == "allow"
    assert check_search(rules, ".") == "interrupt"
    later = listed(rule("deny", "/w/a/x/**"), rule("allow", "/w/a/**"))
    assert check_search(later, "a") == "deny"
    assert check_search(later, "a/y") == "allow"


def test_of_two_that_a_search_meets_the_stronger_wins() -> None:
    assert check_search(listed(rule("interrupt", "/w/a/*"), rule("deny", "/w/a/b")), ".") == "deny"
    assert check_search(listed(rule("interrupt", "/w/a"), rule("deny", "/w/b")), ".") == "deny"
    assert check_search(listed(rule("interrupt", "/w/a"), rule("deny", "/w/b")), "a") == "interrupt"


def test_a_pattern_in_the_middle_of_which_the_search_starts_is_met_if_it_can_be() -> None:
    rules = listed(rule("deny", "/w/a*/x?/**/*.pem"))
    for met in (".", "ab", "ab/x1", "ab/x1/y/z"):
        assert check_search(rules, met) == "deny", met
    for free in ("b", "ab/y", "ab/xyz"):
        assert check_search(rules, free) == "allow", free


def test_what_is_remembered_of_folders_is_bounded() -> None:
    rules = listed(rule("deny", "/w/x*/y"))
    for number in range(_REMEMBERED + 10):
        assert check_search(rules, f"x{number}") == "deny"
    assert len(rules.subtrees["read"]._known) <= _REMEMBERED


# --- links --------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("open/a.md", "open/deep/b.md", "secret/key.pem", "secret/deep/c.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "open/way").symlink_to("../secret")
    (tmp_path / "open/key").symlink_to("../secret/key.pem")
    (tmp_path / "short").symlink_to("secret/deep")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


def test_a_link_is_judged_as_written_and_as_resolved(tree: Path) -> None:
    denied = compiled([rule("deny", "secret/**")], project_dir=tree)
    for path in (
        "open/key",
        "open/way/key.pem",
        "short/c.md",
        "open/way/",
        "open/way/../secret/key.pem",
    ):
        assert check_permissions(denied, "read", path) == "deny", path
    assert check_permissions(denied, "read", "open/a.md") == "allow"
    assert check_search(denied, "open/way") == "deny"
    assert check_search(denied, "open") == "allow"
    by_name = compiled([rule("deny", "open/key")], project_dir=tree)
    assert check_permissions(by_name, "read", "open/key") == "deny"
    assert check_permissions(by_name, "read", "secret/key.pem") == "allow"


def test_an_allow_counts_for_a_link_only_where_it_leads(tree: Path) -> None:
    rules = compiled([rule("allow", "open/**"), rule("deny", "**")], project_dir=tree)
    assert check_permissions(rules, "read", "open/a.md") == "allow"
    assert check_permissions(rules, "read", "open/key") == "deny"


def test_a_pattern_holds_under_every_name_of_its_folder(tree: Path) -> None:
    rules = compiled([rule("allow", "short/**"), rule("deny", "**")], project_dir=tree)
    assert check_permissions(rules, "read", "short/c.md") == "allow"
    assert check_permissions(rules, "read", "secret/deep/c.md") == "allow"
    denied = compiled([rule("deny", "short/*.md", "short/x", "open/a*")], project_dir=tree)
    assert check_permissions(denied, "read", "secret/deep/c.md") == "deny"
    assert check_permissions(denied, "read", "secret/deep/x") == "deny"


def test_a_loop_is_denied_and_harmless_in_a_pattern(tree: Path) -> None:
    rules = compiled([rule("deny", "loop/**")], project_dir=tree)
    assert check_permissions(rules, "read", "loop/x") == "deny"
    assert check_permissions(rules, "read", "loop") == "deny"
    assert check_search(rules, "loop") == "deny"
    assert check_delete(rules, "loop") == "deny"


def test_an_existing_folder_counts_as_one(tree: Path) -> None:
    rules = compiled([rule("deny", "open/", "secret/**")], project_dir=tree)
    assert check_permissions(rules, "read", "open") == "deny"
    assert check_permissions(rules, "read", "secret") == "deny"
    assert check_permissions(rules, "read", "secret/none/open") == "deny"
    assert check_permissions(rules, "read", "elsewhere") == "allow"


# --- deletions ----------------------------------------------------------------------------------


def test_one_thing_in_an_existing_folder_decides_for_the_whole(tree: Path) -> None:
    def verdict(path: str, *rules: FilePermission) -> str:
        return check_delete(rules, path, project_dir=tree)

    assert verdict("secret", rule("deny", "**/*.pem")) == "deny"
    assert verdict("open", rule("deny", "**/*.pem")) == "allow"  # by the patterns it might be
    assert verdict("missing", rule("deny", "**/*.pem")) == "deny"
    assert verdict("secret", rule("interrupt", "secret/deep/*")) == "interrupt"
    assert verdict("secret", rule("interrupt", "secret/deep/*"), rule("deny", "*.pem")) == "deny"
    assert verdict("secret", rule("allow", "*.pem"), rule("deny", "*.pem")) == "allow"
    assert verdict("secret/key.pem", rule("deny", "*.pem")) == "deny"
    assert verdict("secret/deep/c.md", rule("deny", "*.pem")) == "allow"
    assert verdict("secret/deep", rule("deny", "secret/*.pem")) == "allow"


def test_a_deletion_follows_no_link_in_the_folder(tree: Path) -> None:
    assert check_delete([rule("deny", "*.pem")], "open", project_dir=tree) == "allow"
    assert check_delete([rule("deny", "open/way")], "open", project_dir=tree) == "deny"


def test_a_link_that_is_deleted_itself_is_judged_with_what_it_leads_to(tree: Path) -> None:
    assert check_delete([rule("deny", "*.pem")], "open/way", project_dir=tree) == "deny"
    assert check_delete([rule("deny", "open/way/deep")], "open/way", project_dir=tree) == "deny"


def test_a_folder_that_may_not_be_looked_at_is_judged_by_the_patterns(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = os.scandir

    def scandir(path: str) -> Any:
        if path.endswith("/deep"):
            raise PermissionError(path)
        return look(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert check_delete([rule("deny", "*.txt")], "open", project_dir=tree) == "deny"
    assert check_delete([rule("deny", "*.txt")], "open/way/deep", project_dir=tree) == "deny"
    assert check_delete([rule("interrupt", "open/deep/x")], "open", project_dir=tree) == "interrupt"
    scope = FileScope(project_dir=tree, writable_dirs=["."], denied_paths=["open/deep/x"])
    assert check_delete([], "open", project_dir=tree, scope=scope) == "deny"
    tools = FileScope(project_dir=tree, writable_dirs=["."])
    assert check_delete([], "open", project_dir=tree, scope=tools) == "allow"


def test_a_list_of_what_is_there_stands_for_a_walk() -> None:
    rules = listed(rule("deny", "/w/a/x"), rule("interrupt", "/w/a/y"), rule("deny", "/w/a/f/"))

    def verdict(path: str, tree: list[Any], **where: Any) -> str:
        return check_delete(rules, path, tree=tree, **where)

    assert verdict("a", []) == "allow"
    assert verdict("a", ["/w/a/b", "/w/a/y"]) == "interrupt"
    assert verdict("a", ["/w/a/y", "/w/a/x"]) == "deny"
    assert verdict("a", ["x"]) == "deny"  # relative to the folder
    assert verdict("a", ["a/x"]) == "deny"  # or to the working folder
    assert verdict("a", ["x"], cwd="/w/b") == "allow"  # that is /w/b/a
    assert verdict("/w/a", ["a/y"], cwd="/w") == "interrupt"
    assert verdict("a", ["f"]) == "allow"
    assert verdict("a", ["f/"]) == "deny"
    assert verdict("b", ["/w/a/x"]) == "deny"  # not in it, and deleted all the same
    assert verdict("a", [7]) == "deny"
    assert verdict("a", ["\0"]) == "deny"


def test_a_list_holds_under_every_name_of_the_folder(tree: Path) -> None:
    rules = compiled([rule("deny", "secret/deep/*.md", "open/deep/")], project_dir=tree)
    assert check_delete(rules, "short", tree=["c.md"]) == "deny"
    assert check_delete(rules, "short", tree=[f"{tree}/short/c.md"]) == "deny"
    assert check_delete(rules, "open", tree=["deep"]) == "deny"  # it is a folder
    assert check_delete(rules, "open", tree=["a.md"]) == "allow"


def test_what_the_scope_closes_is_not_deleted_either(tree: Path) -> None:
    scope = FileScope(
        project_dir=tree, writable_dirs=["open", "secret", "new"], denied_paths=["secret/key.pem"]
    )

    def verdict(path: str, **more: Any) -> str:
        return check_delete([], path, project_dir=tree, scope=scope, **more)

    assert verdict("open/deep") == "allow"
    assert verdict("open") == "deny"  # a link in it leads to the key, and can't be written
    assert verdict("secret") == "deny"
    assert verdict("secret/deep") == "allow"
    assert verdict("outside") == "deny"
    assert verdict("open/way") == "deny"  # it leads to the key
    assert verdict("new") == "allow"
    assert verdict("new", tree=["CLAUDE.md"]) == "deny"
    assert verdict("new", tree=["a.md"]) == "allow"
    closed = FileScope(project_dir=tree, writable_dirs=["new"], denied_paths=["new/x/key"])
    assert check_delete([], "new", project_dir=tree, scope=closed) == "deny"
    assert check_delete([], "new/y", project_dir=tree, scope=closed) == "allow"


def test_a_path_that_nobody_can_judge_is_not_deleted() -> None:
    assert check_delete(listed(), "a\0") == "deny"
    assert check_delete(listed(), "a") == "allow"
