"""What 1,000 rules and a chain of authorizers add to the gate's judgement of a call."""

from __future__ import annotations

import os
import random
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from time import process_time
from typing import Any, NamedTuple, TypeVar

from agent_kit import FileScope
from agent_kit.policy import (
    FilePermission,
    RuleSets,
    RuleVerdict,
    compile_rule_sets,
    content_check,
    deny_paths,
    rate_limit,
    size_ceiling,
)
from agent_kit.policy.modes import Mode, SessionMode
from agent_kit.policy.policy import Call, Policy
from agent_kit.scope.judge import is_plainly_allowed
from agent_kit.sdk.gate import create_file_scope_gate
from agent_kit.sdk.judging import ScopeJudge
from agent_kit.sdk.open_tools import OpenTools
from agent_kit.sdk.policy_gate import PolicyGate
from benchmarks.measure import (
    Action,
    Effort,
    Row,
    Samples,
    _block,
    _loops,
    figure,
    quiet,
    seconds,
    take_turns,
)
from benchmarks.places import Place, place

__all__ = ["measure"]

T = TypeVar("T")

RULES = 1000
BOUND = 0.5  # of a realpath, for each call

_ALLOW, _DENY, _INTERRUPT = RuleVerdict.ALLOW, RuleVerdict.DENY, RuleVerdict.INTERRUPT
_MODES = ("deny", "interrupt", "allow")
_FIRST = ".first"  # what is remembered of a searched folder is forgotten before each call


class _Family(NamedTuple):
    """Rules of one kind; ``{n}`` is a number. None of them matches the judged file.

    ``last`` is a pattern of the same kind that does. ``searched`` is what they say of a search in
    the file's folder.
    """

    key: str
    what: str
    patterns: tuple[str, ...]
    last: str
    searched: RuleVerdict = _ALLOW

    def rules(self, at: Place, n: int, last: str | None = None) -> list[FilePermission]:
        """``n`` rules, whose last matches the file with the mode ``last``, or none of which does."""
        listed = [
            self._rule(at, self.patterns[k % len(self.patterns)].replace("{n}", str(k)), mode)
            for k, mode in zip(range(n), _MODES * n, strict=False)
        ]
        return listed if last is None else [*listed[:-1], self._rule(at, self.last, last)]

    def _rule(self, at: Place, pattern: str, mode: str) -> FilePermission:
        path = pattern.replace("<near>", at.near)
        return FilePermission(operations=["read", "write"], paths=[path], mode=mode)


# An interrupt with no fixed folder, as **/*.ext1 has it, asks before every search.
_FOLDERS = _Family("folders", "literal folders", ("data/folder{n}/**",), "<near>/**")
_ENDINGS = _Family("endings", "**/*.ext patterns", ("**/*.ext{n}",), "**/*.md", _INTERRUPT)
_MIXED = _Family(
    "mixed",
    "mixed rules",
    (
        "src/module{n}/secret.txt",
        "data/folder{n}/**",
        "src/module{n}/*.x{n}",
        "**/name{n}",
        "**/*.ext{n}",
        "conf{n}/{a,b}/*.key",
    ),
    "<near>/*.md",
    _INTERRUPT,
)
_CROWDED = _Family(
    "crowded", "patterns in the file's folder", ("<near>/*.x{n}",), "<near>/*.md", _DENY
)
_FAMILIES = (_FOLDERS, _ENDINGS, _MIXED, _CROWDED)


class _Case(NamedTuple):
    """``<near>`` and ``<project>`` stand for folders. ``path`` goes to ``realpath``, too."""

    key: str
    what: str
    tool: str
    path: str
    more: Mapping[str, str] = {}

    def call(self, at: Place) -> tuple[str, dict[str, str]]:
        """The path, and the input that has it."""
        path = self.path.replace("<near>", at.near).replace("<project>", at.project)
        field = "path" if self.tool in ("Grep", "Glob") else "file_path"
        return path, {**self.more, field: path}


_TEXT = "A line of text, as it may stand in a page.\n" * 25  # about a kilobyte
_READ = _Case("read", "Read of a file", "Read", "<near>/file.md")
_WRITE = _Case("write", "Write of a new file", "Write", "<near>/new.md", {"content": _TEXT})
_GREP = _Case("grep", "Grep of a folder", "Grep", "<near>", {"pattern": "word"})
_GLOB = _Case("glob", "Glob in a folder", "Glob", "<near>", {"pattern": "**/*.md"})
_LINK = _Case("link", "Read through a link", "Read", "<project>/link/file.md")


def measure(effort: Effort) -> Iterator[Row]:
    """``added`` by rules and authorizers over ``os.path.realpath``; the scope is as in decisions."""
    with place() as at:
        scope = at.scope(["agent.config.json", "**/*.env"])
        for family in _FAMILIES:
            yield from _of_rules(scope, at, family, effort)
        yield from _of_authorizers(scope, at, effort)


def _of_rules(scope: FileScope, at: Place, family: _Family, effort: Effort) -> Iterator[Row]:
    sets = _sets(at, family)
    allowed, denied = (_sets(at, family, last) for last in ("allow", "deny"))
    searched = family.searched
    for case, rules, says, mark, end in (
        (_READ, sets, _ALLOW, "", ""),
        (_READ, allowed, _ALLOW, ".allowed", ", the last allows it"),
        (_READ, denied, _DENY, ".denied", ", the last denies it"),
        (_WRITE, sets, _ALLOW, "", ""),
        (_GREP, sets, searched, "", ""),
        (_GREP, sets, searched, _FIRST, ", the first time"),
        (_GLOB, sets, searched, "", ""),
        (_LINK, sets, _ALLOW, "", ""),
    ):
        key = f"rules.{family.key}.{case.key}{mark}"
        what = f"{case.what}, {RULES:,} {family.what}{end}"
        yield _rules_row(key, what, scope, at, case, rules, says, effort)
    taken = [
        seconds(lambda: _sets(at, family), process_time)[0] / RULES * 1e6
        for _ in range(effort.builds)
    ]
    what = f"compiling {RULES:,} {family.what}, for each"
    yield figure(f"rules.{family.key}.compile", what, "µs", taken, statistic="minimum")


def _sets(at: Place, family: _Family, last: str | None = None) -> RuleSets:
    """Half of the rules are the session's, half the agent's."""
    rules = family.rules(at, RULES, last)
    return compile_rule_sets(
        project_dir=at.project, session=rules[: RULES // 2], agent=rules[RULES // 2 :]
    )


def _rules_row(
    key: str,
    what: str,
    scope: FileScope,
    at: Place,
    case: _Case,
    sets: RuleSets,
    says: RuleVerdict,
    effort: Effort,
) -> Row:
    path, call = case.call(at)
    without, gate = _Gate(scope), _Gate(scope, sets)
    assert without.ask(case.tool, call) is _ALLOW, f"{key}: the scope must allow it"
    found = gate.ask(case.tool, call)
    assert found is says, f"{key}: the rules say {found}, what is measured isn't what it says"

    asked = _Asked(without, gate, case.tool, call, sets if key.endswith(_FIRST) else None)
    return asked.samples(path, effort).ratio(key, what, bound=BOUND)


class _Gate:
    """The gate of a session with rules and authorizers, or neither.

    The hook itself is asked about a file that no link leads to. About anything else it would ask in a
    thread, whose turns say nothing of rules: what it does there is done here.
    """

    def __init__(
        self, scope: FileScope, sets: RuleSets | None = None, authorizers: Sequence[Any] = ()
    ) -> None:
        self._scope, self._judge = scope, ScopeJudge()
        self._policy = Policy(
            scope=scope,
            rules=sets,
            authorizers=tuple(authorizers),
            mode=SessionMode(Mode.GUIDED),
            has_ask=True,
        )
        tools = OpenTools(whole=frozenset())
        policy = PolicyGate(policy=self._policy, tools=tools, scope_judge=self._judge)
        self._hook: Any = create_file_scope_gate(scope, policy=policy).hooks[0]

    def ask(self, tool: str, call: Mapping[str, str]) -> RuleVerdict:
        if is_plainly_allowed(self._scope, tool, call, self._scope.project_dir):
            payload = {"tool_name": tool, "tool_input": call, "cwd": self._scope.project_dir}
            return _DENY if _run(self._hook(payload, None, None)) else _ALLOW
        return self.ask_in_turn(tool, call)

    def ask_in_turn(self, tool: str, tool_input: Mapping[str, str]) -> RuleVerdict:
        """What the hook does where it can't answer at once, without its thread."""
        cwd = self._scope.project_dir
        found = self._judge.judge(self._scope, tool, tool_input, cwd)
        if found.reason is not None:
            return _DENY
        call = Call(tool=tool, tool_input=tool_input, cwd=cwd)
        verdict = self._policy.judge(call, found.named).verdict
        if verdict is not _ALLOW or not self._policy.authorizers:
            return verdict
        return _ALLOW if _run(self._policy.authorize(call, found.named)).allowed else _DENY


def _forget(sets: RuleSets) -> None:
    """What is remembered of searched folders."""
    for listed in sets.lists():
        for subtrees in listed.subtrees.values():
            subtrees._known.clear()


def _chain() -> list[Any]:
    """Authorizers that allow it. The expression begins with a text: ``re`` itself costs little."""
    return [
        size_ceiling(1 << 20),
        rate_limit(10**9, 1),
        content_check(r"BEGIN [A-Z ]*PRIVATE KEY"),
    ]


def _of_authorizers(scope: FileScope, at: Place, effort: Effort) -> Iterator[Row]:
    patterns = [rule.paths[0] for rule in _MIXED.rules(at, RULES)]
    refused = [*patterns[:-1], _MIXED.last.replace("<near>", at.near)]
    many = f"deny_paths of {RULES:,} patterns"
    chain = "size_ceiling, rate_limit, content_check"
    for key, what, case, authorizers, allowed in (
        ("deny", many, _READ, [deny_paths(patterns)], True),
        ("deny", many, _WRITE, [deny_paths(patterns)], True),
        ("deny", many, _GLOB, [deny_paths(patterns)], True),
        ("refused", f"{many}, the last refuses it", _READ, [deny_paths(refused)], False),
        ("chain", chain, _READ, _chain(), True),
        ("chain", chain, _WRITE, _chain(), True),
        ("all", f"{chain}, {many}", _READ, [*_chain(), deny_paths(patterns)], True),
    ):
        name, told = f"authorizers.{key}.{case.key}", f"{case.what}, {what}"
        path, call = case.call(at)
        asked = _Asked(_Gate(scope), _Gate(scope, None, authorizers), case.tool, call)
        assert asked.more() is (_ALLOW if allowed else _DENY), f"{name}: it isn't what it says"
        yield asked.samples(path, effort).ratio(name, told, bound=BOUND)


class _Asked(NamedTuple):
    """One call, asked of a gate and of one with rules or authorizers.

    What is remembered in ``forgetting`` is forgotten before each call, on both sides: that is no work
    of theirs.
    """

    without_any: _Gate
    with_some: _Gate
    tool: str
    call: Mapping[str, str]
    forgetting: RuleSets | None = None

    def less(self) -> RuleVerdict:
        return self._ask(self.without_any)

    def more(self) -> RuleVerdict:
        return self._ask(self.with_some)

    def _ask(self, gate: _Gate) -> RuleVerdict:
        if self.forgetting is not None:
            _forget(self.forgetting)
        return gate.ask(self.tool, self.call)

    def samples(self, path: str, effort: Effort) -> Samples:
        return _added(lambda: os.path.realpath(path), self.less, self.more, effort)


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Its result. It must not wait for anything, as the ready authorizers don't."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        found: T = done.value
        return found
    coroutine.close()
    raise AssertionError("an authorizer waits: what is measured would be the event loop")


def _added(reference: Action, without: Action, more: Action, effort: Effort) -> Samples:
    """Seconds of ``reference``, and beside it what ``more`` takes more than ``without``."""
    loops = {action: _loops(action, effort.block) for action in (reference, without, more)}
    coin = random.Random(1)

    def difference() -> float:
        if coin.random() < 0.5:
            first = _block(without, loops[without])
            return _block(more, loops[more]) - first
        first = _block(more, loops[more])
        return first - _block(without, loops[without])

    with quiet():
        return take_turns(lambda: _block(reference, loops[reference]), difference, effort.blocks)
