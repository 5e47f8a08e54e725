"""``python -m agent_kit.cli`` is the ``agent-kit`` command."""

from __future__ import annotations

from agent_kit.cli import main

if __name__ == "__main__":
    main()
