"""The flag settings of options as a text, whether it stands in the command line or in a file."""

from __future__ import annotations

from pathlib import Path

from claude_agent_sdk import ClaudeAgentOptions

__all__ = ["settings_text"]


def settings_text(options: ClaudeAgentOptions) -> str:
    """Long ones are in a file: paths are as long as they happen to be."""
    settings = str(options.settings)
    return settings if settings.startswith("{") else Path(settings).read_text("utf-8")
