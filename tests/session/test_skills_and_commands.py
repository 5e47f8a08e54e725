"""Which skills and commands a session has, and what is wrong with a list of them."""

from __future__ import annotations

from typing import Any

import pytest

from agent_kit import AgentSpec, ConfigError
from agent_kit.session.builtin_commands import BUILTIN_COMMANDS, BUNDLED_SKILLS

PLUGIN = (
    'plug/.claude-plugin/plugin.json={"name": "notes"}',
    "plug/skills/cite/SKILL.md=own",
    "plug/commands/list.md=own",
    "plug/commands/a/deep.md=own",
)
OWN = ("notes:cite", "notes:a:deep", "notes:list")
PROJECT = (
    "project/.claude/skills/review/SKILL.md=see @file.txt",
    "project/.claude/commands/a/b.md=x",
)


def with_plugin(world, **fields: Any) -> dict[str, Any]:
    return {"plugins": [str(world.root / "plug")], **fields}


def test_a_session_has_its_plugins_and_its_projects(world) -> None:
    world.has(*PLUGIN, *PROJECT)
    plan = world.plan(spec=with_plugin(world), extra_readable_dirs=["."])
    assert {*plan.skills} == {*OWN, "review", "a:b"}
    assert {*plan.slash_commands} == {*OWN}
    assert {*plan.commands.offered} == {*plan.skills}
    assert any(f"{world.project}/.claude are offered" in note for note in plan.notes)
    assert {*world.options(spec=with_plugin(world)).skills} >= {*OWN}


def test_a_project_that_is_not_loaded_brings_none(world) -> None:
    world.has(*PLUGIN, *PROJECT)
    for sources in ([], ["local"]):
        plan = world.plan(spec=with_plugin(world), setting_sources=sources)
        assert {*plan.skills} == {*OWN}


def test_the_runners_come_by_name_with_the_user_source(world) -> None:
    world.has("home/.claude/commands/mine.md=see @file.txt", "home/.claude/skills/m/SKILL.md=x")
    assert world.plan(setting_sources=["user"]).skills == ()
    assert world.faults(spec={"skills": ["m"]}) == [("skills", "m")]
    assert world.plan(spec={"skills": ["m"]}, setting_sources=["user"]).skills == ("m",)
    mine = {"spec": {"skills": ["mine"]}, "setting_sources": ["user"]}
    assert world.faults(**mine) == [("skills", "mine")]
    assert world.plan(**mine, extra_readable_dirs=["."]).skills == ("mine",)


@pytest.mark.parametrize("name", ["review", "evil", "secret", "fetch"])
def test_a_projects_file_that_would_open_more_is_left_out_with_a_note(world, name: str) -> None:
    world.has(
        "project/.claude/commands/fine.md=x",
        "project/.claude/skills/review/SKILL.md=see @file.txt",
        "project/.claude/commands/evil.md=see @../secret.txt",
        "project/.claude/commands/secret.md => ../../../secret.txt",
        "project/.claude/commands/fetch.md=---\nallowed-tools: WebFetch\n---\nx",
        "secret.txt=s",
    )
    spec = {"tools": ["WebFetch(domain:example.org)"]}
    plan = world.plan(spec=spec)
    assert plan.skills == ("fine",)
    assert any(f"{name!r} is not offered: " in note for note in plan.notes)
    assert world.faults(spec={**spec, "skills": [name]}) == [("skills", name)]
    assert world.faults(spec={**spec, "commands": [name]}) == [("commands", name)]


@pytest.mark.parametrize("file", ["skills/cite/SKILL.md", "commands/list.md", "commands/a/deep.md"])
def test_a_plugins_file_that_would_open_more_is_a_fault(world, file: str) -> None:
    world.has(*(entry for entry in PLUGIN if file not in entry), f"plug/{file}=see @file.txt")
    name = "notes:" + file.removesuffix("/SKILL.md").removesuffix(".md").partition("/")[2]
    name = name.replace("/", ":")
    assert world.faults(spec=with_plugin(world)) == [("plugins", name)]
    assert name in world.plan(spec=with_plugin(world), extra_readable_dirs=["."]).skills


def test_a_folder_above_the_project_is_used_only_by_name(world) -> None:
    world.has(".claude/commands/above.md=x", ".claude/skills/more/SKILL.md=x")
    assert world.plan().skills == ()
    assert world.faults(spec={"skills": ["above"]}) == [("skills", "above")]
    readable = [str(world.root / ".claude")]
    assert world.plan(extra_readable_dirs=readable).commands.offered == frozenset()
    plan = world.plan(spec={"skills": ["above"]}, extra_readable_dirs=readable)
    assert plan.skills == ("above",)


def test_bundled_skills_are_there_only_by_name(world) -> None:
    assert world.plan().skills == ()
    plan = world.plan(spec={"skills": ["dataviz"]})
    assert plan.skills == ("dataviz",)
    assert "Skill" in plan.tools.names
    assert plan.slash_commands == ()


@pytest.mark.parametrize("name", ["nothing", "compact", "notes:nothing", "cite", "NOTES:cite"])
def test_a_skill_that_exists_nowhere_is_a_fault(world, name: str) -> None:
    world.has(*PLUGIN)
    assert world.faults(spec=with_plugin(world, skills=[name])) == [("skills", name)]


@pytest.mark.parametrize("name", ["nothing", "notes:nothing", "cite", "Compact"])
def test_a_command_that_exists_nowhere_is_a_fault(world, name: str) -> None:
    world.has(*PLUGIN)
    assert world.faults(spec=with_plugin(world, commands=[name])) == [("commands", name)]


def test_every_fault_of_both_lists_is_told_at_once(world) -> None:
    spec = {"skills": ["a", "b"], "commands": ["c"]}
    assert world.faults(spec=spec) == [("skills", "a"), ("skills", "b"), ("commands", "c")]


def test_a_list_of_commands_replaces_the_plugins_own(world) -> None:
    world.has(*PLUGIN, *PROJECT)
    listed = ["a:b", "compact", "dataviz", "notes:list"]
    plan = world.plan(spec=with_plugin(world, commands=listed), extra_readable_dirs=["."])
    assert plan.slash_commands == tuple(listed)
    assert plan.commands.builtin == {"compact", "dataviz"}
    assert "dataviz" not in plan.skills
    assert world.plan(spec=with_plugin(world, commands=[])).slash_commands == ()


@pytest.mark.parametrize("commands", ["list", ["/list"], ["a,b"], [""], [7], {"a": 1}])
def test_malformed_commands_are_a_fault(commands: Any) -> None:
    with pytest.raises(ConfigError, match="commands"):
        AgentSpec(name="a", commands=commands)


@pytest.mark.parametrize("file", ["skills/verify/SKILL.md", "commands/verify.md"])
def test_a_project_does_not_take_the_place_of_a_bundled_skill(world, file: str) -> None:
    world.has(f"project/.claude/{file}=x")
    assert world.plan().skills == ("verify",)  # the project's own
    for spec in ({"skills": ["verify"]}, {"commands": ["verify"]}):
        assert world.faults(spec=spec) == [("skills", "verify")]
        world.plan(spec=spec, setting_sources=[])


def test_a_front_matter_does_not_take_the_name_of_a_plugins_skill(world) -> None:
    world.has(*PLUGIN, "project/.claude/skills/x/SKILL.md=---\nname: notes:cite\n---\nx")
    assert world.faults(spec=with_plugin(world)) == [("skills", "notes:cite")]


def test_a_name_that_the_list_of_skills_cannot_hold_is_left_out(world) -> None:
    world.has("project/.claude/commands/a(b).md=x")
    plan = world.plan()
    assert plan.skills == ()
    assert any("'a(b)' is not offered" in note for note in plan.notes)


def test_what_the_cli_brings_is_in_one_table_only() -> None:
    assert not BUNDLED_SKILLS & BUILTIN_COMMANDS
