"""What the CLI asks about, answered: judged anew, a person asked where a rule says so, then authorizers.

What a person approves runs without any rule of the CLI being looked at again. So here everything is
judged once more: the scope, the rules, and whether the file is still the one that was asked about.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from claude_agent_sdk import PermissionResultAllow, PermissionResultDeny

from agent_kit.policy import sentences
from agent_kit.policy.approval import Approved, Edited, Rejected, Unasked
from agent_kit.policy.asking import ask_person
from agent_kit.policy.policy import Call, Judgement
from agent_kit.policy.rules import RuleVerdict
from agent_kit.policy.seen import Seen, is_changed
from agent_kit.scope.judge import NamedPath
from agent_kit.sdk.course import Course, Stopped, target_of
from agent_kit.sdk.open_tools import OpenTools

if TYPE_CHECKING:
    from agent_kit.sdk.policy_gate import PolicyGate

__all__ = ["Answering", "Result"]

_log = logging.getLogger("agent_kit.approval")

Result = PermissionResultAllow | PermissionResultDeny


@dataclass(frozen=True, slots=True, eq=False)
class Answering:
    """One question of the CLI's. ``given`` is the input that it asks about, ``tools`` what may run at
    all (``None``: somebody else has said so)."""

    gate: PolicyGate
    course: Course
    given: Mapping[str, Any]
    tools: OpenTools | None

    async def settled(self, call: Call) -> Result:
        """The answer about ``call``. It waits for a person as long as they take."""
        policy, course = self.gate.policy, self.course
        while True:
            reason, named, _ = await self.gate.judged(call)
            if self.tools is not None:
                reason = reason or self.tools.objection(call.tool, call.tool_input)
            if reason is not None:
                return self._denied(call, "gate", "denied", None, reason)
            if course.seen and is_changed(course.seen, await self._seen(call, named)):
                return self._denied(call, "person", "changed", course.rule, sentences.changed)
            await self.gate.look_for_copies(call)
            found = policy.judge(call, named, frozenset(course.rules), course.question)
            if found.verdict is RuleVerdict.DENY:
                return self._denied(call, found.part, found.code, found.rule, found.message)
            if found.verdict is RuleVerdict.ALLOW or course.agreed:
                return await self._allowed(call, named)
            left = await self._asked(call, named, found)
            if not isinstance(left, Call):
                return left
            call = left

    async def _asked(
        self, call: Call, named: tuple[NamedPath, ...], found: Judgement
    ) -> Call | PermissionResultDeny:
        """The call as the person left it, or their refusal."""
        course, rule = self.course, found.rule
        if self.gate.ask is None:  # the mode was switched since, or another hook changed the input
            text = f"{found.message} {sentences.nobody_to_ask}"
            return self._denied(call, found.part, "nobody-to-ask", rule, text)
        seen = await self._seen(call, named)
        course.asked, course.rule = True, rule
        self.gate.note_asked(call)
        said = await ask_person(
            self.gate.ask, call, target=target_of(found, named), reason=found.message, rule=rule
        )
        if isinstance(said, Unasked):
            text = f"{found.message} {sentences.so_refused(said.message)}"
            return self._denied(call, found.part, "nobody-to-ask", rule, text)
        if isinstance(said, Rejected):
            course.answer = "rejected"
            text = sentences.rejected(said.message)
            stops = isinstance(said, Stopped)
            return self._denied(call, "person", "rejected", rule, text, stops=stops)
        if isinstance(said, Approved):
            course.approved(said.remember and rule is not None)
            if said.remember and rule is not None:
                self.gate.policy.remembered.add(rule)
            return self._still(call, seen)
        if isinstance(said, Edited):
            if (tool_input := _as_json(said.tool_input)) is None:
                _log.error("the function that asks gave an input that JSON can't hold")
                return self._unreadable(call, rule)
            course.answer = "edited"
            course.rules.add(rule or "")
            if found.part == "hook":  # they have seen it, and what it is about
                course.question = None
            new = replace(call, tool_input=tool_input)
            reason = self.gate.tools.edit_objection(new.tool, new.tool_input)
            if reason is not None:
                return self._denied(new, "gate", "denied", None, reason)
            return self._still(new, seen)
        return self._unreadable(call, rule)

    def _unreadable(self, call: Call, rule: str | None) -> PermissionResultDeny:
        text = sentences.unreadable_answer
        return self._denied(call, "person", "extension-failed", rule, text)

    def _still(self, call: Call, seen: Seen | None) -> Call | PermissionResultDeny:
        """``call``, which is compared with what was ``seen`` once it is judged."""
        course = self.course
        if seen is None:  # nobody can tell whether it is the file that they were asked about
            return self._denied(call, "person", "changed", course.rule, sentences.changed)
        course.seen = {**seen, **course.seen}
        return call

    async def _allowed(self, call: Call, named: tuple[NamedPath, ...]) -> Result:
        if self.given and not call.tool_input:
            return self._denied(call, "person", "denied", None, sentences.left_nothing)
        tool_input, lock = call.tool_input, "person" if self.course.asked else "approval"
        if self.gate.policy.authorizers and named:
            lock = "authorizers"
            done = await self.gate.policy.authorize(call, named, heard=self.course.heard)
            if (refusal := done.refusal) is not None:
                return self._denied(call, lock, refusal.code, refusal.authorizer, str(refusal))
            tool_input = done.tool_input
        self.gate.record(call, self.course, "allow", lock, None, self.course.rule)
        if tool_input == self.given:
            return PermissionResultAllow()
        return PermissionResultAllow(updated_input=dict(tool_input))

    async def _seen(self, call: Call, named: tuple[NamedPath, ...]) -> Seen | None:
        return await asyncio.to_thread(self.gate.seen, call, named)

    def _denied(
        self,
        call: Call,
        lock: str,
        code: str | None,
        rule: str | None,
        text: str,
        *,
        stops: bool = False,
    ) -> PermissionResultDeny:
        self.gate.record(call, self.course, "deny", lock, code, rule)
        return PermissionResultDeny(message=text, interrupt=stops)


def _as_json(tool_input: Any) -> dict[str, Any] | None:
    """An edited input as the CLI gets it, and nobody else holds; ``None`` for what JSON can't hold."""
    try:
        found: dict[str, Any] = json.loads(json.dumps(dict(tool_input), allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None
    return found
