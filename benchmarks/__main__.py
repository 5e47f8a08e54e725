"""Measure, and print the table: ``python -m benchmarks [--fast] [--only PART] [--json FILE]``."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import FAST, FULL, Row, seconds
from benchmarks.report import as_json, as_table, machine

PARTS = (
    "decisions",
    "rules",
    "rule_engines",
    "entries",
    "dispatch",
    "imports",
    "plans",
    "broker",
    "sessions",
    "confined",
    "stores",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 1 with ``--check`` when a figure is over its bound."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="few samples: does everything run?")
    parser.add_argument("--only", action="append", choices=PARTS, help="a part (may be repeated)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument("--check", action="store_true", help="exit with 1 when a bound is missed")
    given = parser.parse_args(arguments)

    about = machine()
    taken, rows = seconds(lambda: list(_rows(given.only or PARTS, fast=given.fast)))
    about |= {"fast": given.fast, "seconds": round(taken)}
    print(as_table(rows, about))
    if given.json is not None:
        given.json.write_text(as_json(rows, about), encoding="utf-8")
    return int(given.check and any(row.verdict == "over" for row in rows))


def _rows(parts: Sequence[str], *, fast: bool) -> Iterator[Row]:
    for part in parts:
        print(f"measuring {part} ...", file=sys.stderr, flush=True)
        yield from importlib.import_module(f"benchmarks.{part}").measure(FAST if fast else FULL)


if __name__ == "__main__":
    sys.exit(main())
