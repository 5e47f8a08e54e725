"""The gate answers the usual call at once, and says what it says where it takes its time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_kit.policy import ask_user, content_check, deny_paths, rate_limit, size_ceiling
from agent_kit.policy.contents import read_limit
from agent_kit.sdk import gate
from tests.people import rule
from tests.sdk.test_policy_gate import Session

CASES: dict[str, tuple[tuple[Any, ...], Any]] = {
    "nothing": ((), dict),
    "a rule that denies": ((rule("deny", "drafts/**"),), dict),
    "a rule that denies behind one that allows": (
        (rule("allow", "drafts/a.md"), rule("deny", "**")),
        dict,
    ),
    "a denied path": ((), lambda: {"authorizers": (deny_paths(["drafts/**"]),)}),
    "another denied path": ((), lambda: {"authorizers": (deny_paths(["sources/**"]),)}),
    "a rule before an authorizer": (
        (rule("deny", "drafts/**"),),
        lambda: {"authorizers": (deny_paths(["**"]),)},
    ),
    "a ceiling": ((), lambda: {"authorizers": (size_ceiling(5),)}),
    "a limit of lines": ((), lambda: {"authorizers": (read_limit(lines=3),)}),
    "a rate": ((), lambda: {"authorizers": (rate_limit(0, 1), content_check("x"))}),
    "words": ((), lambda: {"authorizers": (content_check("secret"), size_ceiling(100))}),
}
CALLS = [
    ("Read", {"file_path": "drafts/a.md"}),
    ("Write", {"file_path": "drafts/a.md", "content": "a secret"}),
    ("Write", {"file_path": "drafts/new.md", "content": "none"}),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("tool", "given"), CALLS)
async def test_what_is_said_at_once_is_what_is_said_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, tool: str, given: dict[str, str]
) -> None:
    session = Session(tmp_path)
    rules, fields = CASES[case]
    call = {**given, "file_path": f"{session.project}/{given['file_path']}"}
    said = []
    for in_turn in (False, True):
        session.start(*rules, **fields())
        with monkeypatch.context() as patched:
            if in_turn:
                patched.setattr(gate._Gate, "at_once", lambda *_: None)
            else:
                patched.delattr(gate._Gate, "answer")
            said.append(await session.hooked(tool, **call))
    assert said[0] == said[1]
    first, second = (replace(line, milliseconds=0) for line in session.lines)
    assert first == second


@pytest.mark.parametrize(
    ("rules", "fields"),
    [
        ((rule("interrupt", "drafts/**"),), {}),
        ((), {"interrupt_on": {"Read": True}}),
        ((), {"authorizers": (rate_limit(1, 100), ask_user(lambda _target: True))}),
    ],
)
async def test_what_a_person_is_asked_about_is_not_answered_at_once(
    tmp_path: Path, rules: Any, fields: Any
) -> None:
    session = Session(tmp_path)
    session.start(*rules, ask=lambda _approval: None, **fields)
    for use_id in ("t1", "t2"):
        path = f"{session.project}/drafts/a.md"
        answer = await session.hooked("Read", use_id, file_path=path)
        assert answer["permissionDecision"] == "ask"
