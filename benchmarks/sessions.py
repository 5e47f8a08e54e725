"""Whole sessions on the real CLI: with the locks on, beside a bare session of the same calls."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

from agent_kit import AgentSpec, build_session_options
from agent_kit.testing import AnsweredBy, ToolCall, run_session, tree
from benchmarks import course
from benchmarks.measure import Effort, Row, Samples, take_turns

__all__ = ["calls", "measure"]

_Options = Callable[[Path], ClaudeAgentOptions]
_TOOLS = ["Read", "Glob", "Grep", "Write", "Edit"]


def measure(effort: Effort) -> Iterator[Row]:
    """The whole time, from building the options to the end of the CLI."""
    few = (effort.sessions + 1) // 2
    idle = _turns(_idle_hook, effort.sessions, effort.calls)
    yield idle.ratio(
        "session.hook", f"a session of {effort.calls} calls with a hook that does nothing : bare"
    )
    for key, what, spec, readable, pairs, bound in (
        (
            "session.locks",
            "with the locks on",
            course.locks_only(),
            ("sources",),
            effort.sessions,
            1.05,
        ),
        ("session.kit", "with the locks and three extensions", course.spec(), (), few, None),
    ):
        samples = _turns(_locked(spec, readable), pairs, effort.calls)
        yield samples.ratio(key, f"a session of {effort.calls} calls {what} : bare", bound=bound)


def _turns(candidate: _Options, pairs: int, calls: int) -> Samples:
    return take_turns(
        lambda: asyncio.run(_session(_bare, calls)),
        lambda: asyncio.run(_session(candidate, calls)),
        pairs,
    )


def _locked(spec: AgentSpec, readable: tuple[str, ...]) -> _Options:
    def options(root: Path) -> ClaudeAgentOptions:
        return build_session_options(
            spec, course.config(root, readable=readable, confinement="off")
        )

    return options


def _idle_hook(root: Path) -> ClaudeAgentOptions:
    """The least that any gate costs: the CLI asks, and hears nothing."""

    async def nothing(*_: Any) -> dict[str, Any]:
        return {}

    matcher = HookMatcher(hooks=[nothing])  # type: ignore[list-item]
    return replace(_bare(root), hooks={"PreToolUse": [matcher]})


def _bare(root: Path) -> ClaudeAgentOptions:
    """What the SDK gives without the kit. The CLI loads what it loads for the kit: the project."""
    return ClaudeAgentOptions(
        cwd=str(root / "course"),
        tools=_TOOLS,
        allowed_tools=_TOOLS,
        system_prompt=course.PROMPT,
        setting_sources=["project"],
    )


async def _session(options: _Options, n: int) -> float:
    """Seconds of one session of ``n`` calls, all of which run, in a place of its own."""
    with tempfile.TemporaryDirectory(prefix="agent-kit-bench-") as folder:
        root = tree(Path(folder).resolve(), course.FILES)
        start = perf_counter()
        run = await run_session(options(root), calls(n), home=root / "home", timeout=300)
        taken = perf_counter() - start
    assert len(run.calls) == n
    assert all(call.lock is AnsweredBy.RAN for call in run.calls), "a call was refused"
    return taken


def calls(n: int) -> list[ToolCall]:
    """Mixed calls in the open folders. The edits turn one word to and fro."""
    drafts, sources = "drafts/newsletter.md", "sources/syllabus.md"
    words = itertools.cycle((("old", "new"), ("new", "old")))
    found: list[ToolCall] = []
    while len(found) < n:
        old, new = next(words)
        found += [
            ToolCall("Read", {"file_path": drafts}),
            ToolCall("Edit", {"file_path": drafts, "old_string": old, "new_string": new}),
            ToolCall("Grep", {"pattern": "exam", "path": "sources"}),
            ToolCall("Glob", {"pattern": "*.md", "path": "drafts"}),
            ToolCall("Read", {"file_path": sources}),
        ]
    return found[:n]
