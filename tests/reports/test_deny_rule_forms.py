"""How a denied path is said in the CLI's rule language, and that the gate needs no rule."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_kit import ConfigError, FileScope, check_file_scope
from agent_kit.sdk.rules import deny_rules, pattern_rules, spell, write_rules
from agent_kit.testing import ToolCall

PATH_RULE = re.compile(r"(\w+)\((.*)\)", re.DOTALL)


def path_rules(settings: object) -> list[tuple[str, str]]:
    """The tool and the text of each path rule of a plan's settings."""
    permissions = settings["permissions"]  # type: ignore[index]
    rules = [*permissions["deny"], *permissions["allow"]]
    found = [PATH_RULE.fullmatch(rule) for rule in rules]
    return [(match[1], match[2]) for match in found if match]


@pytest.mark.report(1, 2)
@pytest.mark.parametrize("denied", ["/home/u/.ssh", "/home/u/Downloads", "/home/u/Downloads/"])
def test_an_absolute_path_is_said_with_two_slashes(world, denied: str) -> None:
    plan = world.has("project/drafts/").plan(denied_paths=[denied], extra_writable_dirs=["drafts"])
    bare = denied.rstrip("/")
    deny = plan.settings["permissions"]["deny"]
    for rule in (f"Read(/{bare})", f"Read(/{bare}/**)", f"Edit(/{bare})", f"Edit(/{bare}/**)"):
        assert rule in deny
    for _tool, text in path_rules(plan.settings):
        assert text.startswith("//")


@pytest.mark.report(2)
def test_no_text_of_a_person_is_a_rule_as_it_stands(world) -> None:
    given = ["/srv/a", "~/b", "c", "./d/../e", "**/.env", "f/*.key", "Bash(rm:*)"]
    plan = world.plan(denied_paths=given)
    texts = {text for _tool, text in path_rules(plan.settings)}
    assert not texts & set(given)
    assert {f"/{world.home}/b", f"/{world.project}/c", f"/{world.project}/e"} <= texts
    assert "//**/Bash(rm:*)" in texts  # a pattern of file names like any other
    assert "Bash(rm:*)" not in plan.settings["permissions"]["deny"]


@pytest.mark.report(6)
def test_a_backslash_in_a_name_is_a_question_mark_in_its_rule() -> None:
    scope = FileScope(
        project_dir="/w", readable_dirs=["/w"], denied_paths=["/w/a\\b.txt"], platform="posix"
    )
    assert check_file_scope(scope, "Read", {"file_path": "/w/a\\b.txt"}) is not None
    assert check_file_scope(scope, "Read", {"file_path": "/w/acb.txt"}) is None
    assert "Read(//w/a?b.txt)" in deny_rules("/w/a\\b.txt")


@pytest.mark.report(7)
@pytest.mark.parametrize("denied", ["/w/k.txt/", "/w/k.txt//", "/w/k.txt/.", "/w//k.txt"])
def test_a_trailing_slash_is_no_part_of_a_denied_path(denied: str) -> None:
    scope = FileScope(
        project_dir="/w", readable_dirs=["/w"], denied_paths=[denied], platform="posix"
    )
    assert check_file_scope(scope, "Read", {"file_path": "/w/k.txt"}) is not None
    assert check_file_scope(scope, "Read", {"file_path": "/w/k.txt/inside"}) is not None
    assert check_file_scope(scope, "Read", {"file_path": "/w/other"}) is None
    assert deny_rules("/w/k.txt/") == deny_rules("/w/k.txt")


@pytest.mark.report(8)
@pytest.mark.parametrize("denied", ["/", "~", "<root>", "/**", "*", "**", "**/*"])
def test_denying_everything_is_a_fault_of_the_session(world, denied: str) -> None:
    home = {"HOME": str(world.root)}
    with pytest.raises(ConfigError) as caught:
        world.plan(denied_paths=[denied.replace("<root>", str(world.root))], env=home)
    assert {fault.field for fault in caught.value.faults} == {"denied_paths"}


@pytest.mark.report(8)
def test_a_scope_can_deny_everything_and_the_rule_of_a_root_has_two_stars() -> None:
    scope = FileScope(project_dir="/w", readable_dirs=["/w"], denied_paths=["/"], platform="posix")
    for path in ("/w/a", "/", "/etc/passwd"):
        assert check_file_scope(scope, "Read", {"file_path": path}) is not None
    assert deny_rules("/") == ("Read(//**)", "Edit(//**)")
    assert pattern_rules("/**") == ("Read(//**)", "Edit(//**)")


@pytest.mark.report(9)
def test_a_denied_folder_is_the_one_at_the_root_not_each_of_that_name() -> None:
    scope = FileScope(
        project_dir="/home/u/dev/app",
        writable_dirs=["."],
        searchable_dirs=["."],
        denied_paths=["/data"],
        platform="posix",
    )
    for path in ("/home/u/dev/app/data/a.md", "/home/u/dev/app/datafile", "data/a.md"):
        assert check_file_scope(scope, "Edit", {"file_path": path}) is None
    assert check_file_scope(scope, "Edit", {"file_path": "/data/a.md"}) is not None
    writable = FileScope(
        project_dir="/home/u/dev/app", writable_dirs=["."], denied_paths=["/dev"], platform="posix"
    )
    assert check_file_scope(writable, "Edit", {"file_path": "/home/u/dev/app/a.md"}) is None


WINDOWS = {
    "D:\\some\\dir": "//d/some/dir",
    "d:/some/dir": "//d/some/dir",
    "/d/some/dir": "//d/some/dir",
    "\\\\?\\D:\\some\\dir": "//d/some/dir",
    "D:\\some\\dir\\": "//d/some/dir",
    "C:\\Users\\Public\\t.txt": "//c/Users/Public/t.txt",
    "\\\\srv\\share\\d": "//srv/share/d",
}


@pytest.mark.report(10, 12)
@pytest.mark.parametrize(("path", "rule"), WINDOWS.items())
def test_a_drive_is_a_lower_case_letter_without_a_colon(path: str, rule: str) -> None:
    assert spell(path, platform="windows") == rule
    assert deny_rules(path, platform="windows") == (
        f"Read({rule})",
        f"Read({rule}/**)",
        f"Edit({rule})",
        f"Edit({rule}/**)",
    )


@pytest.mark.report(11)
def test_every_spelling_of_one_path_gives_one_set_of_rules_in_the_first_ones_case() -> None:
    spelled = ["C:/Users/ada/Contacts", "c:\\users\\ada\\contacts", "/c/Users/ada/Contacts"]
    rules = write_rules(denied_literals=spelled, platform="windows")
    assert rules.deny == deny_rules(spelled[0], platform="windows")
    assert rules.deny[0] == "Read(//c/Users/ada/Contacts)"
    for path in spelled:
        scope = FileScope(
            project_dir="C:\\", searchable_dirs=["."], denied_paths=[path], platform="windows"
        )
        for other in spelled:
            assert check_file_scope(scope, "Read", {"file_path": other}) is not None


@pytest.mark.report(13)
@pytest.mark.parametrize("denied", ["a/b/C.txt", "a\\b\\C.txt", "a\\b/C.txt"])
@pytest.mark.parametrize("asked", ["a\\b\\C.txt", "a/b/C.txt", "a/b\\c.TXT", "D:\\w\\a\\b\\C.txt"])
def test_a_windows_separator_is_a_separator_on_both_sides(denied: str, asked: str) -> None:
    scope = FileScope(
        project_dir="D:\\w", searchable_dirs=["."], denied_paths=[denied], platform="windows"
    )
    assert check_file_scope(scope, "Read", {"file_path": asked}) is not None
    assert check_file_scope(scope, "Read", {"file_path": "a/b/D.txt"}) is None


@pytest.mark.report(14)
def test_a_denied_path_outside_the_project_is_denied_as_such() -> None:
    scope = FileScope(
        project_dir="/w", searchable_dirs=["."], denied_paths=["/srv/secrets"], platform="posix"
    )
    for asked in ("/srv/secrets/k", "../srv/secrets/k", "/srv/secrets"):
        reason = check_file_scope(scope, "Read", {"file_path": asked})
        assert reason == f'"{asked}" is off limits: it can\'t be read.'


@pytest.mark.report(15)
@pytest.mark.parametrize("denied", ["secrets/k", "./secrets/k", "secrets/./k", "x/../secrets/k"])
def test_a_relative_entry_is_below_the_project(denied: str, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # never below the process's folder
    scope = FileScope(
        project_dir="/w", searchable_dirs=["."], denied_paths=[denied], platform="posix"
    )
    assert check_file_scope(scope, "Read", {"file_path": "/w/secrets/k"}) is not None
    assert check_file_scope(scope, "Read", {"file_path": "secrets/k"}) is not None
    assert check_file_scope(scope, "Read", {"file_path": "/w/secrets/l"}) is None


@pytest.mark.report(15)
def test_a_relative_path_is_no_rule() -> None:
    for relative in ("secrets/k", "./k", "~/k"):
        with pytest.raises(ValueError, match="absolute"):
            deny_rules(relative)


@pytest.mark.report(16)
def test_only_read_and_edit_rules_have_paths(world) -> None:
    world.has("project/p/", "project/drafts/", "project/sources/")
    plan = world.plan(
        denied_paths=["p", "**/.env"],
        extra_writable_dirs=["drafts"],
        extra_readable_dirs=["sources"],
        spec={"tools": ["NotebookEdit", "WebFetch(domain:example.org)"]},
    )
    tools = {tool for tool, text in path_rules(plan.settings) if "/" in text}
    assert tools == {"Read", "Edit"}


ODD = ("a)b/k", "a(b/k", "f()/k", "k (1)", "((/k", ")/k", "a:b/k")


@pytest.mark.report(17, 18, 19)
@pytest.mark.parametrize("name", ODD)
def test_the_gate_holds_a_name_that_looks_like_a_rule_by_itself(name: str) -> None:
    scope = FileScope(
        project_dir="/w", searchable_dirs=["."], denied_paths=[f"/w/{name}"], platform="posix"
    )
    assert check_file_scope(scope, "Read", {"file_path": f"/w/{name}"}) is not None
    assert check_file_scope(scope, "Read", {"file_path": "/w/ok"}) is None
    for rule in deny_rules(f"/w/{name}"):
        assert rule.endswith((f"/{name})", f"/{name}/**)"))  # not escaped: it needs nothing


@pytest.mark.report(20)
def test_a_denied_path_wins_over_every_list_the_kits_own_included(world) -> None:
    world.has("project/.env", "plugin/skills/s/SKILL.md", "run/host/", "project/.claude/skills/x")
    plan = world.plan(
        extra_writable_dirs=["."],
        extra_readable_dirs=["."],
        denied_paths=[
            ".env",
            "../plugin/skills",
            "run.log",
            ".claude/skills",
            str(world.root / "run/log"),
        ],
        spec={"plugins": ["../plugin"]},
    )
    results = Path(plan.scope.tool_results_dir or "")
    denied = [
        ".env",
        "../plugin/skills/s/SKILL.md",
        ".claude/skills/x",
        plan.run_dir / "host" / "settings.json",
        plan.run_dir / "log" / "x",
    ]
    for path in denied:
        for tool in ("Read", "Write", "Edit"):
            assert check_file_scope(plan.scope, tool, {"file_path": str(path)}) is not None, path
    assert check_file_scope(plan.scope, "Read", {"file_path": str(results / "t.txt")}) is None
    closed = world.plan(denied_paths=[str(results.parents[2])], session_id=plan.session_id)
    assert closed.scope.tool_results_dir == plan.scope.tool_results_dir
    assert check_file_scope(closed.scope, "Read", {"file_path": str(results / "t.txt")}) is not None


@pytest.mark.e2e
@pytest.mark.report(1, 2, 6, 7, 9, 14, 15, 16, 17, 18, 19, 20)
def test_the_clis_own_rules_hold_each_of_these_names_and_nothing_beside_them(world) -> None:
    denied = ["plain.txt", "sec", "k.txt", "a\\b.txt", "a, Bash/k", *ODD]
    files = ["plain.txt", "sec/inner.txt", "k.txt", "a\\b.txt", "a, Bash/k", *ODD]
    open_files = [
        "ok",
        "plain.txt.bak",
        "section.txt",
        "ab/k",
        "f/k",
        "k",
        "deep/plain.txt",
        "a:c/k",
    ]
    world.has(
        *(f"project/{name}=canary-{at}-closed" for at, name in enumerate(files)),
        *(f"project/{name}=canary-{at}-open" for at, name in enumerate(open_files)),
        "out/key.txt=canary-out-closed",
        "project/w.txt=canary-w-closed",
    )
    plan = world.plan(
        extra_writable_dirs=["."],
        denied_paths=[*denied, "k.txt/", str(world.out), "w.txt"],
    )
    paths = [*(str(world.project / name) for name in files), str(world.out / "key.txt")]
    writes = [
        ToolCall("Write", {"file_path": str(world.project / "w.txt"), "content": "mine"}),
        ToolCall("Write", {"file_path": str(world.project / "sec" / "new.txt"), "content": "mine"}),
    ]
    run = world.run(
        world.rules_alone(plan),
        [
            tuple(ToolCall("Read", {"file_path": path}) for path in paths),
            tuple(
                ToolCall("Read", {"file_path": str(world.project / name)}) for name in open_files
            ),
            tuple(writes),
        ],
    )
    refused = run.calls[: len(paths)] + run.calls[-len(writes) :]
    assert [call.input["file_path"] for call in refused if not call.is_error] == []
    assert not run.saw("-closed")
    for at in range(len(open_files)):
        assert run.saw(f"canary-{at}-open"), open_files[at]
    assert (world.project / "w.txt").read_text() == "canary-w-closed"
    assert not (world.project / "sec" / "new.txt").exists()
