"""Timing on a machine that others use too: the two sides take turns in short blocks."""

from __future__ import annotations

import gc
import itertools
import random
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Final, TypeVar

__all__ = [
    "FAST",
    "FULL",
    "Action",
    "Effort",
    "Row",
    "Samples",
    "alternate",
    "figure",
    "quiet",
    "seconds",
    "take_turns",
]

Action = Callable[[], object]
Measurement = Callable[[], float]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured. ``block`` is in seconds, the rest are numbers."""

    blocks: int  # pairs of blocks for one ratio
    block: float  # what one block takes: short, so that both sides meet the same machine
    literals: int  # denied literal paths
    patterns: int  # denied patterns
    builds: int  # times that a scope is built
    starts: int  # fresh interpreters of each kind
    sessions: int  # pairs of sessions
    calls: int  # tool calls of one session


FULL = Effort(
    blocks=401,
    block=0.0005,
    literals=100_000,
    patterns=10_000,
    builds=3,
    starts=21,
    sessions=6,
    calls=100,
)
FAST = Effort(
    blocks=21,
    block=0.0005,
    literals=2_000,
    patterns=500,
    builds=1,
    starts=3,
    sessions=1,
    calls=10,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure. ``value``, ``low``, ``high``, ``bound`` and ``aim`` are in ``unit``.

    ``value`` is the ``statistic`` of the samples, ``low`` and ``high`` are their quartiles.
    ``bound`` and ``aim`` are ``None`` where a figure is only reported.
    """

    key: str
    what: str
    unit: str
    statistic: str
    value: float
    low: float
    high: float
    samples: int
    bound: float | None = None
    aim: float | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.bound is None:
            return ""
        return "ok" if self.value <= self.bound else "over"


_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "minimum": min,
}


def figure(
    key: str,
    what: str,
    unit: str,
    values: Sequence[float],
    *,
    statistic: str = "median",
    bound: float | None = None,
    aim: float | None = None,
    note: str = "",
) -> Row:
    """The row of some samples. ``statistic`` is "median" or "minimum"."""
    single = len(values) == 1
    low, _, high = (values[0],) * 3 if single else statistics.quantiles(values, method="inclusive")
    return Row(
        key=key,
        what=what,
        unit=unit,
        statistic=statistic,
        value=_STATISTICS[statistic](values),
        low=low,
        high=high,
        samples=len(values),
        bound=bound,
        aim=aim,
        note=note,
    )


@dataclass(frozen=True, slots=True)
class Samples:
    """Seconds of the two sides, pair by pair. Each method takes the median over the pairs."""

    reference: tuple[float, ...]
    candidate: tuple[float, ...]

    @property
    def pairs(self) -> list[tuple[float, float]]:
        return list(zip(self.reference, self.candidate, strict=True))

    @property
    def note(self) -> str:
        return f"{_spelled(self.candidate)} : {_spelled(self.reference)}"

    def ratio(
        self, key: str, what: str, *, bound: float | None = None, aim: float | None = None
    ) -> Row:
        """Candidate over reference."""
        values = [c / r for r, c in self.pairs]
        return figure(key, what, "×", values, bound=bound, aim=aim, note=self.note)

    def added(self, key: str, what: str, *, bound: float | None = None) -> Row:
        """What the candidate takes more than the reference, over the reference."""
        values = [(c - r) / r for r, c in self.pairs]
        return figure(key, what, "×", values, bound=bound, note=self.note)

    def difference(self, key: str, what: str, *, bound: float | None = None) -> Row:
        """What the candidate takes more than the reference, in milliseconds."""
        values = [(c - r) * 1e3 for r, c in self.pairs]
        return figure(key, what, "ms", values, bound=bound, note=self.note)


def _spelled(values: Sequence[float]) -> str:
    middle = statistics.median(values)
    for factor, unit in ((1, "s"), (1e3, "ms")):
        if middle * factor >= 1:
            return f"{middle * factor:.2f} {unit}"
    return f"{middle * 1e6:.2f} µs"


_CALIBRATIONS: Final = 5  # blocks


def alternate(reference: Action, candidate: Action, effort: Effort) -> Samples:
    """Seconds of one call of each, from blocks that follow each other at once."""
    loops = {action: _loops(action, effort.block) for action in (reference, candidate)}
    with quiet():
        return take_turns(
            lambda: _block(reference, loops[reference]),
            lambda: _block(candidate, loops[candidate]),
            effort.blocks,
        )


def take_turns(reference: Measurement, candidate: Measurement, pairs: int) -> Samples:
    """What two measurements return, in pairs; a coin says which of a pair goes first.

    Turn and turn about would fall in step with other programs that take turns on the machine.
    """
    coin = random.Random(0)
    found = []
    for _ in range(pairs):
        if coin.random() < 0.5:
            first = reference()
            found.append((first, candidate()))
        else:
            second = candidate()
            found.append((reference(), second))
    return Samples(tuple(r for r, _ in found), tuple(c for _, c in found))


def seconds(action: Callable[[], T], clock: Measurement = perf_counter) -> tuple[float, T]:
    """What one call takes, and its result."""
    start = clock()
    result = action()
    return clock() - start, result


@contextmanager
def quiet() -> Iterator[None]:
    """No collector inside, as ``timeit`` does it."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _loops(action: Action, block: float) -> int:
    """How many calls fill a block. The calls also warm up what they need.

    The quickest of several blocks counts: one alone may have been held up by another program.
    """
    loops = 1
    while (taken := _quickest(action, loops)) * loops < block / 2:
        loops *= 2
    return max(1, round(block / taken))


def _quickest(action: Action, loops: int) -> float:
    return min(_block(action, loops) for _ in range(_CALIBRATIONS))


def _block(action: Action, loops: int) -> float:
    """Seconds of one call in a block of ``loops``."""
    calls = itertools.repeat(None, loops)
    start = perf_counter()
    for _ in calls:
        action()
    return (perf_counter() - start) / loops
