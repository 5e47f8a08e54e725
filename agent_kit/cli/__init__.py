"""The ``agent-kit`` command. ``main`` is its entry point; nothing is loaded before it is needed."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command with the process's arguments, and exit with its status."""
    from agent_kit.cli._app import app

    app(prog_name="agent-kit")
