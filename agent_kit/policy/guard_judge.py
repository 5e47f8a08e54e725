"""What scope, mode and rules say of a path that a tool asks about. It waits for nobody."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from agent_kit.policy import sentences
from agent_kit.policy.authorizers import denied_patterns
from agent_kit.policy.compiled import RuleList, compile_rules
from agent_kit.policy.delete import check_delete
from agent_kit.policy.guard_scope import TOOL, OwnFolder, judged_scope
from agent_kit.policy.modes import Mode
from agent_kit.policy.outcome import Action
from agent_kit.policy.policy import Call, Policy
from agent_kit.policy.rules import FilePermission, Operation, RuleVerdict, stricter
from agent_kit.policy.running import Running
from agent_kit.scope.decision import Access
from agent_kit.scope.file_scope import FileScope
from agent_kit.scope.judge import NamedPath, explain_file_scope, judge_and_name
from agent_kit.scope.sentences import malformed
from agent_kit.scope.text import shown

__all__ = ["ACCESS", "BELOW", "TREE", "Found", "GuardJudge", "Question", "denied"]

ACCESS: Final[Mapping[Action, Access]] = {
    Action.READ: Access.READ,
    Action.LIST: Access.LIST,
    Action.SEARCH: Access.SEARCH,
    Action.WRITE: Access.WRITE,
    Action.DELETE: Access.WRITE,
}
# Who agreed to the one has agreed to what is less, in the same call.
_WEIGHT: Final[Mapping[Action, int]] = {Action.WRITE: 1, Action.DELETE: 2}
TREE: Final = "everything in it"  # the question about a deletion, which no one rule asks
BELOW: Final = "what lies in a folder that is deleted"  # to which a person has agreed as a whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found, and the paths that it is about."""

    verdict: RuleVerdict = RuleVerdict.ALLOW
    part: str = "rules"
    code: str = ""
    rule: str | None = None
    message: str = ""
    named: tuple[NamedPath, ...] = ()


def denied(part: str, code: str, message: str, rule: str | None = None) -> Found:
    return Found(verdict=RuleVerdict.DENY, part=part, code=code, message=message, rule=rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One path of one call. ``agents`` are those that may be calling, ``running`` is the call when it
    is known."""

    operation: Action
    path: str
    label: str | None = None
    filtered: bool = False
    call: Call
    agents: tuple[str | None, ...]
    running: Running | None = None

    @property
    def shown(self) -> str:
        return shown(self.path if self.label is None else self.label)

    @property
    def access(self) -> Access:
        """What is asked of the scope and the rules; of a filtered search only whether it may begin."""
        return Access.READ if self.filtered else ACCESS[self.operation]

    @property
    def weight(self) -> int:
        return _WEIGHT.get(self.operation, 0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GuardJudge:
    """Judges by ``policy``, in whose scope ``own`` is open."""

    policy: Policy
    own: OwnFolder | None = None
    _scopes: dict[str | None, FileScope] = field(default_factory=dict, repr=False)
    _denied: list[RuleList] = field(default_factory=list, repr=False)

    def everybody(self) -> tuple[str | None, ...]:
        """Every agent that something of its own holds for, and the others as ``None``."""
        own = () if self.policy.rules is None else self.policy.rules.subagents
        return tuple(dict.fromkeys((None, *self.policy.scopes, *own)))

    def judge(self, question: Question, agreed: frozenset[str]) -> Found:
        """The strictest of what holds for the question's agents. ``agreed`` are rules that ask no more."""
        if not isinstance(question.path, str):
            return denied("scope", "malformed", malformed(shown(question.path)))
        found = Found()
        for agent in question.agents:
            each = self._judge_for(question, agent, agreed)
            if stricter(found.verdict, each.verdict) is each.verdict:
                found = each
        return found

    def agreed(self, question: Question) -> frozenset[str]:
        """The rules that a person has answered in this call, for this path or a folder that holds it."""
        running = question.running
        if running is None or not running.agreed or not isinstance(question.path, str):
            return frozenset()
        given = {question.access.value: question.path}
        _, named = judge_and_name(self._scope(question.call.agent), TOOL, given)
        real = [f"{target.path}/" for path in named for target in path.targets]
        found = frozenset(
            rule
            for rule, place, weight in running.agreed
            if weight >= question.weight
            and all(path.startswith(f"{place.rstrip('/')}/") for path in real)
        )
        whole = question.operation is Action.DELETE and TREE in found
        return found | {BELOW} if whole else found

    def is_denied(self, named: tuple[NamedPath, ...]) -> bool:
        """Whether ``deny_paths`` matches one of the real paths."""
        if not self._denied:
            patterns = denied_patterns(self.policy.authorizers)
            rules = [
                FilePermission(operations=["read"], paths=[pattern], mode="deny")
                for pattern in patterns
            ]
            self._denied.append(_compiled(self.policy.scope, rules))
        targets = [target for path in named for target in path.targets]
        folder = any(stat.S_ISDIR(target.mode) for target in targets)
        real = tuple(target.path for target in targets)
        return self._denied[0].judge(Operation.READ, real, folder).verdict is RuleVerdict.DENY

    def _scope(self, agent: str | None) -> FileScope:
        agent = agent if agent in self.policy.scopes else None
        if (scope := self._scopes.get(agent)) is None:
            scope = self._scopes[agent] = judged_scope(self.policy.scope_of(agent), self.own)
        return scope

    def _judge_for(self, question: Question, agent: str | None, agreed: frozenset[str]) -> Found:
        tool = shown(question.call.tool)
        if question.weight and self.policy.mode.current is Mode.PLAN:
            return denied("mode", "plan-mode", sentences.plan_mode(tool))
        if question.weight and self.own is not None and agent in self.policy.scopes:
            return denied("subagents", "narrower-agent", sentences.narrower(tool))
        scope, given = self._scope(agent), {question.access.value: question.path}
        reason, named = judge_and_name(scope, TOOL, given)
        if reason is not None:
            code = str(explain_file_scope(scope, TOOL, given).code)
            own_name = question.label is not None
            said = sentences.off_limits(question.shown) if own_name else _this_tool(reason)
            return denied("scope", code, said)
        if question.label is not None:
            named = tuple(path._replace(text=question.label) for path in named)
        found = self._ruled(question, named, agent, agreed)
        if question.operation is Action.DELETE and found.verdict is not RuleVerdict.DENY:
            found = self._deleted(question, found, agent, agreed)
        return replace(found, named=named)

    def _ruled(
        self,
        question: Question,
        named: tuple[NamedPath, ...],
        agent: str | None,
        agreed: frozenset[str],
    ) -> Found:
        if self.policy.rules is None:
            return Found()
        silent = self.policy.remembered | agreed
        ruling = self.policy.rules.judge_named(named, agent, silent)
        if ruling.verdict is RuleVerdict.ALLOW:
            return Found()
        if ruling.verdict is RuleVerdict.INTERRUPT and BELOW in agreed:
            return Found()
        denies, message = ruling.verdict is RuleVerdict.DENY, ruling.message or ""
        if question.operation is Action.DELETE:
            say = sentences.delete_denies if denies else sentences.delete_asks
            message = say(question.shown)
        code = "denied" if denies else "interrupt"
        return Found(verdict=ruling.verdict, code=code, rule=ruling.name, message=message)

    def _deleted(
        self, question: Question, found: Found, agent: str | None, agreed: frozenset[str]
    ) -> Found:
        """``found`` for the path itself, and what is said of all that is in it."""
        scope, rules = self._scope(agent), self.policy.rules
        listed = (_compiled(scope, []),) if rules is None else rules.lists(agent)
        verdict = found.verdict
        for each in listed:
            verdict = stricter(verdict, check_delete(each, question.path, scope=scope))
        if verdict is RuleVerdict.DENY:
            return denied("rules", "denied", sentences.delete_denies(question.shown))
        if verdict is found.verdict or TREE in agreed:
            return found
        message = sentences.delete_asks(question.shown)
        return Found(verdict=verdict, code="interrupt", message=message)


def _compiled(scope: FileScope, rules: list[FilePermission]) -> RuleList:
    return compile_rules(rules, project_dir=scope.project_dir, home=scope.home)


def _this_tool(sentence: str) -> str:
    """The scope's sentence, which may begin with the name that the guard has there."""
    return f"This tool{sentence[len(TOOL) :]}" if sentence.startswith(TOOL) else sentence
