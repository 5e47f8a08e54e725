"""A project can't put its own text under the name of a skill that a session offers."""

from __future__ import annotations

import pytest

from agent_kit import ConfigError

PLUGIN = (
    'plug/.claude-plugin/plugin.json={"name": "notes"}',
    "plug/skills/cite/SKILL.md=own",
    "plug/commands/list.md=own",
)


@pytest.mark.parametrize(
    "file",
    [
        "commands/notes/cite.md",
        "commands/deeper/notes/list.md",
        "commands/NOTES:cite.md",
        "skills/notes:cite/SKILL.md",
        "skills/notes/cite/SKILL.md",
    ],
)
def test_a_file_of_the_project_that_takes_an_offered_name_is_a_fault(world, file: str) -> None:
    world.has(*PLUGIN, f"project/.claude/{file}=@README.md")
    spec = {"plugins": [str(world.root / "plug")]}
    with pytest.raises(ConfigError, match="takes the name of this skill") as caught:
        world.plan(spec=spec)
    assert file.rsplit("/", 1)[-1] in str(caught.value)
    world.plan(spec=spec, setting_sources=[])


def test_other_names_are_no_fault(world) -> None:
    world.has(
        *PLUGIN, "project/.claude/commands/cite.md=x", "project/.claude/skills/notes/SKILL.md=x"
    )
    world.plan(spec={"plugins": [str(world.root / "plug")]})
