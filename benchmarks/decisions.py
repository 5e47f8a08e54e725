"""One whole decision (text in, links resolved, verdict out) beside ``os.path.realpath``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agent_kit import FileScope, check_file_scope
from benchmarks.measure import Effort, Row, Samples, alternate
from benchmarks.places import Place, place

__all__ = ["measure"]


class _Case(NamedTuple):
    """``<near>``, ``<far>`` and ``<project>`` stand for folders. ``path`` goes to ``realpath``."""

    key: str
    what: str
    tool: str
    path: str
    field: str = "file_path"
    allowed: bool = True
    bound: float | None = None
    aim: float | None = None


_CASES = (
    _Case("decision.file", "Read, a file", "Read", "<near>/file.md", bound=0.6, aim=0.3),
    _Case("decision.missing", "Read, a missing file", "Read", "<near>/no.md", bound=0.8, aim=0.6),
    _Case("decision.new", "Write, a missing file", "Write", "<near>/no.md", bound=0.8, aim=0.6),
    _Case("decision.write", "Write, a file", "Write", "<near>/file.md"),
    _Case("decision.deeper", "Read, eight folders below the project", "Read", "<far>/file.md"),
    _Case("decision.grep", "Grep in a folder", "Grep", "<near>", field="path"),
    _Case("decision.glob", "Glob in a folder", "Glob", "<near>", field="path"),
    _Case("decision.link", "Read, through a link to a folder", "Read", "<project>/link/file.md"),
    _Case("decision.unicode", "Read, a name beyond ASCII", "Read", "<near>/größe.md"),
    _Case("decision.two-names", "Read, a file with two names", "Read", "<near>/first.md"),
    _Case("decision.outside", "Read, denied: outside", "Read", "<project>/no.md", allowed=False),
    _Case(
        "decision.pattern", "Read, denied by a pattern", "Read", "<near>/course.env", allowed=False
    ),
)


def measure(effort: Effort) -> Iterator[Row]:
    """What a decision costs; the scope has one literal denied entry and one pattern."""
    with place() as at:
        scope = at.scope(["agent.config.json", "**/*.env"])
        for case in _CASES:
            samples = _beside_realpath(scope, at, case, effort)
            yield samples.ratio(case.key, case.what, bound=case.bound, aim=case.aim)
        without = _beside_realpath(at.scope(), at, _CASES[0], effort)
        yield without.ratio("decision.no-patterns", "Read, a file, in a scope without patterns")
        yield _handle(at.file, effort)


def _beside_realpath(scope: FileScope, at: Place, case: _Case, effort: Effort) -> Samples:
    path = case.path
    for name in ("near", "far", "project"):
        path = path.replace(f"<{name}>", getattr(at, name))
    call: Mapping[str, str] = {case.field: path}
    if case.field == "path":
        call = {"pattern": "**/*.md", "path": path}
    allowed = check_file_scope(scope, case.tool, call) is None
    assert allowed is case.allowed, f"{case.key}: what is measured isn't what it says"
    return alternate(
        lambda: os.path.realpath(path), lambda: check_file_scope(scope, case.tool, call), effort
    )


def _handle(path: str, effort: Effort) -> Row:
    """The least that a decision by handle has to do: no text is looked at, nothing is decided."""
    what = "for comparison: an O_PATH handle and the link in /proc/self/fd"
    flags = getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC

    def handle() -> str:
        opened = os.open(path, flags)
        try:
            return os.readlink(f"/proc/self/fd/{opened}")
        finally:
            os.close(opened)

    return alternate(lambda: os.path.realpath(path), handle, effort).ratio("decision.handle", what)
