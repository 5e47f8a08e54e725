"""A small project with a home of its own, and plans of sessions on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions

from agent_kit import (
    AgentSpec,
    ConfigError,
    Contribution,
    SessionConfig,
    SessionPlan,
    build_session_options,
    plan_session,
)
from agent_kit.testing import tree

Found = list[tuple[str, object]]


class World:
    """``project`` and ``home`` below ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project, self.home, self.run = (root / name for name in ("project", "home", "run"))
        tree(root, ["project/drafts/", "project/sources/", "project/file.txt", "home/"])

    def has(self, *entries: str) -> World:
        tree(self.root, entries)
        return self

    def spec(self, **fields: Any) -> AgentSpec:
        return AgentSpec(**{"name": "agent", **fields})

    def config(self, **fields: Any) -> SessionConfig:
        env = {"HOME": str(self.home), **fields.pop("env", {})}
        fields.setdefault("confinement", "off")  # what it adds has tests of its own
        return SessionConfig(
            **{"project_dir": self.project, "run_dir": str(self.run), "env": env, **fields}
        )

    def plan(self, *, spec: Mapping[str, Any] = {}, **config: Any) -> SessionPlan:
        return plan_session(self.spec(**spec), self.config(**config))

    def options(self, *, spec: Mapping[str, Any] = {}, **config: Any) -> ClaudeAgentOptions:
        return build_session_options(self.spec(**spec), self.config(**config))

    def faults(self, *, spec: Mapping[str, Any] = {}, **config: Any) -> Found:
        """Field and value of each fault of a session, all of which say what to do."""
        return faults_of(lambda: self.plan(spec=spec, **config))


def faults_of(make: Callable[[], object]) -> Found:
    with pytest.raises(ConfigError) as caught:
        make()
    for fault in caught.value.faults:
        assert len(fault.remedy) > 10
        assert fault.field in str(caught.value)
        assert repr(fault.value) in str(caught.value)
    return [(fault.field, fault.value) for fault in caught.value.faults]


@dataclass(frozen=True, kw_only=True)
class Part:
    """An extension that brings what it was given."""

    name: str = "part"
    brings: Any = field(default_factory=Contribution)
    provides: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    plugin_dir: Path | None = None
    lacks: Any = None
    asked: list[Any] = field(default_factory=list, compare=False)

    def missing(self, context: Any, /) -> Any:
        return self.lacks(context) if callable(self.lacks) else self.lacks

    def contribute(self, context: Any, /) -> Any:
        self.asked.append(context)
        return self.brings(context) if callable(self.brings) else self.brings


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("CLAUDE_CONFIG_DIR", "CLAUDE_CODE_TMPDIR", "CLAUDECODE"):
        monkeypatch.delenv(name, raising=False)
    return World(tmp_path)


@pytest.fixture(scope="session")
def faults() -> Callable[[Callable[[], object]], Found]:
    return faults_of


@pytest.fixture(scope="session")
def part() -> Callable[..., Part]:
    def make(**fields: Any) -> Part:
        known = {name for name in Part.__dataclass_fields__}
        own = {name: value for name, value in fields.items() if name in known}
        brought = {name: value for name, value in fields.items() if name not in known}
        if brought:
            own["brings"] = Contribution(**brought)
        return Part(**own)

    return make
