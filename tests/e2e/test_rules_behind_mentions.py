"""What a skill or a prompt mentions is attached with no Read: rules and authorizers hold for it all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_kit import (
    AgentSpec,
    SessionConfig,
    Subagent,
    approve,
    ask_user,
    build_session_options,
    read_limit,
    read_trail,
    reject,
    size_ceiling,
)
from agent_kit.testing import AnsweredBy, Say, SessionRun, ToolCall, run_session, tree
from tests.people import Person, rule

pytestmark = pytest.mark.e2e

CANARY = "canary-of-a-table"
READS = ("read",)  # a rule against it is the gate's alone: the CLI's would close writing, too
LOOK = "---\nname: look\ndescription: d\n---\nLook at $ARGUMENTS and tell.\n"
BODY = "---\nname: body\ndescription: d\n---\nLook at @data/x.csv and tell.\n"


async def session(
    root: Path, *steps: Any, prompt: str = "go", spec: Any = None, **config: Any
) -> SessionRun:
    tree(
        root,
        [
            f"course/data/x.csv={CANARY}",
            f"course/.claude/skills/look/SKILL.md={LOOK}",
            f"course/.claude/skills/body/SKILL.md={BODY}",
            f"course/.claude/commands/body2.md={BODY}",
        ],
    )
    built = build_session_options(
        spec or AgentSpec(name="a", commands=["body2", "look"]),
        SessionConfig(
            project_dir=root / "course",
            extra_writable_dirs=["data"],
            extra_readable_dirs=["."],
            run_dir=root / "run",
            confinement="off",
            **config,
        ),
    )
    return await run_session(built, [*steps, Say("done")], prompt=prompt, home=root / "home")


SKILLS = [
    ToolCall("Skill", {"skill": "look", "args": "see @data/x.csv"}),
    ToolCall("Skill", {"skill": "body"}),
]
CLOSED: dict[str, dict[str, Any]] = {
    "a rule that denies": {"permissions": [rule("deny", "data/**", operations=READS)]},
    "a rule that asks": {
        "permissions": [rule("interrupt", "data/**")],
        "ask": Person(*[reject("no")] * 2),
    },
    "nobody to ask": {"permissions": [rule("interrupt", "data/**")]},
    "a person by an authorizer": {"authorizers": [ask_user(lambda _target: False)]},
    "a ceiling": {"authorizers": [size_ceiling(3)]},
    "a limit, which a mention can't keep": {"authorizers": [read_limit(bytes=3)]},
}


@pytest.mark.parametrize("how", CLOSED)
async def test_a_skill_attaches_nothing_that_rules_or_authorizers_close(
    how: str, tmp_path: Path
) -> None:
    run = await session(tmp_path, *SKILLS, **CLOSED[how])
    assert [call.lock in (AnsweredBy.GATE, AnsweredBy.RULES) for call in run.calls] == [True] * 2
    assert not run.saw(CANARY)
    (path,) = (tmp_path / "run" / "host").glob("*.decisions.jsonl")
    assert [line["verdict"] for line in read_trail(path)] == ["deny"] * 2


async def test_a_skill_that_a_person_agrees_to_attaches_what_it_mentions(tmp_path: Path) -> None:
    person = Person(approve(), reject("no"))
    rules = [rule("interrupt", "data/**")]
    run = await session(tmp_path, *SKILLS, permissions=rules, ask=person)
    assert [call.lock is AnsweredBy.RAN for call in run.calls] == [True, False]
    assert run.saw(CANARY)
    assert [asked.tool for asked in person.asked] == ["Skill"] * 2
    assert all("x.csv" in str(asked.target) for asked in person.asked)


@pytest.mark.parametrize(
    ("prompt", "mode", "seen"),
    [
        ("see @data/x.csv", "deny", False),
        ("see @data/x.csv", "interrupt", True),  # the person has named it
        ("see @data/x.csv", "allow", True),
        ("/look see @data/x.csv", "deny", False),
        ("/look see @data/x.csv", "interrupt", True),
        ("/body2", "deny", False),
        ("/body2", "interrupt", False),  # its file has named it
        ("/body2", "allow", True),
    ],
)
async def test_a_prompt_attaches_what_no_rule_denies(
    prompt: str, mode: str, seen: bool, tmp_path: Path
) -> None:
    rules = [rule(mode, "data/**", operations=READS)]
    run = await session(tmp_path, prompt=prompt, permissions=rules, ask=Person())
    assert run.saw(CANARY) is seen


async def test_a_tool_of_skills_or_agents_that_is_open_in_part_is_closed_beyond(
    tmp_path: Path,
) -> None:
    agents = {
        name: Subagent(description="d", prompt=f"prompt of {name}") for name in ("one", "two")
    }
    spec = AgentSpec(name="a", tools=["Skill(look)", "Agent(one)"], subagents=agents)
    start = {"description": "d", "prompt": "p", "run_in_background": False}
    run = await session(
        tmp_path,
        ToolCall("Skill", {"skill": "look"}),
        ToolCall("Skill", {"skill": "body"}),
        ToolCall("Agent", {**start, "subagent_type": "two"}),
        ToolCall("Agent", start),
        spec=spec,
    )
    assert [call.is_error for call in run.calls] == [False, True, True, True]
    assert not run.saw("prompt of two") and not run.saw(CANARY)
