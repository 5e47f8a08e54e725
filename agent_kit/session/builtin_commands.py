"""The skills and slash commands that the CLI brings itself, by name.

As its first message lists them (CLI 2.1.317 and 2.1.332, every set of tools). A session has none of
them unless the spec names it.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BUILTIN_COMMANDS", "BUNDLED_SKILLS", "RUN_IN_PLACE"]

# The model may call these, and a prompt may.
BUNDLED_SKILLS: Final = frozenset(
    {
        "batch",
        "claude-api",
        "code-review",
        "dataviz",
        "debug",
        "deep-research",
        "doctor",
        "fewer-permission-prompts",
        "loop",
        "plugin-authoring",
        "run",
        "run-skill-generator",
        "simplify",
        "update-config",
        "verify",
        "workflow-authoring",
    }
)

# Of these the ones that start no agent of their own when the model calls them. The others do, or the
# model can't call them.
RUN_IN_PLACE: Final = frozenset(
    {
        "claude-api",
        "dataviz",
        "fewer-permission-prompts",
        "loop",
        "plugin-authoring",
        "run",
        "simplify",
        "update-config",
        "workflow-authoring",
    }
)

# A prompt may call these alone.
BUILTIN_COMMANDS: Final = frozenset(
    {
        "__remote-workflow",
        "agents",
        "auto-mode-setup",
        "autocompact",
        "clear",
        "color",
        "compact",
        "config",  # writes the runner's settings
        "context",
        "effort",
        "fast",
        "focus",
        "goal",
        "heapdump",  # writes into the home folder
        "init",
        "insights",  # sends other projects' transcripts to the model
        "list-agents",
        "mcp",
        "model",
        "output-style",
        "recap",
        "reload-plugins",
        "reload-skills",
        "rename",
        "security-review",
        "team-onboarding",
        "usage",
        "workflow-launch-exec",
    }
)
