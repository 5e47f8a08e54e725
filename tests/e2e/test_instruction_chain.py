"""The project's own chain of instruction files is loaded; what hangs on it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_kit import AgentSpec, SessionConfig, build_session_options
from agent_kit.testing import Say, ToolCall, run_session, tree

pytestmark = pytest.mark.e2e

CHAIN = {
    "CLAUDE.md": "above",
    "course/CLAUDE.md": "own",
    "course/CLAUDE.local.md": "local",
    "course/.claude/CLAUDE.md": "dotted",
    "course/.claude/rules/a.md": "rule",
    "course/.claude/rules/sub/b.md": "deep-rule",
}
HANGING = {
    "course/drafts/CLAUDE.md": "nested",
    "course/drafts/.claude/rules/c.md": "nested-rule",
    "course/notes.md": "imported",
}


async def seen(root: Path, *, unlock: tuple[str, ...] = ()) -> set[str]:
    files = {path: f"canary-{name}-end" for path, name in (CHAIN | HANGING).items()}
    files["course/CLAUDE.md"] += " @notes.md"
    tree(root, [f"{path}={text}" for path, text in files.items()])
    tree(root, ["course/drafts/a.md=a draft"])
    config = SessionConfig(
        project_dir=root / "course",
        extra_readable_dirs=["drafts"],
        run_dir=root / "run",
        setting_sources=["project", "local"],
        unlock=unlock,
        confinement="off",
    )
    options = build_session_options(AgentSpec(name="chain"), config)
    run = await run_session(options, [ToolCall("Read", {"file_path": "drafts/a.md"}), Say("Done.")])
    assert run.unplayed == ()
    assert run.saw("a draft")
    return {name for name in (CHAIN | HANGING).values() if run.saw(f"canary-{name}-end")}


async def test_the_chain_is_loaded_and_nothing_that_hangs_on_it(tmp_path: Path) -> None:
    assert await seen(tmp_path) == set(CHAIN.values())


async def test_unlocked_everything_comes_along(tmp_path: Path) -> None:
    """The control."""
    assert await seen(tmp_path, unlock=("nested_memory",)) > set(CHAIN.values())
