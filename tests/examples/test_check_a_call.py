"""``examples/check_a_call.py``: one decision, without the SDK."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("call", "status", "verdict", "message"),
    [
        ((), 1, "Read agent.config.json: deny (denied-path)", "is off limits"),
        (("Read", "sources/syllabus.md"), 0, "Read sources/syllabus.md: allow (ok)", None),
        (
            ("Write", "sources/syllabus.md"),
            1,
            "Write sources/syllabus.md: deny (read-only)",
            "read",
        ),
        (("Write", "drafts/letter.md"), 0, "Write drafts/letter.md: allow (ok)", None),
        (("Read", "a/.env"), 1, "Read a/.env: deny (denied-pattern)", "is off limits"),
        (("Grep", "sources"), 0, "Grep sources: allow (ok)", None),
        (("Grep", "."), 1, "Grep .: deny (outside-searchable)", "search"),
        (("Glob", ".."), 1, "Glob ..: deny (outside-readable)", "listing"),
    ],
)
def test_the_decision_is_printed_with_the_sentence_for_the_model(
    by_hand: Callable[..., Any],
    call: tuple[str, ...],
    status: int,
    verdict: str,
    message: str | None,
) -> None:
    done = by_hand("check_a_call", *call)
    first, *rest = done.stdout.splitlines()
    assert (done.returncode, first, done.stderr) == (status, verdict, "")
    assert len(rest) == (message is not None)
    assert (message or "") in "".join(rest)


def test_the_decision_needs_neither_the_sdk_nor_mcp(
    by_hand: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("claude_agent_sdk", "mcp"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('loaded')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert by_hand("check_a_call").stdout.startswith("Read agent.config.json: deny")
