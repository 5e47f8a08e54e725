"""The course assistant that the benchmarks plan and run. Loads neither the SDK nor MCP."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_kit import AgentSpec, SessionConfig
from agent_kit_knowledge import knowledge
from agent_kit_memory import memory
from agent_kit_sources import sources

__all__ = ["FILES", "PROMPT", "config", "locks_only", "spec"]

PROMPT = "You help a teacher."
FILES = (
    "course/sources/syllabus.md=The exam is on Monday.",
    "course/drafts/newsletter.md=old",
    "course/knowledge/",
    "course/agent.config.json={}",
    "home/",
)


def spec() -> AgentSpec:
    """The assistant with its three extensions."""
    return AgentSpec(
        name="course-assistant",
        system_prompt=PROMPT,
        extensions=[sources(dir="sources"), knowledge(dir="knowledge"), memory(dir="memory")],
    )


def locks_only() -> AgentSpec:
    """The assistant without extensions: what is left of the kit are the locks."""
    return AgentSpec(name="course-assistant", system_prompt=PROMPT)


def config(
    root: str | Path,
    *,
    readable: tuple[str, ...] = (),
    env: Mapping[str, str] = {},
    **fields: Any,
) -> SessionConfig:
    """A session on ``FILES`` below ``root``."""
    return SessionConfig(
        project_dir=f"{root}/course",
        extra_writable_dirs=["drafts"],
        extra_readable_dirs=readable,
        denied_paths=["agent.config.json", "**/.env"],
        env={"HOME": f"{root}/home", **env},
        run_dir=f"{root}/run",
        **fields,
    )
