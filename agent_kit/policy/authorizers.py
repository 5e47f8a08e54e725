"""The ready authorizers that look at a path, a size, a person's answer or a count."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from agent_kit.policy.at_once import Ready
from agent_kit.policy.compiled import RuleList, compile_rules
from agent_kit.policy.contents import _ReadLimit, is_read_whole
from agent_kit.policy.delete import check_delete
from agent_kit.policy.outcome import Action, Answer, allow, deny
from agent_kit.policy.patterns import pattern_remedy
from agent_kit.policy.rules import FilePermission, Operation, RuleVerdict
from agent_kit.policy.run import Several, authorizer_faults, flat
from agent_kit.policy.target import AuthorizerContext, Target
from agent_kit.policy.waiting import run_host_code
from agent_kit.scope.errors import ConfigError, Fault
from agent_kit.scope.file_scope import NATIVE
from agent_kit.scope.flavour import FLAVOURS

__all__ = [
    "ask_user",
    "denied_patterns",
    "deny_paths",
    "denying",
    "may_close_files",
    "rate_limit",
    "read_authorizers",
    "size_ceiling",
]

_READERS: Final = frozenset({"NotebookRead", "Read"})
_ALL_BELOW: Final = frozenset({Action.LIST, Action.SEARCH})
_DONE: Final = {
    Action.READ: "read",
    Action.SEARCH: "search",
    Action.WRITE: "write",
    Action.DELETE: "deletion",
}


_ALLOWED: Final = allow()
_DENIED: Final = deny("the path matches a denied pattern")


@dataclass(frozen=True, slots=True, eq=False)
class _DenyPaths(Ready):
    patterns: tuple[str, ...]
    _rules: dict[tuple[str, str | None], RuleList] = field(default_factory=dict)
    id: ClassVar = "deny_paths"
    inline: ClassVar = frozenset(Action) - {Action.DELETE}  # of a folder, which is walked

    def authorize(self, target: Target, context: AuthorizerContext) -> Answer:
        if self._verdict(target, context) is RuleVerdict.ALLOW:
            return _ALLOWED
        return _DENIED

    def _verdict(self, target: Target, context: AuthorizerContext) -> RuleVerdict:
        rules = self._rules_for(context)
        absolute = rules.flavour.absolute
        names = (absolute(target.resolved, "/"), *[absolute(path, "/") for path in target.also])
        if target.action in _ALL_BELOW:
            missing = context.unfiltered
            filtered = not missing or missing.isdisjoint(self.patterns)
            whole = rules.judge_all(Operation.READ, names, target.is_folder, filtered=filtered)
            return whole.verdict
        if target.action is Action.DELETE and target.is_folder:
            return check_delete(rules, target.resolved)
        return rules.judge(Operation.READ, names, target.is_folder).verdict

    def _rules_for(self, context: AuthorizerContext) -> RuleList:
        """The patterns, relative to the session's project; of each session once."""
        key = (context.project_dir, context.home)
        if (rules := self._rules.get(key)) is None:
            rules = compile_rules(
                [
                    FilePermission(operations=tuple(Operation), paths=[pattern], mode="deny")
                    for pattern in self.patterns
                ],
                project_dir=context.project_dir,
                home=context.home,
                field="deny_paths",
            )
            self._rules[key] = rules
        return rules


def deny_paths(patterns: Sequence[str]) -> Any:
    """Refuses what matches a gitignore pattern with its real path, whatever is done with it.

    Relative patterns are below the project; one without a slash applies everywhere. A folder is not
    listed, searched or deleted when a pattern can match something in it; a pattern with no fixed
    folder (``**/.env``) stops no listing and no search.

    Raises TypeError for what is no list, ConfigError (a ValueError) with every faulty pattern.
    """
    if not isinstance(patterns, (list, tuple)):
        raise TypeError('deny_paths takes a list of patterns, as ["**/.env"]')
    faults = [
        Fault(field=f"deny_paths[{at}]", value=pattern, remedy=remedy)
        for at, pattern in enumerate(patterns)
        if (remedy := pattern_remedy(pattern, FLAVOURS[NATIVE])) is not None
    ]
    if faults:
        raise ConfigError(faults)
    return _DenyPaths(tuple(patterns))


def denied_patterns(authorizers: Iterable[Any]) -> tuple[str, ...]:
    """The patterns of every ``deny_paths`` among the authorizers, in order."""
    return tuple(pattern for each in denying(authorizers) for pattern in each.patterns)


def denying(authorizers: Iterable[Any]) -> tuple[Any, ...]:
    """The ``deny_paths`` among the authorizers, in order."""
    return tuple(each for each in flat(authorizers) if isinstance(each, _DenyPaths))


def may_close_files(authorizers: Iterable[Any]) -> bool:
    """Whether one among the authorizers may refuse to let a file be read for what the file is.

    ``deny_paths`` does, by patterns that are known. Limits of size, lines and calls don't.
    """
    return any(
        Action.READ in (actions if (actions := getattr(each, "actions", None)) else Action)
        for each in flat(authorizers)
        if not isinstance(each, (_DenyPaths, _RateLimit, _ReadLimit, _SizeCeiling))
    )


@dataclass(frozen=True, slots=True)
class _SizeCeiling(Ready):
    max_bytes: int
    unranged_only: bool
    id: ClassVar = "size_ceiling"
    inline: ClassVar = True
    actions: ClassVar = frozenset({Action.READ})

    def authorize(self, target: Target, _context: AuthorizerContext) -> Answer:
        if target.size is None or target.size <= self.max_bytes:
            return allow()
        over = f"{target.size} bytes is over the {self.max_bytes}-byte ceiling"
        if not self.unranged_only:
            return deny(over)
        if target.tool in _READERS and is_read_whole(target):
            return deny(f"{over}, and it is read as a whole only")
        if any(target.tool_input.get(name) is not None for name in ("offset", "limit")):
            return allow()
        ranged = {"file_path": target.display_path, "offset": 1, "limit": 2000}
        shown = json.dumps(ranged, ensure_ascii=False)
        return deny(f"{over} for a whole-file read; a ranged read such as {shown} is allowed")


def size_ceiling(max_bytes: int, unranged_only: bool = False) -> Any:
    """Refuses to Read a file of more than ``max_bytes``.

    With ``unranged_only`` only a Read without ``offset`` and ``limit``, and it tells how to read a
    part. Notebooks, PDFs and images have no parts: Read gives them as a whole. Raises ConfigError (a ValueError) with every fault.
    """
    faults = []
    if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 0:
        remedy = "give a number of bytes from 0 up, such as 1_000_000."
        faults.append(Fault(field="max_bytes", value=max_bytes, remedy=remedy))
    if not isinstance(unranged_only, bool):
        remedy = "write True or False."
        faults.append(Fault(field="unranged_only", value=unranged_only, remedy=remedy))
    if faults:
        raise ConfigError(faults)
    return _SizeCeiling(max_bytes, unranged_only)


@dataclass(frozen=True, slots=True, eq=False)
class _AskUser(Ready):
    question: Callable[[Target], Any]
    id: ClassVar = "ask_user"
    timeout: ClassVar = None  # a person thinks as long as they like
    asks_person: ClassVar = True
    actions: ClassVar = frozenset(_DONE)

    async def authorize(self, target: Target, context: AuthorizerContext) -> Answer:
        answer = await run_host_code(self.question, target, limit=None, abort=context.abort)
        if answer is True:
            return allow()
        return deny(f"the user did not approve the {_DONE[target.action]}")


def ask_user(question: Callable[[Target], Any]) -> Any:
    """Asks ``question(target)``, sync or async, before each read, write, search and deletion.

    It goes on only when the answer is exactly ``True``, and only when the file is still the one that
    was asked about. There is no time limit, and nothing is remembered. Raises TypeError for what
    can't be called.
    """
    if not callable(question):
        raise TypeError("ask_user takes a function of the target")
    return _AskUser(question)


@dataclass(frozen=True, slots=True, eq=False)
class _RateLimit(Ready):
    max_calls: int
    per_seconds: float
    actions: frozenset[Action]
    clock: Callable[[], float]
    id: ClassVar = "rate_limit"
    inline: ClassVar = True

    def authorize(self, _target: Target, context: AuthorizerContext) -> Answer:
        now, use_id = self.clock(), context.tool_use_id
        # When each call was let through, oldest first; one without an id is a call of its own.
        calls: dict[object, float] = context.state.setdefault(self, {})
        while calls and (first := next(iter(calls.values()))) <= now - self.per_seconds:
            del calls[next(iter(calls))]
        if use_id is not None and use_id in calls:  # another path of the same call
            return allow()
        if len(calls) < self.max_calls:
            calls[object() if use_id is None else use_id] = now
            return allow()
        limit = f"no more than {self.max_calls} in {self.per_seconds:g} seconds"
        if not calls:  # none is allowed at all
            return deny(limit)
        wait = math.ceil(first + self.per_seconds - now)
        return deny(f"{limit}; try again in {wait} s")


def rate_limit(
    max_calls: int,
    per_seconds: float,
    operations: Iterable[str] = tuple(Action),
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Any:
    """Lets ``max_calls`` through in any ``per_seconds``, counted for each session by itself.

    ``operations`` are the actions that count, together: ``"read"``, ``"list"``, ``"search"``,
    ``"write"``, ``"delete"``. A call counts once, however many paths it names. One that a later
    authorizer refuses counts, one that this refuses doesn't. Raises TypeError or ValueError.
    """
    if isinstance(max_calls, bool) or not isinstance(max_calls, int):
        raise TypeError("max_calls is a number of calls")
    if isinstance(per_seconds, bool) or not isinstance(per_seconds, (int, float)):
        raise TypeError("per_seconds is a number of seconds")
    if max_calls < 0 or not 0 < per_seconds < math.inf:
        raise ValueError("max_calls can't be negative, and per_seconds must be more than 0")
    if isinstance(operations, str) or not isinstance(operations, Iterable):
        raise TypeError('operations is a list, as ["write"]')
    actions = tuple(operations)
    if not actions or not all(isinstance(word, str) and word in tuple(Action) for word in actions):
        raise ValueError(f"operations are some of {', '.join(Action)}")
    return _RateLimit(max_calls, per_seconds, frozenset(map(Action, actions)), clock)


def read_authorizers(*authorizers: Any) -> Any:
    """One authorizer from several, asked from left to right; the first refusal wins.

    Raises ConfigError (a ValueError) for what is no authorizer.
    """
    if faults := authorizer_faults(authorizers, "read_authorizers"):
        raise ConfigError(faults)
    return Several(authorizers)
