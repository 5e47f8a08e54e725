"""Names that the CLI's rules don't know, and files that Read gives as a whole: the gate knows both.

Of the names the gate refuses the search; of the files, what is over a limit. The same calls without
any of it are the control.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_kit import (
    AgentSpec,
    FilePermission,
    SessionConfig,
    build_session_options,
    deny_paths,
    plan_session,
    read_limit,
    size_ceiling,
)
from agent_kit.sdk.rules import pattern_rules
from agent_kit.session.options import options_from_plan
from agent_kit.testing import AnsweredBy, SessionRun, ToolCall, run_session

pytestmark = pytest.mark.e2e

# the pattern, the name on the disk
SHOWN = (
    ("\u00e9\u00f61.txt", "e\u0301\u00f61.txt"),
    ("\u1ea1\u03072.txt", "a\u0307\u03232.txt"),
    ("\u00c53.txt", "\u212b3.txt"),
    ("\ud55c\uae004.txt", "\u1112\u1161\u11ab\uae004.txt"),
)
FOLDED = (  # case and ignorable characters, which only denied paths pass over
    (".env", ".e\u200bnv"),
    ("strasse5.txt", "stra\u00dfe5.txt"),
    ("token6.txt", "to\u212aen6.txt"),
    ("?7.txt", "e\u03017.txt"),
)
LEFT_OUT = (
    ("caf\u00e9.txt", "cafe\u0301.txt"),
    ("*.key", "\u00e9.key"),
)
LEFT_OUT_FOLDED = (
    ("stra\u00dfe.md", "STRASSE.md"),
    ("\u00e4.md", "\u00c4.md"),
    ("?8.txt", "\u00e98.txt"),
    ("[\u00e9]9.txt", "\u00e99.txt"),
)


def session(root: Path, calls: Sequence[ToolCall], **fields: Any) -> SessionRun:
    (root / "home").mkdir(exist_ok=True)
    config = SessionConfig(
        project_dir=root / "w",
        run_dir=root / "run",
        extra_writable_dirs=["."],
        confinement="off",
        **fields,
    )
    options = build_session_options(AgentSpec(name="reader"), config)
    return asyncio.run(run_session(options, [tuple(calls), "End."], home=root / "home"))


def planted(root: Path, names: Sequence[tuple[str, str]]) -> Path:
    work = root / "w"
    work.mkdir()
    for number, (_, name) in enumerate(names):
        (work / name).write_text(f"canary({number})\n")
    (work / "open.txt").write_text("canary(open)\n")
    return work


def grep(work: Path) -> tuple[ToolCall, ...]:
    asked = {"pattern": "canary", "path": str(work)}
    return (
        ToolCall("Grep", {**asked, "output_mode": "content"}),
        ToolCall("Grep", asked),
        ToolCall("Grep", {**asked, "output_mode": "content", "multiline": True}),
    )


def closing(kind: str, patterns: Sequence[str]) -> Mapping[str, Any]:
    if kind == "denied_paths":
        return {"denied_paths": patterns}
    if kind == "deny_paths":
        return {"authorizers": [deny_paths(patterns)]}
    rule = FilePermission(operations=["read", "write"], paths=patterns, mode="deny")
    return {"permissions": [rule]}


KINDS = ("denied_paths", "deny_paths", "permissions")


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_that_would_show_what_is_denied_is_refused(tmp_path: Path, kind: str) -> None:
    names = (*SHOWN, *FOLDED) if kind == "denied_paths" else SHOWN
    for number, (pattern, name) in enumerate(names):
        root = tmp_path / str(number)
        root.mkdir()
        work = planted(root, [(pattern, name)])
        read = ToolCall("Read", {"file_path": str(work / name)})
        run = session(root, [*grep(work), read], **closing(kind, [f"**/{pattern}"]))
        assert [call.lock for call in run.calls] == [AnsweredBy.GATE] * 4
        assert not run.saw("canary(0)")


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_cli_s_rules_know_stops_no_search(tmp_path: Path, kind: str) -> None:
    names = (*LEFT_OUT, *LEFT_OUT_FOLDED) if kind == "denied_paths" else LEFT_OUT
    work = planted(tmp_path, names)
    patterns = [f"**/{pattern}" for pattern, _ in names]
    run = session(tmp_path, grep(work), **closing(kind, patterns))
    assert [call.lock for call in run.calls] == [AnsweredBy.RAN] * 3
    assert run.saw("canary(open)")
    assert not any(run.saw(f"canary({number})") for number in range(len(names)))


def test_the_cli_s_rules_alone_show_them(tmp_path: Path) -> None:
    names = (*SHOWN, *FOLDED)
    work = planted(tmp_path, names)
    config = SessionConfig(
        project_dir=work, run_dir=tmp_path / "run", extra_writable_dirs=["."], confinement="off"
    )
    options = options_from_plan(plan_session(AgentSpec(name="reader"), config))
    deny = [rule for pattern, _ in names for rule in pattern_rules(f"**/{pattern}")]
    settings = json.loads(str(options.settings))
    settings["permissions"]["deny"] = [*settings["permissions"]["deny"], *deny]
    options.settings = json.dumps(settings)
    (tmp_path / "home").mkdir()
    run = asyncio.run(run_session(options, [grep(work), "End."], home=tmp_path / "home"))
    assert run.calls[0].lock is AnsweredBy.RAN
    assert all(run.saw(f"canary({number})") for number in range(len(names)))


# --- what Read gives as a whole -----------------------------------------------------------------

CELL = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
NOTEBOOK = json.dumps(
    {
        "cells": [{**CELL, "id": f"c{at}", "source": ["line\n"] * 9} for at in range(9)]
        + [{**CELL, "id": "last", "source": ["canary(notebook)"]}],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
)
LIMITS = {
    "lines": read_limit(lines=5),
    "bytes": read_limit(bytes=200),
    "a ceiling": size_ceiling(100, unranged_only=True),
}
RANGES: tuple[dict[str, int], ...] = ({}, {"offset": 1, "limit": 5})


def reads(root: Path, **fields: Any) -> SessionRun:
    work = root / "w"
    work.mkdir()
    (work / "text.txt").write_text("line\n" * 300 + "canary(text)\n")
    names = ("book.ipynb", "BOOK2.IPYNB")
    for name in names:
        (work / name).write_text(NOTEBOOK)
    calls = [
        ToolCall("Read", {"file_path": str(work / name), **given})
        for name in (*names, "text.txt")
        for given in RANGES
    ]
    return session(root, calls, **fields)


@pytest.mark.parametrize("limit", LIMITS)
def test_a_notebook_over_a_limit_is_refused_whatever_its_range(tmp_path: Path, limit: str) -> None:
    run = reads(tmp_path, authorizers=[LIMITS[limit]])
    assert [call.lock for call in run.calls[:4]] == [AnsweredBy.GATE] * 4
    assert run.calls[5].lock is AnsweredBy.RAN
    assert not run.saw("canary(")


def test_without_a_limit_a_range_of_a_notebook_gives_all_of_it(tmp_path: Path) -> None:
    run = reads(tmp_path)
    assert all("canary(notebook)" in (call.result or "") for call in run.calls[:4])
    assert "canary(text)" not in (run.calls[5].result or "")
