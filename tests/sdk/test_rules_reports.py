"""Public reports of deny rules that did not hold, each with its smallest input.

Every row of the kind "A deny-rule form" has a test here; a row without one fails.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.sdk.rules import deny_rules, spell, write_rules

CASES = Path(__file__).parent.parent / "cases" / "bug_reports.json"
KIND = "A deny-rule form"
ROWS = [row for row in json.loads(CASES.read_text()) if row["kind"] == KIND]
TESTS: dict[int, Callable[[], None]] = {}


def report(*numbers: int) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def file(test: Callable[[], None]) -> Callable[[], None]:
        TESTS.update(dict.fromkeys(numbers, test))
        return test

    return file


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['n']}" for row in ROWS])
def test_what_was_reported_does_not_happen_here(row: dict[str, object]) -> None:
    TESTS[int(str(row["n"]))]()


def test_each_test_belongs_to_a_report() -> None:
    assert sorted(TESTS) == sorted(row["n"] for row in ROWS)


def refuses(scope: FileScope, tool: str, path: str) -> str | None:
    return check_file_scope(scope, tool, {"file_path": path})


def scope(*denied: str, project: str = "/w", platform: str = "posix") -> FileScope:
    """A scope in which everything may be read and written but what is denied."""
    root = "/" if platform == "posix" else "C:\\"
    return FileScope(
        project_dir=project,
        writable_dirs=[root],
        searchable_dirs=[root],
        denied_paths=denied,
        platform=platform,
    )


@report(1, 2)
def every_absolute_path_has_two_slashes() -> None:
    for path in ("/home/u/.ssh", "/home/u/Downloads"):
        assert write_rules(denied_literals=[path]).deny == (
            f"Read(/{path})",
            f"Read(/{path}/**)",
            f"Edit(/{path})",
            f"Edit(/{path}/**)",
        )


@report(6)
def a_backslash_is_spelled_as_any_character_and_denied_by_the_gate() -> None:
    assert deny_rules("/w/a\\b.txt")[0] == "Read(//w/a?b.txt)"
    assert refuses(scope("/w/a\\b.txt"), "Read", "/w/a\\b.txt") is not None
    assert refuses(scope("/w/a\\b.txt"), "Read", "/w/axb.txt") is None


@report(7)
def a_slash_at_the_end_is_dropped() -> None:
    for path in ("/w/k.txt/", "/w/sec/"):
        assert deny_rules(path) == deny_rules(path.rstrip("/"))
        assert not any("//" in rule[6:] for rule in deny_rules(path))
        assert refuses(scope(path), "Read", path.rstrip("/")) is not None


@report(8)
def a_root_is_denied_with_all_that_is_in_it() -> None:
    assert deny_rules("/") == ("Read(//**)", "Edit(//**)")
    assert refuses(scope("/"), "Read", "/etc/hosts") is not None


@report(9)
def a_rule_is_anchored_at_the_root() -> None:
    assert deny_rules("/dev")[:2] == ("Read(//dev)", "Read(//dev/**)")
    assert refuses(scope("/dev"), "Edit", "/home/u/dev/app/a.md") is None


@report(10)
def a_drive_is_a_lower_case_folder() -> None:
    assert deny_rules("D:\\some\\dir", platform="windows") == (
        "Read(//d/some/dir)",
        "Read(//d/some/dir/**)",
        "Edit(//d/some/dir)",
        "Edit(//d/some/dir/**)",
    )


@report(11)
def every_spelling_of_a_windows_path_gives_one_set_of_rules() -> None:
    spellings = ["C:/Users/ada/Contacts", "c:\\users\\ada\\contacts", "/c/Users/ada/Contacts"]
    rules = write_rules(denied_literals=spellings, platform="windows")
    assert rules.deny == deny_rules("C:\\Users\\ada\\Contacts", platform="windows")


@report(12)
def no_colon_follows_a_drive() -> None:
    assert spell("C:\\Users\\Public\\t.txt", platform="windows") == "//c/Users/Public/t.txt"


@report(13)
def slashes_and_backslashes_are_the_same_on_windows() -> None:
    windows = scope("a/b/C.txt", project="C:\\w", platform="windows")
    assert refuses(windows, "Read", "a\\b\\C.txt") is not None
    assert spell("C:\\w\\a\\b", platform="windows") == spell("C:/w/a/b", platform="windows")


@report(14)
def an_absolute_path_is_denied_outside_the_project_too() -> None:
    denied = refuses(scope("/srv/secrets"), "Read", "/srv/secrets/k")
    assert denied == '"/srv/secrets/k" is off limits: it can\'t be read.'
    assert "Read(//srv/secrets/**)" in deny_rules("/srv/secrets")


@report(15)
def a_relative_path_becomes_no_rule_that_can_not_match() -> None:
    with pytest.raises(ValueError, match="not an absolute path"):
        write_rules(denied_literals=["secrets/k"])
    assert refuses(scope("secrets/k"), "Read", "/w/secrets/k") is not None
    patterns = write_rules(denied_patterns=["secrets/*"], project_dir="/w").deny
    assert patterns[0] == "Read(//w/secrets/*)"


@report(16)
def only_read_and_edit_rules_are_written() -> None:
    rules = write_rules(
        denied_literals=["/w/p"],
        denied_patterns=["*.pem"],
        read_only_dirs=["/w/s"],
        control_dirs=["/w/d"],
        readable_dirs=["/w/s"],
        writable_dirs=["/w/d"],
    )
    tools = {rule.partition("(")[0] for rule in (*rules.deny, *rules.allow)}
    assert tools == {"Read", "Edit"}


@report(17)
def parentheses_stay_a_part_of_the_name() -> None:
    for path in ("/w/a)b/k", "/w/a(b/k", "/w/f()/k", "/w/k (1)"):
        assert deny_rules(path)[0] == f"Read(/{path})"
        assert refuses(scope(path), "Read", path) is not None
        assert refuses(scope(path), "Read", "/w/ok") is None


@report(18)
def the_gate_does_not_wait_for_the_rule() -> None:
    assert refuses(scope("/w/f()/k.txt"), "Read", "/w/f()/k.txt") is not None


@report(19)
def a_colon_is_a_character() -> None:
    assert deny_rules("/w/a:b/k")[0] == "Read(//w/a:b/k)"
    assert refuses(scope("/w/a:b/k"), "Read", "/w/a:b/k") is not None


@report(20)
def denying_wins_over_allowing() -> None:
    open_folder = FileScope(
        project_dir="/w",
        readable_dirs=["/w"],
        also_readable=["/w/.env"],
        denied_paths=["/w/.env"],
        platform="posix",
    )
    assert refuses(open_folder, "Read", "/w/.env") is not None
    assert (
        "Read(//w/.env)"
        in write_rules(readable_dirs=["/w", "/w/.env"], denied_literals=["/w/.env"]).deny
    )
