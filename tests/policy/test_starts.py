"""Skills that start an agent count as calls of the Agent tool; some calls are questions to a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy.modes import ANSWERED, STARTS_AGENTS, SessionMode
from agent_kit.policy.policy import Call, Judgement, Policy
from agent_kit.policy.starts import Forks, canonical_name
from agent_kit.scope import FileScope

BY_SKILL = {"fork": ("helper",), "p:any": (None,), "two": ("helper", "general-purpose")}


def policy(root: Path, mode: str = "guided", **fields: Any) -> Policy:
    forks = {name: fields.pop(name) for name in ("off", "closed", "only") if name in fields}
    fields.setdefault("has_ask", True)
    return Policy(
        scope=FileScope(project_dir=str(root)),
        mode=SessionMode(mode),
        forks=Forks(by_skill=BY_SKILL, **forks),
        **fields,
    )


def judged(policy: Policy, tool: str, *agreed: str, **given: Any) -> Judgement:
    return policy.judge(Call(tool=tool, tool_input=given, cwd="/"), (), frozenset(agreed))


def of_skill(policy: Policy, skill: Any, *agreed: str) -> tuple[str, str | None]:
    found = judged(policy, "Skill", *agreed, skill=skill)
    return str(found.verdict), found.rule


NOTHING = ("allow", None)


@pytest.mark.parametrize("name", ["fork", "/fork", " fork\ufeff", " /fork"])
def test_a_name_is_looked_up_as_the_cli_does(name: str) -> None:
    assert canonical_name(name) == "fork"
    assert Forks(by_skill=BY_SKILL).started_by("Skill", {"skill": name}) == ("helper",)


@pytest.mark.parametrize("name", ["//fork", "FORK", "any", "", None, 5, ["fork"]])
def test_another_name_starts_nothing(name: Any) -> None:
    assert Forks(by_skill=BY_SKILL).started_by("Skill", {"skill": name}) == ()
    assert Forks(by_skill=BY_SKILL).started_by("Read", {"skill": "fork"}) == ()


LISTED = "SessionConfig.allowed_subagents"
OFF, ONLY = "AgentSpec.disallowed_tools", "AgentSpec.tools"


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({}, {}),
        ({"startable": frozenset({"helper"})}, {"p:any": LISTED, "two": LISTED}),
        ({"startable": frozenset({"general-purpose", "helper"})}, {"p:any": LISTED}),
        ({"startable": frozenset()}, dict.fromkeys(BY_SKILL, LISTED)),
        ({"off": True}, dict.fromkeys(BY_SKILL, OFF)),
        ({"closed": frozenset({"general-purpose"})}, {"p:any": OFF, "two": OFF}),
        ({"only": frozenset({"helper"})}, {"p:any": ONLY, "two": ONLY}),
    ],
)
def test_a_skill_starts_no_agent_that_is_closed(
    fields: dict[str, Any], refused: dict[str, str], tmp_path: Path
) -> None:
    ours = policy(tmp_path, **fields)
    for name in BY_SKILL:
        wanted = ("deny", refused[name]) if name in refused else NOTHING
        assert of_skill(ours, name) == wanted
    assert of_skill(ours, "quiet") == NOTHING


def test_the_refusal_names_the_skill_and_the_type(tmp_path: Path) -> None:
    ours = policy(tmp_path, off=True)
    found = judged(ours, "Skill", skill="fork")
    assert (found.part, found.code) == ("subagents", "agent-not-allowed")
    assert '"fork" runs in an agent of type "helper"' in found.message
    assert "of some type" in judged(ours, "Skill", skill="p:any").message


@pytest.mark.parametrize("name", ["Agent", "Task"])
def test_such_a_skill_asks_where_agent_does(name: str, tmp_path: Path) -> None:
    rule = f"interrupt_on[{name}]"
    ours = policy(tmp_path, interrupt_on={name: True})
    assert of_skill(ours, "fork") == ("interrupt", rule)
    assert "fork" in judged(ours, "Skill", skill="fork").message
    assert of_skill(ours, "fork", rule) == NOTHING
    assert of_skill(ours, "quiet") == NOTHING
    ours.remembered.add(rule)
    assert of_skill(ours, "fork") == NOTHING
    assert of_skill(policy(tmp_path, interrupt_on={name: False}), "fork") == NOTHING
    alone = policy(tmp_path, interrupt_on={name: True}, has_ask=False)
    assert of_skill(alone, "fork") == ("deny", rule)


def test_a_yes_for_skills_that_is_remembered_is_none_for_agents(tmp_path: Path) -> None:
    ours = policy(tmp_path, interrupt_on={"Skill": True, "Agent": True})
    assert of_skill(ours, "fork") == ("interrupt", "interrupt_on[Skill]")
    ours.remembered.add("interrupt_on[Skill]")
    assert of_skill(ours, "fork") == ("interrupt", "interrupt_on[Agent]")
    assert of_skill(ours, "quiet") == NOTHING


@pytest.mark.parametrize("tool", ["Agent", "Task"])
@pytest.mark.parametrize("isolation", ["worktree", "remote", True])
def test_an_agent_in_a_copy_of_the_repository_is_a_change(
    tool: str, isolation: Any, tmp_path: Path
) -> None:
    given = {"subagent_type": "helper", "isolation": isolation}
    assert judged(policy(tmp_path, "plan"), tool, **given).code == "plan-mode"
    assert judged(policy(tmp_path, "interactive"), tool, **given).rule == f"mode[{tool}]"
    assert judged(policy(tmp_path), tool, **given).verdict == "allow"
    for mode in ("plan", "interactive"):
        for without in ({}, {"isolation": None}, {"isolation": ""}):
            assert judged(policy(tmp_path, mode), tool, **without).verdict == "allow"
        assert not policy(tmp_path, mode).is_plain(tool, given, None)
        assert judged(policy(tmp_path, mode), "Skill", isolation=isolation).verdict == "allow"


@pytest.mark.parametrize("tool", sorted(ANSWERED))
@pytest.mark.parametrize("mode", ["guided", "plan", "interactive"])
def test_what_only_a_person_answers_is_asked_each_time(
    tool: str, mode: str, tmp_path: Path
) -> None:
    ours, rule = policy(tmp_path, mode, answered=ANSWERED), f"answer[{tool}]"
    ours.remembered.add(rule)
    found = judged(ours, tool)
    assert (found.verdict, found.part, found.rule) == ("interrupt", "answer", rule)
    assert judged(ours, tool, rule).verdict == "allow"
    assert judged(policy(tmp_path, mode), tool).verdict == "allow"
    for nobody in (
        policy(tmp_path, mode, answered=ANSWERED, has_ask=False),
        policy(tmp_path, "autonomous", answered=ANSWERED),
    ):
        assert judged(nobody, tool).code == "nobody-to-ask"


@pytest.mark.parametrize("mode", ["plan", "interactive"])
@pytest.mark.parametrize("tool", sorted(STARTS_AGENTS))
def test_an_agent_that_is_known_to_work_in_a_copy_changes_something(
    tool: str, mode: str, tmp_path: Path
) -> None:
    one = policy(tmp_path, mode)
    assert judged(one, tool, subagent_type="helper").verdict == "allow"
    assert judged(one, tool).verdict == "allow"
    one.copying.update(("helper", "general-purpose"))
    assert judged(one, tool, subagent_type="helper").verdict != "allow"
    assert judged(one, tool).verdict != "allow"
    assert judged(one, tool, subagent_type="other").verdict == "allow"
