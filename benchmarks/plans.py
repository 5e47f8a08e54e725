"""What it costs to plan a session."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from agent_kit import plan_session
from agent_kit.testing import tree
from benchmarks import course
from benchmarks.imports import fresh
from benchmarks.measure import Effort, Row, figure, quiet, seconds

__all__ = ["measure"]

_COLD = """
from time import perf_counter
from agent_kit import plan_session
from benchmarks import course
spec, config = course.spec(), course.config({root!r}, confinement="off")
start = perf_counter()
plan_session(spec, config)
print(perf_counter() - start)
"""


def measure(effort: Effort) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="agent-kit-bench-") as root:
        tree(Path(root), course.FILES)
        spec, config = course.spec(), course.config(root, confinement="off")
        plan_session(spec, config)
        with quiet():
            warm = [seconds(lambda: plan_session(spec, config))[0] for _ in range(effort.blocks)]
        code = _COLD.format(root=root)
        fresh(code)
        cold = [float(fresh(code)) for _ in range(effort.starts)]
    for key, what, taken in (
        ("plan.warm", "plan_session of the course assistant, again", warm),
        ("plan.cold", "plan_session of the course assistant, the first of a process", cold),
    ):
        yield figure(key, what, "ms", [value * 1e3 for value in taken], bound=10)
