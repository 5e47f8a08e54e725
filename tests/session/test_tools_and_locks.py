"""Which tools a session has, and that a weaker session than the one asked for is never built."""

from __future__ import annotations

from typing import Any

import pytest

from agent_kit import ConfinementUnavailableError, Subagent, ToolOnlyDir
from agent_kit.confine.choice import Choice
from agent_kit.session.locks import plan_locks

READING = ("Read", "Glob", "Grep")


@pytest.mark.parametrize(
    ("fields", "tools"),
    [
        ({}, ()),
        ({"extra_readable_dirs": ["sources"]}, READING),
        ({"extra_writable_dirs": ["drafts"]}, (*READING, "Write", "Edit")),
        ({"spec": {"subagents": {"a": Subagent(description="d", prompt="p")}}}, ("Agent",)),
        ({"spec": {"skills": ["dataviz"]}}, ("Skill",)),
        ({"spec": {"tools": ["WebFetch", "WebFetch"]}}, ("WebFetch",)),
        (
            {"spec": {"tools": ["WebFetch(domain:a.example)", "WebFetch(domain:b.example)"]}},
            ("WebFetch",),
        ),
        ({"spec": {"tools": ["mcp__kb__read"]}}, ()),
        (
            {"extra_writable_dirs": ["drafts"], "spec": {"disallowed_tools": ["Write", "Grep"]}},
            ("Read", "Glob", "Edit"),
        ),
        (
            {"spec": {"tools": ["WebFetch"], "disallowed_tools": ["WebFetch(domain:a.example)"]}},
            ("WebFetch",),
        ),
        (
            {
                "spec": {
                    "subagents": {
                        "a": Subagent(
                            description="d", prompt="p", tools=["WebSearch", "mcp__kb__x"]
                        )
                    }
                }
            },
            ("Agent", "WebSearch"),
        ),
    ],
    ids=repr,
)
def test_a_session_has_what_its_folders_and_spec_need(
    world, fields: dict[str, Any], tools: tuple[str, ...]
) -> None:
    assert world.plan(**fields).tools.names == tools


@pytest.mark.parametrize(
    ("brings", "tools"),
    [
        ({"read_only_dirs": ("sources",)}, READING),
        ({"readable_dirs": ("sources",)}, READING),
        ({"writable_dirs": ("drafts",)}, (*READING, "Write", "Edit")),
        ({"tool_only_dirs": (ToolOnlyDir(dir="knowledge", instead="t"),)}, ()),
        ({"file_tools": ("NotebookEdit",)}, ("NotebookEdit",)),
    ],
    ids=repr,
)
def test_an_extensions_folders_bring_tools_as_well(
    world, part, brings: Any, tools: tuple[str, ...]
) -> None:
    assert world.plan(spec={"extensions": [part(**brings)]}).tools.names == tools


def test_a_plugin_brings_skills_and_commands_under_the_clis_names(world) -> None:
    world.has(
        'project/p/.claude-plugin/plugin.json={"name": "kit-notes"}',
        "project/p/skills/other/SKILL.md=x",
        "project/p/skills/empty/",
        "project/p/commands/go.md=x",
        "project/bare/skills/s/SKILL.md=x",
        "project/broken/.claude-plugin/plugin.json=[]",
        "project/broken/skills/s/SKILL.md=x",
    )
    plan = world.plan(spec={"plugins": ["p", "bare", "broken"], "skills": ["simplify"]})
    assert plan.skills == ("kit-notes:other", "kit-notes:go", "bare:s", "broken:s", "simplify")
    assert plan.tools.names == ("Read", "Skill")  # what is in a plugin may be read


def test_web_tools_are_off_and_the_plan_calls_them_a_way_out(world) -> None:
    assert not {"WebFetch", "WebSearch"} & set(
        world.plan(extra_writable_dirs=["drafts"]).tools.names
    )
    plan = world.plan(spec={"tools": ["WebFetch(domain:a.example)", "WebSearch"]})
    assert [note for note in plan.notes if "way out" in note] == [
        "WebFetch is a way out for what the agent has read",
        "WebSearch is a way out for what the agent has read",
    ]


def test_an_extension_can_not_bring_commands_in_either(world, part) -> None:
    with pytest.raises(ConfinementUnavailableError, match="Bash"):
        world.plan(spec={"extensions": [part(file_tools=("Bash",))]})


def test_a_command_tool_that_is_disallowed_is_not_there(world) -> None:
    plan = world.plan(spec={"tools": ["Bash"], "disallowed_tools": ["Bash"]})
    assert plan.tools.names == ()
    with pytest.raises(ConfinementUnavailableError):
        world.plan(spec={"tools": ["Bash"], "disallowed_tools": ["Bash(rm:*)"]})


def test_permission_modes_change_no_tool_and_no_lock(world) -> None:
    plain = world.plan(extra_writable_dirs=["drafts"])
    for mode in ("default", "acceptEdits", "dontAsk", "bypassPermissions", "plan"):
        other = world.plan(extra_writable_dirs=["drafts"], permission_mode=mode)
        assert (other.tools, other.locks, other.rules.deny) == (
            plain.tools,
            plain.locks,
            plain.rules.deny,
        )


def test_a_tool_that_the_kit_does_not_know_is_told_in_the_plan(world) -> None:
    spec = {"tools": ["LSP", "WebSearch"], "disallowed_tools": ["REPL", "Bash", "mcp__a__b"]}
    plan = world.plan(spec=spec, allow_unconfined_commands=True)
    assert [note for note in plan.notes if "doesn't know" in note] == [
        "LSP is a tool that this version of the kit doesn't know: it counts as one that runs commands",
        "disallowed_tools: REPL is a tool that this version of the kit doesn't know",
    ]
    assert not any("doesn't know" in note for note in world.plan().notes)


NOWHERE = Choice(backend=None, reason="nothing confines the CLI here. x: y.")


@pytest.mark.parametrize(
    "fields",
    [{"confined_tools": ["python3"]}, {"confined_git": True}, {"confine_network": True}],
    ids=repr,
)
def test_what_is_asked_of_a_confinement_is_not_dropped_where_auto_can_not_confine(
    world, fields: dict[str, Any]
) -> None:
    tools = world.plan().tools
    (name,) = fields
    with pytest.raises(
        ConfinementUnavailableError, match=f"^{name} can't be had: nothing confines"
    ):
        plan_locks(world.config(confinement="auto", **fields), tools, NOWHERE)
    for value in ({"confine_network": False}, {"confined_tools": []}, {"confined_git": False}):
        assert not plan_locks(world.config(confinement="auto", **value), tools, NOWHERE)[
            "kernel"
        ].on


def test_what_off_says_is_said_once(world) -> None:
    with pytest.raises(ConfinementUnavailableError) as caught:
        world.plan(spec={"tools": ["Bash"]}, confinement="off")
    assert str(caught.value).count("set 'auto'") == 0
    assert str(caught.value).count("Set confinement='auto'") == 1
