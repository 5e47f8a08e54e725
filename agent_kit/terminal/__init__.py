"""A person at the terminal answers what the rules ask: :func:`ask_in_terminal` for ``SessionConfig.ask``.

The question goes to the controlling terminal (``/dev/tty``), not to the standard streams: these are
the program's own. Its output may be piped and its input may be data, and a log that takes standard
error would swallow a question. A file of our own also shares no flags with other processes.

What this can't hold: whoever else has the same terminal open (a command that runs unconfined, the
host's own output) can write to it and read from it as this does. The kernel lock keeps commands
away from it.

Untested on Windows, where lines are read from the standard input and Ctrl+C stays what it is there.
"""

from __future__ import annotations

from agent_kit.terminal.asker import Ask, ask_in_terminal, terminal_asker

__all__ = ["Ask", "ask_in_terminal", "terminal_asker"]
