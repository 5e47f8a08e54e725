"""From a list of rules to what answers for a path: patterns absolute, links in them resolved."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as made
from typing import Any

from agent_kit.policy.found import NO_RULE, Found, stronger
from agent_kit.policy.lookup import NEVER, Lookup
from agent_kit.policy.patterns import RulePattern, parse_rule_pattern
from agent_kit.policy.rules import FilePermission, Operation, RuleVerdict, read_rules
from agent_kit.policy.searches import judge_search
from agent_kit.policy.shadows import Shadow, find_shadows
from agent_kit.policy.subtree import Numbered, Subtrees
from agent_kit.scope.disk import Located, Unresolvable, locate
from agent_kit.scope.errors import ConfigError, Fault
from agent_kit.scope.file_scope import NATIVE
from agent_kit.scope.flavour import FLAVOURS, Flavour, Malformed
from agent_kit.scope.odd_names import Closes
from agent_kit.scope.text import is_well_formed

__all__ = ["Found", "RuleList", "compile_rules"]


@dataclass(frozen=True, slots=True, eq=False)
class RuleList:
    """One list of rules, ready to judge, for one project. Paths are canonical.

    ``field`` is where the list stands (``permissions``, ``subagents['auditor'].permissions``).
    ``shadows`` tells of rules that can never decide. ``native`` says whether paths are this
    machine's, so that links are resolved.
    """

    rules: tuple[FilePermission, ...]
    field: str
    flavour: Flavour
    native: bool
    project: str
    home: str | None
    shadows: tuple[Shadow, ...] = ()
    modes: Mapping[int, RuleVerdict] = made(default_factory=dict, repr=False)
    lookups: Mapping[Operation, Lookup] = made(default_factory=dict, repr=False)
    subtrees: Mapping[Operation, Subtrees] = made(default_factory=dict, repr=False)

    def locate(self, path: str) -> Located:
        return locate(path) if self.native else Located(path)

    def judge(
        self,
        operation: Operation,
        names: tuple[str, ...],
        folder: bool,
        silent: Collection[int] = (),
    ) -> Found:
        """The first rule that matches decides, for each name; the strictest verdict counts.

        A name that one of the ``silent`` rules decides is as one that no rule matches.
        """
        if (lookup := self.lookups.get(operation)) is None:
            return NO_RULE
        found = NO_RULE
        for name in names:
            number = lookup.first(name, folder)
            if number != NEVER and number not in silent:
                found = stronger(found, Found(self.modes[number], number))
        return found

    def judge_all(
        self,
        operation: Operation,
        names: tuple[str, ...],
        folder: bool,
        silent: Collection[int] = (),
        *,
        filtered: bool,
    ) -> Found:
        """As :meth:`judge_below`; where ``filtered`` with a look at the disk, see :func:`judge_search`."""
        if not filtered:
            return self.judge_below(operation, names, folder, silent, filtered=False)
        [found] = judge_search([(self, silent)], operation, names, folder)
        return found

    def judge_below(
        self,
        operation: Operation,
        names: tuple[str, ...],
        folder: bool,
        silent: Collection[int] = (),
        *,
        filtered: bool,
    ) -> Found:
        """The strictest verdict for anything at or below the names; see :meth:`Subtrees.judge`.

        It is that of the rules without the ``silent`` ones. The disk is not looked at.
        """
        subtrees = self.subtrees_of(operation, silent)
        return NO_RULE if subtrees is None else subtrees.judge(names, folder, filtered=filtered)

    def subtrees_of(self, operation: Operation, silent: Collection[int]) -> Subtrees | None:
        """What answers for folders, without the ``silent`` rules; ``None`` where there is no rule."""
        subtrees = self.subtrees.get(operation)
        return subtrees.without(silent) if silent and subtrees is not None else subtrees

    def leave_in(self, numbers: Collection[int]) -> None:
        """Say that no rule of the CLI leaves the hits of these rules out of a search."""
        for subtrees in self.subtrees.values():
            subtrees.leave_in(numbers)


def compile_rules(
    rules: Any,
    *,
    project_dir: str | os.PathLike[str],
    home: str | None = None,
    field: str = "permissions",
    platform: str = NATIVE,
    native: bool | None = None,
) -> RuleList:
    """``rules`` (of FilePermission, or dicts) ready to judge, with patterns relative to ``project_dir``.

    ``project_dir`` is relative to the process's folder. ``home`` stands for ``~`` (default: the
    process's own). ``field`` names the list in faults. Links in the folders of patterns are resolved
    here, once, and a pattern holds under both names. ``native=False`` looks at no disk.

    Raises ConfigError with every fault of every rule, each with the rule's index.
    """
    builder = _Builder(FLAVOURS[platform], platform == NATIVE if native is None else native)
    faults = builder.settle(project_dir, home)
    try:
        read = read_rules(rules, field)
    except ConfigError as error:
        raise ConfigError([*faults, *error.faults]) from None
    patterns = list(builder.patterns(read, field, faults))
    if faults:
        raise ConfigError(faults)
    by_operation = {
        operation: [item for item in patterns if operation in read[item.number].operations]
        for operation in Operation
    }
    modes = {number: RuleVerdict(rule.mode) for number, rule in enumerate(read)}
    lookups = {
        operation: Lookup([(item.number, item.pattern) for item in items])
        for operation, items in by_operation.items()
        if items
    }
    return RuleList(
        rules=read,
        field=field,
        flavour=builder.flavour,
        native=builder.native,
        project=builder.project,
        home=builder.home,
        shadows=find_shadows(read, by_operation, field),
        modes=modes,
        lookups=lookups,
        subtrees={
            operation: Subtrees(by_operation[operation], lookup, _denying(lookup, modes))
            for operation, lookup in lookups.items()
        },
    )


def _denying(lookup: Lookup, modes: Mapping[int, RuleVerdict]) -> Closes:
    def denies(path: str, folder: bool) -> bool:
        return modes.get(lookup.first(path, folder)) is RuleVerdict.DENY

    return denies


class _Builder:
    """What a list's patterns are relative to, and each folder's real name, asked once."""

    def __init__(self, flavour: Flavour, native: bool) -> None:
        self.flavour, self.native = flavour, native
        self.project, self.home = "/", None if flavour.name == "windows" else "/"
        self._real: dict[str, str] = {}

    def settle(self, project_dir: object, home: object) -> list[Fault]:
        """Where the project and the home are; faults if that can't be told."""
        faults: list[Fault] = []
        given = home or (os.path.expanduser("~") if self.native else "~")
        if given == "~":  # which stays where nobody knows
            self.home = None
        else:
            self.home = self._entry("home", given, "/", faults)
        base = "/"
        if self.native:
            try:
                base = self.flavour.entry(os.getcwd(), "/", None)
            except OSError:  # the process's folder is gone: a relative project is nowhere
                base = ""
        self.project = self._entry("project_dir", project_dir, base, faults)
        return faults

    def _entry(self, name: str, value: Any, base: str, faults: list[Fault]) -> str:
        try:
            text = os.fspath(value)
            if (
                isinstance(text, str)
                and text
                and is_well_formed(text)
                and (base or text[0] in "/~")
            ):
                return self.flavour.entry(text, base, self.home)
        except (Malformed, TypeError):
            pass
        faults.append(Fault(field=name, value=value, remedy="give an absolute path of a folder."))
        return "/"

    def patterns(
        self, rules: tuple[FilePermission, ...], field: str, faults: list[Fault]
    ) -> Iterator[Numbered]:
        """Every pattern under each name of its folder; what can't be read adds to ``faults``."""
        for number, rule in enumerate(rules):
            mode = RuleVerdict(rule.mode)
            for at, source in enumerate(rule.paths):
                try:
                    found = parse_rule_pattern(source, self.project, self.home, self.flavour)
                except Malformed as error:  # "~" without a home: the rest was checked
                    name = f"{field}[{number}].paths[{at}]"
                    faults.append(Fault(field=name, value=source, remedy=f"{error}."))
                    continue
                for pattern in found:
                    yield Numbered(number, mode, pattern)
                    if (real := self._resolved(pattern)) is not None:
                        yield Numbered(number, mode, real)

    def _resolved(self, pattern: RulePattern) -> RulePattern | None:
        """The pattern under its folder's real name, where that is another."""
        fixed = pattern.fixed
        if fixed is None or not self.native:
            return None
        if fixed not in self._real:
            try:
                self._real[fixed] = locate(fixed).path
            except Unresolvable:  # nothing can be reached through it, either
                self._real[fixed] = fixed
        real = self._real[fixed]
        if real == fixed:
            return None
        found = pattern.below(real)
        assert isinstance(found, RulePattern), "it stays what it was"
        return found
