"""Rules that can never decide, since an earlier one always matches first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_kit.policy.lookup import Lookup
from agent_kit.policy.patterns import RulePattern
from agent_kit.policy.rules import FilePermission, Operation, RuleVerdict
from agent_kit.policy.subtree import Numbered

__all__ = ["Shadow", "find_shadows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadow:
    """A rule that never decides: ``rule`` is its index in ``field``, ``by`` those that come first.

    ``allowed_by`` are those of ``by`` that allow what this one would deny.
    """

    field: str
    rule: int
    by: tuple[int, ...]
    allowed_by: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.allowed_by:
            return (
                f"{self.field}[{self.rule}] DENIES NOTHING: the first rule that matches decides, and"
                f" {self._named(self.allowed_by)} before it allows what it is meant to close."
                f" Put {self.field}[{self.rule}] in front."
            )
        return (
            f"{self.field}[{self.rule}] never decides: {self._named(self.by)} always matches first."
            " Put it in front, or leave it out."
        )

    def _named(self, rules: tuple[int, ...]) -> str:
        return ", ".join(f"{self.field}[{number}]" for number in rules)


def find_shadows(
    rules: Sequence[FilePermission],
    patterns: Mapping[Operation, Sequence[Numbered]],
    field: str,
) -> tuple[Shadow, ...]:
    """The shadowed rules among ``rules``. Nobody is told of one that may decide; some may be missed."""
    by: dict[int, set[int]] = {number: set() for number in range(len(rules))}
    for items in patterns.values():
        lookup = Lookup([(item.number, item.pattern) for item in items])
        same: dict[str, int] = {}
        for number, _, pattern in items:
            first = min(same.setdefault(pattern.folded, number), _first(lookup, pattern))
            if first >= number:
                by.pop(number, None)
            elif number in by:
                by[number].add(first)
    return tuple(
        Shadow(
            field=field,
            rule=number,
            by=tuple(sorted(earlier)),
            allowed_by=tuple(
                each
                for each in sorted(earlier)
                if rules[number].mode == RuleVerdict.DENY and rules[each].mode == RuleVerdict.ALLOW
            ),
        )
        for number, earlier in by.items()
    )


def _first(lookup: Lookup, pattern: RulePattern) -> int:
    """The first rule that matches whatever ``pattern`` can match, as far as its folder tells."""
    if (literal := pattern.literal) is not None:
        return lookup.first(literal, folder=False)
    return lookup.first(pattern.fixed or "/", folder=True)
