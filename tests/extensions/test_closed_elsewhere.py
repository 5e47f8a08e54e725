"""A tool of an extension serves no second name of a file that the session closes elsewhere."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from agent_kit import AgentSpec, SessionConfig, plan_session
from agent_kit.testing import tree
from agent_kit_knowledge import knowledge
from agent_kit_memory import memory
from agent_kit_sources import sources


@pytest.mark.parametrize(
    "closed",
    [
        "home/.claude/.credentials.json",
        "w/memory/me.md",
        "w/private.md",
        "run/host/k.settings.json",
    ],
)
def test_a_hard_link_of_a_closed_file_is_no_page_and_no_source(tmp_path: Path, closed: str) -> None:
    root = tree(tmp_path.resolve(), ("w/knowledge/t/own.md=own", f"{closed}=canary", "w/sources/"))
    for place in ("w/knowledge/t/c.md", "w/sources/c.md"):
        os.link(root / closed, root / place)
    os.link(root / "w/knowledge/t/own.md", root / "w/sources/own.md")  # of a tools-only folder
    plan = plan_session(
        AgentSpec(
            name="a",
            extensions=[sources(dir="sources"), knowledge(dir="knowledge"), memory(dir="memory")],
        ),
        SessionConfig(
            project_dir=root / "w",
            run_dir=root / "run",
            denied_paths=["private.md"],
            env={"HOME": str(root / "home")},
        ),
    )
    listed: Any = [contribution.api for contribution in plan.contributions]
    assert [str(original.path) for original in listed[0].originals()] == []
    assert [str(page) for page in listed[1].list().ids] == ["t/own"]
