"""Authorizers for which nobody has to wait, asked on the spot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from agent_kit.policy.outcome import Action, Refusal, allow
from agent_kit.policy.run import (
    Asked,
    Authorized,
    asks_person,
    flat,
    heard,
    is_inline,
    judges,
    narrowed,
    thrown,
)
from agent_kit.policy.target import AuthorizerContext, Target

__all__ = ["Chain", "Ready", "authorize_at_once"]

_ALLOWED: Final = allow()


class Ready:
    """An authorizer of the kit's own: what it judges, and whether it waits, never changes."""

    __slots__ = ()


class Chain:
    """Authorizers, sorted by what they judge.

    Those of the kit are looked at once for each action. Where one of the host's is among them, whose
    fields may say something else each time, all are looked at for each call.
    """

    __slots__ = ("_every", "_is_fixed", "_known")

    def __init__(self, authorizers: Iterable[Any]) -> None:
        self._every = tuple(flat(authorizers))
        self._is_fixed = all(isinstance(each, Ready) for each in self._every)
        self._known: dict[Action, Sequence[Any] | None] = {}

    def at_once(self, action: Action) -> Sequence[Any] | None:
        """Those that judge the action, in order; ``None`` when one of them may wait, or can't say."""
        if not self._is_fixed:
            return self._looked_at(action)
        if action not in self._known:
            self._known[action] = self._looked_at(action)
        return self._known[action]

    def _looked_at(self, action: Action) -> Sequence[Any] | None:
        chain = []
        try:
            for authorizer in self._every:
                if judges(authorizer, action):
                    if not is_inline(authorizer, action) or asks_person(authorizer):
                        return None
                    chain.append(authorizer)
        except Exception:  # noqa: BLE001 - it is refused, and logged, where it is asked
            return None
        return chain


def authorize_at_once(
    chain: Chain, targets: Sequence[Target], context: AuthorizerContext
) -> Authorized | None:
    """As :func:`~agent_kit.policy.run.run_authorizers`, where no authorizer has to be waited for.

    ``None`` says: ask that one; no authorizer was asked then.
    """
    asked = []
    for target in targets:
        if (authorizers := chain.at_once(target.action)) is None:
            return None
        asked.append((target, authorizers))
    tool_input: Mapping[str, Any] = targets[0].tool_input if targets else {}
    for target, authorizers in asked:
        for authorizer in authorizers:
            if target.tool_input is not tool_input:
                target = target._replace(tool_input=tool_input)  # noqa: PLW2901 - narrowed
            try:
                answer = authorizer.authorize(target, context)
            except Exception as error:  # noqa: BLE001 - whatever it is, the call must not run
                refusal = thrown(Asked(authorizer, target, context), error)
                return Authorized(refusal, tool_input)
            if answer is _ALLOWED:
                continue
            found = heard(Asked(authorizer, target, context), answer)
            if isinstance(found, Refusal):
                return Authorized(found, tool_input)
            if found is not None:
                tool_input = narrowed(tool_input, found)
    return Authorized(None, tool_input)
