"""What a plan says of rules, questions and subagents that are likely not meant so."""

from __future__ import annotations

from typing import Any

import pytest

from agent_kit import FilePermission, Subagent, approve, deny_paths, edit, reject
from agent_kit.confine.landlock import Landlock

AGENT = Subagent(description="Looks for faults.", prompt="p")
UNCONFINED = {"allow_unconfined_commands": True}


def rule(mode: str) -> FilePermission:
    return FilePermission(operations=["write"], paths=["drafts/**"], mode=mode)


def notes(world, about: str, **fields: Any) -> list[str]:
    return [note for note in world.plan(**fields).notes if about in note]


@pytest.mark.parametrize(
    "fields",
    [
        {"permissions": [rule("deny")]},
        {"authorizers": [deny_paths(["drafts/**"])]},
        {"spec": {"permissions": [rule("allow")]}},
        {
            "spec": {
                "subagents": {
                    "x": Subagent(description="d", prompt="p", permissions=[rule("deny")])
                }
            }
        },
    ],
    ids=["config", "authorizer", "spec", "subagent"],
)
def test_that_rules_do_not_hold_commands_is_told_where_there_are_both(
    world, fields: dict[str, Any]
) -> None:
    spec = fields.pop("spec", {})
    about = "hold file tools, and not what"
    assert notes(world, about, spec=spec, **fields) == []
    with_commands = {"spec": {**spec, "tools": ["Bash", "Monitor"]}, **UNCONFINED}
    (note,) = notes(world, about, **with_commands, **fields)
    assert "not what Bash and Monitor opens" in note
    assert "Use denied_paths, or interrupt_on={'Bash': True}" in note
    asked = {"interrupt_on": {"Bash": True, "Monitor": False}}
    (note,) = notes(world, about, **with_commands, **fields, **asked)
    assert "interrupt_on={'Monitor': True}" in note
    both = {"interrupt_on": {"Bash": True, "Monitor": True}}
    assert notes(world, about, **with_commands, **fields, **both) == []
    assert notes(world, about, spec={"tools": ["Bash"]}, **UNCONFINED) == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"permissions": [rule("interrupt")]}, "what a rule with mode='interrupt' would ask"),
        (
            {"permissions": [{"operations": ["read"], "paths": ["a"], "mode": "interrupt"}]},
            "a rule",
        ),
        ({"spec": {"permissions": [rule("interrupt")]}}, "a rule with"),
        ({"mode": "interactive"}, "what mode='interactive' would ask"),
        (
            {
                "mode": "interactive",
                "interrupt_on": {"Write": True},
                "extra_writable_dirs": ["drafts"],
            },
            "mode='interactive' or interrupt_on would ask",
        ),
        ({"permissions": [rule("deny")]}, None),
        ({"interrupt_on": {"Write": False}, "extra_writable_dirs": ["drafts"]}, None),
        ({}, None),
    ],
)
def test_that_nobody_is_asked_is_told_where_somebody_should_be(
    world, fields: dict[str, Any], said: str | None
) -> None:
    about = "nobody is asked: what"
    found = notes(world, about, **fields)
    assert [said in note for note in found] == ([] if said is None else [True])
    assert notes(world, about, **{**fields, "mode": "autonomous"}) == []  # it says so itself
    assert notes(world, about, **fields, ask="defer") == []


def test_a_subagents_folder_that_is_not_there_is_told(world) -> None:
    agents = {"x": Subagent(description="d", prompt="p", writable_dirs=["drafts/nope", "drafts"])}
    assert notes(
        world, "writable_dirs", spec={"subagents": agents}, extra_writable_dirs=["drafts"]
    ) == ["subagents['x'].writable_dirs: there is no folder drafts/nope"]


def test_a_misspelt_agent_that_may_be_started_is_a_fault_or_a_note(world) -> None:
    spec = {"subagents": {"auditor": AGENT}}
    fields = {
        "spec": spec,
        "allowed_subagents": ["auditor", "audtior", "general-purpos", "Explore"],
    }
    assert world.faults(**fields) == [
        ("allowed_subagents", "audtior"),
        ("allowed_subagents", "general-purpos"),
    ]
    other = {"spec": spec, "allowed_subagents": ["auditor", "zzz"]}
    about = "allowed_subagents names"
    assert notes(world, about, **other) == [f"{about} zzz, and there is no such agent"]


@pytest.mark.parametrize("where", ["project/.claude/agents/", "home/.claude/agents/", "p/agents/"])
def test_where_others_may_bring_agents_a_name_that_is_unknown_is_only_told(
    world, where: str
) -> None:
    world.has(where, "p/.claude-plugin/plugin.json={}")
    spec = {
        "subagents": {"auditor": AGENT},
        "plugins": ["../p"] if where.startswith("p/") else [],
        "setting_sources": ["user" if "home" in where else "project"],
    }
    found = notes(
        world, "allowed_subagents names", spec=spec, allowed_subagents=["audtior", "zzz", "auditor"]
    )
    unknown = "which is none of the spec's and of the CLI's own"
    assert found == [
        f"allowed_subagents names audtior, {unknown} (did you mean auditor?)",
        f"allowed_subagents names zzz, {unknown}",
    ]


def test_a_read_only_tool_of_a_server_that_is_not_there_is_told(world) -> None:
    spec = {"mcp_servers": {"notes": {"command": "x"}}, "read_only_tools": ["mcp__nots__look"]}
    (note,) = notes(world, "read_only_tools names", spec=spec)
    assert "mcp__nots__look" in note
    assert "did you mean mcp__notes__…?" in note
    right = {**spec, "read_only_tools": ["mcp__notes__look"]}
    assert notes(world, "read_only_tools names", spec=right) == []


# --- what a value knows of itself ----------------------------------------------------------------


async def takes_one(_approval: Any) -> Any: ...


class Takes:
    def __call__(self, approval: Any, more: int = 0) -> Any: ...


@pytest.mark.parametrize("ask", [lambda: True, lambda a, b: a, approve, edit, reject, "ask", 7])
def test_an_ask_that_takes_no_approval_is_a_fault(world, ask: Any) -> None:
    assert world.faults(ask=ask) == [("ask", ask)]


@pytest.mark.parametrize(
    "ask", [takes_one, Takes(), lambda *all_of_it: None, dict.fromkeys, "defer", None]
)
def test_an_ask_that_may_take_one_is_taken(world, ask: Any) -> None:
    world.config(ask=ask)


def test_an_ask_whose_arguments_nobody_can_tell_is_taken(world) -> None:
    class Odd:
        __signature__ = "none"

        def __call__(self, *_: Any) -> Any: ...

    world.config(ask=Odd())
    world.config(ask=vars)  # a builtin without a signature


# --- what the model is told -----------------------------------------------------------------------


def test_the_prompt_names_the_folders_that_landlock_opens_in_part(
    world, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_kit.confine.choice.BACKENDS", {"landlock": Landlock()})
    world.has("project/drafts/keys/k=x", "other/.env=x")
    given = {
        "extra_writable_dirs": ["drafts", str(world.root / "other")],
        "denied_paths": ["drafts/keys", "**/.env"],
    }
    prompt = world.plan(confinement="required", **given).system_prompt
    (line,) = (line for line in prompt.splitlines() if "the system may refuse listing" in line)
    assert line.startswith(f"- Of `{world.root}/other`, `drafts` itself the system may refuse") or (
        line.startswith(f"- Of `drafts`, `{world.root}/other` itself the system may refuse")
    )
    assert "keys" not in line
    assert ".env" not in line
    assert "may refuse" not in world.plan(confinement="off", **given).system_prompt
    whole = {"confinement": "required", "extra_writable_dirs": ["sources"]}
    assert "may refuse" not in world.plan(**whole).system_prompt
