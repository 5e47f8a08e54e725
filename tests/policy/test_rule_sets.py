"""Two lists hold for a call, each judged by itself; a subagent replaces the agent's, as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy import FilePermission, RuleSets, compile_rule_sets, own_rules, targets_of
from agent_kit.policy.rule_sets import Ruling
from agent_kit.policy.rules import RuleVerdict, stricter
from agent_kit.scope import ConfigError, FileScope, check_file_scope, odd_names
from agent_kit.scope.judge import is_plainly_allowed, judge_and_name, named_paths


def rule(mode: str, *paths: str, on: tuple[str, ...] = ("read", "write")) -> FilePermission:
    return FilePermission(operations=on, paths=paths, mode=mode)


@pytest.fixture
def scope(tmp_path: Path) -> FileScope:
    (tmp_path / "a.md").touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "way").symlink_to("sub")
    return FileScope(
        project_dir=tmp_path,
        searchable_dirs=["."],
        writable_dirs=["."],
        mcp_file_tools={"mcp__s__put": {"to": "write"}},
    )


def sets(scope: FileScope, **lists: Any) -> RuleSets:
    return compile_rule_sets(project_dir=scope.project_dir, **lists)


def ruled(
    made: RuleSets,
    scope: FileScope,
    tool: str,
    given: Any,
    *,
    cwd: str | None = None,
    agent_type: str | None = None,
) -> Ruling:
    """What the rules say of a call, its paths located as the scope does."""
    named = named_paths(scope, tool, given, cwd)
    assert named is not None
    return made.judge_named(named, agent_type)


def verdict(made: RuleSets, scope: FileScope, tool: str, given: Any, **more: Any) -> str:
    return ruled(made, scope, tool, given, **more).verdict


@pytest.mark.parametrize(
    ("tool", "given", "operation"),
    [
        ("Read", {"file_path": "x/f"}, "read"),
        ("NotebookRead", {"notebook_path": "x/f"}, "read"),
        ("Glob", {"pattern": "*", "path": "x"}, "read"),
        ("Glob", {"pattern": "x/f*"}, "read"),
        ("Glob", {"pattern": "**"}, "read"),
        ("Grep", {"pattern": "q", "path": "x"}, "read"),
        ("Grep", {"pattern": "q"}, "read"),
        ("LS", {"path": "."}, "read"),
        ("Write", {"file_path": "x/f", "content": ""}, "write"),
        ("Edit", {"file_path": "x/f"}, "write"),
        ("MultiEdit", {"file_path": "x/f"}, "write"),
        ("NotebookEdit", {"notebook_path": "x/f"}, "write"),
        ("mcp__s__put", {"to": "x/f"}, "write"),
    ],
)
@pytest.mark.parametrize("mode", ["deny", "interrupt"])
def test_each_tool_is_judged_by_the_rules_of_its_operation(
    scope: FileScope, tool: str, given: dict[str, str], operation: str, mode: str
) -> None:
    other = "write" if operation == "read" else "read"
    mine = sets(scope, session=[rule(mode, "x/**", on=(operation,))])
    theirs = sets(scope, session=[rule(mode, "x/**", on=(other,))])
    ruling = ruled(mine, scope, tool, given)
    assert (ruling.verdict, ruling.rule, ruling.field) == (mode, 0, "SessionConfig.permissions")
    assert ruling.message
    assert ruled(theirs, scope, tool, given).verdict == "allow"


def test_a_tool_that_names_no_path_has_no_rule(scope: FileScope) -> None:
    made = sets(scope, session=[rule("deny", "**")])
    for tool, given in (("Bash", {"command": "x"}), ("mcp__s__get", {"path": "x"}), ("Read", {})):
        assert verdict(made, scope, tool, given) == "allow"
        assert made.rule_plainly(tool, given) is None


def test_sentences_say_what_was_closed_and_escape_it(scope: FileScope) -> None:
    made = sets(scope, session=[rule("deny", "x/**"), rule("interrupt", "y/**")])

    def message(tool: str, **given: str) -> str | None:
        return ruled(made, scope, tool, given).message

    assert message("Read", file_path='x/"b') == (
        '"x/\\"b" can\'t be read: a rule of this session forbids it.'
    )
    assert message("Grep", path="x") == (
        '"x" can\'t be searched: a rule of this session closes it, or something in it.'
        " Try a folder below that holds nothing closed."
    )
    assert message("Write", file_path="y/b") == '"y/b" is written only when a person agrees.'
    assert message("LS", path="y") == (
        '"y" is listed only when a person agrees: a rule asks for it, or something in it.'
    )
    assert message("Read", file_path="z") is None


def test_each_list_is_judged_by_itself_and_the_stricter_wins(scope: FileScope) -> None:
    made = sets(
        scope,
        session=[rule("allow", "a"), rule("interrupt", "b"), rule("deny", "c"), rule("allow", "d")],
        agent=[rule("deny", "a"), rule("allow", "b"), rule("allow", "**")],
    )
    rulings = {
        name: ruled(made, scope, "Read", {"file_path": f"/q/{name}"})
        for name in ("a", "b", "c", "e")
    }
    assert {name: (str(r.verdict), r.field, r.rule) for name, r in rulings.items()} == {
        "a": ("deny", "AgentSpec.permissions", 0),
        "b": ("interrupt", "SessionConfig.permissions", 1),
        "c": ("deny", "SessionConfig.permissions", 2),
        "e": ("allow", "AgentSpec.permissions", 2),
    }


def test_subagents_inherit_or_replace_the_agents_rules_never_the_sessions(scope: FileScope) -> None:
    made = sets(
        scope,
        session=[rule("deny", "s")],
        agent=[rule("deny", "a")],
        subagents={"own": [rule("deny", "o")], "none": [], "heir": None},
    )
    closed = {
        agent: {
            name
            for name in ("s", "a", "o")
            if verdict(made, scope, "Read", {"file_path": name}, agent_type=agent) == "deny"
        }
        for agent in (None, "own", "none", "heir", "general-purpose")
    }
    assert closed == {
        None: {"s", "a"},
        "own": {"s", "o"},
        "none": {"s"},
        "heir": {"s", "a"},
        "general-purpose": {"s", "a"},
    }
    assert ruled(made, scope, "Read", {"file_path": "o"}, agent_type="own").field == (
        "subagents['own'].permissions"
    )


def test_an_empty_list_needs_to_be_meant() -> None:
    mine = rule("deny", "x")
    assert own_rules(None, replace_rules=False) is None
    assert own_rules([mine], replace_rules=False) == (mine,)
    assert own_rules([mine], replace_rules=True) == (mine,)
    assert own_rules([], replace_rules=True) == ()
    with pytest.raises(ConfigError, match="leave it out to inherit; for no rules at all"):
        own_rules([], replace_rules=False)
    with pytest.raises(ConfigError, match="give permissions too"):
        own_rules(None, replace_rules=True)
    with pytest.raises(ConfigError, match="give a list"):
        own_rules("x", replace_rules=True)


def test_faults_of_all_lists_come_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        compile_rule_sets(
            project_dir="/w",
            session=["x"],
            agent=[{"operations": ["read"], "paths": [""], "mode": "deny"}],
            subagents={"a": [7]},
        )
    assert [fault.field for fault in caught.value.faults] == [
        "SessionConfig.permissions[0]",
        "AgentSpec.permissions[0].paths[0]",
        "subagents['a'].permissions[0]",
    ]


def test_shadows_of_all_lists_are_told(scope: FileScope) -> None:
    twice = [rule("deny", "x"), rule("allow", "x")]
    made = sets(scope, session=twice, agent=twice, subagents={"a": twice})
    assert [shadow.field for shadow in made.shadows] == [
        "SessionConfig.permissions",
        "AgentSpec.permissions",
        "subagents['a'].permissions",
    ]


def test_a_link_is_judged_where_it_leads(scope: FileScope) -> None:
    made = sets(scope, session=[rule("deny", "sub/**")])
    assert verdict(made, scope, "Write", {"file_path": "way/x"}) == "deny"
    assert verdict(made, scope, "Grep", {"path": "way/"}) == "deny"
    assert verdict(made, scope, "LS", {"path": "other/"}) == "allow"


def test_a_search_of_what_is_missing_is_one_of_a_folder_and_of_a_file_is_none(
    scope: FileScope,
) -> None:
    rules = [rule("allow", "gone/**"), rule("deny", "gone"), rule("deny", "a.md/")]
    made = sets(scope, session=rules)
    assert verdict(made, scope, "Grep", {"path": "gone"}) == "allow"
    assert verdict(made, scope, "Read", {"file_path": "gone"}) == "deny"
    assert verdict(made, scope, "Grep", {"path": "a.md"}) == "allow"


SHOWN = "to\u212aen"  # "toKen", as the gate reads it and no rule of the CLI
PATTERNS = ["**/toKen", "**/\u00e9\u00f6", "**/*.pem", "/nowhere/**"]


def searched(scope: FileScope, **lists: Any) -> RuleVerdict:
    made = sets(scope, **lists)
    named = named_paths(scope, "Grep", {"path": scope.project_dir, "pattern": "x"})
    return made.judge_named(named or ()).verdict


@pytest.mark.parametrize("mode", ["deny", "interrupt", "allow"])
@pytest.mark.parametrize("agent", PATTERNS)
@pytest.mark.parametrize("session", PATTERNS)
@pytest.mark.parametrize("name", ["plain", "e\u0301\u00f6", SHOWN])
def test_one_look_for_both_lists_finds_what_a_look_for_each_does(
    scope: FileScope, name: str, session: str, agent: str, mode: str
) -> None:
    (Path(scope.project_dir) / name).touch()
    first, second = [rule(mode, "**/x"), rule("deny", session)], [rule("deny", agent)]
    both = searched(scope, session=first, agent=second)
    each = [searched(scope, session=first), searched(scope, agent=second)]
    assert both == stricter(*each)
    closed = {"e\u0301\u00f6": PATTERNS[1], SHOWN: PATTERNS[0]}.get(name)
    assert (both == "deny") is (closed in (session, agent))


def test_the_names_in_a_folder_are_looked_at_once_for_both_lists(
    scope: FileScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def names_in(folder: str) -> Any:
        looked.append(folder)
        return real(folder)

    real = odd_names._names_in
    monkeypatch.setattr(odd_names, "_names_in", names_in)
    rules = {"session": [rule("deny", "**/.env")], "agent": [rule("deny", "**/toKen")]}
    assert searched(scope, **rules) == "allow"
    assert looked == list(dict.fromkeys(looked)) != []
    (Path(scope.project_dir) / SHOWN).touch()
    assert searched(scope, **rules) == "deny"
    found = sets(scope, **rules).judge_named(named_paths(scope, "Grep", {"path": "."}) or ())
    assert found.name == "AgentSpec.permissions[0]"


def test_more_names_than_are_looked_at_are_closed_by_the_first_list_that_would_look(
    scope: FileScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(odd_names, "_NAMES", 0)
    rules = {"session": [rule("deny", "**/x", on=("write",))], "agent": [rule("deny", "**/toKen")]}
    found = sets(scope, **rules).judge_named(named_paths(scope, "Grep", {"path": "."}) or ())
    assert found.name == "AgentSpec.permissions[0]"


def test_a_call_is_relative_to_its_working_folder(scope: FileScope) -> None:
    made = sets(scope, session=[rule("deny", "sub/x")])
    cwd = f"{scope.project_dir}/sub"
    assert verdict(made, scope, "Read", {"file_path": "x"}, cwd=cwd) == "deny"
    assert verdict(made, scope, "Read", {"file_path": "x"}) == "allow"


@pytest.mark.parametrize("agent", [None, "own"])
def test_the_short_way_finds_what_the_long_one_does(scope: FileScope, agent: str | None) -> None:
    made = sets(
        scope,
        session=[rule("allow", "a.md"), rule("deny", "*.md", on=("read",))],
        agent=[rule("interrupt", "sub/**")],
        subagents={"own": [rule("deny", "c", on=("write",))]},
    )
    for name in ("a.md", "b.md", "sub/x", "c", "d"):
        path = f"{scope.project_dir}/{name}"
        for tool in ("Read", "Write"):
            given = {"file_path": path}
            assert is_plainly_allowed(scope, tool, given, None)
            expected = verdict(made, scope, tool, given, agent_type=agent)
            found = made.rule_plainly(tool, given, agent)
            assert (None if found is None else found.verdict) == (
                None if expected == "interrupt" else expected
            )
    assert made.rule_plainly("Grep", {"path": "."}, agent) is None


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "way/x"}),
        ("Read", {}),
        ("Glob", {"pattern": "{a,sub}/*.md"}),
        ("Grep", {"pattern": "x"}),
        ("Odd", {"files": ["a", "b"]}),
        ("Bash", {"command": "x"}),
        ("Read", {"file_path": "/etc/passwd"}),
        ("Glob", {"pattern": "../*"}),
        ("Read", {"file_path": "a\0"}),
    ],
)
def test_the_scope_locates_a_call_once_for_all(
    scope: FileScope, tool: str, given: dict[str, Any]
) -> None:
    message, named = judge_and_name(scope, tool, given)
    assert message == check_file_scope(scope, tool, given)
    assert named == (named_paths(scope, tool, given) if message is None else ())
    made = sets(scope, session=[rule("interrupt", "sub/**"), rule("deny", "b")])
    if message is None:
        assert made.judge_named(named) == ruled(made, scope, tool, given)
        assert targets_of(scope, tool, given, named=named) == targets_of(scope, tool, given)
