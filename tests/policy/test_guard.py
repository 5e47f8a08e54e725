"""The guard: what the gate checks, for a tool that opens files itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy import FilePermission, allow, ask_user, content_check, deny, deny_paths
from agent_kit.policy.approval import Approval, Unasked, approve, edit, reject
from agent_kit.policy.authorizers import rate_limit
from agent_kit.policy.guard import Guard, RefusedError, guard
from agent_kit.policy.guard_scope import judged_scope
from agent_kit.policy.judged import Judged
from agent_kit.policy.modes import SessionMode
from agent_kit.policy.outcome import Narrowed
from agent_kit.policy.policy import Call, Policy
from agent_kit.policy.rule_sets import compile_rule_sets
from agent_kit.policy.running import RUNNING, Running
from agent_kit.scope import ConfigError, FileScope, ToolOnlyDir
from agent_kit.testing import tree
from tests.people import Person, rule

FILES = (
    "w/notes/a.md=a",
    "w/notes/deep/b.md=b",
    "w/notes/deep/er/c.md=c",
    "w/drafts/d.md=d",
    "w/private/p.md=p",
    "w/base/t/one.md=one",
    "w/base/t/two.md=two",
    "w/base/secret/key.pem=key",
    "w/originals/o.md=o",
    "out/x.md=x",
)
OPERATIONS = ("read", "list", "search", "write", "delete")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path.resolve(), FILES)


@pytest.fixture
def scope(root: Path) -> FileScope:
    return scope_of(root)


def scope_of(root: Path, **fields: Any) -> FileScope:
    given: dict[str, Any] = {
        "project_dir": str(root / "w"),
        "writable_dirs": ["notes", "drafts"],
        "searchable_dirs": ["notes", "drafts", "originals"],
        "read_only_dirs": ["originals"],
        "denied_paths": ["private", "*.pem"],
        "tool_only_dirs": [ToolOnlyDir(dir="base", instead="its tools")],
        "home": str(root / "home"),
    }
    return FileScope(**{**given, **fields})


class Noting:
    """An authorizer that keeps its targets, and answers as it is told."""

    id = "noting"

    def __init__(self, answer: Any = None) -> None:
        self.answer = allow() if answer is None else answer
        self.seen: list[Any] = []

    def authorize(self, target: Any, _context: Any) -> Any:
        self.seen.append(target)
        return self.answer


def session(
    scope: FileScope,
    *,
    session_rules: tuple[FilePermission, ...] = (),
    rules: tuple[FilePermission, ...] = (),
    subagents: Mapping[str, tuple[FilePermission, ...]] = {},
    scopes: Mapping[str, FileScope] = {},
    mode: str = "guided",
    agents: Mapping[str, str | None] = {},
    **fields: Any,
) -> Guard:
    """A session's guard. ``agents`` are the calls that the gate has seen: use id to agent."""
    compiled = None
    if session_rules or rules or subagents:
        compiled = compile_rule_sets(
            project_dir=scope.project_dir,
            home=scope.home,
            session=session_rules,
            agent=rules,
            subagents=subagents,
        )
    policy = Policy(
        scope=scope,
        scopes=scopes,
        rules=compiled,
        mode=SessionMode(mode),
        session_id="s",
        authorizers=fields.pop("authorizers", ()),
    )
    calls = {
        use_id: Call(
            tool="mcp__mail__attach",
            tool_input={"file": "as the gate saw it"},
            cwd=scope.project_dir,
            agent=agent,
            tool_use_id=use_id,
        )
        for use_id, agent in agents.items()
    }
    return Guard(policy=policy, caller=calls.get, **fields)


@contextmanager
def running(use_id: str, **arguments: Any) -> Iterator[Running]:
    call = Running(use_id=use_id, arguments=arguments)
    token = RUNNING.set(call)
    try:
        yield call
    finally:
        RUNNING.reset(token)


# --- the scope -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "path", "code"),
    [
        ("read", "notes/a.md", None),
        ("list", "notes", None),
        ("search", "notes", None),
        ("write", "notes/new.md", None),
        ("delete", "notes/deep", None),
        ("read", "originals/o.md", None),
        ("write", "originals/o.md", "read-only"),
        ("delete", "originals/o.md", "read-only"),
        ("read", "private/p.md", "denied-path"),
        ("read", "../out/x.md", "outside-readable"),
        ("list", "../out", "outside-readable"),
        ("search", "../out", "outside-searchable"),
        ("write", "../out/x.md", "outside-writable"),
        ("delete", "../out", "outside-writable"),
        ("read", "base/t/one.md", "tools-only"),
        ("write", "notes/CLAUDE.md", "control-file"),
        ("delete", "notes/.claude", "control-file"),
        ("read", "notes/\0", "malformed"),
        ("read", "~/.ssh/id", "outside-readable"),
    ],
)
async def test_a_path_is_judged_by_the_scope(
    scope: FileScope, operation: str, path: str, code: str | None
) -> None:
    refused = await guard(scope).check(operation, path)
    assert (refused and (refused.code, refused.part)) == (code and (code, "scope"))
    at_once = guard(scope).check_scope_and_rules(operation, path)
    assert (at_once and at_once.code) == code


@pytest.mark.parametrize("path", [None, 3, b"notes/a.md", ["notes/a.md"], {"a": 1}])
async def test_what_is_no_text_is_refused(scope: FileScope, path: Any) -> None:
    made = session(scope, session_rules=(rule("deny", "x"),), agents={"u": None})
    with running("u") as call:
        call.agreed.add(("rule", "/", 2))
        refused = await made.check("read", path)
    assert refused is not None
    assert refused.code == "malformed"


@pytest.mark.parametrize("operation", ["open", "", None, [], "READ"])
async def test_another_operation_is_an_error_of_the_author(
    scope: FileScope, operation: Any
) -> None:
    with pytest.raises(ValueError, match="is no operation: choose from 'read', 'list', 'search',"):
        await guard(scope).check(operation, "notes/a.md")


async def test_require_gives_the_real_path_and_raises_the_sentence(
    scope: FileScope, root: Path
) -> None:
    (root / "w/notes/link.md").symlink_to(root / "w/drafts/d.md")
    own = guard(scope)
    assert await own.require("read", "notes/link.md") == str(root / "w/drafts/d.md")
    assert await own.require("write", Path("drafts/new.md")) == str(root / "w/drafts/new.md")
    with pytest.raises(RefusedError, match='"private/p.md" is off limits') as caught:
        await own.require("read", "private/p.md")
    assert caught.value.refused.code == "denied-path"
    assert caught.value.refused.path == "private/p.md"


async def test_a_link_out_is_refused(scope: FileScope, root: Path) -> None:
    (root / "w/notes/link.md").symlink_to(root / "out/x.md")
    for operation in ("read", "write", "delete"):
        assert await guard(scope).check(operation, "notes/link.md") is not None


@pytest.mark.parametrize("operation", ["list", "search"])
async def test_no_sentence_names_the_guards_own_tool(scope: FileScope, operation: str) -> None:
    refused = await guard(scope).check(operation, "../out")
    assert str(refused).startswith("This tool ")
    assert "guard" not in str(refused)


async def test_a_path_may_have_a_name_that_the_model_knows(scope: FileScope) -> None:
    own = guard(scope, rules=[rule("deny", "notes/a.md")])
    refused = await own.check("read", "private/p.md", label="note 7")
    assert (str(refused), refused and refused.path) == ('"note 7" is off limits.', "note 7")
    ruled = await own.check("read", "notes/a.md", label="note 8")
    assert '"note 8"' in str(ruled)
    assert "a.md" not in str(ruled)


# --- a folder of the tool's own --------------------------------------------------------------


async def test_a_tools_own_folder_is_open_to_it_and_what_is_closed_there_stays_closed(
    scope: FileScope, root: Path
) -> None:
    own = guard(scope, rules=[rule("deny", "base/t/two.md")]).inside(root / "w/base")
    assert await own.check("read", root / "w/base/t/one.md") is None
    assert await own.check("list", root / "w/base", filtered=True) is None
    for path in ("base/t/two.md", "base/secret/key.pem", "private/p.md"):
        assert await own.check("read", path) is not None
    refused = await own.check("write", root / "w/base/t/one.md")
    assert refused is not None
    assert refused.code == "outside-writable"


@pytest.mark.parametrize("readable", [None, ["notes"]])
async def test_a_writable_one_may_be_written_even_where_it_is_read_only_for_the_file_tools(
    root: Path, readable: list[str] | None
) -> None:
    scope = scope_of(root, readable_dirs=readable, read_only_dirs=["originals", "notes/deep"])
    own = guard(scope).inside(root / "w/originals", writable=True)
    assert await own.check("write", "originals/new.md") is None
    assert await own.check("read", "originals/o.md") is None
    assert await own.check("write", "notes/deep/b.md") is not None
    assert await own.check("write", "originals/CLAUDE.md") is not None
    assert await guard(scope).check("write", "originals/new.md") is not None


def test_a_tools_own_folder_is_an_absolute_path(scope: FileScope) -> None:
    with pytest.raises(ValueError, match="absolute path, not 'base'"):
        guard(scope).inside("base")


# --- rules -----------------------------------------------------------------------------------


async def test_a_rule_denies_and_the_first_that_matches_wins(scope: FileScope) -> None:
    own = guard(
        scope,
        rules=[
            rule("allow", "notes/deep/**", operations=("write",)),
            rule("deny", "notes/**", operations=("write",)),
        ],
    )
    assert await own.check("write", "notes/deep/b.md") is None
    assert await own.check("read", "notes/a.md") is None
    refused = await own.check("write", "notes/a.md")
    assert refused is not None
    assert (refused.part, refused.code, refused.rule) == ("rules", "denied", "rules[1]")
    assert own.check_scope_and_rules("write", "notes/a.md") == refused


@pytest.mark.parametrize("operation", ["list", "search"])
async def test_a_folder_with_something_denied_is_refused_unless_the_tool_leaves_it_out(
    scope: FileScope, operation: str
) -> None:
    own = guard(scope, rules=[rule("deny", "notes/deep")], authorizers=[deny_paths(["notes/a.md"])])
    assert await own.check(operation, "notes") is not None
    assert await own.check(operation, "notes", filtered=True) is None
    assert await own.check(operation, "notes/deep", filtered=True) is not None
    assert [own.leaves_out(f"notes/{name}") for name in ("deep", "deep/b.md", "a.md", "z.md")] == [
        True,
        True,
        True,
        False,
    ]


async def test_a_filtered_search_is_still_the_authorizers_business(scope: FileScope) -> None:
    seen = Noting()
    own = guard(scope, authorizers=[seen, deny_paths(["notes/a.md"])])
    assert await own.check("search", "notes", filtered=True) is None
    assert [str(target.action) for target in seen.seen] == ["search"]
    refusing = guard(scope, authorizers=[Noting(deny("no"))])
    assert await refusing.check("list", "notes", filtered=True) is not None


@pytest.mark.parametrize(
    "closed",
    ["notes/deep/er/c.md", "notes/deep/er", "notes/deep/er/*.md", "**/c.md"],
)
async def test_a_folder_is_deleted_whole_or_not_at_all(scope: FileScope, closed: str) -> None:
    own = guard(scope, rules=[rule("deny", closed, operations=("write",))])
    refused = await own.check("delete", "notes/deep")
    assert refused is not None
    assert (refused.part, refused.code) == ("rules", "denied")
    assert "Nothing was deleted" in str(refused)
    assert await own.check("delete", "notes/a.md") is None
    assert await own.check("write", "notes/deep/b.md") is None


async def test_a_folder_that_holds_something_that_the_scope_closes_is_not_deleted(
    root: Path,
) -> None:
    own = guard(scope_of(root, denied_paths=["notes/deep/er"]))
    assert await own.check("delete", "notes/deep/b.md") is None
    refused = await own.check("delete", "notes/deep")
    assert refused is not None
    assert refused.part == "rules"


async def test_a_denied_path_itself_is_not_deleted(scope: FileScope) -> None:
    own = guard(scope, rules=[rule("deny", "notes/a.md")])
    refused = await own.check("delete", "notes/a.md")
    assert refused is not None
    assert "can't be deleted" in str(refused)
    assert refused.rule == "rules[0]"


# --- a person --------------------------------------------------------------------------------


async def test_a_rule_that_interrupts_asks_and_the_person_sees_the_call(scope: FileScope) -> None:
    person = Person(approve())
    own = guard(scope, rules=[rule("interrupt", "notes/**")], ask=person)
    assert await own.check("write", "notes/a.md", tool_input={"text": "new"}) is None
    (asked,) = person.asked
    assert (asked.tool_input, asked.target) == ({"text": "new"}, "notes/a.md")
    assert asked.rule == "rules[0]"
    assert "only when a person agrees" in asked.reason


@pytest.mark.parametrize(
    ("answer", "code", "words"),
    [
        (reject("it is finished"), "rejected", "it is finished"),
        (edit({"path": "notes/b.md"}), "edited-too-late", "changed"),
        (True, "extension-failed", "could not be read"),
        (None, "extension-failed", "could not be read"),
        (RuntimeError("secret cause"), "extension-failed", "could not be read"),
    ],
)
async def test_what_is_no_yes_refuses(scope: FileScope, answer: Any, code: str, words: str) -> None:
    own = guard(scope, rules=[rule("interrupt", "notes/**")], ask=Person(answer))
    refused = await own.check("write", "notes/a.md")
    assert refused is not None
    assert (refused.part, refused.code, refused.rule) == ("person", code, "rules[0]")
    assert words in str(refused)
    assert "secret cause" not in str(refused)


async def test_without_anybody_to_ask_it_is_refused(scope: FileScope) -> None:
    own = guard(scope, rules=[rule("interrupt", "notes/**")])
    refused = await own.check("read", "notes/a.md")
    assert refused is not None
    assert refused.code == "nobody-to-ask"
    person = Person()
    alone = guard(scope, rules=[rule("interrupt", "notes/**")], ask=person, mode="autonomous")
    refused = await alone.check("read", "notes/a.md")
    assert refused is not None
    assert refused.code == "nobody-to-ask"
    assert person.asked == []


async def test_where_nobody_could_be_asked_no_person_is_said_to_have_rejected_it(
    scope: FileScope,
) -> None:
    nobody = Person(Unasked(message="Nobody could be asked: there is no terminal."))
    own = guard(scope, rules=[rule("interrupt", "notes/**")], ask=nobody)
    refused = await own.check("read", "notes/a.md")
    assert refused is not None
    assert refused.code == "nobody-to-ask"
    assert str(refused) == (
        '"notes/a.md" is read only when a person agrees. Nobody could be asked: there is no terminal.'
        " So it was refused. Do without."
    )


async def test_the_part_that_waits_for_nobody_says_that_somebody_must_be_asked(
    scope: FileScope,
) -> None:
    own = guard(scope, rules=[rule("interrupt", "notes/**")], ask=Person())
    refused = own.check_scope_and_rules("read", "notes/a.md")
    assert refused is not None
    assert refused.code == "interrupt"
    assert own.leaves_out("notes/a.md")
    assert not own.leaves_out("notes/a.md", asks=False)


async def test_a_file_that_changes_while_the_person_thinks_is_refused(
    scope: FileScope, root: Path
) -> None:
    def meanwhile(_approval: Approval) -> Any:
        (root / "w/notes/a.md").write_text("something else altogether")
        return approve()

    own = guard(scope, rules=[rule("interrupt", "notes/**")], ask=Person(meanwhile))
    refused = await own.check("read", "notes/a.md")
    assert refused is not None
    assert (refused.part, refused.code) == ("person", "changed")


async def test_a_link_that_is_turned_while_the_person_thinks_is_refused(
    scope: FileScope, root: Path
) -> None:
    link = root / "w/notes/link"
    link.symlink_to("deep")

    def meanwhile(_approval: Approval) -> Any:
        link.unlink()
        link.symlink_to("../drafts")
        return approve()

    own = guard(scope, rules=[rule("interrupt", "notes/link")], ask=Person(meanwhile))
    refused = await own.check("list", "notes/link")
    assert refused is not None
    assert refused.code == "changed"


async def test_a_mode_that_is_switched_while_the_person_thinks_counts(scope: FileScope) -> None:
    def meanwhile(_approval: Approval) -> Any:
        own.policy.mode.set("plan")
        return approve()

    own = guard(scope, rules=[rule("interrupt", "notes/**")], ask=Person(meanwhile))
    refused = await own.check("write", "notes/a.md")
    assert refused is not None
    assert (refused.part, refused.code) == ("mode", "plan-mode")


@pytest.mark.parametrize(("operation", "code"), [("write", "plan-mode"), ("delete", "plan-mode")])
async def test_in_plan_mode_nothing_is_changed(scope: FileScope, operation: str, code: str) -> None:
    own = guard(scope, mode="plan")
    refused = await own.check(operation, "notes/a.md")
    assert refused is not None
    assert refused.code == code
    assert await own.check("read", "notes/a.md") is None


async def test_remembering_silences_the_rule_and_no_other(scope: FileScope) -> None:
    person = Person(approve(remember=True), reject())
    own = guard(
        scope, rules=[rule("interrupt", "notes/**"), rule("interrupt", "drafts/**")], ask=person
    )
    assert await own.check("write", "notes/a.md") is None
    assert await own.check("read", "notes/deep/b.md") is None
    assert await own.check("read", "drafts/d.md") is not None
    assert len(person.asked) == 2


async def test_two_lists_that_ask_ask_twice(scope: FileScope) -> None:
    person = Person(approve(), reject())
    asks = (rule("interrupt", "notes/**"),)
    own = session(scope, session_rules=asks, rules=asks, ask=person)
    assert await own.check("read", "notes/a.md") is not None
    assert [asked.rule for asked in person.asked] == [
        "SessionConfig.permissions[0]",
        "AgentSpec.permissions[0]",
    ]


async def test_deleting_a_folder_asks_once_for_all_that_is_in_it(scope: FileScope) -> None:
    person = Person(approve(remember=True), approve(), reject())
    own = guard(scope, rules=[rule("interrupt", "notes/deep/er/c.md")], ask=person)
    assert await own.check("delete", "notes/deep") is None
    assert await own.check("delete", "notes/deep/er/c.md") is None
    assert await own.check("delete", "notes/deep") is not None  # nothing stands for the whole
    assert [asked.rule for asked in person.asked] == [None, "rules[0]", None]
    assert "with all that is in it" in person.asked[0].reason


async def test_a_cancelled_question_is_a_refusal_on_the_trail(scope: FileScope) -> None:
    notes: list[Judged] = []
    waiting = asyncio.Event()

    async def never(_approval: Approval) -> Any:
        waiting.set()
        await asyncio.Event().wait()

    own = session(scope, rules=(rule("interrupt", "notes/**"),), ask=never, note=notes.append)
    task = asyncio.create_task(own.check("read", "notes/a.md"))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (line,) = notes
    assert (line.verdict, line.lock, line.code, line.asked) == ("deny", "person", "aborted", True)


# --- authorizers -----------------------------------------------------------------------------


async def test_authorizers_judge_what_scope_and_rules_let_through(scope: FileScope) -> None:
    seen = Noting()
    own = guard(scope, rules=[rule("deny", "drafts/**")], authorizers=[seen])
    for operation in OPERATIONS:
        assert await own.check(operation, "notes/deep", tool_input={"n": 1}) is None
    assert [str(target.action) for target in seen.seen] == list(OPERATIONS)
    assert seen.seen[0].tool_input == {"n": 1}
    await own.check("read", "drafts/d.md")
    await own.check("read", "../out/x.md")
    assert len(seen.seen) == len(OPERATIONS)


async def test_a_refusal_of_an_authorizer_is_told_as_the_gate_tells_it(scope: FileScope) -> None:
    own = guard(scope, authorizers=[deny_paths(["notes/deep/er"])])
    for operation, path in (("read", "notes/deep/er/c.md"), ("delete", "notes/deep")):
        refused = await own.check(operation, path)
        assert refused is not None
        assert (refused.part, refused.code, refused.rule) == ("authorizers", "denied", "deny_paths")
        assert str(refused).startswith(f"[{operation}:denied] {path} was refused by policy")


async def test_contents_are_checked_and_calls_are_counted(scope: FileScope) -> None:
    own = guard(scope, authorizers=[content_check("swordfish"), rate_limit(1, 60, ["read"])])
    assert await own.check("write", "notes/a.md", tool_input={"text": "fine"}) is None
    assert await own.check("write", "notes/a.md", tool_input={"text": "a swordfish"}) is not None
    assert await own.check("read", "notes/a.md") is None
    assert await own.check("read", "notes/a.md") is not None


async def test_an_authorizer_that_asks_a_person_does_and_not_where_nobody_is(
    scope: FileScope,
) -> None:
    asked: list[str] = []

    def question(target: Any) -> bool:
        asked.append(target.display_path)
        return True

    assert await guard(scope, authorizers=[ask_user(question)]).check("read", "notes/a.md") is None
    alone = guard(scope, authorizers=[ask_user(question)], mode="autonomous")
    assert await alone.check("read", "notes/a.md") is not None
    assert asked == ["notes/a.md"]


async def test_a_part_of_a_file_is_no_yes(scope: FileScope) -> None:
    own = guard(scope, authorizers=[Noting(Narrowed(offset=1, limit=2))])
    refused = await own.check("read", "notes/a.md")
    assert refused is not None
    assert "in part only" in str(refused)


# --- in a session ----------------------------------------------------------------------------


async def test_the_running_call_is_what_person_authorizers_and_trail_are_told_of(
    scope: FileScope,
) -> None:
    notes: list[Judged] = []
    person, seen = Person(approve()), Noting()
    own = session(
        scope,
        rules=(rule("interrupt", "notes/**"),),
        authorizers=(seen,),
        agents={"u1": "writer"},
        ask=person,
        note=notes.append,
    )
    with running("u1", file="notes/a.md", words="x"):
        assert await own.check("write", "notes/a.md") is None
    (asked,) = person.asked
    assert (asked.question_id, asked.tool, asked.agent) == ("u1", "mcp__mail__attach", "writer")
    assert asked.tool_input == {"file": "notes/a.md", "words": "x"}
    assert (seen.seen[0].tool, seen.seen[0].agent) == ("mcp__mail__attach", "writer")
    (line,) = notes
    assert (line.tool, line.tool_use_id, line.agent) == ("mcp__mail__attach", "u1", "writer")
    assert line.tool_input == {"operation": "write", "path": "notes/a.md"}
    assert (line.verdict, line.lock, line.asked, line.answer) == (
        "allow",
        "guard",
        True,
        "approved",
    )
    assert line.session_id == "s"


@pytest.mark.parametrize(
    ("path", "lock", "code"),
    [
        ("../out/x.md", "guard", "outside-readable"),
        ("drafts/d.md", "rules", "denied"),
        ("notes/a.md", "guard", None),
        ("notes/deep/b.md", "authorizers", "denied"),
    ],
)
async def test_each_judgement_is_a_line_that_says_what_decided(
    scope: FileScope, path: str, lock: str, code: str | None
) -> None:
    notes: list[Judged] = []
    own = session(
        scope,
        rules=(rule("deny", "drafts/**"),),
        authorizers=(deny_paths(["notes/deep"]),),
        note=notes.append,
    )
    await own.check("read", path)
    (line,) = notes
    assert (line.lock, line.code, line.verdict) == (lock, code, "deny" if code else "allow")


async def test_an_agent_has_its_own_rules_and_its_own_scope(root: Path) -> None:
    scope = scope_of(root)
    own = session(
        scope,
        rules=(rule("deny", "notes/a.md"),),
        subagents={"reader": (rule("deny", "drafts/**"),)},
        scopes={"auditor": replace(scope, writable_dirs=())},
        agents={"main": None, "r": "reader", "x": "auditor"},
    )
    expected = {  # who: whether it may read notes/a.md, read drafts/d.md, write notes/new.md
        "main": (False, True, True),
        "r": (True, False, True),
        "x": (False, True, False),
        "unknown": (False, False, False),
    }
    calls = (("read", "notes/a.md"), ("read", "drafts/d.md"), ("write", "notes/new.md"))
    for use_id, may in expected.items():
        with running(use_id):
            found = tuple([await own.check(*call) is None for call in calls])
        assert found == may, use_id
    assert tuple([await own.check(*call) is None for call in calls]) == expected["unknown"]


async def test_a_tool_writes_in_its_own_folder_for_no_agent_that_may_write_less(
    root: Path,
) -> None:
    scope = scope_of(root)
    own = session(
        scope,
        scopes={"auditor": replace(scope, writable_dirs=())},
        agents={"main": None, "x": "auditor"},
    ).inside(root / "w/base", writable=True)
    path = root / "w/base/t/new.md"
    with running("main"):
        assert await own.check("write", path) is None
    with running("x"):
        refused = await own.check("write", path)
        assert await own.check("read", root / "w/base/t/one.md") is None
    assert refused is not None
    assert (refused.part, refused.code) == ("subagents", "narrower-agent")


async def test_a_yes_holds_for_the_call_the_place_and_what_is_less(
    scope: FileScope, root: Path
) -> None:
    person = Person(*[approve()] * 9)
    own = session(
        scope, rules=(rule("interrupt", "notes/**"),), agents={"u": None, "v": None}, ask=person
    )
    with running("u"):
        assert await own.check("write", "notes/deep") is None
        for operation, path, asked in (
            ("write", "notes/deep/b.md", 1),
            ("read", "notes/deep/b.md", 1),
            ("delete", "notes/deep/b.md", 2),
            ("read", "notes/a.md", 3),
            ("read", "notes/a.md", 3),
            ("write", "notes/a.md", 4),
        ):
            assert await own.check(operation, path) is None
            assert len(person.asked) == asked, (operation, path)
        assert not own.leaves_out("notes/a.md")
        assert own.check_scope_and_rules("read", root / "w/notes/a.md") is None
    with running("v"):
        assert own.leaves_out("notes/a.md")
        assert await own.check("read", "notes/a.md") is None
    assert len(person.asked) == 5


async def test_a_yes_to_deleting_a_tree_counts_for_what_is_below_it_and_nothing_else(
    scope: FileScope, root: Path
) -> None:
    (root / "w/notes/deep/out").symlink_to("../a.md")
    person = Person(*[approve()] * 9)
    rules = (rule("interrupt", "notes/deep/er/c.md"), rule("interrupt", "notes/a.md"))
    own = session(scope, rules=rules, agents={"u": None, "v": None}, ask=person)
    with running("u"):
        for operation, path, asked in (
            ("delete", "notes/deep", 1),
            ("delete", "notes/deep/er/c.md", 1),
            ("delete", "notes/deep/er", 1),
            ("delete", "notes/deep", 1),
            ("write", "notes/deep/er/c.md", 2),
            ("read", "notes/deep/er/c.md", 2),
            ("delete", "notes/deep/out", 3),  # a link out of it
            ("delete", "notes", 4),
        ):
            assert await own.check(operation, path) is None
            assert len(person.asked) == asked, (operation, path)
    with running("v"):
        assert await own.check("delete", "notes/deep/er/c.md") is None
    assert len(person.asked) == 5


async def test_a_yes_by_one_rule_to_deleting_a_folder_is_none_by_another(scope: FileScope) -> None:
    person = Person(approve(), reject(), reject(), reject())
    asks = (rule("interrupt", "notes/deep"),)
    own = session(scope, session_rules=asks, rules=asks, agents={"u": None}, ask=person)
    with running("u"):
        for path in ("notes/deep", "notes/deep", "notes/deep/er/c.md"):
            assert await own.check("delete", path) is not None
    assert [asked.rule for asked in person.asked][1:] == ["AgentSpec.permissions[0]"] * 3


async def test_a_yes_to_deleting_a_tree_opens_nothing_that_is_denied(scope: FileScope) -> None:
    rules = (rule("interrupt", "notes/deep/er/c.md"),)
    own = session(scope, rules=rules, agents={"u": None}, ask=Person(approve()))
    with running("u") as call:
        assert await own.check("delete", "notes/deep") is None
        closed = session(
            scope, rules=(rule("deny", "notes/deep/er"),), agents={"u": None}, ask=Person()
        )
        assert call.agreed
        assert await closed.check("delete", "notes/deep/er/c.md") is not None


async def test_without_anybody_who_knows_the_calls_none_is_known(scope: FileScope) -> None:
    person = Person(approve(), approve())
    own = guard(scope, rules=[rule("interrupt", "notes/**")], ask=person)
    with running("u", a=1) as call:
        assert await own.check("read", "notes/a.md") is None
        assert call.agreed == set()
    assert person.asked[0].tool_input == {}


@pytest.mark.parametrize(
    ("fields", "narrows"),
    [
        ({}, False),
        ({"rules": (rule("deny", "x"),)}, True),
        ({"authorizers": (deny_paths(["x"]),)}, True),
        ({"mode": "plan"}, True),
        ({"mode": "autonomous"}, False),
    ],
)
def test_it_says_whether_anything_but_the_scope_has_a_say(
    scope: FileScope, fields: dict[str, Any], narrows: bool
) -> None:
    assert session(scope, **fields).narrows is narrows


# --- making one ------------------------------------------------------------------------------


def test_every_fault_of_a_guard_is_told_at_once(scope: FileScope) -> None:
    wrong: Any = {"rules": ["x", rule("deny", "a")], "authorizers": [3], "ask": 4, "mode": "fast"}
    with pytest.raises(ConfigError) as caught:
        guard(scope, **wrong)
    assert {fault.field for fault in caught.value.faults} == {
        "rules[0]",
        "authorizers[0]",
        "ask",
        "mode",
    }
    with pytest.raises(ConfigError) as caught:
        guard("/work", authorizers=[3])  # type: ignore[arg-type]
    assert {fault.field for fault in caught.value.faults} == {"scope", "authorizers[0]"}
    with pytest.raises(ConfigError) as caught:
        guard(scope, mode=None)  # type: ignore[arg-type]
    assert [fault.field for fault in caught.value.faults] == ["mode"]


def test_the_scope_is_compiled_once_and_not_for_each_file(
    scope: FileScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[FileScope] = []

    def counted(*given: Any) -> FileScope:
        made.append(judged_scope(*given))
        return made[-1]

    monkeypatch.setattr("agent_kit.policy.guard_judge.judged_scope", counted)
    own = guard(scope, rules=[rule("deny", "notes/deep/**")])
    assert [own.leaves_out(f"notes/{name}") for name in ("a.md", "deep/b.md")] == [False, True]
    assert len(made) == 1


# --- what is said of a person, and of a text -------------------------------------------------


async def test_a_write_of_an_unknown_text_is_refused_by_who_looks_at_it_and_by_nobody_else(
    scope: FileScope, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Noting()
    own = guard(scope, authorizers=[seen, content_check("swordfish")])
    for given in (None, {}):
        refused = await own.check("write", "notes/a.md", tool_input=given)
        assert refused is not None
        assert (refused.code, refused.rule) == ("extension-failed", "content_check")
        assert "tool_input" not in str(refused)
    assert "tool_input={'text': text}" in caplog.text
    for operation in ("read", "list", "search", "delete"):
        assert await own.check(operation, "notes/deep") is None
    assert len(seen.seen) == 6


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize(
    ("rules", "says", "told"),
    [
        ((), True, ("allow", "ask_user", True, "approved")),
        ((), False, ("deny", "ask_user", True, "rejected")),
        ((), ValueError(), ("deny", "ask_user", True, None)),
        ((rule("interrupt", "notes/**"),), True, ("allow", "rules[0]", True, "remembered")),
        ((rule("interrupt", "notes/**"),), False, ("deny", "ask_user", True, "rejected")),
    ],
)
async def test_the_line_tells_which_rule_or_authorizer_asked_and_what_they_said(
    scope: FileScope, rules: Any, says: Any, told: tuple[Any, ...], is_async: bool
) -> None:
    notes: list[Judged] = []

    def question(_target: Any) -> Any:
        if isinstance(says, Exception):
            raise says
        return says

    async def later(target: Any) -> Any:
        return question(target)

    own = guard(
        scope,
        rules=rules,
        authorizers=[ask_user(later if is_async else question)],
        ask=Person(approve(remember=True)),
    )
    await replace(own, note=notes.append).check("read", "notes/a.md")
    (line,) = notes
    assert (line.verdict, line.rule, line.asked, line.answer) == told


async def test_what_is_no_answer_is_none_of_a_persons(scope: FileScope) -> None:
    notes: list[Judged] = []
    wrong = Noting("yes")
    wrong.asks_person = True  # type: ignore[attr-defined]
    refused = await replace(guard(scope, authorizers=[wrong]), note=notes.append).check(
        "read", "notes/a.md"
    )
    assert refused is not None
    assert refused.code == "extension-failed"
    assert (notes[0].asked, notes[0].answer) == (True, None)
