"""What lists of rules say of a search: by their patterns, then by one look at the names on the disk.

The look is for what a pattern without a fixed folder closes and the CLI would show all the same
(:mod:`agent_kit.scope.left_out`). It is one for all lists: to ask the disk is what takes the time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from agent_kit.policy.found import NO_RULE, Found, stronger
from agent_kit.policy.lookup import NEVER
from agent_kit.policy.rules import Operation, RuleVerdict
from agent_kit.scope.left_out import first_shown
from agent_kit.scope.odd_names import TooManyNames

if TYPE_CHECKING:
    from agent_kit.policy.compiled import RuleList
    from agent_kit.policy.subtree import Subtrees

__all__ = ["Lists", "judge_search"]

Lists = Sequence[tuple["RuleList", Collection[int]]]
"""Lists, each with the numbers of its rules that don't count."""


def judge_search(
    lists: Lists, operation: Operation, names: tuple[str, ...], folder: bool
) -> list[Found]:
    """What each of the lists says of a search of one place, which has these ``names``.

    Where one of them denies it by its patterns, the disk is not looked at.
    """
    found, looking, denied = [], [], False
    for at, (listed, silent) in enumerate(lists):
        if (subtrees := listed.subtrees_of(operation, silent)) is None:
            found.append(NO_RULE)
            continue
        says = subtrees.judge(names, folder, filtered=True)
        found.append(says)
        denied = denied or says.verdict is RuleVerdict.DENY
        if subtrees.first_left_out != NEVER and listed.native:
            looking.append((at, listed, subtrees))
    if folder and looking and not denied:
        for name in names:
            if (shown := _shown(looking, operation, name)) is not None:
                at, closed = shown
                found[at] = stronger(found[at], closed)
                break
    return found


def _shown(
    looking: Sequence[tuple[int, RuleList, Subtrees]], operation: Operation, name: str
) -> tuple[int, Found] | None:
    """Which list, by its number, closes what a search of ``name`` would show, and by which rule."""
    at, listed, subtrees = looking[0]
    looks = [each.left_out for _, _, each in looking]
    try:
        shown = first_shown(listed.flavour.display(name), name, looks)
    except TooManyNames:
        return at, Found(RuleVerdict.DENY, subtrees.first_left_out)
    if shown is None:
        return None
    at, listed, _ = next(each for each in looking if each[2].left_out.shows(*shown))
    path, is_folder = shown
    return at, listed.judge(operation, (path,), is_folder)
