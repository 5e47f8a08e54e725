"""Eight processes on one folder for a minute, killed at random."""

from __future__ import annotations

from pathlib import Path

from agent_kit.store import MarkdownStore, NewPage
from tests.store.writers import LOGS, check, write_for

SECONDS = 60.0


def test_what_a_writer_was_told_is_there_once_and_whole_whoever_is_killed(tmp_path: Path) -> None:
    store = MarkdownStore(tmp_path)
    store.create([NewPage(type="log", title=f"log{n}", body="start") for n in range(LOGS)])
    told = write_for(
        SECONDS,
        prelude="from pathlib import Path\nfrom agent_kit.store import MarkdownStore",
        opens=f"MarkdownStore(Path({str(tmp_path)!r}))",
    )
    check(MarkdownStore(tmp_path), told)
    MarkdownStore(tmp_path).create([NewPage(type="last", title="last", body="x")])
    left = [p.name for p in tmp_path.rglob(".*") if p.name.startswith((".tmp-", ".agent-kit.pend"))]
    assert left == []
