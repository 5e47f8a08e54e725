"""The callbacks of extensions and of the host, run one after another inside the kit's own hook.

The CLI runs the hooks of an event at the same time and doesn't show one what another rewrote. So a
PreToolUse callback of somebody else has to run before the gate looks, and the gate judges what it
made of the input. A callback that fails, or answers with something that isn't documented, refuses
the call.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agent_kit.scope import Fault

__all__ = ["EVENTS", "Chained", "HookFailedError", "chain", "hook_faults", "run_chain"]

# The events that a host or an extension may answer.
EVENTS: Final = (
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "UserPromptSubmit",
    "Stop",
    "SubagentStop",
    "SubagentStart",
    "PreCompact",
    "Notification",
)
_REFUSED_EVENTS: Final = {
    "PermissionRequest": "its answer could rewrite a call after the gate judged it: use PreToolUse.",
}
_PLAIN: Final = re.compile(r"[A-Za-z0-9_|, -]+")

Callback = Callable[[Any, Any, Any], Awaitable[Any]]


class HookFailedError(Exception):
    """A callback broke its contract. The argument is for the log, not for the model."""


@dataclass(frozen=True, slots=True)
class Chained:
    """One callback, and the tools that it wants to see (``None``: all). Itself a callback, too."""

    callback: Callback
    matcher: str | None = None

    def __call__(self, payload: Any, use_id: Any, context: Any) -> Awaitable[Any]:
        """Ask the callback, whatever the tool."""
        return self.callback(payload, use_id, context)

    def wants(self, tool_name: str) -> bool:
        """As the CLI reads a matcher: a list of plain names, or an expression found anywhere.

        Measured on CLI 2.1.332. Raises ``re.error`` (see :func:`hook_faults`).
        """
        if self.matcher in (None, "", "*"):
            return True
        assert self.matcher is not None
        if _PLAIN.fullmatch(self.matcher):
            return tool_name in map(str.strip, re.split("[|,]", self.matcher))
        return re.search(self.matcher, tool_name) is not None


def hook_faults(field: str, hooks: Any) -> list[Fault]:
    """What is wrong with a person's hooks: event to callbacks or ``HookMatcher`` values."""
    if not isinstance(hooks, Mapping):
        return [Fault(field=field, value=hooks, remedy="give a dict of event to callbacks.")]
    return [fault for event, given in hooks.items() for fault in _event_faults(field, event, given)]


def _event_faults(field: str, event: Any, given: Any) -> Iterator[Fault]:
    if event not in EVENTS:
        remedy = _REFUSED_EVENTS.get(event, f"choose from {', '.join(EVENTS)}.")
        yield Fault(field=field, value=event, remedy=remedy)
    place = f"{field}[{event!r}]"
    if not isinstance(given, (list, tuple)):
        yield Fault(field=place, value=given, remedy="give a list of callbacks.")
        return
    for hook in given:
        if not callable(hook):
            yield from _matcher_faults(place, hook)


def _matcher_faults(place: str, hook: Any) -> Iterator[Fault]:
    callbacks, matcher = getattr(hook, "hooks", None), getattr(hook, "matcher", None)
    if not isinstance(callbacks, (list, tuple)) or not all(map(callable, callbacks)):
        yield Fault(field=place, value=hook, remedy="give an async function or a HookMatcher.")
        return
    try:
        re.compile(matcher or "")
    except (re.error, TypeError) as error:
        remedy = f"the CLI would never call it, since its matcher is no expression: {error}."
        yield Fault(field=place, value=matcher, remedy=remedy)


def chain(hooks: Iterable[Any]) -> tuple[Chained, ...]:
    """Callables and ``HookMatcher`` values, flattened in order."""
    found: list[Chained] = []
    for hook in hooks:
        if isinstance(hook, Chained):
            found.append(hook)
        elif callable(hook):
            found.append(Chained(hook))
        else:
            found += [Chained(callback, hook.matcher) for callback in hook.hooks]
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the chain made of a call: the input to judge, and a refusal that ends it, or why a person
    is to be asked."""

    tool_input: Any
    refusal: str | None = None
    question: str | None = None


async def run_chain(hooks: Iterable[Chained], payload: Any, use_id: Any, context: Any) -> Outcome:
    """Run each callback on what the one before it left. The first refusal wins.

    "allow" is dropped: the other locks still have to agree. The first "ask" is a question about what
    all of them leave; "defer" refuses here. Raises HookFailedError.
    """
    tool_input, question = payload.get("tool_input"), None
    for hook in hooks:
        if not hook.wants(str(payload.get("tool_name"))):
            continue
        answer = await hook.callback({**payload, "tool_input": tool_input}, use_id, context)
        decision, reason, updated = _read(answer)
        if decision in ("deny", "defer"):
            return Outcome(tool_input, reason or _REASONS[decision])
        if decision == "ask":
            question = question or reason or _REASONS[decision]
        if updated is not None:
            tool_input = updated
    return Outcome(tool_input, question=question)


_REASONS = {
    "deny": "A hook of this session refused the call.",
    "ask": "A hook of this session wants a person to approve the call.",
    "defer": "This call needs an answer that can't be waited for in this session.",
}
_DECISIONS = {None, "allow", "deny", "ask", "defer"}
# The documented keys of an answer. One that is misspelt, or of another event, is no decision.
_KEYS = frozenset(
    {
        "continue",
        "continue_",
        "decision",
        "hookSpecificOutput",
        "reason",
        "stopReason",
        "suppressOutput",
        "systemMessage",
    }
)
_SPECIFIC_KEYS = frozenset(
    {
        "additionalContext",
        "hookEventName",
        "permissionDecision",
        "permissionDecisionReason",
        "updatedInput",
    }
)


def _read(answer: Any) -> tuple[str | None, str | None, Mapping[str, Any] | None]:
    """The decision, its reason and the new input. Raises HookFailedError for anything else."""
    if not isinstance(answer, Mapping):
        raise HookFailedError(f"a PreToolUse callback returned {answer!r}, not a dict")
    _refuse_unknown(answer, _KEYS)
    old = answer.get("decision")
    if old not in (None, "approve", "block"):
        raise HookFailedError(f"unknown decision {old!r}")
    if old == "block" or False in (answer.get("continue_"), answer.get("continue")):
        return "deny", answer.get("reason") or answer.get("stopReason"), None
    specific = answer.get("hookSpecificOutput")
    return (None, None, None) if specific is None else _read_specific(specific)


def _read_specific(specific: Any) -> tuple[str | None, str | None, Mapping[str, Any] | None]:
    if not isinstance(specific, Mapping) or specific.get("hookEventName") != "PreToolUse":
        raise HookFailedError("hookSpecificOutput lacks hookEventName='PreToolUse'")
    _refuse_unknown(specific, _SPECIFIC_KEYS)
    decision = specific.get("permissionDecision")
    if decision not in _DECISIONS:
        raise HookFailedError(f"unknown permissionDecision {decision!r}")
    updated = specific.get("updatedInput")
    if updated is not None and not isinstance(updated, Mapping):
        raise HookFailedError("updatedInput isn't a dict")
    return decision, specific.get("permissionDecisionReason"), updated


def _refuse_unknown(answer: Mapping[str, Any], known: frozenset[str]) -> None:
    if unknown := [key for key in answer if key not in known]:
        raise HookFailedError(f"a PreToolUse callback's answer has unknown keys: {unknown!r}")
