"""The two lists that hold for a call: the session's own, and the agent's, which a subagent may replace.

Each list is judged by itself, and the stricter verdict counts: so an ``allow`` in one never answers
for the other.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from agent_kit.policy import sentences
from agent_kit.policy.compiled import RuleList, compile_rules
from agent_kit.policy.rules import FilePermission, Operation, RuleVerdict, read_rules, stricter
from agent_kit.policy.shadows import Shadow
from agent_kit.scope.decision import Access
from agent_kit.scope.errors import ConfigError, Fault
from agent_kit.scope.file_scope import FileScope
from agent_kit.scope.judge import NamedPath, named_paths, plain_path
from agent_kit.scope.text import shown
from agent_kit.scope.tools import FILE_TOOLS

__all__ = ["RuleSets", "Ruling", "compile_rule_sets", "own_rules"]

OPERATIONS: Final[Mapping[Access, Operation]] = {
    Access.READ: Operation.READ,
    Access.LIST: Operation.READ,
    Access.SEARCH: Operation.READ,
    Access.WRITE: Operation.WRITE,
}
_BY_TOOL: Final = {name: OPERATIONS[tool.access] for name, tool in FILE_TOOLS.items()}
_WHOLE: Final = frozenset({Access.LIST, Access.SEARCH})  # these reach all below a folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What the rules say of one call.

    ``field`` and ``rule`` name the rule that decided (``permissions``, 3), ``path`` is what it decided
    over, as the model wrote it. ``message`` is for the model when denied, for the person when asked.
    """

    verdict: RuleVerdict = RuleVerdict.ALLOW
    field: str | None = None
    rule: int | None = None
    path: str | None = None
    message: str | None = None

    @property
    def name(self) -> str | None:
        """``field`` and ``rule`` in one text, as ``SessionConfig.permissions[3]``."""
        return None if self.rule is None else f"{self.field}[{self.rule}]"


NO_OBJECTION: Final = Ruling()
_UNJUDGED: Final = Ruling(verdict=RuleVerdict.DENY, message=sentences.unjudged)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleSets:
    """The rules of a session: ``session`` always holds, ``agent`` unless ``subagents`` replaces it."""

    session: RuleList
    agent: RuleList
    subagents: Mapping[str, RuleList] = field(default_factory=dict)

    def lists(self, agent_type: str | None = None) -> tuple[RuleList, RuleList]:
        """The lists that hold for an agent; one that isn't named (or ``None``) has the session's."""
        if agent_type is None:
            return self.session, self.agent
        return self.session, self.subagents.get(agent_type, self.agent)

    @property
    def shadows(self) -> tuple[Shadow, ...]:
        every = (self.session, self.agent, *self.subagents.values())
        return tuple(shadow for listed in every for shadow in listed.shadows)

    def judge(
        self,
        scope: FileScope,
        tool_name: str,
        tool_input: Mapping[str, Any],
        *,
        cwd: str | None = None,
        agent_type: str | None = None,
    ) -> Ruling:
        """What the rules say of a call, whose paths are read as ``scope`` reads them.

        A tool that names no path has no rule. What the scope can't judge is denied. Never raises.
        """
        if not any(listed.rules for listed in self.lists(agent_type)):
            return NO_OBJECTION
        if (named := named_paths(scope, tool_name, tool_input, cwd)) is None:
            return _UNJUDGED
        return self.judge_named(named, agent_type)

    def judge_named(
        self,
        named: Iterable[NamedPath],
        agent_type: str | None = None,
        remembered: Collection[str] = (),
    ) -> Ruling:
        """As :meth:`judge`, of paths that ``scope.judge.judge_and_name`` has located.

        A rule that asks and is among the ``remembered`` (by :attr:`Ruling.name`) asks no more; what
        else is to be said of the same path is said.
        """
        ruling = NO_OBJECTION
        lists = [(each, _silent(each, remembered)) for each in self.lists(agent_type) if each.rules]
        for path in named:
            for listed, silent in lists:
                ruling = _stronger(ruling, _ruled(listed, path, silent))
        return ruling

    def judge_plain(
        self, tool_name: str, tool_input: Mapping[str, Any], agent_type: str | None = None
    ) -> bool:
        """Whether no rule objects to a call that ``is_plainly_allowed`` (of the scope).

        It looks at no disk. ``False`` says: ask :meth:`judge`.
        """
        if (path := plain_path(tool_name, tool_input)) is None:
            return False
        operation = _BY_TOOL[tool_name]
        for listed in self.lists(agent_type):
            if (lookup := listed.lookups.get(operation)) is not None:
                mode = listed.modes.get(lookup.first(path, folder=False))
                if mode is not None and mode is not RuleVerdict.ALLOW:
                    return False
        return True


def _silent(listed: RuleList, remembered: Collection[str]) -> frozenset[int]:
    """The numbers of the remembered rules of a list, among those that ask."""
    start = f"{listed.field}["
    numbers = [int(name[len(start) : -1]) for name in remembered if name.startswith(start)]
    return frozenset(n for n in numbers if listed.modes.get(n) is RuleVerdict.INTERRUPT)


def _ruled(listed: RuleList, path: NamedPath, silent: frozenset[int]) -> Ruling:
    folder = path.text.endswith("/") or any(stat.S_ISDIR(t.mode) for t in path.targets)
    operation = OPERATIONS[path.access]
    if path.access in _WHOLE:
        folder = folder or not any(target.mode for target in path.targets)
        found = listed.judge_all(operation, path.names, folder, silent, filtered=True)
    else:
        found = listed.judge(operation, path.names, folder, silent)
    if found.number is None:
        return NO_OBJECTION
    text = shown(path.text)
    says = {RuleVerdict.DENY: sentences.rule_denies, RuleVerdict.INTERRUPT: sentences.rule_asks}
    sentence = says.get(found.verdict)
    return Ruling(
        verdict=found.verdict,
        field=listed.field,
        rule=found.number,
        path=path.text,
        message=None if sentence is None else sentence(path.access, text),
    )


def _stronger(first: Ruling, second: Ruling) -> Ruling:
    if first.verdict is second.verdict:
        return second if first.rule is None else first
    return first if stricter(first.verdict, second.verdict) is first.verdict else second


def own_rules(
    permissions: Any, replace_rules: bool, field: str = "permissions"
) -> tuple[FilePermission, ...] | None:
    """A subagent's own rules as given, ``None`` when it inherits. Raises ConfigError.

    An empty list means "no rules", and needs ``replace_rules=True`` to say so.

    >>> own_rules(None, replace_rules=False) is None, own_rules([], replace_rules=True)
    (True, ())
    """
    if permissions is None:
        if replace_rules:
            remedy = f"give {field} too: the rules that replace the agent's, or [] for none."
            raise ConfigError([Fault(field="replace_rules", value=True, remedy=remedy)])
        return None
    read = read_rules(permissions, field)
    if not read and not replace_rules:
        remedy = "leave it out to inherit; for no rules at all, write replace_rules=True, too."
        raise ConfigError([Fault(field=field, value=permissions, remedy=remedy)])
    return read


def compile_rule_sets(
    *,
    project_dir: str | os.PathLike[str],
    home: str | None = None,
    session: Sequence[Any] = (),
    agent: Sequence[Any] = (),
    subagents: Mapping[str, Sequence[Any] | None] = MappingProxyType({}),
) -> RuleSets:
    """The lists of a config, a spec and its subagents (``None`` inherits), ready to judge.

    Raises ConfigError with every fault of all of them.
    """
    faults: list[Fault] = []

    def listed(rules: Any, name: str) -> RuleList:
        try:
            return compile_rules(rules, project_dir=project_dir, home=home, field=name)
        except ConfigError as error:
            faults.extend(error.faults)
            return _NONE

    found = RuleSets(
        session=listed(session, "SessionConfig.permissions"),
        agent=listed(agent, "AgentSpec.permissions"),
        subagents={
            name: listed(rules, f"subagents[{name!r}].permissions")
            for name, rules in subagents.items()
            if rules is not None
        },
    )
    if faults:
        raise ConfigError(dict.fromkeys(faults))
    return found


_NONE: Final = compile_rules([], project_dir="/", platform="posix", native=False)
