"""Whole sessions on the real CLI: with the locks on, beside a bare session of the same calls."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

from claude_agent_sdk import ClaudeAgentOptions

from agent_kit import AgentSpec, build_session_options
from agent_kit.testing import AnsweredBy, ToolCall, run_session, tree
from benchmarks import course
from benchmarks.measure import Effort, Row, Samples, take_turns

__all__ = ["measure"]

_TOOLS = ["Read", "Glob", "Grep", "Write", "Edit"]


def measure(effort: Effort) -> Iterator[Row]:
    """The whole time, from building the options to the end of the CLI."""
    few = (effort.sessions + 1) // 2
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
        samples = _turns(spec, readable, pairs, effort.calls)
        yield samples.ratio(key, f"a session of {effort.calls} calls {what} : bare", bound=bound)


def _turns(spec: AgentSpec, readable: tuple[str, ...], pairs: int, calls: int) -> Samples:
    def locked(root: Path) -> ClaudeAgentOptions:
        return build_session_options(spec, course.config(root, readable=readable))

    return take_turns(
        lambda: asyncio.run(_session(_bare, calls)),
        lambda: asyncio.run(_session(locked, calls)),
        pairs,
    )


def _bare(root: Path) -> ClaudeAgentOptions:
    """What the SDK gives without the kit; nothing of the machine's is loaded."""
    return ClaudeAgentOptions(
        cwd=str(root / "course"),
        tools=_TOOLS,
        allowed_tools=_TOOLS,
        system_prompt=course.PROMPT,
        setting_sources=[],
    )


async def _session(options: Callable[[Path], ClaudeAgentOptions], n: int) -> float:
    """Seconds of one session of ``n`` calls, all of which run, in a place of its own."""
    with tempfile.TemporaryDirectory(prefix="agent-kit-bench-") as folder:
        root = tree(Path(folder).resolve(), course.FILES)
        start = perf_counter()
        run = await run_session(options(root), _calls(n), home=root / "home", timeout=300)
        taken = perf_counter() - start
    assert len(run.calls) == n
    assert all(call.lock is AnsweredBy.RAN for call in run.calls), "a call was refused"
    return taken


def _calls(n: int) -> list[ToolCall]:
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
