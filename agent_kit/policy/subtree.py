"""What the rules say of a whole folder, from their patterns alone: nothing in it is looked at.

The answer is never too mild: it denies when a pattern that denies can match anything in the folder,
unless an earlier rule allows all that the pattern could match there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from agent_kit.policy.found import NO_RULE, Found, stronger
from agent_kit.policy.lookup import NEVER, Lookup
from agent_kit.policy.patterns import RulePattern, fits_name, normal
from agent_kit.policy.rules import RuleVerdict
from agent_kit.scope.index import split
from agent_kit.scope.left_out import LeftOut
from agent_kit.scope.odd_names import Closes

__all__ = ["Numbered", "Subtrees", "can_match_below"]

_MODES: Final = (RuleVerdict.DENY, RuleVerdict.INTERRUPT)  # the stronger first
_REMEMBERED: Final = 1024  # folders


class Numbered(NamedTuple):
    """One pattern, with the number and the mode of its rule."""

    number: int
    mode: RuleVerdict
    pattern: RulePattern


class _Node:
    """A folder: what is fixed in it or below (mode to number), and what is fixed to it with magic."""

    __slots__ = ("below", "inside", "tried")

    def __init__(self) -> None:
        self.below: dict[str, _Node] = {}
        self.inside: dict[RuleVerdict, int] = {}
        self.tried: list[Numbered] = []


class Subtrees:
    """The rules of one operation. ``judge`` is asked of folders.

    ``first`` holds the same patterns; ``closes`` says which path one denies.
    """

    def __init__(self, patterns: Sequence[Numbered], first: Lookup, closes: Closes) -> None:
        self._first, self._closes = first, closes
        self._allow = _lookup(patterns, RuleVerdict.ALLOW)
        self._matching: Mapping[RuleVerdict, Lookup] = {m: _lookup(patterns, m) for m in _MODES}
        self._root = _Node()
        self._known: dict[tuple[tuple[str, ...], bool, bool], Found] = {}
        self._deny_everywhere: list[int] = []
        # The first rule of each mode without a fixed folder.
        self._everywhere = dict.fromkeys(_MODES, NEVER)
        # The same of rules whose hits nobody leaves out; and by whether it is filtered, the answer for a
        # folder that nothing else says anything of.
        self._unfiltered: Mapping[RuleVerdict, int] = self._everywhere
        self._elsewhere: Mapping[bool, Found] = {}
        self._patterns = tuple(patterns)
        self._left_in: Collection[int] = ()
        self._without: tuple[Collection[int], Subtrees] | None = None  # as it was last asked for
        self.left_out = LeftOut((), closes)  # what stops no search
        self.first_left_out = NEVER
        for item in patterns:
            if item.mode is not RuleVerdict.ALLOW:
                self._add(item)
        self.leave_in(())

    def _add(self, item: Numbered) -> None:
        pattern = item.pattern
        if pattern.fixed is None:
            self._everywhere[item.mode] = min(item.number, self._everywhere[item.mode])
            if item.mode is RuleVerdict.DENY:
                self._deny_everywhere.append(item.number)
            return
        literal = pattern.literal
        region = literal or pattern.fixed
        if self._allow.first(region, literal is None) < item.number:
            return  # an earlier rule allows whatever it could match
        node = self._root
        node.inside.setdefault(item.mode, item.number)
        for name in split(region):
            node = node.below.setdefault(name, _Node())
            node.inside.setdefault(item.mode, item.number)
        if literal is None:
            node.tried.append(item)

    def leave_in(self, numbers: Collection[int]) -> None:
        """Say that the hits in what these rules deny are not left out of a search after all."""
        self._left_in, self._without = numbers, None
        filtered = {*self._deny_everywhere}.difference(numbers)
        unfiltered = (number for number in self._deny_everywhere if number in numbers)
        denied = min(unfiltered, default=NEVER)
        self._unfiltered = {**self._everywhere, RuleVerdict.DENY: denied}
        self._elsewhere = {False: _strictest(self._everywhere), True: _strictest(self._unfiltered)}
        self.first_left_out = min(filtered, default=NEVER)
        patterns = [
            item.pattern
            for item in self._patterns
            if item.number in filtered and item.pattern.fixed is None
        ]
        self.left_out = LeftOut(patterns, self._closes)
        self._known.clear()

    def without(self, silent: Collection[int]) -> Subtrees:
        """The same without these rules, of which none may be one that allows."""
        known = self._without  # another thread may put another one there
        if known is None or known[0] != silent:
            counted = [item for item in self._patterns if item.number not in silent]
            first = Lookup([(item.number, item.pattern) for item in counted])
            rest = Subtrees(counted, first, self._closes)
            rest.leave_in(self._left_in)
            self._without = known = silent, rest
        return known[1]

    def judge(self, names: tuple[str, ...], folder: bool, *, filtered: bool) -> Found:
        """The strictest verdict that anything at or below one of the ``names`` can get.

        ``filtered``: a deny pattern with no fixed folder doesn't count, since the hits in what it
        denies are left out afterwards (but see :meth:`leave_in`). No disk is looked at, so the answer
        stays what it is until then.
        """
        key = (names, folder, filtered)
        if (known := self._known.get(key)) is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = NO_RULE
            for name in names:
                known = stronger(known, self._judged(normal(name), folder, filtered))
            self._known[key] = known
        return known

    def _judged(self, path: str, folder: bool, filtered: bool) -> Found:
        # Where no rule matches the folder itself, as is usual, the modes needn't be told apart; and where
        # none is fixed around it or in it, either, the answer is the same for all folders.
        is_matched = self._first.first(path, folder) != NEVER
        allowed = self._allow.first(path, folder) if is_matched else NEVER
        inside, tried = self._on_the_way(path, allowed)
        if not (is_matched or inside or tried):
            return self._elsewhere[filtered]
        everywhere = self._unfiltered if filtered else self._everywhere
        for mode in _MODES:
            found = everywhere[mode]
            if is_matched:
                found = min(found, self._matching[mode].first(path, folder))
            if found > allowed:
                found = NEVER
            for item in tried:
                if item.mode is mode and item.number < found:
                    found = item.number
            if mode in inside and inside[mode] < found:
                found = inside[mode]
            if found != NEVER:
                return Found(mode, found)
        return NO_RULE if allowed == NEVER else Found(RuleVerdict.ALLOW, allowed)

    def _on_the_way(
        self, path: str, allowed: int
    ) -> tuple[Mapping[RuleVerdict, int], Sequence[Numbered]]:
        """What is fixed in the folder, and what is fixed above it, can match something below, and comes
        before what allows the folder. What an earlier rule allows was never put here."""
        node, parts = self._root, split(path)
        tried: list[Numbered] = []
        for depth, name in enumerate(parts):
            if node.tried:
                rest = parts[depth:]
                tried += [
                    item
                    for item in node.tried
                    if item.number < allowed and can_match_below(item.pattern.segments, rest)
                ]
            below = node.below.get(name)
            if below is None:
                return {}, tried
            node = below
        return node.inside, tried


def _lookup(patterns: Sequence[Numbered], mode: RuleVerdict) -> Lookup:
    return Lookup([(item.number, item.pattern) for item in patterns if item.mode is mode])


def _strictest(numbers: Mapping[RuleVerdict, int]) -> Found:
    """The strictest of these modes with a rule, and its number."""
    return next((Found(mode, numbers[mode]) for mode in _MODES if numbers[mode] != NEVER), NO_RULE)


def can_match_below(segments: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a pattern's components can match the path ``parts``, or something at or below it.

    >>> can_match_below(["*.log"], ["app"]), can_match_below(["**", "x"], ["app"])
    (False, True)
    """
    places = _with_skips({0}, segments)
    for name in parts:
        if len(segments) in places:  # it matches a folder above
            return True
        places = _with_skips(_after(places, segments, name), segments)
    return bool(places)


def _after(places: set[int], segments: Sequence[str], name: str) -> set[int]:
    after: set[int] = set()
    for place in places:
        if segments[place] == "**":
            after.add(place)
        elif segments[place] == "" or fits_name(segments[place], name):
            after.add(place + 1)
    return after


def _with_skips(places: set[int], segments: Sequence[str]) -> set[int]:
    """These places, and those behind a ``**``, which may also match no folder at all."""
    found = set(places)
    for place in places:
        at = place
        while at < len(segments) and segments[at] == "**":
            at += 1
            found.add(at)
    return found
