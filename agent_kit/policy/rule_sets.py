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
from typing import Any, Final, NamedTuple

from agent_kit.policy import sentences
from agent_kit.policy.compiled import RuleList, compile_rules
from agent_kit.policy.found import Found, stronger
from agent_kit.policy.rules import FilePermission, Operation, RuleVerdict, read_rules
from agent_kit.policy.searches import Lists, judge_search
from agent_kit.policy.shadows import Shadow
from agent_kit.scope.decision import Access
from agent_kit.scope.errors import ConfigError, Fault
from agent_kit.scope.judge import NamedPath, plain_path
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


class Ruling(NamedTuple):
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
_NOT_ONE: Final[frozenset[int]] = frozenset()


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

    def judge_named(
        self,
        named: Iterable[NamedPath],
        agent_type: str | None = None,
        remembered: Collection[str] = (),
    ) -> Ruling:
        """What the rules say of a call whose paths ``scope.judge.judge_and_name`` has located.

        Without a path there is no rule. A rule that asks and is among the ``remembered`` (by
        :attr:`Ruling.name`) asks no more; what else is to be said of the same path is said.
        """
        lists = [
            (each, _silent(each, remembered) if remembered else _NOT_ONE)
            for each in self.lists(agent_type)
            if each.rules
        ]
        decided: tuple[int, NamedPath, Found] | None = None
        for path in named:
            for at, found in enumerate(_ruled(lists, path)):
                if found.number is not None and (
                    decided is None or stronger(decided[2], found) is found
                ):
                    decided = at, path, found
        if decided is None:
            return NO_OBJECTION
        at, path, found = decided
        listed, _ = lists[at]
        return _ruling(listed, path.access, path.text, found)

    def rule_plainly(
        self, tool_name: str, tool_input: Mapping[str, Any], agent_type: str | None = None
    ) -> Ruling | None:
        """As :meth:`judge_named`, of a call that ``is_plainly_allowed`` (of the scope): a denial, or no
        objection, by whichever rule. It looks at no disk. ``None`` says: ask :meth:`judge_named`.
        """
        if (path := plain_path(tool_name, tool_input)) is None:
            return None
        operation, asks = _BY_TOOL[tool_name], False
        for listed in self.lists(agent_type):
            if (lookup := listed.lookups.get(operation)) is not None:
                number = lookup.first(path, folder=False)
                mode = listed.modes.get(number)
                if mode is RuleVerdict.DENY:
                    access = FILE_TOOLS[tool_name].access
                    return _ruling(listed, access, path, Found(mode, number))
                asks = asks or mode is RuleVerdict.INTERRUPT
        return None if asks else NO_OBJECTION


def _silent(listed: RuleList, remembered: Collection[str]) -> frozenset[int]:
    """The numbers of the remembered rules of a list, among those that ask."""
    start = f"{listed.field}["
    numbers = [int(name[len(start) : -1]) for name in remembered if name.startswith(start)]
    return frozenset(n for n in numbers if listed.modes.get(n) is RuleVerdict.INTERRUPT)


def _is_folder(path: NamedPath) -> bool:
    """Whether a path is judged as a folder: what is searched and doesn't exist may become one."""
    if path.text.endswith("/"):
        return True
    exists = False
    for target in path.targets:
        if target.mode:
            exists = True
            if stat.S_ISDIR(target.mode):
                return True
    return not exists and path.access in _WHOLE


def _ruled(lists: Lists, path: NamedPath) -> list[Found]:
    """What each of the lists says of a path."""
    operation, folder = OPERATIONS[path.access], _is_folder(path)
    if path.access in _WHOLE:
        return judge_search(lists, operation, path.names, folder)
    return [listed.judge(operation, path.names, folder, silent) for listed, silent in lists]


_SAYS: Final = {
    RuleVerdict.DENY: sentences.rule_denies,
    RuleVerdict.INTERRUPT: sentences.rule_asks,
}


def _ruling(listed: RuleList, access: Access, text: str, found: Found) -> Ruling:
    sentence = _SAYS.get(found.verdict)
    message = None if sentence is None else sentence(access, shown(text))
    return Ruling(found.verdict, listed.field, found.number, text, message)


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
