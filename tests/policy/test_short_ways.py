"""The short ways to what rules and authorizers say: they say what the long ways say, or nothing."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from agent_kit.policy import (
    Action,
    Answer,
    AuthorizerContext,
    FilePermission,
    RuleVerdict,
    Target,
    allow,
    ask_user,
    content_check,
    deny,
    deny_paths,
    rate_limit,
    read_authorizers,
    read_limit,
    run_authorizers,
    size_ceiling,
    targets_of,
)
from agent_kit.policy.at_once import Chain, authorize_at_once
from agent_kit.policy.modes import SessionMode
from agent_kit.policy.outcome import Narrowed
from agent_kit.policy.policy import Policy
from agent_kit.policy.rule_sets import RuleSets
from agent_kit.policy.target import plain_target
from agent_kit.policy.waiting import Aborted, Overdue
from agent_kit.scope import FileScope
from agent_kit.scope.decision import Access
from agent_kit.scope.disk import Located
from agent_kit.scope.judge import NamedPath, name_plainly, plain_file
from tests.policy.test_laws import PATHS, RULES, listed

SLOW = settings(max_examples=400)
TOOLS = {"Read": Access.READ, "Write": Access.WRITE}


@SLOW
@given(
    session=RULES,
    agent=RULES,
    path=PATHS.filter("/".__ne__),
    tool=st.sampled_from(sorted(TOOLS)),
    mode=st.sampled_from([0, stat.S_IFREG]),
)
def test_rules_say_of_a_plain_call_what_they_say_of_its_path(
    session: list[FilePermission], agent: list[FilePermission], path: str, tool: str, mode: int
) -> None:
    sets = RuleSets(session=listed(session), agent=listed(agent))
    long = sets.judge_named([NamedPath(TOOLS[tool], path, (Located(path, mode),), (path,))])
    short = sets.rule_plainly(tool, {"file_path": path})
    event(str(long.verdict))
    if long.verdict is RuleVerdict.DENY:
        assert short == long
    elif long.verdict is RuleVerdict.INTERRUPT:
        assert short is None
    else:
        assert short is not None
        assert short.verdict is RuleVerdict.ALLOW


def test_rules_say_nothing_in_short_of_a_tool_that_searches() -> None:
    sets = RuleSets(session=listed([]), agent=listed([]))
    assert sets.rule_plainly("Grep", {"path": "/a"}) is None


# --- authorizers -----------------------------------------------------------------------------------


class Own:
    """An authorizer that answers, or raises, what it is given, and knows how often it was asked."""

    def __init__(self, answer: Any = None, **fields: Any) -> None:
        self.id, self.answer, self.asked = "own", answer, 0
        self.__dict__.update({"inline": True, **fields})

    def authorize(self, target: Target, _context: AuthorizerContext) -> Any:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer == "the input":
            return deny(repr(sorted(target.tool_input.items())))
        return self.answer


class Broken(Own):
    """Nobody can tell which actions it judges."""

    @property
    def actions(self) -> Any:
        raise OSError("no")


def target() -> Target:
    paths = dict.fromkeys(("requested", "absolute", "resolved", "display_path"), "/w/a")
    return Target(action=Action.READ, tool="Read", tool_input={"file_path": "/w/a"}, **paths)


ANSWERS = [
    *[allow()] * 4,
    Answer(allowed=True),
    deny("no"),
    deny(""),
    Narrowed(offset=1, limit=2),
    Narrowed(offset=3, limit=4),
    "the input",
    ValueError("x"),
    Aborted(),
    Overdue(),
    True,
    None,
]
QUICK: list[dict[str, Any]] = [
    {},
    {"inline": frozenset({Action.READ})},
    {"actions": {Action.WRITE}},
    {"actions": {Action.WRITE}, "inline": False},
    {"actions": {Action.WRITE}, "asks_person": True},
    {"actions": {Action.READ}},
]
WAITS: list[dict[str, Any]] = [
    {"inline": False},
    {"inline": 1},
    {"inline": frozenset({Action.WRITE})},
    {"asks_person": True},
]


@SLOW
@given(
    made=st.lists(st.tuples(st.sampled_from(ANSWERS), st.sampled_from(QUICK)), max_size=5),
    nested=st.booleans(),
)
def test_quick_authorizers_are_heard_at_once_as_they_are_in_turn(
    made: list[tuple[Any, dict[str, Any]]], nested: bool
) -> None:
    def chain() -> list[Any]:
        own = [Own(answer, **fields) for answer, fields in made]
        return [read_authorizers(*own[:2]), *own[2:]] if nested else own

    context, about = AuthorizerContext(project_dir="/w"), target()
    at_once = authorize_at_once(Chain(chain()), [about], context)
    in_turn = asyncio.run(run_authorizers(chain(), [about], context))
    event("allowed" if in_turn.allowed else str(in_turn.refusal))
    assert at_once == in_turn
    assert (at_once.tool_input is about.tool_input) is (in_turn.tool_input is about.tool_input)


@pytest.mark.parametrize("fields", WAITS)
def test_where_one_may_have_to_be_waited_for_none_is_asked_at_once(fields: dict[str, Any]) -> None:
    before, waits = Own(allow()), Own(allow(), **fields)
    context = AuthorizerContext(project_dir="/w")
    assert authorize_at_once(Chain([before, waits]), [target()], context) is None
    assert (before.asked, waits.asked) == (0, 0)


def test_one_that_cant_be_told_is_refused_where_it_is_asked_in_turn() -> None:
    before, broken = Own(allow()), Broken(allow())
    context = AuthorizerContext(project_dir="/w")
    assert authorize_at_once(Chain([before, broken]), [target()], context) is None
    assert before.asked == 0
    found = asyncio.run(run_authorizers([broken], [target()], context))
    assert found.refusal is not None


def of_the_kit(seed: int) -> Any:
    """One of the kit's own authorizers, the same each time."""
    return [
        lambda: deny_paths(["a.md"]),
        lambda: size_ceiling(3),
        lambda: size_ceiling(3, unranged_only=True),
        lambda: rate_limit(1, 60, ["write", "delete"], clock=lambda: 0.0),
        lambda: content_check("secret"),
        lambda: content_check(lambda text: "secret" in text),
        lambda: read_limit(lines=2),
        lambda: read_limit(bytes=9),
        lambda: ask_user(lambda _target: True),
        lambda: Own(deny("the host's"), actions={Action.DELETE}),
    ][seed]()


ABOUT = st.lists(
    st.builds(
        lambda action, path, size: Target(
            action=action,
            requested=path,
            absolute=path,
            resolved=path,
            display_path=path,
            tool="Write" if action is Action.WRITE else "Read",
            tool_input={"file_path": path, "content": "no secret"},
            size=size,
        ),
        st.sampled_from(Action),
        st.sampled_from(["/w/a.md", "/w/b.md"]),
        st.sampled_from([None, 0, 7]),
    ),
    max_size=3,
)


@settings(max_examples=200)
@given(seeds=st.lists(st.integers(0, 9), max_size=4), nested=st.booleans(), about=ABOUT)
def test_authorizers_that_are_sorted_once_judge_as_they_do_in_turn(
    seeds: list[int], nested: bool, about: list[Target]
) -> None:
    def chain() -> list[Any]:
        made = [of_the_kit(seed) for seed in seeds]
        return [read_authorizers(*made[:2]), *made[2:]] if nested else made

    at_once = authorize_at_once(Chain(chain()), about, AuthorizerContext(project_dir="/w"))
    in_turn = asyncio.run(run_authorizers(chain(), about, AuthorizerContext(project_dir="/w")))
    event("waits" if at_once is None else "allowed" if in_turn.allowed else "refused")
    assert at_once is None or at_once == in_turn


@pytest.mark.parametrize("action", Action)
def test_those_that_dont_judge_an_action_are_not_among_its_own(action: Action) -> None:
    ceiling, checked = size_ceiling(3), content_check("secret")
    limit, denied = rate_limit(1, 60), deny_paths(["x"])
    found = Chain([ceiling, checked, limit, denied]).at_once(action)
    expected = {
        Action.READ: [ceiling, limit, denied],
        Action.WRITE: [checked, limit, denied],
        Action.DELETE: None,  # a folder is walked
    }
    assert found == expected.get(action, [limit, denied])


def test_what_a_host_s_own_judges_is_asked_for_each_call() -> None:
    own = Own(allow(), actions={Action.WRITE})
    chain = Chain([size_ceiling(3), own])
    assert own not in (chain.at_once(Action.READ) or ())
    own.__dict__["actions"] = None
    assert own in (chain.at_once(Action.READ) or ())


# --- their target ----------------------------------------------------------------------------------


@pytest.fixture
def scope(tmp_path: Path) -> FileScope:
    (tmp_path / "project").mkdir()
    (tmp_path / "out").mkdir()
    for name in ("project/a.md", 'project/b"c', "out/f"):
        (tmp_path / name).write_text(name)
    return FileScope(
        project_dir=str(tmp_path / "project"),
        searchable_dirs=[".", "../out"],
        writable_dirs=["."],
    )


@pytest.mark.parametrize("name", ["a.md", "new.md", "new/x", 'b"c', "../out/f"])
@pytest.mark.parametrize("tool", ["Read", "Write"])
def test_the_target_of_a_plain_call_is_the_one_that_is_looked_for(
    scope: FileScope, tool: str, name: str
) -> None:
    call = {"file_path": os.path.normpath(f"{scope.project_dir}/{name}")}
    if (file := plain_file(scope, tool, call, None)) is None:
        assert (tool, name) == ("Write", "../out/f")
        return
    named = name_plainly(scope, tool, call, None)
    found = plain_target(scope, tool, call, file, "kind")
    assert (found,) == targets_of(scope, tool, call, agent="kind", named=named)


@pytest.mark.parametrize(("path", "code"), [("a.md", "denied"), ("new.md", None)])
def test_a_policy_asks_its_authorizers_about_a_plain_call(
    scope: FileScope, path: str, code: str | None
) -> None:
    policy = Policy(scope=scope, mode=SessionMode("guided"), authorizers=(deny_paths(["a.md"]),))
    call = {"file_path": f"{scope.project_dir}/{path}"}
    file = plain_file(scope, "Read", call, None)
    assert file is not None
    found = policy.authorize_plainly("Read", call, file, None, "t1")
    assert found is not None
    assert (None if found.refusal is None else found.refusal.code) == code
