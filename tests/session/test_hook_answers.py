"""What a PreToolUse callback of a host or an extension may answer inside the gate, and what that does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from claude_agent_sdk import HookMatcher

from agent_kit import FileScope, create_file_scope_gate
from agent_kit.scope.sentences import INTERNAL_ERROR
from agent_kit.sdk.hooks import chain, hook_faults

SCOPE = FileScope(project_dir="/w", searchable_dirs=["open"], platform="posix")
OPEN, OTHER, CLOSED = "/w/open/a", "/w/open/b", "/w/closed"


def specific(**fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **fields}}


def reason(answer: dict[str, Any]) -> str | None:
    output = answer.get("hookSpecificOutput", {})
    assert output.get("permissionDecision") in (None, "deny")
    found: str | None = output.get("permissionDecisionReason")
    return found


async def asked(*callbacks: Any, path: str = OPEN, **gate: Any) -> dict[str, Any]:
    hook = create_file_scope_gate(SCOPE, before=chain(callbacks), **gate).hooks[0]
    payload: Any = {"tool_name": "Read", "tool_input": {"file_path": path}, "cwd": "/w"}
    return dict(await hook(payload, "id", None))  # type: ignore[arg-type]


def answering(answer: Any) -> Any:
    async def callback(*_: Any) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return callback


NO_OBJECTION: dict[str, Any] = {
    "nothing": {},
    "allow": specific(permissionDecision="allow", permissionDecisionReason="fine"),
    "approve, as it was said once": {"decision": "approve", "reason": "fine"},
    "no decision": specific(),
    "an output that is null": {"hookSpecificOutput": None},
    "a message for the person": {"systemMessage": "hello", "suppressOutput": True},
    "go on": {"continue_": True},
    "more context": specific(additionalContext="x"),
    "the same input": specific(updatedInput=None),
}


@pytest.mark.parametrize("answer", NO_OBJECTION.values(), ids=NO_OBJECTION)
async def test_no_objection_leaves_the_call_to_the_gate(answer: Any) -> None:
    assert await asked(answering(answer)) == {}
    assert "can't be read" in (reason(await asked(answering(answer), path=CLOSED)) or "")


REFUSES: dict[str, tuple[Any, str]] = {
    "deny": (
        specific(permissionDecision="deny", permissionDecisionReason="not today"),
        "not today",
    ),
    "deny without a reason": (specific(permissionDecision="deny"), "refused the call"),
    "ask": (specific(permissionDecision="ask", permissionDecisionReason="may it?"), "may it?"),
    "ask without a reason": (specific(permissionDecision="ask"), "a person to approve"),
    "defer": (specific(permissionDecision="defer"), "can't be waited for"),
    "block": ({"decision": "block", "reason": "not today"}, "not today"),
    "block without a reason": ({"decision": "block"}, "refused the call"),
    "stop": ({"continue_": False, "stopReason": "enough"}, "enough"),
    "stop, as the CLI spells it": ({"continue": False, "stopReason": "enough"}, "enough"),
    "stop without a reason": ({"continue": False}, "refused the call"),
}


@pytest.mark.parametrize(("answer", "says"), REFUSES.values(), ids=REFUSES)
async def test_a_refusal_is_a_denial_with_its_reason(answer: Any, says: str) -> None:
    assert says in (reason(await asked(answering(answer))) or "")
    assert says in (reason(await asked(answering({}), answering(answer))) or "")


BROKEN: dict[str, Any] = {
    "None": None,
    "text": "allow",
    "a list": [],
    "True": True,
    "an unknown key": {"permissionDecision": "allow"},
    "an unknown key inside": specific(permissionDecison="deny"),
    "an unknown decision": specific(permissionDecision="alow"),
    "a decision in other letters": specific(permissionDecision="ALLOW"),
    "a decision that is no text": specific(permissionDecision=True),
    "a decision that is a list": specific(permissionDecision=["deny"]),
    "an unknown old decision": {"decision": "Block"},
    "no event": {"hookSpecificOutput": {"permissionDecision": "allow"}},
    "another event": {"hookSpecificOutput": {"hookEventName": "PostToolUse"}},
    "an output that is text": {"hookSpecificOutput": "allow"},
    "an output that is a list": {"hookSpecificOutput": [1]},
    "an input that is text": specific(updatedInput=OPEN),
    "an input that is a list": specific(updatedInput=[OPEN]),
    "an error": ValueError("the callback's secret"),
    "a time-out of its own": TimeoutError("the callback's secret"),
    "a cancellation of its own": asyncio.CancelledError(),
    "a deep error": RecursionError(),
    "the end of an iteration": StopAsyncIteration(),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN)
async def test_an_answer_that_is_none_refuses_the_call_without_saying_why(answer: Any) -> None:
    assert reason(await asked(answering(answer))) == INTERNAL_ERROR
    later: list[int] = []

    async def callback(*_: Any) -> dict[str, Any]:
        later.append(1)
        return {}

    await asked(answering(answer), callback)
    assert later == []


async def test_the_gate_ends_when_the_session_does() -> None:
    started = asyncio.Event()

    async def waits(*_: Any) -> dict[str, Any]:
        started.set()
        await asyncio.sleep(60)
        return {}

    task = asyncio.create_task(asked(waits))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_rewritten_input_is_passed_on_as_the_last_one_left_it() -> None:
    one = answering(specific(updatedInput={"file_path": CLOSED}))
    two = answering(specific(updatedInput={"file_path": OTHER}))
    assert await asked(one, two) == specific(updatedInput={"file_path": OTHER})
    assert "can't be read" in (reason(await asked(two, one)) or "")
    assert await asked(two, path=CLOSED) == specific(updatedInput={"file_path": OTHER})


@pytest.mark.parametrize(
    "payload", [None, {}, {"tool_name": "Read"}, {"tool_input": {}}, [], 5], ids=repr
)
@pytest.mark.parametrize("chained", [False, True])
async def test_a_payload_of_another_shape_is_a_denial(payload: Any, chained: bool) -> None:
    before = chain([answering({})]) if chained else ()
    answer = await create_file_scope_gate(SCOPE, before=before).hooks[0](payload, None, None)  # type: ignore[arg-type]
    if payload != {"tool_name": "Read"}:  # a call without a path is the tool's to reject
        assert reason(dict(answer)) is not None


@pytest.mark.parametrize(
    ("hooks", "value"),
    [
        ([HookMatcher(hooks=["ls"])], HookMatcher(hooks=["ls"])),  # type: ignore[list-item]
        ([HookMatcher(hooks=None)], HookMatcher(hooks=None)),  # type: ignore[arg-type]
        (["ls"], "ls"),
        (None, None),
        ("ls", "ls"),
    ],
    ids=repr,
)
def test_what_can_not_be_called_is_a_fault(hooks: Any, value: Any) -> None:
    (fault,) = hook_faults("hooks", {"PreToolUse": hooks})
    assert (fault.field, fault.value) == ("hooks['PreToolUse']", value)


def test_callbacks_and_matchers_are_none() -> None:
    async def callback(*_: Any) -> dict[str, Any]:
        return {}

    hooks = (
        callback,
        HookMatcher(hooks=[callback]),
        HookMatcher(matcher="^Read$", hooks=[callback]),
    )
    for given in (hooks, list(hooks), ()):
        assert hook_faults("hooks", {"PreToolUse": given, "Stop": given}) == []
    assert [each.matcher for each in chain(hooks)] == [None, None, "^Read$"]
