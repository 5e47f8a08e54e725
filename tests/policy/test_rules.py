"""A rule as a person writes it: what is wrong is told at once, with what to write instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy import (
    FilePermission,
    RuleVerdict,
    check_permissions,
    check_search,
    compile_rules,
    read_rules,
)
from agent_kit.policy.lookup import NEVER
from agent_kit.policy.rules import Operation, stricter
from agent_kit.scope import ConfigError, Fault


def faults(error: pytest.ExceptionInfo[ConfigError]) -> dict[str, str]:
    return {fault.field: fault.remedy for fault in error.value.faults}


def rule(*paths: Any, mode: Any = "deny", operations: Any = ("read",)) -> FilePermission:
    return FilePermission(operations=operations, paths=paths, mode=mode)


def test_a_rule_holds_what_was_written_as_values(tmp_path: Path) -> None:
    made = FilePermission(operations=["write", "write", "read"], paths=[tmp_path], mode="interrupt")
    assert made.operations == ("write", "read")
    assert made.paths == (str(tmp_path),)
    assert made.mode is RuleVerdict.INTERRUPT
    assert hash(made) == hash(
        FilePermission(operations=["write", "read"], paths=[str(tmp_path)], mode="interrupt")
    )


def test_every_fault_of_a_rule_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        FilePermission(operations=["read", "wirte", 7], paths=["", "../x", "fine"], mode="Deny")
    assert faults(caught) == {
        "operations[1]": "write 'read' or 'write'; did you mean 'write'?",
        "operations[2]": "write 'read' or 'write'.",
        "paths[0]": "it is empty; write '**' for everything, '.' for the project.",
        "paths[1]": "'..' has no place in a pattern; write an absolute path.",
        "mode": "write 'allow', 'deny' or 'interrupt'; did you mean 'deny'?",
    }


@pytest.mark.parametrize("value", ["read", (), [], None, {"read"}, 7])
def test_lists_must_be_lists_and_hold_something(value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        FilePermission(operations=value, paths=value, mode="deny")
    empty = value in ((), [])
    begins = "it is empty; give at least one, as" if empty else "give a list, as"
    assert faults(caught) == {
        "operations": f'{begins} ["read", "write"].',
        "paths": f'{begins} ["notes/**"].',
    }


def test_a_field_that_is_missing_or_unknown_is_told_with_the_rest() -> None:
    with pytest.raises(ConfigError) as caught:
        FilePermission(operation=["read"], paths=["!x"], mode="deny")  # type: ignore[call-arg]
    assert set(faults(caught)) == {"operation", "operations", "paths[0]"}


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        (7, "give a pattern as text, relative to the project or absolute."),
        (b"x", "give a pattern as text, relative to the project or absolute."),
        ("  ", "it is empty; write '**' for everything, '.' for the project."),
        ("a\0b", "no name can hold a NUL or half of a character; leave it out."),
        ("a\ud800", "no name can hold a NUL or half of a character; leave it out."),
        ("/a/../b/*.pem", "'..' has no place in a pattern; write '/b/*.pem'."),
        ("..", "'..' has no place in a pattern; write an absolute path."),
        ("{x,..}/a", "'..' has no place in a pattern."),
        ("/", "it names no file; write '/**' for everything, '.' for the project."),
        ("//", "it names no file; write '/**' for everything, '.' for the project."),
        ("/.", "it names no file; write '/**' for everything, '.' for the project."),
        ("{a,/}", "it names no file."),
        ("#x", "a pattern can't begin with '#'; write '\\#x' for the name."),
        ("!x", "a pattern can't begin with '!'; write '\\!x' for the name."),
        ("{a,!x}", "a pattern can't begin with '!'; write '\\!x' for the name."),
        ("a[b", "a bracket in it never closes; write 'a\\\\[b' for the name."),
        ("a[z-a]", "a bracket in it has no meaning; write the characters out, as [abc]."),
        ("a[b--c]", "a bracket in it has no meaning; write the characters out, as [abc]."),
        ("a[[:alpha:]]", "it has a class, [[:alpha:]]: write the characters out."),
        ("{a,b/.}", "'.' names no file in a pattern; write the folder without it."),
        ("a\\", "it isn't a gitignore pattern."),
        ("x{1..1001}", "it has more than 1,000 alternatives."),
    ],
)
def test_a_pattern_that_can_match_nothing_is_a_fault(path: Any, remedy: str) -> None:
    with pytest.raises(ConfigError) as caught:
        rule("fine", path)
    assert caught.value.faults == (Fault(field="paths[1]", value=path, remedy=remedy),)


def test_faults_of_a_list_come_together_each_with_its_rules_index() -> None:
    rules = [
        rule("a"),
        {"operations": ["read"], "paths": ["#x"], "mode": "deny"},
        "deny",
        {"operations": ["read"], "paths": ["x"], "mode": "no", "color": 1},
    ]
    with pytest.raises(ConfigError) as caught:
        read_rules(rules, "AgentSpec.permissions")
    assert faults(caught) == {
        "AgentSpec.permissions[1].paths[0]": "a pattern can't begin with '#'; write '\\#x' for the name.",
        "AgentSpec.permissions[2]": "give FilePermission(operations=…, paths=…, mode=…).",
        "AgentSpec.permissions[3].color": "there is no such field; the fields are operations, paths, mode.",
        "AgentSpec.permissions[3].mode": "write 'allow', 'deny' or 'interrupt'.",
    }
    with pytest.raises(ConfigError) as caught:
        compile_rules(rules, project_dir="")
    assert set(faults(caught)) == {
        "project_dir",
        "permissions[1].paths[0]",
        "permissions[2]",
        "permissions[3].color",
        "permissions[3].mode",
    }


@pytest.mark.parametrize("given", [None, "deny", {"a": 1}, rule("a")])
def test_rules_that_are_no_list_are_a_fault(given: Any) -> None:
    with pytest.raises(ConfigError, match="give a list of FilePermission"):
        read_rules(given)


@pytest.mark.parametrize("project", [None, "", 7, b"/w", "a\0", "~nobody\ud800"])
def test_a_project_that_is_no_folder_is_a_fault(project: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        compile_rules([], project_dir=project)
    assert faults(caught) == {"project_dir": "give an absolute path of a folder."}


def test_a_home_that_is_no_folder_is_a_fault() -> None:
    with pytest.raises(ConfigError) as caught:
        compile_rules([], project_dir="/w", home="\0")
    assert faults(caught) == {"home": "give an absolute path of a folder."}


def test_a_pattern_below_a_home_that_nobody_knows_is_a_fault() -> None:
    with pytest.raises(ConfigError) as caught:
        compile_rules([rule("x", "~/a"), rule("~")], project_dir="/w", native=False)
    assert faults(caught) == {
        "permissions[0].paths[1]": "there is no home folder for '~'.",
        "permissions[1].paths[0]": "there is no home folder for '~'.",
    }


def test_a_relative_project_is_below_the_processs_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(tmp_path)
    assert compile_rules([], project_dir="p").project == f"{tmp_path}/p"
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert compile_rules([], project_dir="/p").project == "/p"
    assert compile_rules([], project_dir="~/p", home="/h").project == "/h/p"
    with pytest.raises(ConfigError, match="project_dir='p'"):
        compile_rules([], project_dir="p")


@pytest.mark.parametrize(
    ("pattern", "matched", "free"),
    [
        # relative to the project, or, without a slash, everywhere
        ("notes/**", ["notes/a", "/w/notes/.x/y"], ["/notes/a", "x/notes/a", "notes"]),
        ("a.txt", ["a.txt", "x/a.txt", "/srv/a.txt"], ["b.txt", "a.txt2"]),
        ("./a.txt", ["a.txt", "a.txt/in"], ["x/a.txt", "/srv/a.txt"]),
        (".", ["a", "/w", "/w/x/y", "."], ["/wx", "/"]),
        ("./", ["a", "/w"], ["/wx"]),
        ("notes/.", ["notes/a", "notes/"], ["notes", "x/notes/a"]),
        ("x/b.../.", ["x/b.../a"], ["x/b/a"]),
        ("~/.", ["/h", "/h/a"], ["/hx", "a"]),
        ("a/.//./", ["a/x", "a/"], ["b/a/x"]),
        ("~", ["/h", "/h/a", "~/x", "~"], ["/hx", "a"]),
        ("~/x/*.pem", ["/h/x/a.pem", "~/x/b.pem"], ["/h/a.pem", "x/a.pem"]),
        ("**", ["a", "/", "/srv/.x"], []),
        ("/**", ["a", "/", "/srv/.x"], []),
        ("*", ["a", "/srv/.x"], ["/"]),
        ("**/", ["x/a", "x/"], ["/x"]),
        ("/**/*", ["a", "/srv/.x"], ["/"]),
        # folders only
        ("x/", ["x/", "x/a", "/srv/x/y"], ["x", "/srv/x"]),
        ("/x/", ["/x/", "/x/a"], ["/x", "/y/x/"]),
        ("/**/x/**", ["/x/a", "/y/x/"], ["/x", "/y/x"]),
        ("x*/", ["x1/", "x1/a"], ["x1"]),
        # case and Unicode form
        ("Notes", ["Notes"], ["notes"]),
        ("N*", ["Nx"], ["nx"]),
        ("caf\u00e9", ["caf\u00e9", "cafe\u0301"], ["CAF\u00c9"]),
        ("cafe\u0301/*.md", ["caf\u00e9/a.md"], ["cafe/a.md"]),
        # escapes, brackets, alternatives, blanks
        (r"\*.md", ["*.md"], ["a.md"]),
        (r"\{a,b\}", ["{a,b}"], ["a", "b"]),
        ("{a,b/c}", ["a", "x/a", "b/c"], ["x/b/c", "b"]),
        ("a[!b]c", ["axc"], ["abc", "a/c"]),
        ("a[[]c", ["a[c"], ["abc"]),
        ("*.tar.gz", ["a.tar.gz", ".tar.gz", "x/b.tar.gz/in"], ["a.gz", "tar.gz", "a.tar.gz2"]),
        ("*.md ", ["a.md"], ["a.md x"]),
        ("a*", ["ab", "a\n"], ["b\na"]),
        ("x/[+-9]y", ["x/.y", "x/5y"], ["x//y", "x/ay"]),
        ("x[!a][\\]z", ["xb\\z"], ["x/\\z", "xa\\z"]),
        ("...", ["...", "x/.../a"], ["..", "x"]),
        ("././.", ["a", "/w"], ["/wx"]),
    ],
)
def test_a_pattern_means_what_gitignore_says(
    pattern: str, matched: list[str], free: list[str]
) -> None:
    rules = compile_rules([rule(pattern)], project_dir="/w", home="/h", native=False)
    for path in matched:
        assert check_permissions(rules, "read", path) == "deny", path
    for path in free:
        assert check_permissions(rules, "read", path) == "allow", path


def test_a_line_break_at_the_end_of_a_name_is_part_of_it() -> None:
    rules = compile_rules([rule("*.pem", "x?", "y", "z*/")], project_dir="/w", native=False)
    lookup = rules.lookups[Operation.READ]
    for path in ("/a.pem", "/xy", "/y", "/z/a"):
        assert lookup.first(path, folder=False) == 0
        assert lookup.first(path + "\n", folder=False) == (0 if path == "/z/a" else NEVER)


def test_a_project_at_the_root_is_everything() -> None:
    rules = compile_rules([rule(".")], project_dir="/", native=False)
    assert check_permissions(rules, "read", "/") == "deny"
    assert check_permissions(rules, "read", "/x") == "deny"


def test_a_rule_that_an_earlier_one_always_shadows_is_told() -> None:
    rules = compile_rules(
        [
            rule("/w/a/**", mode="allow", operations=["read", "write"]),
            rule("/w/b/*", operations=["read", "write"]),
            rule("/w/a/x", "/w/b/*", "/w/a/*.md"),  # 0 and 1
            rule("/w/b/x", operations=["read", "write"]),  # 1
            rule("/w/b/*.md"),  # perhaps it is: nobody is told of what isn't sure
            rule("/w/a/x", "/w/c"),  # decides for c
            rule("*.key"),
            rule("*.key", mode="interrupt"),  # 6
            rule("*.key", operations=["read", "write"]),  # decides for writing
            rule("**"),
            rule("*.x", "/q"),  # 9
        ],
        project_dir="/w",
        native=False,
        field="rules",
    )
    assert {(shadow.rule, shadow.by) for shadow in rules.shadows} == {
        (2, (0, 1)),
        (3, (1,)),
        (7, (6,)),
        (10, (9,)),
    }
    assert [shadow.allowed_by for shadow in rules.shadows] == [(0,), (), (), ()]
    assert str(rules.shadows[0]) == (
        "rules[2] DENIES NOTHING: the first rule that matches decides, and rules[0] before it allows"
        " what it is meant to close. Put rules[2] in front."
    )
    assert str(rules.shadows[1]) == (
        "rules[3] never decides: rules[1] always matches first. Put it in front, or leave it out."
    )


def test_an_operation_that_is_none_is_a_fault() -> None:
    for operation in ("delete", "", None, ["read"]):
        with pytest.raises(ConfigError, match="write 'read' or 'write'"):
            check_permissions([], operation, "a", project_dir="/w")  # type: ignore[arg-type]


def test_plain_rules_need_a_project() -> None:
    with pytest.raises(ConfigError, match="project_dir=None: name the folder"):
        check_search([rule("a")], ".")


@pytest.mark.parametrize("path", ["a\0b", "\ud800", 7, None, b"a"])
def test_a_path_that_nobody_can_judge_is_denied(path: Any) -> None:
    rules = compile_rules([], project_dir="/w", native=False)
    assert check_permissions(rules, "read", path) == "deny"
    assert check_permissions(rules, "read", "a", cwd=path if path is not None else "\0") == "deny"
    if path is not None:
        assert check_search(rules, path) == "deny"
        assert check_search(rules, "a", path) == "deny"


def test_the_stricter_of_two_is_deny_then_interrupt() -> None:
    order = [RuleVerdict.ALLOW, RuleVerdict.INTERRUPT, RuleVerdict.DENY]
    for weak, first in enumerate(order):
        for strong, second in enumerate(order):
            assert stricter(first, second) == order[max(weak, strong)]


def test_on_windows_a_backslash_divides() -> None:
    rules = compile_rules(
        [rule("C:\\p\\secrets\\**"), rule("keys\\*.pem", mode="interrupt"), rule("~\\x")],
        project_dir="C:\\p",
        home="C:\\home",
        platform="windows",
        native=False,
    )
    assert check_permissions(rules, "read", "secrets\\a") == "deny"
    assert check_permissions(rules, "read", "c:/p/secrets/") == "deny"
    assert check_permissions(rules, "read", "secrets\\") == "deny"
    assert check_permissions(rules, "read", "C:\\p\\keys\\a.pem") == "interrupt"
    assert check_permissions(rules, "read", "C:\\home\\x") == "deny"
    assert check_search(rules, ".", "..\\*") == "deny"
    assert check_search(rules, "docs", "*.md") == "allow"
