"""What 1,000 rules and a chain of authorizers add to the scope's own judgement of a call."""

from __future__ import annotations

import os
import random
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from time import process_time
from typing import Any, NamedTuple

from agent_kit import FileScope, check_file_scope
from agent_kit.policy import (
    Authorized,
    AuthorizerContext,
    FilePermission,
    RuleSets,
    RuleVerdict,
    authorize_call,
    compile_rule_sets,
    content_check,
    deny_paths,
    rate_limit,
    size_ceiling,
)
from agent_kit.scope.judge import is_plainly_allowed, judge_and_name
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
    assert check_file_scope(scope, case.tool, call) is None, f"{key}: the scope must allow it"
    found = _judged(scope, sets, case.tool, call)
    assert found is says, f"{key}: the rules say {found}, what is measured isn't what it says"

    def judged() -> RuleVerdict:
        return _judged(scope, sets, case.tool, call)

    def judged_anew() -> RuleVerdict:
        _forget(sets)
        return judged()

    return _added(
        lambda: os.path.realpath(path),
        lambda: check_file_scope(scope, case.tool, call),
        judged_anew if key.endswith(_FIRST) else judged,
        effort,
    ).ratio(key, what, bound=BOUND)


def _judged(scope: FileScope, sets: RuleSets, tool: str, call: Mapping[str, str]) -> RuleVerdict:
    """Scope and rules, as a gate asks them: a path that isn't plain is located once for both."""
    if is_plainly_allowed(scope, tool, call, None) and sets.judge_plain(tool, call):
        return _ALLOW
    refusal, named = judge_and_name(scope, tool, call)
    return _DENY if refusal is not None else sets.judge_named(named).verdict


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
        call = _Authorized(scope, at, case, authorizers, allowed)
        yield call.whole(effort).ratio(name, told, bound=BOUND)
        yield call.alone(effort).ratio(f"{name}.alone", f"of which authorize_call: {told}")


class _Authorized:
    """A call that authorizers are asked about, with the answer that they must give."""

    def __init__(
        self,
        scope: FileScope,
        at: Place,
        case: _Case,
        authorizers: Sequence[Any],
        allowed: bool,
    ) -> None:
        self._scope, self._tool = scope, case.tool
        self._path, self._call = case.call(at)
        self._authorizers = authorizers
        self._context = AuthorizerContext(project_dir=at.project)
        assert self._with().allowed is allowed, f"{case}: what is measured isn't what it says"

    def whole(self, effort: Effort) -> Samples:
        """With the naming of the paths, which the scope's short way does without."""
        return _added(self._realpath, self._without, self._with, effort)

    def alone(self, effort: Effort) -> Samples:
        refusal, named = judge_and_name(self._scope, self._tool, self._call)
        assert refusal is None
        return _added(self._realpath, lambda: None, lambda: self._asked(named), effort)

    def _realpath(self) -> str:
        return os.path.realpath(self._path)

    def _without(self) -> str | None:
        return check_file_scope(self._scope, self._tool, self._call)

    def _with(self) -> Authorized:
        return self._asked(judge_and_name(self._scope, self._tool, self._call)[1])

    def _asked(self, named: Any) -> Authorized:
        return _run(
            authorize_call(
                self._authorizers,
                self._scope,
                self._tool,
                self._call,
                self._context,
                named=named,
            )
        )


def _run(coroutine: Coroutine[Any, Any, Authorized]) -> Authorized:
    """Its result. It must not wait for anything, as the ready authorizers don't."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        found: Authorized = done.value
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
