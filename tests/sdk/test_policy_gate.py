"""The gate of rules and questions, asked as the CLI asks: the hook first, then ``can_use_tool``."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny, ToolPermissionContext

from agent_kit.policy import (
    FilePermission,
    allow,
    ask_user,
    compile_rule_sets,
    content_check,
    deny,
    seen,
)
from agent_kit.policy.approval import Approval, Edited, Unasked, approve, edit, reject
from agent_kit.policy.deferred import QuestionStore, answer, pending_questions
from agent_kit.policy.judged import Judged
from agent_kit.policy.modes import SessionMode
from agent_kit.policy.outcome import Narrowed
from agent_kit.policy.policy import Policy
from agent_kit.scope import FileScope
from agent_kit.scope.judge import Found
from agent_kit.sdk import approval, judging, policy_gate
from agent_kit.sdk.approval import approve_within
from agent_kit.sdk.gate import create_file_scope_gate
from agent_kit.sdk.hooks import Chained
from agent_kit.sdk.host_approval import approve_with_host
from agent_kit.sdk.judging import ScopeJudge
from agent_kit.sdk.open_tools import OpenTools
from agent_kit.sdk.policy_gate import PolicyGate
from tests.people import Person, rule

S = "SessionConfig.permissions"
DENIED = PermissionResultDeny


class Session:
    """A project, a gate on it, and a CLI that calls the two halves in its own order."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        for name in ("drafts/a.md", "drafts/b.md", "sources/s.md", "private/p.md"):
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text(name)
        (root / "run/host").mkdir(parents=True, mode=0o700)
        self.run = root / "run"
        self.scope = self.with_writable(".")
        self.lines: list[Judged] = []

    def with_writable(self, *folders: str) -> FileScope:
        return FileScope(
            project_dir=str(self.project),
            searchable_dirs=["."],
            writable_dirs=folders,
            denied_paths=["private"],
        )

    def start(
        self,
        *rules: FilePermission,
        ask: Any = None,
        mode: str = "guided",
        before: Any = (),
        tools: OpenTools | None = None,
        servers: Mapping[str, Any] = MappingProxyType({}),
        **fields: Any,
    ) -> PolicyGate:
        deferred = ask == "defer"
        policy = Policy(
            scope=self.scope,
            rules=compile_rule_sets(project_dir=str(self.project), session=rules)
            if rules
            else None,
            mode=SessionMode(mode),
            has_ask=ask is not None,
            session_id="s",
            **fields,
        )
        self.gate = PolicyGate(
            policy=policy,
            tools=tools or OpenTools(whole=frozenset({"Bash"})),
            scope_judge=ScopeJudge(),
            ask=None if deferred else ask,
            questions=QuestionStore(self.run / "host") if deferred else None,
            note=self.lines.append,
            servers=servers,
        )
        chained = [Chained(callback) for callback in before]
        (self.hook,) = create_file_scope_gate(self.scope, policy=self.gate, before=chained).hooks
        self.can_use_tool = approve_within(self.scope, cwd=str(self.project), policy=self.gate)
        return self.gate

    async def hooked(self, tool: str, use_id: str | None = "t1", **given: Any) -> dict[str, Any]:
        """What the hook answers."""
        payload = {"tool_name": tool, "tool_input": given, "cwd": str(self.project)}
        for name in ("agent_type", "agent_id", "cwd"):
            if f"_{name}" in given:
                payload[name] = given.pop(f"_{name}")
        answer: Any = await self.hook(payload, use_id, None)  # type: ignore[arg-type]
        return {**answer, **answer.pop("hookSpecificOutput", {})}

    async def asked(self, tool: str, given: dict[str, Any], use_id: str | None = "t1") -> Any:
        """What ``can_use_tool`` answers."""
        return await self.can_use_tool(tool, given, ToolPermissionContext(tool_use_id=use_id))

    async def call(self, tool: str, use_id: str = "t1", **given: Any) -> dict[str, Any] | str:
        """The input that the call runs with, or why it doesn't run."""
        answer = await self.hooked(tool, use_id, **given)
        decision = answer.get("permissionDecision")
        if decision == "deny":
            return str(answer["permissionDecisionReason"])
        left = answer.get("updatedInput", {k: v for k, v in given.items() if k[0] != "_"})
        if decision is None:
            return dict(left)
        assert decision == "ask"
        result = await self.asked(tool, dict(left), use_id)
        if isinstance(result, PermissionResultDeny):
            return result.message
        assert isinstance(result, PermissionResultAllow)
        assert result.updated_permissions is None
        return left if result.updated_input is None else result.updated_input


class Own:
    """An authorizer around a function of the target."""

    id = "own"

    def __init__(self, function: Callable[[Any], Any], **fields: Any) -> None:
        self.function = function
        self.__dict__.update(fields)

    async def authorize(self, target: Any, _context: Any) -> Any:
        found = self.function(target)
        return await found if asyncio.iscoroutine(found) else found


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def last(session: Session) -> tuple[Any, ...]:
    line = session.lines[-1]
    return line.verdict, line.lock, line.code, line.rule, line.asked, line.answer


READ_A = {"file_path": "drafts/a.md"}
READ_B = {"file_path": "drafts/b.md"}
ASKS = rule("interrupt", "drafts/**")


# --- a person's answer -----------------------------------------------------------------------------


async def test_a_call_that_nothing_objects_to_runs_as_it_is(session: Session) -> None:
    session.start(ASKS, ask=Person())
    assert await session.call("Read", file_path="sources/s.md") == {"file_path": "sources/s.md"}
    assert last(session) == ("allow", "gate", None, None, False, None)


async def test_a_person_sees_the_call_and_their_yes_lets_it_run(session: Session) -> None:
    person = Person(approve())
    session.start(ASKS, ask=person)
    assert await session.call("Read", **READ_A, _agent_type="heir", _agent_id="x") == READ_A
    (seen,) = person.asked
    assert (seen.question_id, seen.tool, seen.tool_input) == ("t1", "Read", READ_A)
    assert (seen.target, seen.agent, seen.rule) == ("drafts/a.md", "heir", f"{S}[0]")
    assert last(session) == ("allow", "person", None, f"{S}[0]", True, "approved")
    assert len(session.lines) == 1


async def test_a_rejection_and_what_is_no_answer_refuse(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(_approval: Approval) -> Any:
        raise ValueError("a secret")

    session.start(ASKS, ask=Person(reject("not now"), "yes", broken))
    assert await session.call("Read", **READ_A) == "A person rejected this call: not now"
    assert last(session) == ("deny", "person", "rejected", f"{S}[0]", True, "rejected")
    for use_id in ("t2", "t3"):
        said = await session.call("Read", use_id, **READ_A)
        assert said == "The person's answer could not be read, so the call was refused."
        assert last(session)[2:5] == ("extension-failed", f"{S}[0]", True)
    assert [each.getMessage() for each in caplog.records] == [
        "the function that asks answered str, which is no answer",
        "the function that asks a person failed",
    ]


async def test_where_nobody_could_be_asked_no_person_is_said_to_have_rejected_it(
    session: Session,
) -> None:
    session.start(ASKS, ask=Person(Unasked(message="Nobody could be asked: there is no terminal.")))
    said = str(await session.call("Read", **READ_A))
    assert "when a person agrees. Nobody could be asked: there is no terminal. So it was" in said
    assert "rejected" not in said
    assert last(session) == ("deny", "rules", "nobody-to-ask", f"{S}[0]", True, None)


async def test_what_the_asking_function_does_to_the_input_changes_nothing(session: Session) -> None:
    given: dict[str, Any] = {
        "file_path": "drafts/a.md",
        "edits": [{"old_string": "a", "new_string": "b"}],
    }
    seen: list[Any] = []

    def spoil(approval: Approval) -> Any:
        approval.tool_input["edits"][0]["new_string"] = "spoilt"
        return approve()

    def look(target: Any) -> Any:
        seen.append(copy.deepcopy(target.tool_input))
        return allow()

    session.start(ASKS, ask=spoil, authorizers=(Own(look),))
    kept = copy.deepcopy(given)
    assert await session.call("MultiEdit", **given) == kept
    assert seen == [kept]


async def test_a_file_that_changes_while_a_person_thinks_isnt_what_they_approved(
    session: Session,
) -> None:
    async def swap(_approval: Approval) -> Any:
        (session.project / "drafts/a.md").write_text("another")
        return approve()

    session.start(ASKS, ask=Person(swap))
    assert "changed while a person looked" in str(await session.call("Read", **READ_A))
    assert last(session) == ("deny", "person", "changed", f"{S}[0]", True, "approved")


async def test_a_question_about_a_tool_holds_for_the_files_that_its_extension_names(
    session: Session,
) -> None:
    file = session.project / "drafts/a.md"
    told = {"mcp__kb__drop": lambda given: [session.project / given["file"]]}
    asking = {"interrupt_on": {"mcp__kb__drop": True}, "asked_files": told}

    def swap(_approval: Approval) -> Any:
        file.write_text("another")
        return approve()

    session.start(ask=Person(approve(), swap), **asking)
    given = {"file": "drafts/a.md"}
    assert await session.call("mcp__kb__drop", **given) == given
    assert "changed while a person looked" in str(
        await session.call("mcp__kb__drop", "t2", **given)
    )


@pytest.mark.parametrize("told", [lambda given: [given["none"]], lambda _given: ["drafts/a.md"]])
async def test_where_an_extension_cant_say_which_files_a_question_is_about_nothing_is_approved(
    session: Session, told: Callable[[Any], Any]
) -> None:
    session.start(
        ask=Person(approve()),
        interrupt_on={"mcp__kb__drop": True},
        asked_files={"mcp__kb__drop": told},
    )
    assert "changed while a person looked" in str(await session.call("mcp__kb__drop", file="x"))


# --- an edit ------------------------------------------------------------------------------------


async def test_an_edit_runs_as_the_person_wrote_it(session: Session) -> None:
    session.start(ASKS, ask=Person(edit(READ_B)))
    assert await session.call("Read", **READ_A) == READ_B
    assert last(session) == ("allow", "person", None, f"{S}[0]", True, "edited")
    assert session.lines[-1].tool_input == READ_B


@pytest.mark.parametrize(
    "new",
    [
        {"file_path": "private/p.md"},
        {"file_path": "/etc/passwd"},
        {"file_path": "../run/host/x"},
        {"file_path": 5},
        {"file_path": ["drafts/b.md", "private/p.md"]},
        {"file_path": "a\0b"},
        {"path": "/etc/passwd"},
        {"file_path": "drafts/b.md", "notebook_path": "/etc/passwd"},
    ],
    ids=str,
)
async def test_an_edit_opens_nothing_that_the_scope_closes(session: Session, new: Any) -> None:
    session.start(ASKS, ask=Person(edit(new)))
    assert isinstance(await session.call("Read", **READ_A), str)
    assert last(session)[:3] == ("deny", "gate", "denied")


@pytest.mark.parametrize("name", ["drafts/a.md", "./drafts/../drafts/a.md", "drafts/link.md"])
async def test_an_edit_isnt_used_on_a_file_that_changed_while_the_person_thought(
    session: Session, name: str
) -> None:
    (session.project / "drafts/link.md").symlink_to("a.md")
    given = {"file_path": name, "old_string": "a", "new_string": "b"}

    def swap(_approval: Approval) -> Any:
        (session.project / "drafts/a.md").write_text("another")
        return edit({**given, "new_string": "c"})

    session.start(ASKS, ask=swap)
    assert "changed while" in str(await session.call("Edit", **READ_A, old_string="a"))
    assert last(session) == ("deny", "person", "changed", f"{S}[0]", True, "edited")


async def test_an_edit_to_another_file_counts_though_the_one_shown_changed(
    session: Session,
) -> None:
    def swap(_approval: Approval) -> Any:
        (session.project / "drafts/a.md").write_text("another")
        return edit(READ_B)

    session.start(ASKS, ask=swap)
    assert await session.call("Read", **READ_A) == READ_B


async def test_a_file_stays_the_one_that_the_first_of_two_questions_was_about(
    session: Session,
) -> None:
    def swap(_approval: Approval) -> Any:
        (session.project / "drafts/a.md").write_text("another")
        return edit(READ_A)

    rules = (rule("interrupt", "drafts/a.md"), rule("interrupt", "drafts/b.md"))
    person = Person(edit(READ_B), swap)
    session.start(*rules, ask=person)
    assert "changed while" in str(await session.call("Read", **READ_A))
    assert len(person.asked) == 2


async def test_a_file_that_changes_between_two_questions_isnt_the_one_of_the_first(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge, edited = Policy.judge, {**READ_A, "limit": 1}

    def swaps(policy: Policy, call: Any, *rest: Any, **more: Any) -> Any:
        if call.tool_input == edited:
            (session.project / "drafts/a.md").write_text("another")
        return judge(policy, call, *rest, **more)

    person = Person(edit(edited), approve())
    session.start(ASKS, ask=person, mode="guided", interrupt_on={"Read": True})
    monkeypatch.setattr(Policy, "judge", swaps)
    assert "changed while" in str(await session.call("Read", **READ_A))
    assert [asked.rule for asked in person.asked] == [f"{S}[0]", "interrupt_on[Read]"]


async def test_what_cant_be_told_from_itself_changed_is_neither_approved_nor_edited(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "print_of", lambda _target: None)
    session.start(ASKS, ask=Person(approve(), edit(READ_B)))
    for use_id, answered in (("t1", "approved"), ("t2", "edited")):
        assert "changed while" in str(await session.call("Read", use_id, **READ_A))
        assert last(session) == ("deny", "person", "changed", f"{S}[0]", True, answered)


async def test_an_edit_that_leaves_nothing_of_the_input_doesnt_run_the_old_one(
    session: Session,
) -> None:
    """The CLI takes an empty input for none, and runs what it asked about."""
    session.start(ASKS, ask=Person(edit({}), edit({})), interrupt_on={"mcp__own__look": True})
    assert "left nothing" in str(await session.call("Read", **READ_A))
    assert last(session) == ("deny", "person", "denied", None, True, "edited")
    assert await session.call("mcp__own__look", "t2") == {}  # as it was


@pytest.mark.parametrize(
    "said",
    [
        Edited(tool_input=5),  # type: ignore[arg-type]
        Edited(tool_input=[("file_path", "drafts/b.md"), 3]),  # type: ignore[arg-type]
        Edited(tool_input={"file_path": Path("drafts/b.md")}),
        Edited(tool_input={"file_path": "drafts/b.md", "limit": float("nan")}),
        Edited(tool_input={("file_path",): 1}),  # type: ignore[dict-item]
    ],
    ids=str,
)
async def test_an_edit_that_the_cli_couldnt_be_told_is_no_answer(
    session: Session, said: Any
) -> None:
    session.start(ASKS, ask=Person(said))
    assert "could not be read" in str(await session.call("Read", **READ_A))
    assert last(session)[:4] == ("deny", "person", "extension-failed", f"{S}[0]")


async def test_an_edit_is_what_was_judged_whatever_becomes_of_the_persons_own(
    session: Session,
) -> None:
    class Sly(dict[str, Any]):
        def get(self, *_: Any) -> Any:
            return "drafts/b.md"

        def __getitem__(self, _name: str) -> Any:
            return "drafts/b.md"

    held = Edited(tool_input=Sly(file_path="private/p.md"))
    session.start(ASKS, ask=Person(held))
    assert isinstance(await session.call("Read", **READ_A), str)


async def test_an_edit_is_asked_about_by_another_rule_and_not_by_the_same(session: Session) -> None:
    person = Person(edit({"file_path": "sources/s.md"}), edit(READ_B), reject("never"))
    session.start(
        rule("interrupt", "drafts/a.md"),
        rule("interrupt", "sources/**"),
        ASKS,
        rule("deny", "x"),
        ask=person,
    )
    assert await session.call("Read", **READ_A) == "A person rejected this call: never"
    assert [asked.rule for asked in person.asked] == [f"{S}[0]", f"{S}[1]", f"{S}[2]"]
    assert person.asked[2].tool_input == READ_B


async def test_an_edit_to_a_search_over_another_place_that_asks_is_asked_about(
    session: Session,
) -> None:
    person = Person(edit({"pattern": "x", "path": "."}), reject("no"))
    session.scope = FileScope(project_dir=str(session.project), searchable_dirs=["."])
    session.start(ASKS, rule("interrupt", "sources/**"), ask=person)
    assert isinstance(await session.call("Grep", pattern="x", path="drafts"), str)
    assert [asked.rule for asked in person.asked] == [f"{S}[0]", f"{S}[1]"]


async def test_what_is_closed_in_part_cant_be_edited(session: Session) -> None:
    tools = OpenTools(whole=frozenset(), closed=("Edit(//x/**)",))
    session.start(ASKS, ask=Person(edit({**READ_B, "content": ""}), edit(READ_B)), tools=tools)
    said = await session.call("Write", **READ_A, content="")
    assert "can't be edited" in str(said)
    assert last(session)[:3] == ("deny", "gate", "denied")
    assert await session.call("Read", "t2", **READ_A) == READ_B


# --- remembering ---------------------------------------------------------------------------------


async def test_a_remembered_rule_asks_no_more_and_the_others_do(session: Session) -> None:
    person = Person(approve(remember=True), reject("no"))
    session.start(ASKS, rule("interrupt", "sources/**"), ask=person)
    assert await session.call("Read", "t1", **READ_A) == READ_A
    assert await session.call("Read", "t2", **READ_B) == READ_B
    assert isinstance(await session.call("Read", "t3", file_path="sources/s.md"), str)
    assert [asked.question_id for asked in person.asked] == ["t1", "t3"]


async def test_a_remembered_tool_is_asked_about_by_the_mode_all_the_same_and_the_other_way_round(
    session: Session,
) -> None:
    person = Person(*[approve(remember=True)] * 2, approve())
    session.start(ask=person, interrupt_on={"Write": True})
    given = {**READ_A, "content": ""}
    for use_id, mode in (
        ("t1", "guided"),
        ("t2", "guided"),
        ("t3", "interactive"),
        ("t4", "interactive"),
    ):
        session.gate.policy.mode.set(mode)
        assert await session.call("Write", use_id, **given) == given
    assert [(each.question_id, each.rule) for each in person.asked] == [
        ("t1", "interrupt_on[Write]"),
        ("t3", "mode[Write]"),
    ]
    session.gate.policy.remembered.discard("interrupt_on[Write]")
    assert await session.call("Write", "t5", **given) == given
    assert person.asked[2].rule == "interrupt_on[Write]"


@pytest.mark.parametrize("ask", ["live", "defer"])
async def test_an_edit_by_the_question_about_a_tool_isnt_asked_about_by_the_mode_again(
    session: Session, ask: str
) -> None:
    new = {**READ_B, "content": "x"}
    live = Person(edit(new))
    session.start(
        ask=live if ask == "live" else "defer", mode="interactive", interrupt_on={"Write": True}
    )
    if ask == "defer":
        await session.hooked("Write", "t0", **READ_A, content="")
        said(session, edit(new))
    assert await session.call("Write", **READ_A, content="") == new


async def test_remembering_opens_nothing_that_is_denied_later_or_elsewhere(
    session: Session,
) -> None:
    session.start(
        ASKS, rule("deny", "sources/**"), ask=Person(approve(remember=True), approve(remember=True))
    )
    await session.call("Read", "t1", **READ_A)
    session.gate.policy.remembered.add(f"{S}[1]")
    assert "forbids it" in str(await session.call("Read", "t2", file_path="sources/s.md"))
    assert isinstance(await session.call("Grep", "t3", pattern="x"), str)


# --- whose question is it --------------------------------------------------------------------------


async def test_two_agents_questions_are_answered_each_for_its_own_call(session: Session) -> None:
    turn = {name: asyncio.Event() for name in ("one", "two")}

    async def ask(approval: Approval) -> Any:
        await turn[str(approval.agent)].wait()
        return approve() if approval.agent == "two" else reject(str(approval.target))

    session.start(ASKS, ask=ask)
    one = asyncio.create_task(session.call("Read", "t1", **READ_A, _agent_type="one"))
    two = asyncio.create_task(session.call("Read", "t2", **READ_B, _agent_type="two"))
    await asyncio.sleep(0.05)
    turn["two"].set()
    assert await two == READ_B
    turn["one"].set()
    assert "drafts/a.md" in str(await one)


async def test_a_question_keeps_the_narrower_scope_of_its_agent(session: Session) -> None:
    session.start(
        ASKS,
        ask=Person(edit({"file_path": "sources/s.md", "content": ""})),
        scopes={"narrow": session.with_writable("drafts")},
    )
    given = {**READ_A, "content": ""}
    assert isinstance(await session.call("Write", **given, _agent_type="narrow"), str)


async def test_with_an_id_that_two_calls_have_nothing_runs(session: Session) -> None:
    person = Person()
    session.start(ASKS, ask=person)
    assert (await session.hooked("Read", "same", **READ_A))["permissionDecision"] == "ask"
    second = await session.hooked("Read", "same", **READ_B, _agent_type="two")
    assert second["permissionDecision"] == "deny"
    for given in (READ_A, READ_B):
        assert isinstance(await session.asked("Read", dict(given), "same"), DENIED)
    assert person.asked == []
    assert [line.verdict for line in session.lines] == ["deny", "deny", "deny"]


async def test_the_same_call_twice_under_one_id_is_asked_about_once(session: Session) -> None:
    person = Person(reject("no"))
    session.start(ASKS, ask=person)
    assert (await session.hooked("Read", "same", **READ_A))["permissionDecision"] == "ask"
    assert (await session.hooked("Read", "same", **READ_A))["permissionDecision"] == "deny"
    for _ in range(2):
        assert isinstance(await session.asked("Read", dict(READ_A), "same"), DENIED)
    assert len(person.asked) == 1


async def test_a_question_that_was_answered_is_answered_no_second_time(session: Session) -> None:
    session.start(ASKS, ask=Person(approve()))
    assert await session.call("Read", **READ_A) == READ_A
    assert isinstance(await session.asked("Read", dict(READ_A)), DENIED)
    assert (await session.hooked("Read", **READ_A))["permissionDecision"] == "deny"


async def test_a_question_without_an_id_may_be_any_and_is_refused(session: Session) -> None:
    person = Person(approve())
    session.start(ASKS, ask=person)
    assert (await session.hooked("Read", None, **READ_A))["permissionDecision"] == "deny"
    assert last(session)[:3] == ("deny", "approval", "internal-error")
    await session.hooked("Read", "t1", **READ_A)
    assert isinstance(await session.asked("Read", dict(READ_A), None), DENIED)
    assert person.asked == []
    assert isinstance(await session.asked("Read", dict(READ_A), "t1"), PermissionResultAllow)


async def test_a_question_about_another_tool_than_the_hooks_is_refused(session: Session) -> None:
    person = Person()
    session.start(ASKS, ask=person)
    await session.hooked("Read", **READ_A)
    assert isinstance(await session.asked("Write", {**READ_A, "content": ""}), DENIED)
    assert person.asked == []


async def test_what_another_hook_left_is_what_the_person_sees(session: Session) -> None:
    person = Person(approve())
    session.start(ASKS, ask=person)
    await session.hooked("Read", **READ_A)
    assert isinstance(await session.asked("Read", dict(READ_B)), PermissionResultAllow)
    assert person.asked[0].tool_input == READ_B
    await session.hooked("Read", "t2", **READ_A)
    assert isinstance(await session.asked("Read", {"file_path": "private/p.md"}, "t2"), DENIED)


async def test_too_many_waiting_calls_are_refused_and_none_is_forgotten(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_gate, "_MAX_WAITING", 2)
    person = Person(reject("no"))
    session.start(ASKS, ask=person)
    answers = [await session.hooked("Read", f"t{number}", **READ_A) for number in range(3)]
    assert [each["permissionDecision"] for each in answers] == ["ask", "ask", "deny"]
    assert isinstance(await session.asked("Read", dict(READ_A), "t0"), DENIED)
    assert len(person.asked) == 1


# --- while a person thinks -------------------------------------------------------------------------


async def test_a_cancelled_question_is_a_refusal_and_is_recorded(session: Session) -> None:
    stopped = asyncio.Event()

    async def forever(_approval: Approval) -> Any:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    session.start(ASKS, ask=Person(forever))
    waiting = asyncio.create_task(session.call("Read", **READ_A))
    while session.gate._waiting or not session.gate._raised:  # until the person is asked
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.wait_for(stopped.wait(), 1)
    assert last(session) == ("deny", "person", "aborted", None, True, None)
    assert isinstance(await session.asked("Read", dict(READ_A)), DENIED)


@pytest.mark.parametrize(
    ("mode", "code"),
    [("plan", "plan-mode"), ("autonomous", "nobody-to-ask"), ("interactive", None)],
)
async def test_a_mode_that_is_switched_while_a_person_thinks_counts(
    session: Session, mode: str, code: str | None
) -> None:
    async def think(_approval: Approval) -> Any:
        session.gate.policy.mode.set(mode)
        return approve()

    session.start(ASKS, ask=Person(think))
    given = {**READ_A, "content": "x"}
    found = await session.call("Write", **given)
    assert (last(session)[2], found == given) == (code, code is None)


async def test_in_a_mode_that_was_switched_to_a_deferred_session_asks_nobody(
    session: Session,
) -> None:
    slow = Own(lambda _target: allow(), timeout=60)
    session.start(ask="defer", authorizers=(slow,))
    given = {**READ_A, "content": "x"}
    assert (await session.hooked("Write", **given))["permissionDecision"] == "ask"
    session.gate.policy.mode.set("interactive")
    result = await session.asked("Write", dict(given))
    assert isinstance(result, DENIED)
    assert "Nobody can be asked" in result.message
    assert last(session)[:4] == ("deny", "mode", "nobody-to-ask", "mode[Write]")


async def test_in_plan_mode_a_waiting_tool_that_says_it_only_reads_goes_on(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    async def hints(servers: Any) -> frozenset[str]:
        asked.append(servers)
        return frozenset({"mcp__own__look"})

    monkeypatch.setattr(policy_gate, "read_only_tools", hints)
    both = {"mcp__own__look": True, "mcp__own__do": True}
    session.start(ask=Person(approve()), interrupt_on=both, servers={"own": {}})
    for tool in both:
        await session.hooked(tool, tool)
    assert asked == []  # it doesn't count yet
    session.gate.policy.mode.set("plan")
    assert isinstance(
        await session.asked("mcp__own__look", {}, "mcp__own__look"), PermissionResultAllow
    )
    assert isinstance(await session.asked("mcp__own__do", {}, "mcp__own__do"), DENIED)
    assert asked == [{"own": {}}]


async def test_a_call_that_fails_while_it_is_judged_is_refused_and_recorded(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.start(ASKS, ask=Person(approve()))
    await session.hooked("Read", **READ_A)

    def fails(*_: Any) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(ScopeJudge, "judge", fails)
    assert isinstance(await session.asked("Read", dict(READ_A)), DENIED)
    assert last(session)[:3] == ("deny", "approval", "internal-error")


# --- authorizers -----------------------------------------------------------------------------------


async def test_quick_authorizers_answer_in_the_hook(session: Session) -> None:
    session.start(
        authorizers=(Own(lambda target: deny("no") if "a.md" in target.requested else allow()),)
    )
    assert "[read:denied]" in str(await session.call("Read", **READ_A))
    assert last(session)[:4] == ("deny", "authorizers", "denied", "own")
    assert await session.call("Read", "t2", **READ_B) == READ_B
    assert last(session)[:3] == ("allow", "authorizers", None)


async def test_a_narrowed_read_runs_narrowed_by_either_way(session: Session) -> None:
    narrow = Own(lambda _target: Narrowed(offset=1, limit=5))
    narrowed = {**READ_A, "offset": 1, "limit": 5}
    session.start(authorizers=(narrow,))
    assert await session.call("Read", **READ_A) == narrowed
    session.start(ASKS, authorizers=(narrow,), ask=Person(approve()))
    assert await session.call("Read", **READ_A) == narrowed


async def test_patient_authorizers_are_asked_outside_the_hook(session: Session) -> None:
    asked: list[str] = []
    patient = ask_user(lambda target: asked.append(target.requested) or "b.md" in target.requested)  # type: ignore[func-returns-value]
    session.start(authorizers=(patient,))
    assert (await session.hooked("Read", "t0", **READ_A))["permissionDecision"] == "ask"
    assert asked == []
    assert "did not approve the read" in str(await session.call("Read", "t1", **READ_A))
    assert await session.call("Read", "t2", **READ_B) == READ_B
    assert asked == ["drafts/a.md", "drafts/b.md"]
    assert last(session)[:2] == ("allow", "authorizers")


async def test_a_yes_comes_before_the_authorizers_and_opens_nothing_that_they_refuse(
    session: Session,
) -> None:
    order: list[str] = []

    async def yes(_approval: Approval) -> Any:
        order.append("person")
        return approve()

    session.start(
        ASKS,
        ask=Person(yes),
        authorizers=(Own(lambda _target: order.append("own") or deny("no")),),  # type: ignore[func-returns-value]
    )
    assert "[read:denied]" in str(await session.call("Read", **READ_A))
    assert order == ["person", "own"]
    assert last(session) == ("deny", "authorizers", "denied", "own", True, "approved")


@pytest.mark.parametrize("asks", [True, False])
async def test_neither_a_question_nor_patience_opens_a_tool_that_isnt_open(
    session: Session, asks: bool
) -> None:
    tools = OpenTools(whole=frozenset(), rules=("Bash(echo:*)",))
    person = Person(edit({"command": "cat /etc/passwd"}))
    session.start(ask=person, interrupt_on={"Bash": asks, "WebSearch": asks}, tools=tools)
    if asks:
        assert "isn't an allowed tool" in str(await session.call("WebSearch", query="x"))
        assert "only as Bash(" in str(await session.call("Bash", "t2", command="id"))
        assert "only as Bash(" in str(await session.call("Bash", "t3", command="echo a"))
        assert len(person.asked) == 1
    else:  # the CLI's own rules decide
        assert await session.call("Bash", command="id") == {"command": "id"}


# --- hooks before the gate ---------------------------------------------------------------------------


def rewrites(new: Any) -> Callable[..., Any]:
    async def hook(_payload: Any, _use_id: Any, _context: Any) -> Any:
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": new}}

    return hook


async def test_the_rules_see_what_a_hook_before_them_wrote(session: Session) -> None:
    person = Person(approve())
    session.start(ASKS, rule("deny", "sources/**"), ask=person, before=[rewrites(READ_A)])
    assert await session.call("Read", file_path="top.md") == READ_A
    assert person.asked[0].tool_input == READ_A
    session.start(
        ASKS, rule("deny", "sources/**"), before=[rewrites({"file_path": "sources/s.md"})]
    )
    assert "forbids it" in str(await session.call("Read", **READ_B))


async def test_authorizers_see_what_a_hook_before_them_wrote_whatever_mapping_it_is(
    session: Session,
) -> None:
    for new in (dict, MappingProxyType):
        written = new({"file_path": "drafts/a.md", "content": "the secret"})
        session.start(authorizers=(content_check("secret"),), before=[rewrites(written)])
        assert "[write:denied]" in str(await session.call("Write", **READ_A, content="fine"))


# --- questions that outlive the host ----------------------------------------------------------------


def said(session: Session, what: Any) -> None:
    (question,) = pending_questions(session.run)
    answer(question.question_id, what, run_dir=session.run)


async def test_a_deferred_question_ends_the_run_and_its_answer_counts_once(
    session: Session,
) -> None:
    session.start(ASKS, ask="defer")
    first = await session.hooked("Read", **READ_A)
    assert first["permissionDecision"] == "deny"
    assert first["continue_"] is False
    assert pending_questions(session.run)[0].question_id in first["stopReason"]
    assert last(session)[:4] == ("defer", "rules", "deferred", f"{S}[0]")
    said(session, approve())
    assert await session.call("Read", "t2", **READ_A) == READ_A
    assert last(session) == ("allow", "person", None, f"{S}[0]", True, "approved")
    assert "ends until" in str(await session.call("Read", "t3", **READ_A))


async def test_a_deferred_rejection_is_told(session: Session) -> None:
    session.start(ASKS, ask="defer")
    await session.hooked("Read", **READ_A)
    said(session, reject("private"))
    assert await session.call("Read", "t2", **READ_A) == "A person rejected this call: private"
    assert last(session) == ("deny", "person", "rejected", f"{S}[0]", True, "rejected")


async def test_a_deferred_yes_is_for_the_file_as_it_was(session: Session) -> None:
    session.start(ASKS, ask="defer")
    await session.hooked("Read", **READ_A)
    said(session, approve())
    (session.project / "drafts/a.md").write_text("another")
    assert "changed while" in str(await session.call("Read", "t2", **READ_A))
    assert last(session)[:3] == ("deny", "person", "changed")


@pytest.mark.parametrize(("new", "runs"), [(READ_A, False), (READ_B, True)], ids=str)
async def test_a_deferred_edit_is_for_the_file_as_it_was(
    session: Session, new: Any, runs: bool
) -> None:
    session.start(ASKS, ask="defer")
    await session.hooked("Read", **READ_A)
    said(session, edit({**new, "limit": 1}))
    (session.project / "drafts/a.md").write_text("another")
    found = await session.call("Read", "t2", **READ_A)
    assert (found == {**new, "limit": 1}) is runs
    if not runs:
        assert last(session) == ("deny", "person", "changed", f"{S}[0]", True, "edited")


async def test_a_deferred_edit_that_leaves_nothing_is_refused(session: Session) -> None:
    session.start(ASKS, ask="defer", interrupt_on={"mcp__own__look": True})
    await session.hooked("Read", **READ_A)
    said(session, edit({}))
    assert "left nothing" in str(await session.call("Read", "t2", **READ_A))
    assert last(session) == ("deny", "person", "denied", None, True, "edited")
    await session.hooked("mcp__own__look", "t3")
    said(session, edit({}))
    assert await session.call("mcp__own__look", "t4") == {}  # as it was


async def test_a_deferred_yes_is_for_the_folder_that_a_path_was_relative_to(
    session: Session,
) -> None:
    session.start(rule("interrupt", "*.md"), ask="defer")
    (session.project / "sources/a.md").write_text("another")
    await session.hooked("Read", file_path="a.md", _cwd=str(session.project / "drafts"))
    said(session, approve())
    other = await session.call(
        "Read", "t2", file_path="a.md", _cwd=str(session.project / "sources")
    )
    assert isinstance(other, str)


async def test_a_deferred_yes_to_a_command_is_for_the_folder_that_it_runs_in(
    session: Session,
) -> None:
    session.start(ask="defer", interrupt_on={"Bash": True}, commands=frozenset({"Bash"}))
    there, here = str(session.project / "drafts"), str(session.project)
    await session.hooked("Bash", command="rm -rf build", _cwd=there)
    assert pending_questions(session.run)[0].cwd == there
    said(session, approve())
    elsewhere = await session.call("Bash", "t2", command="rm -rf build", _cwd=here)
    assert "ends until" in str(elsewhere)
    found = await session.call("Bash", "t3", command="rm -rf build", _cwd=there)
    assert found == {"command": "rm -rf build"}


async def test_a_deferred_answer_is_for_the_agent_that_was_asked_about(session: Session) -> None:
    session.start(ASKS, ask="defer")
    await session.hooked("Read", **READ_A, _agent_type="one")
    said(session, approve())
    assert "ends until" in str(await session.call("Read", "t2", **READ_A, _agent_type="two"))
    assert await session.call("Read", "t3", **READ_A, _agent_type="one") == READ_A


@pytest.mark.parametrize(
    ("new", "runs"),
    [
        (READ_B, True),  # the same rule was answered
        ({"file_path": "private/p.md"}, False),  # the scope
        ({"file_path": "sources/s.md"}, False),  # another rule asks
        ({"file_path": 5}, False),
        ({"file_path": "README.md"}, False),  # another denies
    ],
    ids=str,
)
async def test_a_deferred_edit_is_judged_from_the_start(
    session: Session, new: Any, runs: bool
) -> None:
    rules = (ASKS, rule("interrupt", "sources/**"), rule("deny", "README.md"))
    session.start(*rules, ask="defer")
    await session.hooked("Read", **READ_A)
    said(session, edit(new))
    assert (await session.call("Read", "t2", **READ_A) == new) is runs
    assert last(session)[5] == "edited"


@pytest.mark.parametrize("what", [approve(), edit(READ_B)])
@pytest.mark.parametrize("patient", [True, False])
async def test_a_deferred_yes_goes_on_to_the_authorizers(
    session: Session, what: Any, patient: bool
) -> None:
    seen: list[str] = []
    own = Own(
        lambda target: seen.append(target.requested) or allow(),  # type: ignore[func-returns-value]
        **({"timeout": 60} if patient else {}),
    )
    session.start(ASKS, ask="defer", authorizers=(own,))
    wanted = READ_A if what == approve() else READ_B
    await session.hooked("Read", **READ_A)
    said(session, what)
    assert await session.call("Read", "t2", **READ_A) == wanted
    assert seen == [wanted["file_path"]]
    refused = Own(lambda _target: deny("no"), timeout=60 if patient else 1)
    session.start(ASKS, ask="defer", authorizers=(refused,))
    await session.hooked("Read", "t3", **READ_A)
    said(session, what)
    assert "[read:denied]" in str(await session.call("Read", "t4", **READ_A))


async def test_a_deferred_yes_counts_for_no_input_that_another_hook_left(session: Session) -> None:
    own = Own(lambda _target: allow(), timeout=60)
    session.start(ASKS, ask="defer", authorizers=(own,))
    await session.hooked("Read", **READ_A)
    said(session, approve())
    assert (await session.hooked("Read", "t2", **READ_A))["permissionDecision"] == "ask"
    result = await session.asked("Read", dict(READ_B), "t2")
    assert isinstance(result, DENIED)
    assert "Nobody can be asked" in result.message


async def test_what_cant_be_kept_is_refused_and_leaves_nothing(session: Session) -> None:
    given = {"file_path": "drafts/a.md", "more": {1, 2}}
    session.start(ASKS, ask="defer", before=[rewrites(given)])
    refused = await session.hooked("Read", **READ_A)
    assert refused["permissionDecision"] == "deny"
    assert "continue_" not in refused
    assert last(session)[:3] == ("deny", "gate", "extension-failed")
    assert pending_questions(session.run) == ()


async def test_a_deferred_session_doesnt_ask_for_a_tool_that_isnt_open(session: Session) -> None:
    session.start(ask="defer", interrupt_on={"WebSearch": True})
    refused = await session.hooked("WebSearch", query="x")
    assert "isn't an allowed tool" in refused["permissionDecisionReason"]
    assert pending_questions(session.run) == ()


async def test_a_person_sees_the_folder_there_and_later(session: Session) -> None:
    there = str(session.project / "drafts")
    person = Person(approve())
    session.start(ask=person, interrupt_on={"Bash": True})
    await session.call("Bash", command="make", _cwd=there)
    assert person.asked[0].cwd == there
    session.start(ASKS, ask="defer")
    await session.hooked("Read", file_path="a.md", _cwd=there)
    assert pending_questions(session.run)[0].cwd == there


async def test_a_deferred_yes_to_an_absolute_path_holds_in_whatever_folder(
    session: Session,
) -> None:
    session.start(ASKS, ask="defer")
    given = {"file_path": str(session.project / "drafts/a.md")}
    await session.hooked("Read", **given, _cwd=str(session.project / "drafts"))
    said(session, approve())
    assert await session.call("Read", "t2", **given) == given


# --- the trail of what the CLI asks about by itself ------------------------------------------------


def lines(session: Session) -> list[tuple[Any, ...]]:
    return [(line.tool_use_id, line.verdict, line.lock, line.code) for line in session.lines]


async def test_a_refusal_of_what_the_cli_asks_about_is_recorded_and_no_line_says_allow(
    session: Session,
) -> None:
    session.start(tools=OpenTools(whole=frozenset({"WebFetch"}), rules=("Bash(echo:*)",)))
    for use_id, tool, given in (
        ("t1", "Bash", {"command": "id"}),
        ("t2", "WebSearch", {"query": "x"}),
    ):
        assert await session.call(tool, use_id, **given) == given
        assert isinstance(await session.asked(tool, given, use_id), DENIED)
    assert lines(session) == [
        ("t1", "ask", "gate", None),
        ("t1", "deny", "approval", "not-allowed"),
        ("t2", "ask", "gate", None),
        ("t2", "deny", "approval", "not-allowed"),
    ]


async def test_what_the_cli_runs_unasked_has_one_line(session: Session) -> None:
    session.start(tools=OpenTools(whole=frozenset({"WebFetch"}), rules=("Bash(echo:*)",)))
    for tool, given in (
        ("Bash", {"command": "echo a"}),
        ("WebFetch", {"url": "x"}),
        ("Read", READ_A),
        ("mcp__own__look", {}),
    ):
        await session.call(tool, tool, **given)
    await session.asked("mcp__own__look", {}, "mcp__own__look")
    assert [line[:2] for line in lines(session)] == [
        (tool, "allow") for tool in ("Bash", "WebFetch", "Read", "mcp__own__look")
    ]


async def test_a_file_that_the_scope_refuses_when_the_cli_asks_is_recorded_with_its_code(
    session: Session,
) -> None:
    session.start()
    await session.call("Read", **READ_A)
    assert isinstance(await session.asked("Read", {"file_path": "private/p.md"}), DENIED)
    assert lines(session)[1] == ("t1", "deny", "approval", "denied-path")


async def test_a_question_that_cant_be_judged_or_recorded_is_refused(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.start()

    def fails(*_: Any, **__: Any) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(approval, "judge_whole", fails)
    assert isinstance(await session.asked("Read", dict(READ_A)), DENIED)
    assert lines(session) == [("t1", "deny", "approval", "internal-error")]
    session.gate.note = fails
    assert isinstance(await session.asked("WebSearch", {}), DENIED)


HOST = PermissionResultAllow


@pytest.mark.parametrize(
    ("tool", "given", "host", "wanted"),
    [
        ("Bash", {"command": "id"}, lambda: HOST(), [("ask", None), ("allow", None)]),
        ("Bash", {"command": "id"}, lambda: DENIED("no"), [("ask", None), ("deny", "denied")]),
        ("Bash", {"command": "id"}, lambda: 5, [("ask", None), ("deny", "extension-failed")]),
        ("Bash", {"command": "id"}, lambda: 1 / 0, [("ask", None), ("deny", "extension-failed")]),
        ("Bash", {"command": "id"}, None, [("ask", None), ("deny", "nobody-to-ask")]),
        ("Bash", {"command": "echo a"}, None, [("allow", None), ("deny", "nobody-to-ask")]),
        ("WebFetch", {"url": "x"}, None, [("allow", None), ("deny", "nobody-to-ask")]),
        ("Read", READ_A, lambda: DENIED("no"), [("ask", None), ("deny", "denied")]),
        ("Read", READ_A, None, [("allow", None)]),
        ("Grep", {"pattern": "x", "path": "drafts"}, lambda: DENIED("no"), [("allow", None)]),
        ("mcp__own__look", {}, lambda: DENIED("no"), [("ask", None), ("deny", "denied")]),
        ("mcp__mail__send", {}, lambda: HOST(), [("allow", None)]),
        (
            "Read",
            READ_A,
            lambda: HOST(updated_input={"file_path": "private/p.md"}),
            [("ask", None), ("deny", "denied")],
        ),
        (
            "Read",
            READ_A,
            lambda: HOST(updated_input=READ_B),
            [("ask", None), ("allow", None)],
        ),
    ],
)
async def test_a_hosts_answer_is_in_the_trail(
    session: Session, tool: str, given: Any, host: Any, wanted: Any
) -> None:
    async def asked(*_: Any) -> Any:
        return host()

    session.start(tools=OpenTools(whole=frozenset({"Bash", "WebFetch"})))
    session.can_use_tool = approve_with_host(
        session.scope,
        host and asked,
        cwd=str(session.project),
        unasked={"Grep"},
        allowed=["WebFetch", "Bash(echo:*)", "mcp__mail"],
        policy=session.gate,
    )
    assert await session.call(tool, **given) == given
    await session.asked(tool, dict(given))
    assert [(line.verdict, line.code) for line in session.lines] == wanted


async def test_a_host_that_is_cut_short_has_its_line(session: Session) -> None:
    async def forever(*_: Any) -> Any:
        await asyncio.sleep(60)

    session.start()
    where = str(session.project)
    session.can_use_tool = approve_with_host(session.scope, forever, cwd=where, policy=session.gate)
    waiting = asyncio.create_task(session.asked("Bash", {"command": "id"}))
    await asyncio.sleep(0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert lines(session) == [("t1", "deny", "host", "aborted")]


async def test_an_input_of_the_hosts_that_cant_be_judged_is_refused(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def host(*_: Any) -> Any:
        return HOST(updated_input=READ_B)

    def fails(*_: Any) -> Any:
        raise OSError("the disk is gone")

    session.start()
    where = str(session.project)
    session.can_use_tool = approve_with_host(session.scope, host, cwd=where, policy=session.gate)
    monkeypatch.setattr(ScopeJudge, "judge", fails)
    assert isinstance(await session.asked("Read", dict(READ_A)), DENIED)
    assert lines(session) == [("t1", "deny", "approval", "internal-error")]


# --- links ------------------------------------------------------------------------------------------


@pytest.fixture
def link(session: Session) -> Iterator[Path]:
    path = session.project / "drafts/link.md"
    path.symlink_to("a.md")
    yield path


async def test_a_link_that_leads_elsewhere_while_a_person_thinks_is_a_change(
    session: Session, link: Path
) -> None:
    async def swap(_approval: Approval) -> Any:
        link.unlink()
        link.symlink_to("b.md")
        return approve()

    session.start(ASKS, ask=Person(swap))
    assert "changed while" in str(await session.call("Read", file_path="drafts/link.md"))


async def test_what_a_link_leads_to_is_part_of_what_was_approved(
    session: Session, link: Path
) -> None:
    async def swap(_approval: Approval) -> Any:
        (session.project / "drafts/a.md").write_text("another")
        return approve()

    session.start(ASKS, ask=Person(swap))
    assert "changed while" in str(await session.call("Read", file_path="drafts/link.md"))
    assert link.is_symlink()


async def test_a_folder_swapped_for_a_link_is_a_change(session: Session) -> None:
    async def swap(_approval: Approval) -> Any:
        (session.project / "drafts").rename(session.project / "old")
        (session.project / "drafts").symlink_to("old")
        return approve()

    session.start(ASKS, ask=Person(swap))
    assert isinstance(await session.call("Read", **READ_A), str)


async def test_a_link_that_turns_in_a_circle_is_approved_by_nobody(session: Session) -> None:
    (session.project / "drafts/loop").symlink_to("loop")
    person = Person(approve())
    session.start(ASKS, ask=person)
    assert isinstance(await session.call("Read", file_path="drafts/loop"), str)


# --- the rest ---------------------------------------------------------------------------------------


async def test_without_a_trail_the_answers_are_the_same(session: Session) -> None:
    session.start(ASKS, ask=Person(approve())).note = None
    assert await session.call("Read", **READ_A) == READ_A
    assert session.lines == []


async def test_the_target_of_a_question_is_shown_literally(session: Session) -> None:
    person = Person(approve(), approve())
    session.start(ASKS, ask=person, interrupt_on={"mcp__mail__send": True})
    await session.call("Read", file_path="drafts/\u202egnp.md")
    assert "\u202e" not in str(person.asked[0].target)
    assert person.asked[0].tool_input == {"file_path": "drafts/\u202egnp.md"}
    await session.call("mcp__mail__send", "t2", to="x")
    assert person.asked[1].target is None


def test_the_scope_judge_takes_worktrees_for_no_copy_where_they_are_allowed(
    session: Session,
) -> None:
    cwd = str(session.project)
    for name in ("EnterWorktree", "Agent"):
        given = {"isolation": "worktree", "prompt": "x"}
        assert ScopeJudge().judge(session.scope, name, given, cwd)[0]
        assert ScopeJudge(worktrees=True).judge(session.scope, name, given, cwd) == Found(None)
    cron = {"durable": True}
    assert ScopeJudge(worktrees=True).judge(session.scope, "CronCreate", cron, cwd)[0]
    reason, named, _ = ScopeJudge().judge(session.scope, "Read", READ_A, cwd)
    assert (reason, [path.text for path in named]) == (None, ["drafts/a.md"])


def test_a_skill_is_judged_by_the_sessions_commands(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(judging, "refused_skill", lambda *given: seen.append(given) or "not here")  # type: ignore[func-returns-value]
    commands: Any = object()
    skill = {"skill": "x"}
    found = ScopeJudge(commands=commands).judge(session.scope, "Skill", skill, "/")
    assert found == Found("not here", code="denied")
    assert seen[0][:4] == (session.scope, commands, skill, "/")
    assert ScopeJudge().judge(session.scope, "Skill", skill, "/") == Found(None)


async def test_a_refused_skill_or_agent_has_a_code_of_its_own_on_the_trail(
    session: Session,
) -> None:
    session.start()
    for tool, given in {
        "Skill": {"skill": "x", "args": "@private"},
        "Agent": {"isolation": "worktree", "prompt": "x"},
        "Read": {"file_path": "private"},
    }.items():
        assert (await session.hooked(tool, **given))["permissionDecision"] == "deny"
    assert [line.code for line in session.lines] == ["denied-path", "denied", "denied-path"]
