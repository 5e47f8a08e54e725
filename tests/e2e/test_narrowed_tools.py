"""A tool that is open in part: what the model reads when it goes beyond that."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_kit import AgentSpec, SessionConfig, build_session_options
from agent_kit.testing import AnsweredBy, Say, ToolCall, run_session, tree

pytestmark = pytest.mark.e2e


async def test_the_refusal_names_the_rules_by_which_the_tool_is_open(tmp_path: Path) -> None:
    tree(tmp_path, ["project/drafts/"])
    config = SessionConfig(
        project_dir=tmp_path / "project",
        run_dir=tmp_path / "run",
        extra_writable_dirs=["drafts"],
        confinement="off",
        allow_unconfined_commands=True,
    )
    spec = AgentSpec(name="a", tools=["Bash(git *)", "Bash(make test)"])
    command = f'python3 -c \'open("{tmp_path}/made", "w")\''
    script = [ToolCall("Bash", {"command": command}), Say("x")]
    run = await run_session(build_session_options(spec, config), script)
    (call,) = run.calls
    assert call.lock is not AnsweredBy.RAN
    assert "only as Bash(git *), Bash(make test)." in (call.result or "")
    assert not (tmp_path / "made").exists()
