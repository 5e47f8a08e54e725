"""The figures as a table for people and as JSON for programs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version

import pyperf  # type: ignore[import-untyped]

from benchmarks.measure import Row

__all__ = ["as_json", "as_table", "machine"]

_SHOWN = ("date", "platform", "cpu_model_name", "cpu_count", "python_version", "load_avg_1min")


def machine() -> dict[str, object]:
    """What the figures depend on, and how busy the machine is as the run begins."""
    found = pyperf.Run([1.0]).get_metadata()
    about: dict[str, object] = {name: found[name] for name in _SHOWN if name in found}
    about["date"] = str(found["date"])[:16]  # local time
    return about | {"claude-agent-sdk": version("claude-agent-sdk")}


def as_json(rows: Sequence[Row], about: Mapping[str, object]) -> str:
    found = [{**dataclasses.asdict(row), "verdict": row.verdict} for row in rows]
    return json.dumps({"machine": dict(about), "rows": found}, indent=1, ensure_ascii=False) + "\n"


_HEAD = ("what", "bound", "aim", "measured", "quartiles", "of", "", "candidate : reference")


def as_table(rows: Sequence[Row], about: Mapping[str, object]) -> str:
    """A Markdown table. "of" is the statistic and the number of samples."""
    lines = [_HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    spelled = [
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    ]
    spelled.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    facts = "\n".join(f"{name}: {value}" for name, value in about.items())
    return "\n".join([*spelled, "", facts])


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.what,
        _number(row.bound),
        _number(row.aim),
        f"{_number(row.value)} {row.unit}".strip(),
        f"{_number(row.low)} to {_number(row.high)}",
        f"{row.statistic} of {row.samples}",
        row.verdict,
        row.note,
    )


def _number(value: float | None) -> str:
    """Three digits, and no fewer than the unit's."""
    if value is None:
        return ""
    return f"{value:.0f}" if abs(value) >= 100 or value == int(value) else f"{value:.3g}"
