"""The rules, questions and subagents of a session, worked out of its spec and config."""

from __future__ import annotations

import dataclasses
import gc
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_kit import (
    ConfigError,
    FilePermission,
    Messages,
    SessionPlan,
    Subagent,
    approve,
    ask_user,
    check_options,
    deny_paths,
    read_trail,
    session_mode,
    size_ceiling,
)
from agent_kit.policy.approval import Approval
from agent_kit.policy.rules import Operation
from agent_kit.session import policy as session_policy
from agent_kit.session.options import options_from_plan
from agent_kit.session.policy import cli_rules, tools_of
from agent_kit.session.policy_gate import close_trail, make_policy_gate
from agent_kit.session.trail import trail_path
from agent_kit_sources import sources
from tests.flag_settings import settings_text

if TYPE_CHECKING:
    from tests.session.conftest import World


SESSION = "7d4d5e1c-0000-4000-8000-000000000001"


def rule(mode: str, *paths: str) -> FilePermission:
    return FilePermission(operations=("read", "write"), paths=paths, mode=mode)


def agent(**fields: Any) -> Subagent:
    return Subagent(description="d", prompt="p", **fields)


def planned(world: World, **fields: Any) -> SessionPlan:
    return world.plan(**{"extra_writable_dirs": ["drafts", "sources"], **fields})


# --- the lists ---------------------------------------------------------------------------------------


def test_a_session_without_rules_has_none(world: World) -> None:
    plan = world.plan()
    assert plan.policy.rules is None
    assert plan.policy.scopes == {}
    assert plan.policy.startable is None
    assert plan.policy.denied == ()


@pytest.mark.parametrize("where", ["session", "spec", "subagent"])
def test_rules_are_compiled_wherever_they_stand(world: World, where: str) -> None:
    rules = [rule("deny", "./file.txt")]
    if where == "session":
        plan = world.plan(permissions=rules)
    elif where == "spec":
        plan = world.plan(spec={"permissions": rules})
    else:
        plan = world.plan(spec={"subagents": {"own": agent(permissions=rules)}})
    found = plan.policy.rules
    assert found is not None
    lists = {"session": found.session, "spec": found.agent, "subagent": found.subagents.get("own")}
    assert {name for name, listed in lists.items() if listed and listed.rules} == {where}


def test_a_subagent_that_replaces_rules_with_none_is_known_as_one(world: World) -> None:
    free = agent(permissions=[], replace_rules=True)
    plan = world.plan(
        spec={"subagents": {"free": free, "heir": agent()}, "permissions": [rule("deny", "a")]}
    )
    assert plan.policy.rules is not None
    assert list(plan.policy.rules.subagents) == ["free"]


def test_every_fault_of_rules_and_subagents_is_told_at_once(world: World) -> None:
    twice = rule("deny", "~x/**")  # faulty only where it is compiled: there is no such home
    agents = {
        "one": agent(writable_dirs=["drafts", "/etc"], tools=["Read", "Bash", "Agent(x)"]),
        "two": agent(writable_dirs=["../project/sources"]),
        "three": agent(writable_dirs=["drafts"]),
    }
    found = world.faults(
        spec={"subagents": agents}, extra_writable_dirs=["drafts"], permissions=[twice]
    )
    assert found == [
        ("subagents['one'].writable_dirs", "/etc"),
        ("subagents['one'].tools", "Bash"),
        ("subagents['one'].tools", "Agent(x)"),
        ("subagents['two'].writable_dirs", str(world.project / "sources")),
    ]


def test_what_authorizers_and_config_name_is_planned(world: World) -> None:
    plan = world.plan(
        authorizers=[deny_paths(["a"]), deny_paths(["b"])],
        allowed_subagents=["helper"],
        spec={"read_only_tools": ["mcp__own__look"], "subagents": {"helper": agent()}},
    )
    assert plan.policy.denied == ("a", "b")
    assert plan.policy.startable == frozenset({"helper"})
    assert "mcp__own__look" in plan.policy.read_only


# --- a subagent that may write less ---------------------------------------------------------------


def test_a_subagents_folders_are_its_scope(world: World) -> None:
    agents = {
        "some": agent(writable_dirs=["drafts"]),
        "none": agent(writable_dirs=[]),
        "all": agent(),
    }
    plan = planned(world, spec={"subagents": agents})
    assert plan.policy.scopes["some"].writable_dirs == (str(world.project / "drafts"),)
    assert plan.policy.scopes["none"].writable_dirs == ()
    assert "all" not in plan.policy.scopes
    assert plan.policy.scopes["some"].denied_paths == plan.scope.denied_paths


@pytest.mark.parametrize(
    "folder",
    [
        ".",
        "..",
        "/etc",
        "~",
        "draft",
        "drafts2",
        "drafts/..",
        "link",
        "drafts/out",
        "a\0b",
        "drafts/\ud800",
    ],
)
def test_a_subagents_folder_lies_in_one_of_the_sessions(world: World, folder: str) -> None:
    world.has("link => /etc", "project/drafts2/")
    (world.project / "link").symlink_to("/etc")
    (world.project / "drafts/out").symlink_to(world.project)
    found = world.faults(
        spec={"subagents": {"x": agent(writable_dirs=[folder])}}, extra_writable_dirs=["drafts"]
    )
    assert [field for field, _ in found] == ["subagents['x'].writable_dirs"]


@pytest.mark.parametrize(
    "folder", ["drafts", "drafts/", "./drafts/deep", "sources/../drafts", "way"]
)
def test_a_folder_below_is_one_however_it_is_written(world: World, folder: str) -> None:
    (world.project / "way").symlink_to("drafts")
    plan = planned(world, spec={"subagents": {"x": agent(writable_dirs=[folder])}})
    assert list(plan.policy.scopes) == ["x"]


@pytest.mark.parametrize(
    "tool", ["Bash", "Bash(git status)", "Agent", "Task(helper)", "SomethingNew"]
)
def test_a_tool_that_goes_around_the_folders_isnt_given_to_who_may_write_less(
    world: World, tool: str
) -> None:
    narrow = {"x": agent(writable_dirs=[], tools=["Read", tool, "mcp__own__look"])}
    found = world.faults(spec={"subagents": narrow}, allow_unconfined_commands=True)
    assert found == [("subagents['x'].tools", tool)]


def test_who_may_write_less_has_the_sessions_tools_without_those(world: World) -> None:
    plan = planned(
        world,
        spec={"subagents": {"x": agent()}, "tools": ["Bash", "WebFetch"]},
        allow_unconfined_commands=True,
    )
    tools = plan.tools
    assert tools_of(agent(), tools) is None
    assert tools_of(agent(tools=["Bash"]), tools) == ("Bash",)
    assert tools_of(agent(tools=["Read"], writable_dirs=[]), tools) == ("Read",)
    narrow = tools_of(agent(writable_dirs=[]), tools)
    assert narrow is not None
    assert set(tools.names) - set(narrow) == {"Bash", "Agent"}


# --- questions -------------------------------------------------------------------------------------


def test_a_tool_of_interrupt_on_that_there_is_not_is_a_fault(world: World) -> None:
    plan = planned(world, interrupt_on={"Read": True})
    assert plan.config.interrupt_on
    for name in ("Raed", "Bash", "Unheard"):
        found = world.faults(interrupt_on={name: True}, extra_writable_dirs=["drafts"])
        assert found == [("interrupt_on", name)]
    faults = session_policy.policy_faults(
        world.config(interrupt_on={"Raed": True, "Unheard": True}), plan.tools
    )
    assert [fault.remedy for fault in faults] == [
        "did you mean Read?",
        "this session has no such tool.",
    ]


def test_what_an_extension_says_of_its_tools_holds_until_the_config_says_otherwise(
    world: World,
) -> None:
    retire, request = "mcp__sources__retire_source", "mcp__sources__request_file"
    for config, expected in (
        ({}, {retire: True, request: False}),
        ({retire: False}, {retire: False, request: False}),
        ({request: True, "Read": True}, {retire: True, request: True, "Read": True}),
    ):
        plan = planned(
            world,
            spec={"extensions": [sources()]},
            extra_writable_dirs=["drafts"],
            interrupt_on=config,
        )
        assert make_policy_gate(plan).policy.interrupt_on == expected


@pytest.mark.parametrize("name", ["mcp__memory__*", "mcp__*", "*", "Re*"])
def test_a_pattern_in_interrupt_on_is_a_fault_and_not_a_tool_that_is_never_asked_about(
    world: World, name: str
) -> None:
    with pytest.raises(ConfigError, match="whole name"):
        world.config(interrupt_on={name: True})


def test_a_tool_of_interrupt_on_that_no_server_can_have_is_a_fault_and_says_what_was_meant(
    world: World,
) -> None:
    spec = {"mcp_servers": {"mail": {"command": "true"}, "mail__old": {"command": "true"}}}
    for name in ("mcp__mail__send", "mcp__mail__old__send"):
        assert planned(world, spec=spec, interrupt_on={name: True}).config.interrupt_on
    for name in ("mcp__mial__send", "mcp__mail__", "mcp__mail", "mcp____send"):
        assert world.faults(spec=spec, interrupt_on={name: True}) == [("interrupt_on", name)]
    with pytest.raises(ConfigError, match="did you mean mcp__mail__"):
        planned(world, spec=spec, interrupt_on={"mcp__mial__send": True})


def test_a_tool_of_interrupt_on_that_only_the_projects_servers_may_have_is_noted(
    world: World,
) -> None:
    (world.project / ".mcp.json").write_text('{"mcpServers": {"mail": {"command": "true"}}}')
    plan = planned(world, interrupt_on={"mcp__mail__send": True, "mcp__mial__send": True})
    notes = [note for note in plan.notes if note.startswith("interrupt_on")]
    (note,) = notes
    assert "mcp__mial__send" in note
    assert "nobody is asked" in note


@pytest.mark.parametrize(
    ("alias", "tool"), [("Task", "Agent"), ("KillShell", "TaskStop"), ("KillBash", "TaskStop")]
)
def test_another_name_of_a_tool_is_asked_about_by_the_name_that_the_cli_says(
    world: World, alias: str, tool: str
) -> None:
    free = {"allow_unconfined_commands": True}  # of a KillBash this version knows nothing
    for there in (alias, tool):
        plan = planned(world, spec={"tools": [there]}, interrupt_on={alias: True}, **free)
        assert make_policy_gate(plan).policy.interrupt_on == {tool: True}
    for both in ({alias: False, tool: True}, {tool: True, alias: False}):
        plan = planned(world, spec={"tools": [tool]}, interrupt_on=both)
        assert make_policy_gate(plan).policy.interrupt_on == {tool: True}


# --- what lock 2 says of it ---------------------------------------------------------------------------


def test_without_rules_the_cli_is_told_nothing(world: World) -> None:
    plan = planned(world)
    found = cli_rules(plan.policy, plan.scope, plan.tools)
    assert (found.deny, found.notes, found.unfiltered) == ((), (), frozenset())


def test_rules_that_a_subagent_replaces_are_no_rules_of_the_cli(world: World) -> None:
    stops, own = [rule("deny", "./drafts/a")], [rule("deny", "./drafts/b")]
    for agents in ({}, {"own": agent(permissions=own)}):
        plan = planned(
            world,
            permissions=[rule("deny", "./drafts/c")],
            spec={"permissions": stops, "subagents": agents},
        )
        text = " ".join(cli_rules(plan.policy, plan.scope, plan.tools).deny)
        assert "drafts/c" in text
        assert ("drafts/a" in text) is not bool(agents)
        assert "drafts/b" not in text


def test_a_shadowed_rule_and_one_that_the_cli_has_no_words_for_are_noted(world: World) -> None:
    rules = [rule("allow", "drafts/**"), rule("deny", "drafts/a"), rule("deny", "**/[a-c]x")]
    plan = planned(world, permissions=rules)
    notes = cli_rules(plan.policy, plan.scope, plan.tools).notes
    assert "permissions[1]" in notes[0]
    assert any('"**/[a-c]x"' in note and "The gate alone holds it." in note for note in notes)


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ([rule("deny", "**/*.key")], True),
        ([rule("allow", "drafts/keep/**"), rule("deny", "**/*.key")], False),
        ([rule("deny", "**/[a-c].key")], False),
    ],
)
def test_a_search_is_refused_for_hits_of_a_pattern_that_the_cli_was_not_told_of(
    world: World, rules: list[FilePermission], told: bool
) -> None:
    plan = planned(world, permissions=rules)
    assert plan.policy.rules is not None
    listed = plan.policy.rules.session
    found = listed.judge_all(Operation.READ, (str(world.project),), True, filtered=True)
    assert (found.verdict == "allow") is told
    assert (".key" in " ".join(cli_rules(plan.policy, plan.scope, plan.tools).deny)) is told


def test_a_search_is_refused_for_hits_of_rules_that_a_subagent_may_replace(world: World) -> None:
    agents = {"own": agent(permissions=[rule("deny", "**/*.pem")])}
    plan = planned(world, spec={"permissions": [rule("deny", "**/*.key")], "subagents": agents})
    assert plan.policy.rules is not None
    for listed in (plan.policy.rules.agent, plan.policy.rules.subagents["own"]):
        found = listed.judge_all(Operation.READ, (str(world.project),), True, filtered=True)
        assert found.verdict == "deny"


def test_patterns_of_deny_paths_that_the_cli_isnt_told_of_are_known_by_name(world: World) -> None:
    plan = planned(
        world, authorizers=[deny_paths(["**/.env", "./drafts/a"]), deny_paths(["**/[a-c]x"])]
    )
    found = cli_rules(plan.policy, plan.scope, plan.tools)
    assert ".env" in " ".join(found.deny)
    assert found.unfiltered == plan.policy.unfiltered == {"**/[a-c]x"}
    gate = make_policy_gate(plan)
    assert gate.policy.unfiltered == {"**/[a-c]x"}


# --- the gate --------------------------------------------------------------------------------------


def test_the_gate_has_what_was_planned(world: World) -> None:
    messages = Messages(denied="No: {path}")

    def ask(_approval: Approval) -> Any:
        return approve()

    plan = planned(
        world,
        spec={
            "tools": ["Bash(echo:*)", "WebFetch"],
            "disallowed_tools": ["WebFetch(domain:x.org)"],
        },
        allow_unconfined_commands=True,
        permissions=[rule("deny", "./drafts/a")],
        authorizers=[deny_paths(["x"])],
        interrupt_on={"Read": True},
        mode="plan",
        ask=ask,
        messages=messages,
    )
    plan.host_dir.mkdir(parents=True, mode=0o700)
    gate = make_policy_gate(plan)
    policy = gate.policy
    assert policy.rules is plan.policy.rules
    assert (policy.scope, policy.mode.current, policy.has_ask) == (plan.scope, "plan", True)
    assert (policy.session_id, policy.messages) == (plan.session_id, messages)
    assert policy.commands == {"Bash"}
    assert gate.ask is ask
    assert gate.questions is None
    assert gate.tools.objection("Bash", {"command": "echo a"}) is None
    assert gate.tools.objection("Bash", {"command": "id"}) is not None
    assert gate.tools.objection("Skill", {"skill": "x"}) is None
    assert gate.tools.objection("WebFetch", {"url": "https://a"}) is None
    assert gate.tools.edit_objection("WebFetch", {"url": "https://a"}) is not None
    close_trail(plan)


def test_who_is_asked(world: World) -> None:
    async def host(_approval: Approval) -> Any:
        return approve()

    async def own(_approval: Approval) -> Any:
        return approve()

    plan = planned(world)
    nobody = make_policy_gate(plan)
    assert (nobody.ask, nobody.questions, nobody.policy.has_ask) == (None, None, False)
    assert make_policy_gate(plan, ask=host).ask is host
    assert make_policy_gate(planned(world, ask=own), ask=host).ask is own
    later = planned(world, ask="defer")
    gate = make_policy_gate(later, ask=host)
    assert gate.ask is None
    assert gate.policy.has_ask
    assert gate.questions is not None
    assert gate.questions.host == later.host_dir


def test_gates_of_one_session_share_a_trail_and_close_it_once(world: World) -> None:
    plan, other = planned(world), planned(world)
    assert plan.session_id != other.session_id
    gates = [make_policy_gate(each) for each in (plan, plan, other)]
    trails: list[Any] = [gate.note.__self__ for gate in gates]  # type: ignore[union-attr]
    assert trails[0] is trails[1] is not trails[2]
    close_trail(plan)
    del gates, trails
    gc.collect()
    close_trail(plan)  # nothing is left to close


def lines_of(plan: SessionPlan) -> list[dict[str, Any]]:
    close_trail(plan)
    return list(read_trail(trail_path(plan.host_dir, plan.session_id)))


def test_two_sessions_of_one_id_have_a_trail_in_each_run_folder(
    world: World, tmp_path: Path
) -> None:
    plans = [
        planned(world, session_id=SESSION, run_dir=str(tmp_path / name)) for name in ("one", "two")
    ]
    for plan in plans:
        options_from_plan(plan)
        session_mode(options_from_plan(plan)).set("plan")
    assert [len(lines_of(plan)) for plan in plans] == [1, 1]


def test_a_switch_of_the_mode_is_on_the_trail(world: World) -> None:
    plan = planned(world)
    session_mode(options_from_plan(plan)).set("autonomous")
    (line,) = lines_of(plan)
    found = {name: line[name] for name in ("tool", "target", "lock", "code", "verdict")}
    assert found == {
        "tool": "session_mode",
        "target": 'mode="autonomous", before="guided"',
        "lock": "mode",
        "code": "switched",
        "verdict": "allow",
    }


# --- what Edit could guess at ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({}, None),
        ({"permissions": [rule("deny", "./drafts")]}, None),
        ({"permissions": [rule("interrupt", "./drafts")]}, ["drafts"]),
        ({"permissions": [rule("interrupt", "./drafts")], "permission_mode": "dontAsk"}, None),
        ({"interrupt_on": {"Read": True}}, ["//**"]),
        ({"interrupt_on": {"Read": False}}, None),
        ({"authorizers": [ask_user(lambda _target: True)]}, ["//**"]),
        ({"authorizers": [size_ceiling(1)]}, None),
    ],
)
def test_the_settings_ask_before_what_is_closed_is_read(
    world: World, fields: dict[str, Any], asked: list[str] | None
) -> None:
    plan = planned(world, **fields)
    found = plan.settings["permissions"].get("ask")
    assert (found is None) is (asked is None)
    if asked is not None:
        assert all(any(name in each for each in found) for name in asked)
    told = any("dontAsk" in note for note in plan.notes)
    assert told is ("permission_mode" in fields)


def test_options_without_such_a_rule_lack_a_lock(world: World) -> None:
    options = world.options(
        extra_writable_dirs=["drafts"], permissions=[rule("interrupt", "./drafts")]
    )
    check_options(options)
    settings = json.loads(settings_text(options))
    del settings["permissions"]["ask"]
    changed = dataclasses.replace(options, settings=json.dumps(settings))
    with pytest.raises(Exception, match="ask rules are gone"):
        check_options(changed)


def test_a_skill_that_tools_narrow_to_must_be_there(world: World) -> None:
    assert world.faults(spec={"tools": ["Skill(nothing)"]}) == [("tools", "Skill(nothing)")]
