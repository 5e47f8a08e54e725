"""What hides a project's skills and agents from the model: names, bounds, and what can't be hidden."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from agent_kit import ConfigError
from agent_kit.sdk import catalogue

SECONDS = 60  # no plan of these takes two on a calm machine


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """A test that would hang fails instead."""

    def fail(*_: object) -> None:
        raise AssertionError("planning doesn't end")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def agent_rules(plan) -> list[str]:
    return [rule for rule in plan.settings["permissions"]["deny"] if rule.startswith("Agent(")]


def linked(world, name: str, text: str) -> str:
    """An agent's file of the project that leads out of what may be read."""
    world.has(f"out/{name}={text}", f"project/.claude/agents/{name} => ../../../out/{name}")
    return str(world.project / ".claude/agents" / name)


@pytest.mark.parametrize("folder", ["agents", "commands", "skills"])
def test_links_that_lead_in_circles_do_not_hang_the_plan(world, folder: str) -> None:
    world.has(*(f"project/.claude/{folder}/{name} => ." for name in "ab"))
    world.plan(spec={"skills": ["simplify"]})


@pytest.mark.parametrize("folder", ["agents", "commands", "skills"])
def test_links_that_lead_everywhere_are_a_fault(world, folder: str) -> None:
    """No circle, and yet as many ways as there are orders of the folders."""
    names = [f"d{number}" for number in range(12)]
    links = [f"{a}/{b} => ../{b}" for a in names for b in names if a != b]
    world.has(*(f"project/.claude/{folder}/{link}" for link in links))
    top = str(world.project / ".claude" / folder)
    assert ("setting_sources", top) in world.faults(spec={"skills": ["simplify"]})


def test_an_agents_file_that_is_a_pipe_is_not_waited_for(world) -> None:
    world.has("project/.claude/agents/")
    os.mkfifo(world.project / ".claude/agents/pipe.md")
    world.plan()


def test_an_agents_file_without_end_is_a_fault(world, monkeypatch: pytest.MonkeyPatch) -> None:
    file = linked(world, "a.md", "---\nname: zed\n---\n" + "x" * 2000)
    world.plan()
    monkeypatch.setattr(catalogue, "MAX_TEXT", 1000)
    assert world.faults() == [("setting_sources", file)]


@pytest.mark.parametrize(
    "header",
    [
        "name: zed",
        "'name': zed",
        '"name": "zed"',
        "name : zed",
        '"na\\x6de": zed',
        "{name: zed, description: d}",
        "description: a: b\nname: zed",
        'description: a: b\n"name": zed',
    ],
)
def test_a_closed_agent_is_refused_however_its_name_is_written(world, header: str) -> None:
    linked(world, "a.md", f"---\n{header}\n---\nbody")
    plan = world.plan()
    assert {"Agent(zed)", "Agent(a)"} <= set(agent_rules(plan))
    assert any("'zed' is refused" in note for note in plan.notes)


@pytest.mark.parametrize(
    "header",
    [
        "name: a,b",
        "name: 'zed (2)'",
        "name: zed*",
        "name: 'zed '",
        'name: "z\\ned"',
        "name: z\\\\ed",
        "name: [zed]",
        "name: 7",
        "description: a: b\nname: c: d",
        'description: a: b\n"na\\x6de": zed',
    ],
)
def test_a_closed_agent_that_no_rule_can_name_is_a_fault(world, header: str) -> None:
    file = linked(world, "a.md", f"---\n{header}\n---\nbody")
    with pytest.raises(ConfigError, match="rename it") as caught:
        world.plan()
    assert [(fault.field, fault.value) for fault in caught.value.faults] == [
        ("setting_sources", file)
    ]
    world.plan(setting_sources=[])


def test_every_closed_agent_at_fault_is_named_at_once(world) -> None:
    files = [linked(world, f"{name}.md", "---\nname: x,y\n---\n") for name in "ab"]
    assert world.faults() == [("setting_sources", file) for file in files]


@pytest.mark.parametrize("header", ["", "---\ndescription: d\n---\n", "---\nname: ''\n---\n"])
def test_an_agent_without_a_name_may_have_its_files(world, header: str) -> None:
    linked(world, "a.md", header)
    assert agent_rules(world.plan()) == ["Agent(a)"]
    file = linked(world, "b (2).md", header)
    assert world.faults() == [("setting_sources", file)]


def test_a_name_in_the_file_counts_before_the_files_own(world) -> None:
    linked(world, "a (2).md", "---\nname: zed\n---\n")
    assert agent_rules(world.plan()) == ["Agent(zed)"]


def test_an_open_agent_may_be_called_anything(world) -> None:
    world.has("project/.claude/agents/a.md=---\nname: a,b\n---\n")
    plan = world.plan(extra_readable_dirs=["."])
    assert agent_rules(plan) == []


def test_a_folder_of_agents_is_no_agent(world) -> None:
    world.has("out/note.txt=x", "project/.claude/agents/a,b.md => ../../../out")
    assert agent_rules(world.plan()) == []


def test_too_much_in_a_folder_below_is_a_fault(world, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "MAX_FILES", 3)
    world.has(*(f"project/drafts/.claude/skills/s{number}/SKILL.md=x" for number in range(3)))
    world.plan(extra_writable_dirs=["drafts"])
    world.has("project/drafts/.claude/commands/c.md=x")
    folder = str(world.project / "drafts/.claude")
    found = world.faults(extra_writable_dirs=["drafts"])
    assert found == [("setting_sources", folder)]
