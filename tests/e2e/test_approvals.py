"""A person and the rules, on the real CLI: approve, edit, reject, nobody there, and what can't be asked."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claude_agent_sdk import ClaudeSDKClient

from agent_kit import (
    Approval,
    Subagent,
    approve,
    ask_user,
    build_session_options,
    content_check,
    deny_paths,
    edit,
    rate_limit,
    read_trail,
    reject,
    size_ceiling,
)
from agent_kit.terminal import terminal_asker
from agent_kit.testing import AnsweredBy, ScriptedModel, ToolCall, cli_env
from tests.people import Person, rule

if TYPE_CHECKING:
    from tests.e2e.conftest import Course

pytestmark = pytest.mark.e2e

SYLLABUS = "<course>/sources/syllabus.md"
LETTER = "<course>/drafts/newsletter.md"


def trail(course: Course) -> list[dict[str, Any]]:
    (path,) = (course.run_dir / "host").glob("*.decisions.jsonl")
    return list(read_trail(path))


def test_an_approved_call_runs_and_the_person_saw_it_whole(course: Course) -> None:
    person = Person(approve())
    run = course.session(
        [course.call("Write", file_path=LETTER, content="new words")],
        permissions=[rule("interrupt", "drafts/**", operations=("write",))],
        ask=person,
    )
    assert run.calls[0].lock is AnsweredBy.RAN
    assert (course.project / "drafts/newsletter.md").read_text() == "new words"
    (asked,) = person.asked
    assert asked.tool == "Write"
    assert asked.tool_input == {"file_path": course.text(LETTER), "content": "new words"}
    assert asked.rule == "SessionConfig.permissions[0]"
    assert asked.agent is None


def test_a_rejected_call_doesnt_run_and_the_model_hears_why(course: Course) -> None:
    person = Person(reject("the letter is finished"))
    run = course.session(
        [course.call("Read", file_path=LETTER)],
        permissions=[rule("interrupt", "drafts/**")],
        ask=person,
    )
    assert run.calls[0].is_error
    assert "the letter is finished" in (run.calls[0].result or "")
    assert not run.saw("canary(newsletter)")


def test_an_edited_call_runs_as_the_person_wrote_it(course: Course) -> None:
    new = {"file_path": course.text(LETTER), "content": "the person's words"}
    run = course.session(
        [course.call("Write", file_path=LETTER, content="the model's words")],
        permissions=[rule("interrupt", "drafts/**", operations=("write",))],
        ask=Person(edit(new)),
    )
    assert run.calls[0].lock is AnsweredBy.RAN
    assert (course.project / "drafts/newsletter.md").read_text() == "the person's words"


@pytest.mark.parametrize("other", [True, False])
def test_an_edit_isnt_used_on_a_file_that_changed_while_the_person_thought(
    course: Course, other: bool
) -> None:
    letter = course.project / "drafts/newsletter.md"
    named = "<course>/drafts/other.md" if other else LETTER
    new = {"file_path": course.text(named), "content": "the person's words"}

    def meanwhile(_approval: Approval) -> Any:
        letter.write_text("somebody else's words")
        return edit(new)

    run = course.session(
        [course.call("Write", file_path=LETTER, content="the model's words")],
        permissions=[rule("interrupt", "drafts/newsletter.md", operations=("write",))],
        ask=meanwhile,
    )
    assert letter.read_text() == "somebody else's words"
    assert run.calls[0].is_error is not other
    assert (course.project / "drafts/other.md").exists() is other
    if not other:
        (line,) = trail(course)
        assert (line["verdict"], line["code"], line["answer"]) == ("deny", "changed", "edited")


@pytest.mark.parametrize(
    "path", ["<course>/private/letter.txt", "<out>/secret.txt", "<course>/.env"]
)
def test_an_edit_opens_nothing_that_the_scope_closes(course: Course, path: str) -> None:
    run = course.session(
        [course.call("Read", file_path=LETTER)],
        permissions=[rule("interrupt", "drafts/**")],
        ask=Person(edit({"file_path": course.text(path)})),
    )
    assert run.calls[0].is_error
    assert not any(run.saw(f"canary({name})") for name in ("letter", "outside", "env"))


def test_an_edit_to_what_another_rule_denies_is_refused_and_one_it_asks_about_is_asked(
    course: Course,
) -> None:
    rules = [
        rule("deny", "sources/syllabus.md"),
        rule("interrupt", "drafts/plan.ipynb"),
        rule("interrupt", "drafts/**"),
    ]
    to_denied = Person(edit({"file_path": course.text(SYLLABUS)}))
    run = course.session([course.call("Read", file_path=LETTER)], permissions=rules, ask=to_denied)
    assert run.calls[0].is_error
    assert not run.saw("canary(syllabus)")
    to_asked = Person(edit({"file_path": course.text("<course>/drafts/plan.ipynb")}), reject("no"))
    run = course.session([course.call("Read", file_path=LETTER)], permissions=rules, ask=to_asked)
    assert [asked.rule for asked in to_asked.asked] == [
        "SessionConfig.permissions[2]",
        "SessionConfig.permissions[1]",
    ]
    assert not run.saw("canary(plan)")


def test_with_nobody_there_an_interrupt_is_a_refusal(course: Course) -> None:
    run = course.session(
        [course.call("Read", file_path=LETTER)], permissions=[rule("interrupt", "drafts/**")]
    )
    assert run.calls[0].is_error
    assert "Nobody can be asked" in (run.calls[0].result or "")
    assert not run.saw("canary(newsletter)")


def test_without_a_terminal_the_model_hears_that_nobody_could_be_asked(
    course: Course, tmp_path: Path
) -> None:
    with open(tmp_path / "no-terminal", "w+") as file:
        run = course.session(
            [course.call("Read", file_path=LETTER)],
            permissions=[rule("interrupt", "drafts/**")],
            ask=terminal_asker(input=file, output=file),
        )
    assert "Nobody could be asked: there is no terminal." in (run.calls[0].result or "")
    assert "rejected this call" not in (run.calls[0].result or "")


@pytest.mark.parametrize("said", [None, True, "yes", ValueError("broken")])
def test_an_answer_that_is_none_refuses(course: Course, said: Any) -> None:
    def answer(_approval: Approval) -> Any:
        if isinstance(said, Exception):
            raise said
        return said

    run = course.session(
        [course.call("Read", file_path=LETTER)],
        permissions=[rule("interrupt", "drafts/**")],
        ask=answer,
    )
    assert run.calls[0].is_error
    assert not run.saw("canary(newsletter)")
    assert not run.saw("broken")


def test_a_file_that_changes_while_a_person_thinks_is_not_what_they_approved(
    course: Course,
) -> None:
    def swap(_approval: Approval) -> Any:
        (course.project / "drafts/newsletter.md").write_text("canary(swapped)")
        return approve()

    run = course.session(
        [course.call("Read", file_path=LETTER)],
        permissions=[rule("interrupt", "drafts/**")],
        ask=Person(swap),
    )
    assert run.calls[0].is_error
    assert not run.saw("canary(swapped)")


def test_a_link_made_while_a_person_thinks_leads_nowhere(course: Course) -> None:
    letter = course.project / "drafts/newsletter.md"

    def swap(_approval: Approval) -> Any:
        letter.unlink()
        letter.symlink_to(course.out / "secret.txt")
        return approve()

    run = course.session(
        [course.call("Read", file_path=LETTER)],
        permissions=[rule("interrupt", "drafts/**")],
        ask=Person(swap),
    )
    assert run.calls[0].is_error
    assert not run.saw("canary(outside)")


def test_remembered_is_the_rule_of_this_session_and_no_other(course: Course) -> None:
    rules = [rule("interrupt", "drafts/**"), rule("interrupt", "sources/**")]
    person = Person(approve(remember=True), reject("no"))
    calls = [
        course.call("Read", file_path=LETTER),
        course.call("Read", file_path="<course>/drafts/plan.ipynb"),
        course.call("Read", file_path=SYLLABUS),
    ]
    run = course.session(calls, permissions=rules, ask=person)
    assert [call.lock is AnsweredBy.RAN for call in run.calls] == [True, True, False]
    again = Person(reject("asked again"))
    later = course.session(calls[:1], permissions=rules, ask=again)
    assert len(again.asked) == 1
    assert later.calls[0].is_error


def test_first_match_wins_in_the_order_written(course: Course) -> None:
    allow, stop = rule("allow", "drafts/newsletter.md"), rule("deny", "drafts/**")
    first = course.session([course.call("Read", file_path=LETTER)], permissions=[allow, stop])
    assert first.saw("canary(newsletter)")
    other = course.session([course.call("Read", file_path=LETTER)], permissions=[stop, allow])
    assert not other.saw("canary(newsletter)")
    assert other.calls[0].is_error


def test_a_search_above_a_place_that_asks_is_asked_about(course: Course) -> None:
    rules = [rule("interrupt", "drafts/plan.ipynb", operations=("read",))]
    person = Person(reject("not there"))
    call = ToolCall(
        "Grep",
        {"pattern": "canary", "path": str(course.project / "drafts"), "output_mode": "content"},
    )
    run = course.session([call], permissions=rules, ask=person)
    assert len(person.asked) == 1
    assert run.calls[0].is_error
    assert not run.saw("canary(plan)")
    beside = ToolCall("Grep", {**call.input, "path": str(course.project / "sources")})
    run = course.session([beside], permissions=rules, ask=Person())
    assert run.saw("canary(syllabus)")


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "dontAsk", "bypassPermissions"])
def test_no_permission_mode_of_the_cli_spares_the_question(course: Course, mode: str) -> None:
    person = Person(reject("no"))
    run = course.session(
        [course.call("Read", file_path=LETTER)],
        permissions=[rule("interrupt", "drafts/**")],
        ask=person,
        permission_mode=mode,
        env={"IS_SANDBOX": "1"},
    )
    assert len(person.asked) == 1
    assert run.calls[0].is_error
    assert not run.saw("canary(newsletter)")


# --- authorizers -------------------------------------------------------------------------------


class Own:
    """An authorizer of the host's own."""

    id = "own"

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.seen: list[Any] = []

    async def authorize(self, target: Any, context: Any) -> Any:
        self.seen.append((target.action, target.resolved, context.session_id))
        return self.answer


def test_a_chain_of_authorizers_refuses_from_left_to_right(course: Course) -> None:
    (course.project / "drafts/big.md").write_text("canary(big)" + "x" * 2000)
    run = course.session(
        [
            course.call("Read", file_path=SYLLABUS),
            course.call("Read", file_path=LETTER),
            course.call("Grep", pattern="canary", path="<course>/drafts", output_mode="content"),
            course.call("Read", file_path="<course>/drafts/big.md"),
            course.call("Write", file_path=LETTER, content="the exam: canary(leak)"),
            course.call("Write", file_path="<course>/drafts/a.md", content="fine"),
            course.call("Write", file_path="<course>/drafts/b.md", content="fine"),
        ],
        authorizers=[
            deny_paths(["drafts/news*"]),
            content_check(r"canary\("),
            rate_limit(1, 60, ["write"]),
            size_ceiling(1000),
        ],
    )
    results = [call.result or "" for call in run.calls]
    assert [call.is_error for call in run.calls] == [False, True, True, True, True, False, True]
    assert "denied by your permission settings" in results[1]  # a rule of the CLI says it first
    assert "[search:denied] drafts was refused by policy (the path matches" in results[2]
    assert "[read:denied] drafts/big.md was refused by policy (2011 bytes is over" in results[3]
    assert "no more than 1 in 60 seconds" in results[6]
    assert not (course.project / "drafts/b.md").exists()
    assert not run.saw("canary(newsletter)")
    assert not run.saw("canary(big)")


def test_an_authorizer_that_answers_otherwise_refuses_and_hides_the_cause(course: Course) -> None:
    own = Own("yes, sure")
    run = course.session([course.call("Read", file_path=SYLLABUS)], authorizers=[own])
    assert own.seen[0][0] == "read"
    assert run.calls[0].is_error
    assert not run.saw("canary(syllabus)")
    assert not run.saw("yes, sure")


def test_ask_user_waits_longer_than_a_hook_may(course: Course) -> None:
    waited: list[float] = []

    async def question(_target: Any) -> bool:
        begun = time.monotonic()
        await asyncio.sleep(21)  # the gate itself gives up after 20 s
        waited.append(time.monotonic() - begun)
        return True

    run = course.session(
        [course.call("Read", file_path=SYLLABUS)], authorizers=[ask_user(question)]
    )
    assert waited
    assert run.saw("canary(syllabus)")


def test_ask_user_with_a_no_refuses(course: Course) -> None:
    run = course.session(
        [course.call("Read", file_path=SYLLABUS)], authorizers=[ask_user(lambda _target: False)]
    )
    assert "the user did not approve the read" in (run.calls[0].result or "")
    assert not run.saw("canary(syllabus)")


# --- subagents ---------------------------------------------------------------------------------


def start(course: Course, name: str, *steps: ToolCall, background: bool = False) -> ToolCall:
    fields = {
        "description": "d",
        "prompt": f"Work as {name}, {len(steps)} steps, {background}.",
        "subagent_type": name,
        "run_in_background": background,
    }
    return ToolCall("Agent", fields, script=[*steps, "Done."])


def test_rules_hold_for_a_subagent_that_inherits_and_give_way_to_those_of_one_that_replaces(
    course: Course,
) -> None:
    read = course.call("Read", file_path=LETTER)
    person = Person(reject("asked"))
    agents = {
        "heir": Subagent(description="d", prompt="p"),
        "own": Subagent(description="d", prompt="p", permissions=[rule("interrupt", "drafts/**")]),
        "free": Subagent(description="d", prompt="p", permissions=[], replace_rules=True),
    }
    run = course.session(
        [
            start(course, "heir", read),
            start(course, "own", read, background=True),
            start(course, "free", course.call("Read", file_path=SYLLABUS)),
            start(course, "general-purpose", read),
        ],
        spec={
            "subagents": agents,
            "permissions": [rule("deny", "drafts/**"), rule("deny", "sources/**")],
        },
        ask=person,
        run={"wait_for_background": True},
    )
    by_agent = {call.agent: call for call in run.calls if call.agent}
    assert by_agent["heir"].is_error
    assert by_agent["own"].is_error
    assert by_agent["general-purpose"].is_error
    assert by_agent["free"].lock is AnsweredBy.RAN
    assert [asked.agent for asked in person.asked] == ["own"]
    assert not run.saw("canary(newsletter)")
    assert run.saw("canary(syllabus)")


def test_the_rules_of_the_session_hold_for_an_agent_that_has_none_of_its_own(
    course: Course,
) -> None:
    agents = {"free": Subagent(description="d", prompt="p", permissions=[], replace_rules=True)}
    run = course.session(
        [start(course, "free", course.call("Read", file_path=LETTER))],
        spec={"subagents": agents},
        permissions=[rule("deny", "drafts/**")],
        run={"wait_for_background": True},
    )
    assert not run.saw("canary(newsletter)")


def test_an_auditor_writes_nothing_and_starts_nobody_who_could(course: Course) -> None:
    agents = {"auditor": Subagent(description="d", prompt="p", writable_dirs=[])}
    write = course.call("Write", file_path="<course>/drafts/new.md", content="x")
    prompt = {"description": "d", "prompt": "Write.", "subagent_type": "general-purpose"}
    nested = ToolCall("Agent", prompt)
    run = course.run(
        course.options(spec={"subagents": agents, "tools": ["Agent"]}),
        [start(course, "auditor", write, course.call("Read", file_path=SYLLABUS), nested)],
        wait_for_background=True,
    )
    of_auditor = [call for call in run.calls if call.agent == "auditor"]
    assert [call.is_error for call in of_auditor] == [True, False, True]
    assert "this agent may write nothing" in (of_auditor[0].result or "")
    assert not (course.project / "drafts/new.md").exists()
    assert run.saw("canary(syllabus)")


def test_only_named_agents_may_be_started(course: Course) -> None:
    agents = {"helper": Subagent(description="d", prompt="p")}
    read = course.call("Read", file_path=SYLLABUS)
    untyped = ToolCall("Agent", {"description": "d", "prompt": "p"})
    run = course.session(
        [
            ToolCall("Agent", {"description": "d", "prompt": "p", "subagent_type": "Explore"}),
            untyped,
            start(course, "helper", read),
        ],
        spec={"subagents": agents},
        allowed_subagents=["helper"],
        run={"wait_for_background": True},
    )
    starts = [call for call in run.calls if call.tool == "Agent"]
    assert [call.is_error for call in starts] == [True, True, False]
    assert "Start one of helper" in (starts[0].result or "")
    assert run.saw("canary(syllabus)")


def test_of_twenty_parallel_calls_five_wait_and_none_holds_up_the_others(course: Course) -> None:
    for number in range(20):
        (course.project / f"drafts/n{number}.md").write_text(f"canary(n{number})")
    waiting = asyncio.Event()
    asked: list[Approval] = []

    async def ask(approval: Approval) -> Any:
        asked.append(approval)
        if len(asked) == 5:
            waiting.set()
        await waiting.wait()  # all five wait at the same time
        return approve() if "n4" in str(approval.target) else reject("no")

    agents = {f"a{number}": Subagent(description="d", prompt="p") for number in range(5)}
    each = [
        [course.call("Read", file_path=f"<course>/drafts/n{number * 4 + at}.md") for at in range(4)]
        for number in range(5)
    ]
    run = course.session(
        [tuple(start(course, f"a{number}", tuple(each[number])) for number in range(5))],
        spec={"subagents": agents},
        permissions=[rule("interrupt", *(f"drafts/n{number * 4}.md" for number in range(5)))],
        ask=ask,
        run={"wait_for_background": True},
    )
    reads = [call for call in run.calls if call.tool == "Read"]
    assert len(reads) == 20
    assert len(asked) == 5
    assert sum(call.is_error for call in reads) == 4
    seen = {number for number in range(20) if run.saw(f"canary(n{number})")}
    assert seen == set(range(20)) - {0, 8, 12, 16}


# --- interrupt_on, modes, and what an approval can't open -----------------------------------------


def test_interrupt_on_asks_for_any_tool(course: Course) -> None:
    person = Person(reject("not now"), approve())
    call = ToolCall("mcp__knowledge__knowledge_index", {})
    run = course.session(
        [call, call], interrupt_on={"mcp__knowledge__knowledge_index": True}, ask=person
    )
    assert [c.is_error for c in run.calls] == [True, False]
    assert [asked.rule for asked in person.asked] == [
        "interrupt_on[mcp__knowledge__knowledge_index]"
    ] * 2


@pytest.mark.parametrize("called", ["Task", "Agent"])
def test_another_name_of_a_tool_in_interrupt_on_asks_whatever_the_model_calls_it(
    course: Course, called: str
) -> None:
    person = Person(reject("nobody starts"))
    given = {"description": "d", "prompt": "p", "subagent_type": "general-purpose"}
    run = course.session(
        [ToolCall(called, given)],
        spec={"tools": ["Agent"]},
        interrupt_on={"Task": True},
        ask=person,
    )
    assert run.calls[0].is_error
    assert [asked.rule for asked in person.asked] == ["interrupt_on[Agent]"]


def test_a_remembered_tool_is_asked_about_once_the_mode_does(course: Course) -> None:
    from agent_kit import session_mode

    person = Person(approve(remember=True), reject("not this one"))
    options = course.options(ask=person, interrupt_on={"Write": True})

    def then(turn: Any) -> Any:
        if turn.number == 2:
            session_mode(options).set("interactive")
        if turn.number < 3:
            return course.call("Write", file_path=f"<course>/drafts/m{turn.number}.md", content="x")
        return None

    run = course.run(options, then)
    assert [call.is_error for call in run.calls] == [False, False, True]
    assert [asked.rule for asked in person.asked] == ["interrupt_on[Write]", "mode[Write]"]


def test_the_person_sees_the_folder_that_a_command_runs_in(course: Course) -> None:
    person = Person(approve(), approve())
    run = course.session(
        [
            ToolCall("Bash", {"command": "cd drafts"}),
            ToolCall("Bash", {"command": "pwd"}),
        ],
        spec={"tools": ["Bash"]},
        interrupt_on={"Bash": True},
        ask=person,
        allow_unconfined_commands=True,
    )
    drafts = str(course.project / "drafts")
    assert [asked.cwd for asked in person.asked] == [str(course.project), drafts]
    assert drafts in (run.calls[1].result or "")


def test_a_yes_opens_no_more_than_the_rules_of_the_tool(course: Course) -> None:
    person = Person(approve(), approve(), approve())
    run = course.session(
        [
            ToolCall("Bash", {"command": "echo open"}),
            ToolCall("Bash", {"command": f"cat {course.out}/secret.txt"}),
            ToolCall("Bash", {"command": f"echo open; cat {course.out}/secret.txt"}),
        ],
        spec={"tools": ["Bash(echo:*)"]},
        interrupt_on={"Bash": True},
        ask=person,
        allow_unconfined_commands=True,
    )
    assert [call.is_error for call in run.calls] == [False, True, True]
    assert len(person.asked) == 1
    assert not run.saw("canary(outside)")


def test_in_plan_mode_nothing_is_changed_and_everything_can_be_looked_at(course: Course) -> None:
    run = course.session(
        [
            course.call("Read", file_path=SYLLABUS),
            course.call("Write", file_path=LETTER, content="x"),
            ToolCall("mcp__knowledge__knowledge_index", {}),
            ToolCall("mcp__memory__remember", {"text": "x", "quote": "Go."}),
        ],
        mode="plan",
    )
    assert [call.is_error for call in run.calls] == [False, True, False, True]
    assert "plan mode" in (run.calls[1].result or "")
    assert "canary(newsletter)" in (course.project / "drafts/newsletter.md").read_text()


def test_in_interactive_mode_each_change_asks_first(course: Course) -> None:
    person = Person(reject("keep it"), approve())
    write = course.call("Write", file_path="<course>/drafts/new.md", content="x")
    run = course.session(
        [course.call("Read", file_path=SYLLABUS), write, write], mode="interactive", ask=person
    )
    assert [call.is_error for call in run.calls] == [False, True, False]
    assert "keep it" in (run.calls[1].result or "")


def test_in_autonomous_mode_whatever_would_ask_is_denied(course: Course) -> None:
    person = Person()
    run = course.session(
        [course.call("Read", file_path=LETTER), course.call("Read", file_path=SYLLABUS)],
        mode="autonomous",
        ask=person,
        permissions=[rule("interrupt", "drafts/**")],
        authorizers=[ask_user(lambda _target: True)],
    )
    assert [call.is_error for call in run.calls] == [True, True]
    assert not run.saw("canary(newsletter)")
    assert not run.saw("canary(syllabus)")


def test_a_switched_mode_holds_from_the_next_call(course: Course) -> None:
    from agent_kit import session_mode

    options = course.options()
    switched: list[str] = []

    def then(turn: Any) -> Any:
        if turn.number == 1:
            session_mode(options).set("plan")
            switched.append("plan")
        if turn.number < 2:
            return course.call("Write", file_path=f"<course>/drafts/m{turn.number}.md", content="x")
        return None

    run = course.run(options, then)
    assert switched
    assert [call.is_error for call in run.calls] == [False, True]
    assert (course.project / "drafts/m0.md").exists()
    assert not (course.project / "drafts/m1.md").exists()


# --- the trail -----------------------------------------------------------------------------------


def test_each_judged_call_is_one_line_of_the_trail_and_holds_no_content(course: Course) -> None:
    person = Person(approve(), reject("no"))
    course.session(
        [
            course.call("Read", file_path=SYLLABUS),
            course.call("Read", file_path="<out>/secret.txt"),
            course.call("Write", file_path=LETTER, content="canary(written)"),
            course.call("Write", file_path=LETTER, content="canary(written)"),
        ],
        permissions=[rule("interrupt", "drafts/**", operations=("write",))],
        ask=person,
    )
    lines = trail(course)
    assert [(line["tool"], line["verdict"], line["asked"], line["answer"]) for line in lines] == [
        ("Read", "allow", False, None),
        ("Read", "deny", False, None),
        ("Write", "allow", True, "approved"),
        ("Write", "deny", True, "rejected"),
    ]
    assert lines[1]["code"] == "outside-readable"
    assert lines[3]["rule"] == "SessionConfig.permissions[0]"
    text = "".join(path.read_text() for path in (course.run_dir / "host").glob("*.decisions*"))
    assert "canary(" not in text


def test_a_call_that_the_kit_refuses_when_the_cli_asks_is_never_said_to_be_allowed(
    course: Course,
) -> None:
    run = course.session(
        [
            ToolCall("Bash", {"command": "echo one"}),
            ToolCall("Bash", {"command": f"cat {course.out}/secret.txt"}),
        ],
        spec={"tools": ["Bash(echo:*)"]},
        allow_unconfined_commands=True,
    )
    assert [call.is_error for call in run.calls] == [False, True]
    lines = trail(course)
    assert [(line["verdict"], line["lock"], line["code"]) for line in lines] == [
        ("allow", "gate", None),
        ("ask", "gate", None),
        ("deny", "approval", "not-allowed"),
    ]
    first, second, last = (line["tool_use_id"] for line in lines)
    assert first != second == last


def test_a_session_without_ask_is_built_for_every_mode(course: Course) -> None:
    for mode in ("guided", "interactive", "plan", "autonomous"):
        assert build_session_options(course.spec(), course.config(mode=mode)).hooks


# --- a question that is cut short, and agents among themselves --------------------------------------


@pytest.mark.parametrize("how", ["interrupt", "disconnect"])
async def test_an_interrupt_or_a_disconnect_ends_a_waiting_question_as_a_refusal(
    course: Course, how: str
) -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def ask(_approval: Approval) -> Any:
        asked.set()
        try:
            await asyncio.Event().wait()  # nobody ever answers
        finally:
            ended.set()

    with ScriptedModel([course.call("Read", file_path=LETTER), "The end."]) as model:
        env = {**cli_env(model, course.home)}
        options = course.options(permissions=[rule("interrupt", "drafts/**")], ask=ask, env=env)
        client = ClaudeSDKClient(options)
        await client.connect()
        try:
            await client.query("Go.")
            await asyncio.wait_for(asked.wait(), 30)
            if how == "interrupt":
                await client.interrupt()
                await asyncio.wait_for(ended.wait(), 10)
        finally:
            await client.disconnect()
        await asyncio.wait_for(ended.wait(), 10)
        assert not any("canary(newsletter)" in str(request.body) for request in model.requests)
    await asyncio.sleep(0.5)
    (line,) = trail(course)
    assert (line["verdict"], line["code"]) == ("deny", "aborted")


def test_nested_agents_and_two_of_one_type_are_each_judged_by_their_own_rules(
    course: Course,
) -> None:
    agents = {
        "outer": Subagent(description="d", prompt="p"),
        "inner": Subagent(description="d", prompt="p", permissions=[rule("deny", "sources/**")]),
    }
    syllabus = course.call("Read", file_path=SYLLABUS)
    letter = course.call("Read", file_path=LETTER)
    nested = ToolCall(
        "Agent",
        {"description": "d", "prompt": "Inside.", "subagent_type": "inner"},
        script=[syllabus, letter, "Done."],
    )
    two = [
        ToolCall(
            "Agent",
            {"description": "d", "prompt": f"Number {n}.", "subagent_type": "outer"},
            script=[syllabus, nested if n == 1 else letter, "Done."],
        )
        for n in (1, 2)
    ]
    run = course.session(
        [tuple(two)],
        spec={"subagents": agents, "permissions": [rule("deny", "drafts/**")], "tools": ["Agent"]},
        run={"wait_for_background": True},
    )
    reads = sorted(
        (str(call.agent), str(call.input["file_path"]).rpartition("/")[2], call.is_error)
        for call in run.calls
        if call.tool == "Read"
    )
    assert reads == [
        ("inner", "newsletter.md", False),
        ("inner", "syllabus.md", True),
        ("outer", "newsletter.md", True),
        ("outer", "syllabus.md", False),
        ("outer", "syllabus.md", False),
    ]


@pytest.mark.parametrize("opened", [False, True])
def test_a_shell_line_in_a_skill_runs_only_where_it_is_opened(course: Course, opened: bool) -> None:
    skill = course.project / ".claude/skills/go/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: go\ndescription: d\n---\nLog: !`touch drafts/ran`\n")
    course.session(
        [ToolCall("Skill", {"skill": "go"})],
        spec={"tools": ["Bash"]},
        mode="plan",
        allow_unconfined_commands=True,
        unlock=["skill_shell"] if opened else [],
    )
    assert (course.project / "drafts/ran").exists() is opened
