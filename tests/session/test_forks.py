"""Which skills start an agent, what closes that, and what an auditor is told of its tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_kit import Subagent
from agent_kit.scope import ConfigError
from agent_kit.session.forks import forks_of
from agent_kit.session.options import options_from_plan
from agent_kit.session.policy import tools_of
from agent_kit.session.policy_gate import make_policy_gate

if TYPE_CHECKING:
    from agent_kit.policy.starts import Forks
    from tests.session.conftest import World

HELPER = {"helper": Subagent(description="d", prompt="p")}


def planned(world: World, closed: tuple[str, ...] = (), **spec: Any) -> Forks:
    plan = world.plan(spec={"subagents": HELPER, **spec})
    return forks_of(plan.spec, plan.commands, plan.tools, closed)


def test_a_type_that_may_be_missing_may_be_the_default_one(world: World) -> None:
    heads = {"plain": "x: y", "own": "agent: helper", "gone": "agent: gone", "odd": "agent: [x]"}
    world.has(
        *(
            f"project/.claude/skills/{name}/SKILL.md=---\ncontext: fork\n{head}\n---\nbody"
            for name, head in heads.items()
        )
    )
    assert planned(world).by_skill == {
        "plain": ("general-purpose",),
        "own": ("helper",),
        "gone": ("gone", "general-purpose"),
        "odd": (None,),
    }


def test_a_bundled_skill_may_start_any_unless_it_is_known_to_run_in_place(world: World) -> None:
    assert planned(world, skills=["code-review", "simplify"]).by_skill == {"code-review": (None,)}


@pytest.mark.parametrize(
    ("closed", "off", "types"),
    [
        ((), False, set()),
        (("Agent",), True, set()),
        (("Task", "Bash"), True, set()),
        (("Agent(a, b)", "Task(c)", "Bash(d)"), False, {"a", "b", "c"}),
        (("Agent(*)",), True, {"*"}),
    ],
)
def test_what_closes_agents_closes_skills(
    closed: tuple[str, ...], off: bool, types: set[str], world: World
) -> None:
    found = planned(world, closed)
    assert (found.off, found.closed, found.only) == (off, types, None)


def test_a_tool_that_is_open_in_part_is_so_for_skills(world: World) -> None:
    assert planned(world, tools=["Agent(helper)", "Agent(x)"]).only == {"helper", "x"}
    assert planned(world, tools=["Agent"]).only is None


def test_the_gate_of_a_plan_has_its_disallowed_tools_and_rules(world: World) -> None:
    plan = world.plan(spec={"disallowed_tools": ["Agent(x)", "Agent"], "subagents": HELPER})
    found = make_policy_gate(plan).policy.forks
    assert (found.off, found.closed) == (True, {"x"})
    found = make_policy_gate(plan, disallowed=["Agent(y)"]).policy.forks
    assert (found.off, found.closed) == (False, {"x", "y"})


def test_a_question_about_agents_needs_agents_or_skills(world: World) -> None:
    assert world.faults(interrupt_on={"Agent": True}) == [("interrupt_on", "Agent")]
    world.has("project/.claude/skills/it/SKILL.md=body")
    assert world.plan(interrupt_on={"Agent": True}).config.interrupt_on


# --- an auditor ------------------------------------------------------------------------------------


def test_an_auditor_has_the_mcp_tools_that_only_read(world: World) -> None:
    plan = world.plan(spec={"disallowed_tools": ["mcp__a__gone"], "subagents": HELPER})
    auditor = Subagent(description="d", prompt="p", writable_dirs=[])
    read_only = {"mcp__b__look", "mcp__a__look", "mcp__a__gone"}
    found = tools_of(auditor, plan.tools, read_only)
    assert found is not None
    assert found[-2:] == ("mcp__a__look", "mcp__b__look")
    assert "mcp__a__gone" not in found
    assert tools_of(HELPER["helper"], plan.tools, read_only) is None


@pytest.mark.parametrize(
    ("fields", "servers", "told"),
    [
        ({"writable_dirs": []}, {"far": {"type": "http", "url": "http://127.0.0.1:1"}}, True),
        ({"writable_dirs": []}, {}, False),
        ({"writable_dirs": []}, {"own": {"type": "sdk", "name": "own", "instance": None}}, False),
        ({}, {"far": {"type": "http", "url": "http://127.0.0.1:1"}}, False),
        (
            {"writable_dirs": [], "tools": ["Read"]},
            {"far": {"type": "http", "url": "http://127.0.0.1:1"}},
            False,
        ),
    ],
)
def test_the_plan_tells_which_tools_an_auditor_has_to_be_given(
    fields: dict[str, Any], servers: dict[str, Any], told: bool, world: World
) -> None:
    agent = Subagent(description="d", prompt="p", **fields)
    plan = world.plan(spec={"subagents": {"auditor": agent}, "mcp_servers": servers})
    notes = [note for note in plan.notes if "'auditor' may write less" in note]
    assert len(notes) == told
    assert all("(far), name all its tools in Subagent.tools" in note for note in notes)


# --- what only a person answers -------------------------------------------------------------------


def test_a_tool_that_nobody_answers_is_a_fault(world: World) -> None:
    spec = {"tools": ["AskUserQuestion", "ExitPlanMode", "WebFetch"]}
    for ask in (None, "defer"):
        with pytest.raises(ConfigError) as caught:
            options_from_plan(world.plan(spec=spec, ask=ask))
        assert [fault.value for fault in caught.value.faults] == ["AskUserQuestion", "ExitPlanMode"]
    assert options_from_plan(world.plan(spec=spec, ask=lambda _approval: None))
