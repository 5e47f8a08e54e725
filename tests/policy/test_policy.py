"""Mode, rules, questions, subagents and authorizers of one session, judged together."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_kit.policy import (
    AuthorizerContext,
    FilePermission,
    allow,
    ask_user,
    compile_rule_sets,
    compile_rules,
    deny_paths,
    rate_limit,
    read_authorizers,
    size_ceiling,
    targets_of,
)
from agent_kit.policy.authorizers import denied_patterns
from agent_kit.policy.modes import Mode, SessionMode
from agent_kit.policy.policy import Call, Judgement, Policy
from agent_kit.policy.prompted import refused_in_prompt
from agent_kit.policy.rules import Operation
from agent_kit.policy.starts import Forks
from agent_kit.scope import FileScope
from agent_kit.scope.judge import NamedPath, judge_and_name

S = "SessionConfig.permissions"
A = "AgentSpec.permissions"
FOLDER = "a rule asks for it, or something in it"


def rule(mode: str, *paths: str, on: tuple[str, ...] = ("read", "write")) -> FilePermission:
    return FilePermission(operations=on, paths=paths, mode=mode)


class World:
    """A project, and policies on it."""

    def __init__(self, root: Path) -> None:
        for name in ("drafts/a.md", "drafts/b.md", "sources/s.md", "top.md"):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(name)
        self.root = root
        self.scope = self.with_writable(".")

    def with_writable(self, *folders: str) -> FileScope:
        return FileScope(project_dir=str(self.root), searchable_dirs=["."], writable_dirs=folders)

    def policy(self, mode: str = "guided", **fields: Any) -> Policy:
        lists = {key: fields.pop(key) for key in ("session", "agent", "subagents") if key in fields}
        if lists:
            fields["rules"] = compile_rule_sets(project_dir=self.root, **lists)
        fields.setdefault("has_ask", True)
        return Policy(scope=self.scope, mode=SessionMode(mode), **fields)

    def call(self, tool: str, agent: str | None = None, **tool_input: Any) -> Call:
        return Call(tool=tool, tool_input=tool_input, cwd=str(self.root), agent=agent)

    def named(self, call: Call) -> tuple[NamedPath, ...]:
        reason, named = judge_and_name(self.scope, call.tool, call.tool_input, call.cwd)
        assert reason is None
        return named

    def judge(self, policy: Policy, call: Call, *agreed: str) -> Judgement:
        return policy.judge(call, self.named(call), frozenset(agreed))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def told(found: Judgement) -> tuple[Any, ...]:
    return str(found.verdict), found.part, found.code, found.rule


NOTHING = ("allow", "rules", None, None)


# --- rules and questions -------------------------------------------------------------------------


def test_a_rule_that_asks_is_a_question_and_names_itself(world: World) -> None:
    policy = world.policy(session=[rule("allow", "top.md"), rule("interrupt", "drafts/**")])
    found = world.judge(policy, world.call("Read", file_path="drafts/a.md"))
    assert told(found) == ("interrupt", "rules", "interrupt", f"{S}[1]")
    assert found.path == "drafts/a.md"
    assert "only when a person agrees" in found.message
    assert told(world.judge(policy, world.call("Read", file_path="top.md"))) == NOTHING
    assert told(world.judge(policy, world.call("Read", file_path="sources/s.md"))) == NOTHING


def test_a_rule_that_denies_refuses_whether_or_not_somebody_is_there(world: World) -> None:
    for has_ask in (True, False):
        policy = world.policy(session=[rule("deny", "drafts/**")], has_ask=has_ask)
        found = world.judge(policy, world.call("Write", file_path="drafts/a.md", content=""))
        assert told(found) == ("deny", "rules", "denied", f"{S}[0]")


@pytest.mark.parametrize(
    ("mode", "has_ask", "sentence"),
    [
        ("guided", False, "Nobody can be asked"),
        ("interactive", False, "Nobody can be asked"),
        ("autonomous", True, "Nobody is there"),
        ("autonomous", False, "Nobody is there"),
    ],
)
def test_with_nobody_to_ask_a_question_is_a_refusal(
    world: World, mode: str, has_ask: bool, sentence: str
) -> None:
    policy = world.policy(mode, session=[rule("interrupt", "drafts/**")], has_ask=has_ask)
    found = world.judge(policy, world.call("Read", file_path="drafts/a.md"))
    assert told(found) == ("deny", "rules", "nobody-to-ask", f"{S}[0]")
    assert sentence in found.message


def test_interrupt_on_asks_for_a_tool_that_no_rule_knows(world: World) -> None:
    policy = world.policy(interrupt_on={"mcp__mail__send": True, "Read": True})
    for tool, given in (("mcp__mail__send", {"to": "x"}), ("Read", {"file_path": "top.md"})):
        found = world.judge(policy, world.call(tool, **given))
        assert told(found) == ("interrupt", "interrupt_on", "interrupt", f"interrupt_on[{tool}]")
    assert told(world.judge(policy, world.call("mcp__mail__list"))) == NOTHING


def test_interrupt_on_doesnt_soften_a_rule_that_denies(world: World) -> None:
    policy = world.policy(session=[rule("deny", "top.md")], interrupt_on={"Read": True})
    assert world.judge(policy, world.call("Read", file_path="top.md")).verdict == "deny"


def test_what_was_answered_asks_no_more_and_what_else_asks_does(world: World) -> None:
    policy = world.policy(session=[rule("interrupt", "drafts/**")], interrupt_on={"Read": True})
    call = world.call("Read", file_path="drafts/a.md")
    assert world.judge(policy, call).rule == f"{S}[0]"
    assert world.judge(policy, call, f"{S}[0]").rule == "interrupt_on[Read]"
    assert told(world.judge(policy, call, f"{S}[0]", "interrupt_on[Read]")) == NOTHING
    policy.remembered.add(f"{S}[0]")
    assert world.judge(policy, call).rule == "interrupt_on[Read]"
    policy.remembered.add("interrupt_on[Read]")
    assert told(world.judge(policy, call)) == NOTHING


def test_a_rule_remembered_in_one_list_answers_for_no_other_list(world: World) -> None:
    call = world.call("Read", file_path="drafts/a.md")
    asks, denies = [rule("interrupt", "drafts/**")], [rule("deny", "drafts/a.md")]
    for session, agent, name in ((asks, denies, S), (denies, asks, A)):
        policy = world.policy(session=session, agent=agent)
        policy.remembered.add(f"{name}[0]")
        assert world.judge(policy, call).verdict == "deny"
    both = world.policy(session=asks, agent=asks)
    both.remembered.add(f"{S}[0]")
    assert told(world.judge(both, call)) == ("interrupt", "rules", "interrupt", f"{A}[0]")


def test_the_name_of_a_rule_that_denies_can_be_remembered_by_nobody(world: World) -> None:
    policy = world.policy(session=[rule("deny", "drafts/**")])
    policy.remembered.add(f"{S}[0]")
    for tool, given in (("Read", {"file_path": "drafts/a.md"}), ("Grep", {"pattern": "x"})):
        assert world.judge(policy, world.call(tool, **given)).verdict == "deny"


def test_a_search_above_two_places_that_ask_asks_for_both(world: World) -> None:
    policy = world.policy(session=[rule("interrupt", "drafts/**"), rule("interrupt", "sources/**")])
    search = world.call("Grep", pattern="x")
    policy.remembered.add(f"{S}[0]")
    found = world.judge(policy, search)
    assert told(found) == ("interrupt", "rules", "interrupt", f"{S}[1]")
    assert FOLDER in found.message
    assert told(world.judge(policy, search, f"{S}[1]")) == NOTHING
    policy.remembered.clear()
    assert world.judge(policy, search).rule == f"{S}[0]"


def test_a_search_over_a_place_that_asks_is_denied_for_what_is_denied_in_it(world: World) -> None:
    policy = world.policy(session=[rule("interrupt", "drafts/**"), rule("deny", "drafts/a.md")])
    policy.remembered.add(f"{S}[0]")
    assert world.judge(policy, world.call("Grep", pattern="x")).verdict == "deny"
    assert world.judge(policy, world.call("Grep", pattern="x", path="sources")).verdict == "allow"


def test_a_link_asks_for_its_own_name_and_for_where_it_leads(world: World) -> None:
    (world.root / "top-link.md").symlink_to("drafts/a.md")
    policy = world.policy(
        session=[rule("interrupt", "top-link.md"), rule("interrupt", "drafts/**")]
    )
    call = world.call("Read", file_path="top-link.md")
    asked = world.judge(policy, call).rule
    policy.remembered.add(asked or "")
    other = world.judge(policy, call)
    assert {asked, other.rule} == {f"{S}[0]", f"{S}[1]"}
    policy.remembered.add(other.rule or "")
    assert told(world.judge(policy, call)) == NOTHING


def test_a_subagents_own_rule_is_remembered_by_its_own_name(world: World) -> None:
    asks = [rule("interrupt", "drafts/**")]
    policy = world.policy(agent=asks, subagents={"own": asks})
    policy.remembered.add(f"{A}[0]")
    heir = world.call("Read", agent="heir", file_path="drafts/a.md")
    own = world.call("Read", agent="own", file_path="drafts/a.md")
    assert told(world.judge(policy, heir)) == NOTHING
    assert world.judge(policy, own).rule == "subagents['own'].permissions[0]"


# --- modes ---------------------------------------------------------------------------------------


def test_in_plan_mode_only_what_changes_nothing_is_let_through(world: World) -> None:
    policy = world.policy("plan", read_only=frozenset({"mcp__k__index"}))
    policy.hinted.add("mcp__own__look")
    for tool in ("mcp__k__index", "mcp__own__look", "TodoWrite"):
        assert told(world.judge(policy, world.call(tool))) == NOTHING
    for tool in ("Bash", "mcp__mail__send", "SomethingNew"):
        found = world.judge(policy, world.call(tool))
        assert told(found) == ("deny", "mode", "plan-mode", None)
        assert "plan mode" in found.message
    write = world.call("Write", file_path="top.md", content="")
    assert world.judge(policy, write, "mode[Write]").code == "plan-mode"


def test_plan_mode_keeps_the_rules_for_what_it_lets_through(world: World) -> None:
    policy = world.policy("plan", session=[rule("deny", "./top.md")], interrupt_on={"Glob": True})
    assert world.judge(policy, world.call("Read", file_path="top.md")).verdict == "deny"
    assert world.judge(policy, world.call("Glob", pattern="*.md")).verdict == "deny"
    drafts = world.call("Glob", pattern="*.md", path="drafts")
    assert world.judge(policy, drafts).rule == "interrupt_on[Glob]"


def test_in_interactive_mode_each_tool_that_changes_something_asks(world: World) -> None:
    policy = world.policy("interactive", interrupt_on={"mcp__notes__add": False})
    write = world.call("Write", file_path="top.md", content="")
    found = world.judge(policy, write)
    assert told(found) == ("interrupt", "mode", "interrupt", "mode[Write]")
    assert "may change something" in found.message
    assert told(world.judge(policy, write, "mode[Write]")) == NOTHING
    assert told(world.judge(policy, world.call("Read", file_path="top.md"))) == NOTHING
    assert told(world.judge(policy, world.call("mcp__notes__add"))) == NOTHING
    assert world.judge(policy, world.call("mcp__notes__drop")).rule == "mode[mcp__notes__drop]"


def test_a_switched_mode_counts_for_the_next_call(world: World) -> None:
    policy = world.policy()
    write = world.call("Write", file_path="top.md", content="")
    assert told(world.judge(policy, write)) == NOTHING
    assert not policy.steps
    policy.mode.set("plan")
    assert policy.steps
    assert world.judge(policy, write).code == "plan-mode"
    policy.mode.set("autonomous")
    assert told(world.judge(policy, write)) == NOTHING


# --- subagents -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["Agent", "Task"])
def test_only_agents_that_may_be_started_are(world: World, tool: str) -> None:
    policy = world.policy(startable=frozenset({"helper"}))
    assert told(world.judge(policy, world.call(tool, subagent_type="helper"))) == NOTHING
    every: list[Any] = ["Explore", None, []]
    for given in ({}, *({"subagent_type": each} for each in every)):
        found = world.judge(policy, world.call(tool, **given))
        assert told(found)[:3] == ("deny", "subagents", "agent-not-allowed")
        assert "Start one of helper." in found.message
    nobody = world.policy(startable=frozenset())
    found = world.judge(nobody, world.call(tool, subagent_type="helper"))
    assert "do the work yourself" in found.message
    untyped = world.policy(startable=frozenset({"general-purpose"}))
    assert told(world.judge(untyped, world.call(tool))) == NOTHING


def test_who_may_write_less_starts_nobody_and_runs_nothing(world: World) -> None:
    policy = world.policy(
        scopes={"auditor": world.with_writable()},
        commands=frozenset({"Bash"}),
        read_only=frozenset({"Bash"}),
    )
    for tool in ("Agent", "Task", "Bash"):
        found = world.judge(policy, world.call(tool, agent="auditor", command="ls"))
        assert told(found)[:3] == ("deny", "subagents", "narrower-agent")
        assert told(world.judge(policy, world.call(tool, agent="other"))) == NOTHING
        assert told(world.judge(policy, world.call(tool))) == NOTHING
    assert policy.scope_of("auditor").writable_dirs == ()
    assert policy.scope_of("other") is policy.scope_of(None) is world.scope


# --- what needs no look ----------------------------------------------------------------------------


def test_a_call_is_plain_where_nothing_could_object(world: World) -> None:
    path = {"file_path": str(world.root / "top.md")}
    plain = world.policy().is_plain
    assert plain("Read", path, None)
    assert plain("Write", path, None)
    assert not world.policy(authorizers=(deny_paths(["x"]),)).is_plain("Read", path, None)
    assert not world.policy(interrupt_on={"Read": True}).is_plain("Read", path, None)
    for mode in ("plan", "interactive"):
        assert world.policy(mode).is_plain("Read", path, None)
        assert not world.policy(mode).is_plain("Write", path, None)
    ruled = world.policy(agent=[rule("interrupt", "top.md")], subagents={"free": []})
    assert not ruled.is_plain("Read", path, None)
    assert ruled.is_plain("Read", path, "free")


# --- authorizers -------------------------------------------------------------------------------------


class Own:
    id = "own"

    def __init__(self, **fields: Any) -> None:
        self.seen: list[Any] = []
        self.__dict__.update(fields)

    async def authorize(self, target: Any, context: Any) -> Any:
        self.seen.append((target, context))
        return allow()


@pytest.mark.parametrize(
    ("authorizers", "patient"),
    [
        ([], False),
        ([Own(), Own()], False),
        ([Own(), Own(), Own()], True),  # 15 s
        ([Own(timeout=13)], True),
        ([Own(timeout=0.1)] * 9, False),
        ([ask_user(lambda _target: True)], True),
        ([read_authorizers(Own(), ask_user(lambda _target: True))], True),
        ([size_ceiling(9), rate_limit(1, 1), size_ceiling(8)], False),  # each answers on the spot
    ],
)
def test_patient_is_who_may_take_longer_than_a_hook_waits(
    world: World, authorizers: list[Any], patient: bool
) -> None:
    assert world.policy(authorizers=tuple(authorizers)).is_patient is patient


async def test_authorizers_see_the_call_its_agent_and_its_session(world: World) -> None:
    own, config = Own(), object()
    narrow = world.with_writable("drafts")
    policy = world.policy(
        authorizers=(own,),
        config=config,
        session_id="s",
        scopes={"narrow": narrow},
        unfiltered=frozenset({"**/.env"}),
    )
    call = world.call("Read", agent="narrow", file_path="top.md")
    done = await policy.authorize(call, world.named(call))
    assert done.allowed
    ((target, context),) = own.seen
    assert (target.agent, target.action, target.requested) == ("narrow", "read", "top.md")
    assert (context.session_id, context.agent, context.config) == ("s", "narrow", config)
    assert context.state is policy.state
    assert context.unfiltered == {"**/.env"}
    assert context.abort.is_set()  # the call is over: what still runs of it is stopped


async def test_some_of_the_authorizers_alone_can_be_asked(world: World) -> None:
    first, second = Own(), Own()
    policy = world.policy(authorizers=(first, second))
    call = world.call("Read", file_path="top.md")
    await policy.authorize(call, world.named(call), authorizers=(second,))
    assert (len(first.seen), len(second.seen)) == (0, 1)


async def test_where_nobody_is_there_no_authorizer_asks_a_person(world: World) -> None:
    asked: list[Any] = []
    person = ask_user(lambda target: asked.append(target) or True)  # type: ignore[func-returns-value]
    own = Own()
    policy = world.policy("autonomous", authorizers=(read_authorizers(own, person),))
    read = world.call("Read", file_path="top.md")
    done = await policy.authorize(read, world.named(read))
    assert done.refusal is not None
    assert done.refusal.authorizer == "ask_user"
    assert "nobody is there" in str(done.refusal)
    assert len(own.seen) == 1
    listing = world.call("LS", path=str(world.root))
    assert (await policy.authorize(listing, world.named(listing))).allowed  # it is never asked of
    assert asked == []
    policy.mode.set("guided")
    assert (await policy.authorize(read, world.named(read))).allowed
    assert len(asked) == 1


def test_denied_patterns_are_those_of_every_deny_paths_in_order() -> None:
    nested = read_authorizers(Own(), read_authorizers(deny_paths(["b", "c"])))
    assert denied_patterns([deny_paths(["a"]), nested, SimpleNamespace(id="x")]) == ("a", "b", "c")
    assert denied_patterns([]) == ()


@pytest.mark.parametrize("action", ["Grep", "LS"])
async def test_a_search_is_refused_for_hits_that_the_cli_doesnt_leave_out(
    world: World, action: str
) -> None:
    (guard,) = (deny_paths(["**/.env", "**/*.key"]),)
    given = {"pattern": "x"} if action == "Grep" else {"path": str(world.root)}
    (target,) = targets_of(world.scope, action, given) or ()

    def context(*unfiltered: str) -> AuthorizerContext:
        return AuthorizerContext(project_dir=str(world.root), unfiltered=frozenset(unfiltered))

    assert guard.authorize(target, context()).allowed
    assert guard.authorize(target, context("another")).allowed
    assert not guard.authorize(target, context("**/*.key")).allowed
    assert guard.authorize(target, context()).allowed  # nothing of it is kept


# --- compiled lists --------------------------------------------------------------------------------


def test_what_is_left_in_counts_for_a_filtered_search_and_for_nothing_else(world: World) -> None:
    rules = compile_rules(
        [rule("deny", "**/.env"), rule("allow", "drafts/**"), rule("deny", "**/*.key")],
        project_dir=world.root,
    )

    def found(path: str) -> tuple[str, int | None]:
        names = (str(world.root / path),)
        verdict, number = rules.judge_all(Operation.READ, names, True, filtered=True)
        return str(verdict), number

    assert found("") == ("allow", None)
    rules.leave_in([2])
    assert found("") == ("deny", 2)
    assert found("drafts") == ("allow", 1)  # an earlier rule allows it
    rules.leave_in([0, 2])
    assert found("") == ("deny", 0)
    assert found("drafts") == ("deny", 0)
    rules.leave_in([])
    assert found("") == ("allow", None)


def test_what_is_left_in_stays_so_beside_rules_that_ask_no_more(world: World) -> None:
    rules = compile_rules(
        [rule("interrupt", "drafts/**"), rule("deny", "**/.env")], project_dir=world.root
    )
    names, silent = (str(world.root),), frozenset({0})

    def found(*silenced: int) -> str:
        return str(rules.judge_all(Operation.READ, names, True, silenced, filtered=True).verdict)

    assert found() == "interrupt"
    assert found(*silent) == "allow"
    rules.leave_in([1])
    assert found(*silent) == found() == "deny"


def test_modes_are_texts() -> None:
    assert [str(mode) for mode in Mode] == ["guided", "interactive", "plan", "autonomous"]


@pytest.mark.parametrize("tool", ["Agent", "Task", "Skill"])
def test_a_narrower_agent_calls_nothing_that_starts_another(tool: str) -> None:
    place = FileScope(project_dir="/work")
    held = Policy(scope=place, scopes={"auditor": place}, mode=SessionMode("guided"))
    call = Call(tool=tool, tool_input={}, cwd="/work", agent="auditor")
    assert held.judge(call, ()).code == "narrower-agent"


@pytest.mark.parametrize("tool", ["Workflow", "RunWorkflow"])
def test_a_workflow_starts_agents_that_nobody_named(tool: str) -> None:
    place = FileScope(project_dir="/work")
    mode = SessionMode("guided")
    held = Policy(scope=place, startable=frozenset({"helper"}), mode=mode)
    call = Call(tool=tool, tool_input={"subagent_type": "helper"}, cwd="/work")
    assert held.judge(call, ()).code == "agent-not-allowed"


# --- what a skill or a prompt mentions -----------------------------------------------------------


def test_where_agent_is_open_in_part_no_other_is_started(world: World) -> None:
    policy = world.policy(forks=Forks(only=frozenset({"helper"})))
    for given, allowed in (
        ({"subagent_type": "helper"}, True),
        ({"subagent_type": "other"}, False),
        ({"subagent_type": ["helper"]}, False),
        ({}, False),
    ):
        found = policy.judge(world.call("Agent", **given), ())
        assert (found.rule, found.verdict) == (
            (None, "allow") if allowed else ("AgentSpec.tools", "deny")
        )
    assert told(policy.judge(world.call("Workflow"), ())) == NOTHING


async def test_a_skill_is_authorized_by_what_it_mentions(world: World) -> None:
    policy = world.policy(authorizers=(size_ceiling(3),))
    named = world.named(world.call("Read", file_path="top.md"))
    skill = world.call("Skill", skill="x", args="@top.md")
    done = await policy.authorize(skill, named)
    assert done.refusal is not None and done.refusal.action == "read"
    assert (await world.policy(authorizers=(size_ceiling(9),)).authorize(skill, named)).allowed


@pytest.mark.parametrize(
    ("fields", "own", "brought"),
    [
        ({}, None, None),
        ({"session": [rule("deny", "top.md")]}, "forbids", "forbids"),
        ({"session": [rule("deny", "top.md", on=("write",))]}, None, None),
        ({"agent": [rule("deny", "top.md")]}, "forbids", "forbids"),
        ({"subagents": {"a": [rule("deny", "top.md")]}}, None, None),
        ({"session": [rule("interrupt", "top.md")]}, None, "mention it in the prompt"),
        ({"authorizers": (deny_paths(["top.md"]),)}, "off limits", "off limits"),
        ({"authorizers": (deny_paths(["no.md"]),)}, None, None),
        ({"authorizers": (size_ceiling(1),)}, None, None),
    ],
)
def test_a_prompt_attaches_what_nothing_denies_and_its_command_no_more_than_that(
    world: World, fields: dict[str, Any], own: str | None, brought: str | None
) -> None:
    policy = world.policy(**fields)
    named = world.named(world.call("Read", file_path="top.md"))
    assert (own or "None") in str(refused_in_prompt(policy, named))
    assert (brought or "None") in str(refused_in_prompt(policy, (), named))


def test_a_question_that_is_remembered_lets_a_command_attach(world: World) -> None:
    policy = world.policy(session=[rule("interrupt", "top.md")])
    policy.remembered.add(f"{S}[0]")
    named = world.named(world.call("Read", file_path="top.md"))
    assert refused_in_prompt(policy, (), named) is None


def test_who_edits_a_call_into_one_that_starts_an_agent_is_asked_about_it(world: World) -> None:
    forks = Forks(by_skill={"forks": ("general-purpose",)})
    policy = world.policy(forks=forks, interrupt_on={"Skill": True, "Agent": True})
    call = Call(tool="Skill", tool_input={"skill": "forks"}, cwd="/w")
    assert policy.judge(call, ()).rule == "interrupt_on[Skill]"
    again = policy.judge(call, (), frozenset({"interrupt_on[Skill]"}))
    assert (again.verdict, again.rule) == ("interrupt", "interrupt_on[Agent]")
    both = frozenset({"interrupt_on[Skill]", "interrupt_on[Agent]"})
    assert policy.judge(call, (), both).verdict == "allow"


def test_a_hooks_question_is_asked_where_no_rule_asks(world: World) -> None:
    policy, call = world.policy(interrupt_on={"Write": True}), world.call("Read", file_path="a.md")
    found = policy.judge(call, (), question="Why?")
    assert (found.verdict, found.part, found.rule, found.message) == (
        "interrupt",
        "hook",
        None,
        "Why?",
    )
    write = policy.judge(world.call("Write", file_path="a.md"), (), question="Why?")
    assert write.part == "interrupt_on"
