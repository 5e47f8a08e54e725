"""The agent of the demo: the one of ``examples/course_assistant.py``, in its own project."""

from __future__ import annotations

from agent_kit import AgentSpec, SessionConfig, Subagent
from agent_kit.cli._course import Course
from agent_kit_knowledge import knowledge
from agent_kit_memory import memory
from agent_kit_sources import sources

__all__ = ["course_config", "course_spec"]


def course_spec() -> AgentSpec:
    """What the agent is."""
    return AgentSpec(
        name="course-assistant",
        system_prompt="You help a teacher prepare a course.",
        extensions=[sources(dir="sources"), knowledge(dir="knowledge"), memory(dir="memory")],
        subagents={
            "reviewer": Subagent(
                description="Reads one submission and comments on it.",
                prompt="Read the submission that you are given, and comment on it in five sentences.",
                tools=["Read", "Grep"],
            ),
        },
    )


def course_config(course: Course, env: dict[str, str]) -> SessionConfig:
    """One session in ``course``; ``env`` is the CLI's, over the process's own."""
    return SessionConfig(
        project_dir=course.project,
        extra_writable_dirs=["drafts"],
        denied_paths=["agent.config.json", "**/.env"],
        run_dir=course.run_dir,
        env=env,
    )
