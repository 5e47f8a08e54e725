"""A skill whose front matter starts an agent counts as a call of the Agent tool, on the real CLI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit import Subagent, approve, guard_options, reject
from agent_kit.sdk.catalogue import forks
from agent_kit.testing import AnsweredBy, CallRecord, SessionRun, ToolCall
from tests.people import Person

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

HELPER = {"helper": Subagent(description="Helps.", prompt="You help.")}


def skill(name: str) -> ToolCall:
    return ToolCall("Skill", {"skill": name})


def text_of(head: str) -> str:
    return f"---\ndescription: d\n{head}\n---\nDo it."


def plants(course: Course, **heads: str) -> None:
    """A skill of the project for each front matter."""
    for name, head in heads.items():
        file = course.project / ".claude/skills" / name / "SKILL.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text_of(head).encode())


def plays(*calls: ToolCall) -> Any:
    """The main agent makes these calls; whoever else is started says which type it is by looking."""

    def step(turn: Any) -> Any:
        if turn.agent is None:
            return calls[turn.number] if turn.number < len(calls) else "Done."
        return ToolCall("Glob", {"pattern": "*.md"}) if turn.number == 0 else "Nothing."

    return step


def started(run: SessionRun) -> list[str | None]:
    """The types of the agents that worked."""
    return [call.agent for call in run.calls if call.tool == "Glob"]


def of_skills(run: SessionRun) -> list[CallRecord]:
    return [call for call in run.calls if call.tool == "Skill"]


def test_a_skill_starts_only_an_agent_that_may_be_started(course: Course) -> None:
    plants(
        course,
        plain="context: fork",
        own="context: fork\nagent: helper",
        gone="context: fork\nagent: gone",
        unclear="foo: a: b\ncontext: fork",
        quiet="name: x",
    )
    names = ("plain", "/plain", "gone", "unclear", "own", "quiet")
    run = course.session(
        plays(*map(skill, names)),
        spec={"subagents": HELPER},
        allowed_subagents=["helper", "gone"],
    )
    assert [call.lock is AnsweredBy.RAN for call in of_skills(run)] == [False] * 4 + [True] * 2
    assert started(run) == ["helper"]
    assert "may not be started here" in (of_skills(run)[0].result or "")


def test_without_a_list_of_them_a_skill_starts_what_it_names(course: Course) -> None:
    plants(course, plain="context: fork", own="context: fork\nagent: helper")
    plants(course, gone="context: fork\nagent: gone", unclear="foo: a: b\ncontext: fork")
    names = ("plain", "/plain", "gone", "unclear", "own")
    run = course.session(plays(*map(skill, names)), spec={"subagents": HELPER})
    assert started(run) == [*["general-purpose"] * 4, "helper"]


def test_where_agent_calls_ask_such_a_skill_asks(course: Course) -> None:
    plants(course, plain="context: fork", quiet="name: x")
    person = Person(reject("not now"), approve(remember=True))
    run = course.session(
        plays(*map(skill, ("quiet", "plain", "plain", "plain"))),
        spec={"subagents": HELPER},
        interrupt_on={"Agent": True},
        ask=person,
    )
    assert [asked.rule for asked in person.asked] == ["interrupt_on[Agent]"] * 2
    assert [asked.tool for asked in person.asked] == ["Skill"] * 2
    assert "plain" in person.asked[0].reason
    ran = [call.lock is AnsweredBy.RAN for call in of_skills(run)]
    assert ran == [True, False, True, True]
    assert len(started(run)) == 2


def test_with_nobody_there_such_a_skill_is_refused(course: Course) -> None:
    plants(course, plain="context: fork")
    run = course.session(
        plays(skill("plain")), spec={"subagents": HELPER}, interrupt_on={"Agent": True}
    )
    assert started(run) == []
    assert of_skills(run)[0].is_error


@pytest.mark.parametrize(
    ("closed", "kinds"),
    [("Agent", []), ("Task", []), ("Agent(general-purpose)", ["helper"]), ("Bash", ["general-purpose", "helper"])],
)  # fmt: skip
def test_what_is_disallowed_to_agent_calls_is_to_skills(
    closed: str, kinds: list[str], course: Course
) -> None:
    plants(course, plain="context: fork", own="context: fork\nagent: helper")
    run = course.session(
        plays(skill("plain"), skill("own")),
        spec={"disallowed_tools": [closed], "subagents": HELPER},
    )
    assert started(run) == kinds


def test_where_agent_is_open_in_part_skills_start_no_other(course: Course) -> None:
    plants(course, plain="context: fork", own="context: fork\nagent: helper")
    run = course.session(
        plays(skill("plain"), skill("own")),
        spec={"tools": ["Agent(helper)"], "subagents": HELPER},
    )
    assert started(run) == ["helper"]


@pytest.mark.parametrize(
    ("closed", "kinds"), [([], ["general-purpose"]), (["Agent"], []), (["Agent(general-purpose)"], [])]
)  # fmt: skip
def test_so_it_is_in_a_guarded_session(closed: list[str], kinds: list[str], course: Course) -> None:
    plants(course, plain="context: fork")
    options = ClaudeAgentOptions(
        tools=["Read", "Glob", "Skill"],
        allowed_tools=["Skill"],
        skills=["plain"],
        disallowed_tools=closed,
        setting_sources=["project"],
    )
    guarded = guard_options(options, course.config(extra_readable_dirs=["sources"]))
    run = course.run(guarded, plays(skill("plain")))
    assert started(run) == kinds


def test_a_skill_that_starts_an_agent_only_since_the_session_began_is_refused(
    course: Course,
) -> None:
    plants(course, it="name: x")
    options = course.options(spec={"subagents": HELPER}, allowed_subagents=["helper"])
    plants(course, it="context: fork")
    run = course.run(options, plays(skill("it")))
    assert started(run) == []
    assert "starts an agent now" in (of_skills(run)[0].result or "")


def test_the_bundled_skill_that_starts_an_agent_counts(course: Course) -> None:
    names = ("code-review", "simplify")
    spec = {"skills": list(names), "subagents": HELPER}
    run = course.session(plays(*map(skill, names)), spec=spec, allowed_subagents=["helper"])
    assert [call.lock is AnsweredBy.RAN for call in of_skills(run)] == [False, True]
    run = course.session(plays(*map(skill, names)), spec=spec)
    assert started(run) == ["general-purpose"]


HEADS = {
    "bare": "context: fork",
    "quoted": 'context: "fork"',
    "quoted-so": "context: 'fork'",
    "quoted-name": '"context": fork',
    "no-letter": 'context: "f\\x6frk"',
    "spaces": "context :   fork   ",
    "tab": "context:\tfork",
    "block": "context: |-\n  fork",
    "below": "context:\n  fork",
    "tagged": "context: !!str fork",
    "anchor": "x: &a fork\ncontext: *a",
    "merged": "x: &a\n  context: fork\n<<: *a",
    "twice": "context: inline\ncontext: fork",
    "asked": "? context\n: fork",
    "comment": "context: fork # x",
    "carriage": "context: fork\r",
    "no-yaml": "foo: a: b\ncontext: fork",
    "no-yaml-b": "foo: [a\ncontext: fork",
    "no-yaml-c": "foo: *.ts\ncontext: fork",
    "no-yaml-d": "foo: `a`\ncontext: fork",
    "no-yaml-e": "foo: @a\ncontext: fork",
    "folded-line": "# x\u2028context: inline\ncontext: fork",
    "hidden-line": "context: fork\n# x\u2028context: inline",
    "next-line": "context: fork\n# x\u0085context: inline",
    "lone-return": "context: fork\n# x\rcontext: inline",
    "list": "context: fork\nagent: [Explore]",
    "number": "context: fork\nagent: 5",
    "empty": 'context: fork\nagent: ""',
    "nothing": "context: fork\nagent:",
    "other": "context: fork\nagent: Explore",
    "other-quoted": "context: fork\nagent: 'Explore' # x",
    "other-twice": "context: fork\nagent: Plan\nagent: Explore",
    "other-anchor": "x: &a Explore\ny: &a Plan\ncontext: fork\nagent: *a",
    "merged-over": "x: &a\n  context: fork\ncontext: inline\n<<: *a",
    "merged-under": "x: &a\n  context: fork\n<<: *a\ncontext: inline",
    "anchored-twice": "x: &a fork\ny: &a inline\ncontext: *a",
    "capital": "Context: fork",
    "loud": "context: FORK",
    "inner": "metadata:\n  context: fork",
    "agent-alone": "agent: Explore",
}


def test_the_kit_finds_every_agent_that_a_front_matter_starts(course: Course) -> None:
    """The type, too, where it says one."""
    plants(course, **HEADS)
    options = course.bare(
        tools=["Read", "Glob", "Skill", "Agent"], setting_sources=["project"], skills="all"
    )
    began: dict[str, str | None] = {}
    run = course.run(options, plays(*map(skill, HEADS)), timeout=120)
    last = ""
    for call in run.calls:
        if call.tool == "Skill":
            last = str(call.input["skill"])
        else:
            began[last] = call.agent
    assert len(of_skills(run)) == len(HEADS)
    assert len(began) >= 30
    for name, head in HEADS.items():
        found = forks(text_of(head))
        if name in began:
            assert found in ((None,), (began[name],)), name
    certain = {name for name, head in HEADS.items() if forks(text_of(head)) != (None,)}
    assert certain >= {"bare", "quoted", "spaces", "other", "other-quoted", "agent-alone"}
