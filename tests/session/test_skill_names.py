"""A project can't put its own text under the name of a skill that a session offers."""

from __future__ import annotations

import pytest

from agent_kit import ConfigError
from agent_kit.sdk import catalogue

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


@pytest.mark.parametrize("folder", ["commands", "skills"])
def test_a_folder_with_too_many_names_is_a_fault(
    world, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.has(*PLUGIN, *(f"project/.claude/{folder}/a/{name}.txt" for name in range(9)))
    spec = {"plugins": [str(world.root / "plug")]}
    monkeypatch.setattr(catalogue, "MAX_NAMES", 10)
    world.plan(spec=spec)
    monkeypatch.setattr(catalogue, "MAX_NAMES", 9)
    found = world.faults(spec=spec)
    assert set(found) == {("setting_sources", str(world.project / ".claude" / folder))}


@pytest.mark.parametrize(
    ("files", "field", "folder"),
    [
        ([f"plug/commands/c{n}.md" for n in range(6)], "plugins", "plug"),
        ([f"plug/skills/s{n}/SKILL.md" for n in range(6)], "plugins", "plug"),
        (
            [f"project/.claude/commands/c{n}.md" for n in range(6)],
            "setting_sources",
            "project/.claude",
        ),
    ],
)
def test_more_files_than_are_looked_at_are_a_fault(
    world,
    files: list[str],
    field: str,
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world.has(PLUGIN[0], *files)
    spec = {"plugins": [str(world.root / "plug")]}
    monkeypatch.setattr(catalogue, "MAX_FILES", 6)
    world.plan(spec=spec)
    monkeypatch.setattr(catalogue, "MAX_FILES", 5)
    assert world.faults(spec=spec) == [(field, str(world.root / folder))]


def test_a_plugins_manifest_without_end_is_a_fault(world, monkeypatch: pytest.MonkeyPatch) -> None:
    world.has(PLUGIN[0])
    monkeypatch.setattr(catalogue, "MAX_TEXT", 5)
    manifest = str(world.root / "plug/.claude-plugin/plugin.json")
    found = world.faults(spec={"plugins": [str(world.root / "plug")]})
    assert found == [("plugins", manifest)]


def test_every_folder_with_too_many_names_is_named_at_once(
    world, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = ["project/.claude/skills", ".claude/skills"]
    world.has(*PLUGIN, *(f"{folder}/a/{name}.txt" for folder in folders for name in range(9)))
    monkeypatch.setattr(catalogue, "MAX_NAMES", 9)
    found = world.faults(spec={"plugins": [str(world.root / "plug")]})
    assert found == [("setting_sources", str(world.root / folder)) for folder in folders]


def test_a_folder_takes_no_name(world) -> None:
    world.has(*PLUGIN, "project/.claude/commands/notes/cite.md/")
    world.plan(spec={"plugins": [str(world.root / "plug")]})
