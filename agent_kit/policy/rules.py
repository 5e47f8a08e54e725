"""``FilePermission``: one rule, as a person writes it, and the reading of a list of them."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from agent_kit.policy.patterns import pattern_remedy
from agent_kit.scope.errors import ConfigError, Fault
from agent_kit.scope.file_scope import NATIVE
from agent_kit.scope.flavour import FLAVOURS
from agent_kit.scope.value import Checked

__all__ = ["FilePermission", "Operation", "RuleVerdict", "read_rules", "stricter"]


class Operation(StrEnum):
    """What a rule is about. Listing and searching are reading, deleting is writing."""

    READ = "read"
    WRITE = "write"


class RuleVerdict(StrEnum):
    """What the rules say, and what one rule says. ``INTERRUPT`` asks a person."""

    ALLOW = "allow"
    DENY = "deny"
    INTERRUPT = "interrupt"


_STRICTNESS: Final = {RuleVerdict.ALLOW: 0, RuleVerdict.INTERRUPT: 1, RuleVerdict.DENY: 2}


def stricter(first: RuleVerdict, second: RuleVerdict) -> RuleVerdict:
    """The stronger of two verdicts: deny, then interrupt, then allow.

    >>> stricter(RuleVerdict.ALLOW, RuleVerdict.INTERRUPT)
    <RuleVerdict.INTERRUPT: 'interrupt'>
    """
    return first if _STRICTNESS[first] >= _STRICTNESS[second] else second


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePermission(metaclass=Checked):
    """One rule inside the scope: it can refuse or ask, and never opens what the scope closes.

    * ``operations``: ``"read"`` (Read, Glob, Grep, NotebookRead, LS) and ``"write"`` (Write, Edit,
      MultiEdit, NotebookEdit, deletions).
    * ``paths``: gitignore patterns with ``{a,b}`` alternatives, absolute, ``~/…``, or relative to
      the project. Without a slash a pattern applies everywhere; ``"."`` is the project itself. One
      that matches a folder covers what is in it. Case counts.
    * ``mode``: ``"allow"``, ``"deny"`` or ``"interrupt"``.

    In a list the first rule that matches decides. Raises ConfigError with every fault at once.

    >>> rule = FilePermission(operations=["write"], paths=["policies/**"], mode="deny")
    >>> rule.mode, rule.paths
    (<RuleVerdict.DENY: 'deny'>, ('policies/**',))
    """

    operations: Sequence[str]
    paths: Sequence[str]
    mode: str

    def __post_init__(self) -> None:
        faults = [
            *_operation_faults(self.operations),
            *_path_faults(self.paths),
            *_mode_faults(self.mode),
        ]
        if faults:
            raise ConfigError(faults)
        operations = tuple(dict.fromkeys(map(Operation, self.operations)))
        object.__setattr__(self, "operations", operations)
        object.__setattr__(self, "paths", tuple(os.fspath(path) for path in self.paths))
        object.__setattr__(self, "mode", RuleVerdict(self.mode))


def _words(kind: type[StrEnum]) -> str:
    *most, last = (repr(str(word)) for word in kind)
    return f"{', '.join(most)} or {last}"


def _word_remedy(kind: type[StrEnum], value: object) -> str:
    near = difflib.get_close_matches(str(value).lower(), [str(word) for word in kind], n=1)
    meant = f"; did you mean {near[0]!r}?" if near else "."
    return f"write {_words(kind)}{meant}"


def _is_word(kind: type[StrEnum], value: object) -> bool:
    return isinstance(value, str) and value in tuple(kind)


def _list_fault(name: str, value: object, example: str) -> Fault | None:
    if not isinstance(value, (list, tuple)):
        return Fault(field=name, value=value, remedy=f"give a list, as [{example}].")
    if not value:
        return Fault(
            field=name, value=value, remedy=f"it is empty; give at least one, as [{example}]."
        )
    return None


def _operation_faults(value: Any) -> Iterator[Fault]:
    if (fault := _list_fault("operations", value, '"read", "write"')) is not None:
        yield fault
        return
    for at, word in enumerate(value):
        if not _is_word(Operation, word):
            remedy = _word_remedy(Operation, word)
            yield Fault(field=f"operations[{at}]", value=word, remedy=remedy)


def _path_faults(value: Any) -> Iterator[Fault]:
    if (fault := _list_fault("paths", value, '"notes/**"')) is not None:
        yield fault
        return
    for at, path in enumerate(value):
        text = os.fspath(path) if isinstance(path, os.PathLike) else path
        if (remedy := pattern_remedy(text, FLAVOURS[NATIVE])) is not None:
            yield Fault(field=f"paths[{at}]", value=path, remedy=remedy)


def _mode_faults(value: Any) -> Iterator[Fault]:
    if not _is_word(RuleVerdict, value):
        yield Fault(field="mode", value=value, remedy=_word_remedy(RuleVerdict, value))


def read_rules(rules: Any, field: str = "permissions") -> tuple[FilePermission, ...]:
    """A list of rules, or of dicts with a rule's fields. Raises ConfigError with the faults of all.

    Each fault names its rule: ``permissions[2].paths[0]``.

    >>> read_rules([{"operations": ["raed"], "paths": ["x"], "mode": "deny"}])
    Traceback (most recent call last):
    agent_kit.scope.errors.ConfigError: permissions[0].operations[0]='raed': write 'read' or 'write'; did you mean 'read'?
    """
    if not isinstance(rules, (list, tuple)):
        raise ConfigError(
            [Fault(field=field, value=rules, remedy="give a list of FilePermission.")]
        )
    read: list[FilePermission] = []
    faults: list[Fault] = []
    for at, rule in enumerate(rules):
        try:
            read.append(_rule(rule))
        except ConfigError as error:
            for fault in error.faults:
                name = f"{field}[{at}].{fault.field}" if fault.field else f"{field}[{at}]"
                faults.append(replace(fault, field=name))
    if faults:
        raise ConfigError(faults)
    return tuple(read)


def _rule(rule: object) -> FilePermission:
    if isinstance(rule, FilePermission):
        return rule
    if isinstance(rule, Mapping):
        return FilePermission(**{str(name): value for name, value in rule.items()})
    remedy = "give FilePermission(operations=…, paths=…, mode=…)."
    raise ConfigError([Fault(field="", value=rule, remedy=remedy)])
