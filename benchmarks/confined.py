"""What a confinement adds to a session: to its start, to a hundred calls, and to its plan.

Both sides have the other locks on, and the same key, which a broker holds for the confined one.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final, TypeAlias

from agent_kit import AgentSpec, build_session_options, plan_session
from agent_kit.confine.choice import BACKENDS
from agent_kit.testing import AnsweredBy, Step, ToolCall, Turn, run_session, tree
from benchmarks import course
from benchmarks.measure import Effort, Row, Samples, figure, quiet, seconds, take_turns
from benchmarks.sessions import calls

__all__ = ["measure"]

_ALLOWED: Final = 50.0  # milliseconds that a start may take more, beside a twentieth
_KEY: Final = "sk-made-up"

_Taken: TypeAlias = dict[str, float]
"""Seconds: ``start``, from planning to the CLI's first request; ``calls``, from that to its last one;
``whole``, from planning to the end of the CLI."""


def measure(effort: Effort) -> Iterator[Row]:
    """With each backend that works here. Raises ``RuntimeError`` where none does."""
    found = [name for name, backend in BACKENDS.items() if backend.available() is None]
    if not found:
        raise RuntimeError("nothing confines the CLI here: agent-kit doctor says why")
    for name in found:
        yield _plan(name, effort)
        start = _turns(name, effort.sessions * 2, ())["start"]
        more = [(c - r * 1.05) * 1e3 for r, c in start.pairs]
        yield figure(
            f"confined.{name}.start",
            f"from the plan to the first request, by {name}, less 1.05 × unconfined",
            "ms",
            more,
            bound=_ALLOWED,
            note=start.note,
        )
        taken = _turns(name, effort.sessions, calls(effort.calls))
        yield taken["calls"].ratio(
            f"confined.{name}.calls",
            f"{effort.calls} calls, from the first request to the last, by {name} : unconfined",
            bound=1.05,
        )
        yield taken["whole"].ratio(
            f"confined.{name}.session",
            f"a session of {effort.calls} calls, by {name} : unconfined",
        )
        half = effort.calls // 2  # a command takes longer than a call
        commands = [ToolCall("Bash", {"command": "echo done"})] * half
        taken = _turns(name, (effort.sessions + 1) // 2, commands, tools=["Bash"])
        yield taken["whole"].ratio(
            f"confined.{name}.commands", f"a session of {half} commands, by {name} : unconfined"
        )


def _plan(name: str, effort: Effort) -> Row:
    with tempfile.TemporaryDirectory(prefix="agent-kit-bench-") as root:
        tree(Path(root), course.FILES)
        spec, config = course.spec(), course.config(root, **_confined(name))
        plan_session(spec, config)
        with quiet():
            taken = [
                seconds(lambda: plan_session(spec, config))[0] * 1e3 for _ in range(effort.blocks)
            ]
    what = f"plan_session of the course assistant, confined by {name}, again"
    return figure(f"confined.{name}.plan", what, "ms", taken)


def _confined(name: str | None) -> dict[str, Any]:
    if name is None:
        return {"confinement": "off", "allow_unconfined_commands": True}
    return {"confinement": "required", "confinement_backend": name}


def _turns(
    name: str, pairs: int, script: Sequence[ToolCall], *, tools: Sequence[str] = ()
) -> dict[str, Samples]:
    """Samples of each part of a session, of the same sessions."""
    reference: list[_Taken] = []
    candidate: list[_Taken] = []

    def run(confined_by: str | None, found: list[_Taken]) -> float:
        found.append(asyncio.run(_session(confined_by, script, tools)))
        return found[-1]["whole"]

    take_turns(lambda: run(None, reference), lambda: run(name, candidate), pairs)
    return {
        part: Samples(tuple(r[part] for r in reference), tuple(c[part] for c in candidate))
        for part in ("start", "calls", "whole")
    }


async def _session(name: str | None, script: Sequence[ToolCall], tools: Sequence[str]) -> _Taken:
    """What a session takes whose model makes these calls and then says that it is done."""
    spec = AgentSpec(name="course-assistant", system_prompt=course.PROMPT, tools=tools)
    asked: list[float] = []

    def answer(turn: Turn) -> Step:
        asked.append(perf_counter())
        return script[turn.number] if turn.number < len(script) else "Done."

    with tempfile.TemporaryDirectory(prefix="agent-kit-bench-") as folder:
        root = tree(Path(folder).resolve(), course.FILES)
        env = {"ANTHROPIC_API_KEY": _KEY}
        config = course.config(root, readable=("sources",), env=env, **_confined(name))
        start = perf_counter()
        options = build_session_options(spec, config)
        run = await run_session(options, answer, home=root / "home", timeout=300)
        end = perf_counter()
    assert len(run.calls) == len(script)
    assert all(call.lock is AnsweredBy.RAN for call in run.calls), "a call was refused"
    return {"start": asked[0] - start, "calls": asked[-1] - asked[0], "whole": end - start}
