"""What reads the host's messages before the CLI does: foreign slash commands are text to it.

The CLI runs some built-in commands (``/config`` writes the runner's settings, ``/heapdump`` into
HOME, ``/rename``, ``/clear``, …) before any hook is asked (measured on CLI 2.1.332). So the host's
prompts pass through here, and what begins with a command that isn't one of the session's, or as a
task notification does, is marked to be taken word for word: nothing in it is run or expanded, and
the prompt gate still sees it.

:mod:`agent_kit.sdk._verbatim_start` loads it alone, in a process of its own. Only the standard
library is loaded. POSIX only.
"""

from __future__ import annotations

import json
import os
import select
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING or __package__:
    from agent_kit.sdk import prompts
else:  # it runs alone: the package is not there, its neighbours are
    import prompts

__all__ = ["hand_on", "passed_on"]

_CHUNK: Final = 1 << 16  # bytes


def hand_on(read: int, write: int, allowed: Collection[str]) -> None:
    """Copy whole lines until the host closes ``read`` or the CLI has ended."""
    waiting = select.poll()
    waiting.register(read, select.POLLIN)
    waiting.register(write, 0)  # an error there is always told: nobody reads any more
    pieces: list[bytes] = []
    while write not in dict(waiting.poll()):
        chunk = os.read(read, _CHUNK)
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            _write(write, passed_on(b"".join((*pieces, line, b"\n")), allowed))
            pieces.clear()
        pieces.append(rest)
        if not chunk:
            _write(write, passed_on(b"".join(pieces), allowed))
            return


def _write(write: int, text: bytes) -> None:
    view = memoryview(text)
    while view:
        view = view[os.write(write, view) :]


def passed_on(line: bytes, allowed: Collection[str]) -> bytes:
    """One message as the CLI gets it: marked when nothing in it may be run."""
    if b'"user"' not in line:
        return line
    try:
        message = json.loads(line)
    except ValueError:  # nor can the CLI read it
        return line
    if not isinstance(message, dict) or message.get("type") != "user":
        return line
    inner = message.get("message")
    if not isinstance(inner, dict) or not _is_literal(inner.get("content"), allowed):
        return line
    return json.dumps({**message, "client_composed": True}).encode("ascii") + b"\n"


def _is_literal(content: Any, allowed: Collection[str]) -> bool:
    blocks = content if isinstance(content, list) else [content]
    texts = [_text(block) for block in blocks]
    if any(text.lstrip().startswith(prompts.NOTIFICATION) for text in texts):
        return True
    command = prompts.slash_command(texts[-1]) if texts else None
    return command is not None and command[0] not in allowed


def _text(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) else block
    return text if isinstance(text, str) else ""
