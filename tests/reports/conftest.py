"""A project, a home and sessions on them; and the mark that ties a test to the report behind it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit import (
    AgentSpec,
    FileScope,
    SessionConfig,
    SessionPlan,
    build_session_options,
    check_file_scope,
    plan_session,
)
from agent_kit.testing import SessionRun, run_session, tree


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "report(n, …): the numbers of the public reports behind it")


class World:
    """``project``, ``home`` and ``out`` side by side, with the kit's sessions on them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project, self.home, self.out = (root / name for name in ("project", "home", "out"))
        for folder in (self.project, self.home, self.out):
            folder.mkdir()

    def has(self, *entries: str) -> World:
        """Adds files below ``root``, as ``agent_kit.testing.tree`` writes them."""
        tree(self.root, entries)
        return self

    def spec(self, **fields: Any) -> AgentSpec:
        return AgentSpec(name="reported", **fields)

    def config(self, **fields: Any) -> SessionConfig:
        env = {"HOME": str(self.home), **fields.pop("env", {})}
        fields.setdefault("run_dir", str(self.root / "run"))
        fields.setdefault("confinement", "off")  # the other locks hold each of these alone
        return SessionConfig(project_dir=self.project, env=env, **fields)

    def plan(self, *, spec: Mapping[str, Any] = {}, **config: Any) -> SessionPlan:
        return plan_session(self.spec(**spec), self.config(**config))

    def options(self, *, spec: Mapping[str, Any] = {}, **config: Any) -> ClaudeAgentOptions:
        return build_session_options(self.spec(**spec), self.config(**config))

    def rules_alone(self, plan: SessionPlan) -> ClaudeAgentOptions:
        """A session with nothing but the plan's settings: no hook, nobody to ask."""
        return ClaudeAgentOptions(
            cwd=str(self.project),
            settings=json.dumps(plan.settings),
            setting_sources=[],
            tools=["Read", "Write", "Edit", "Glob", "Grep"],
            env={"HOME": str(self.home)},
        )

    def run(self, options: ClaudeAgentOptions, script: Sequence[Any], **more: Any) -> SessionRun:
        run = asyncio.run(run_session(options, script, home=self.home, **more))
        assert run.unplayed == ()
        return run


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_TMPDIR", "CLAUDECODE"):
        monkeypatch.delenv(name, raising=False)
    return World(tmp_path)


@pytest.fixture(scope="session")
def judged() -> Callable[..., str | None]:
    """The answer of a scope, given by its fields, to one call."""

    def judge(tool: str, fields: Mapping[str, Any], /, **scope: Any) -> str | None:
        return check_file_scope(FileScope(**scope), tool, fields)

    return judge


@pytest.fixture(scope="session")
def with_hooks() -> Callable[..., ClaudeAgentOptions]:
    """The options with other hooks than the kit's."""

    def replace(options: ClaudeAgentOptions, **hooks: Any) -> ClaudeAgentOptions:
        return dataclasses.replace(options, hooks={**(options.hooks or {}), **hooks})

    return replace
