"""What a list of rules says of a path, and which of its rules says so."""

from __future__ import annotations

from typing import Final, NamedTuple

from agent_kit.policy.rules import RuleVerdict, stricter

__all__ = ["NO_RULE", "Found", "stronger"]


class Found(NamedTuple):
    """A verdict, and the number in the list of the rule that gave it (``None``: no rule did)."""

    verdict: RuleVerdict
    number: int | None = None


NO_RULE: Final = Found(RuleVerdict.ALLOW)


def stronger(first: Found, second: Found) -> Found:
    """The stricter of two; of two alike the first, unless the second alone is a rule's.

    What no rule says is :data:`NO_RULE`, the mildest.

    >>> stronger(NO_RULE, Found(RuleVerdict.ALLOW, 3)).number
    3
    """
    if first.number is None:
        return second
    return first if stricter(first.verdict, second.verdict) is first.verdict else second
