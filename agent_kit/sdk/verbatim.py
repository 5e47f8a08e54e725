"""Starts the CLI so that only the session's own slash commands are run: all else is text to it.

The CLI runs some built-in commands (``/config`` writes the runner's settings, ``/heapdump`` into
HOME, ``/rename``, ``/clear``, …) before any hook is asked (measured on CLI 2.1.332). So the host's
prompts pass through here, and what begins with a command that isn't one of the session's, or as a
task notification does, is marked to be taken word for word: nothing in it is run or expanded, and
the prompt gate still sees it.

Run as a program: ``python -I -S verbatim.py DESCRIPTION WORDS…``. The description is JSON: the CLI's
``program`` and the ``allowed`` names. This process becomes the CLI; a child of it reads the host's
messages and hands them on. Only the standard library is loaded. POSIX only.
"""

from __future__ import annotations

import importlib.util
import json
import os
import select
import signal
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

__all__ = ["main", "passed_on"]

FAILED: Final = 126
_STREAMED: Final = "--input-format"  # without it (-v, --help) the CLI reads no messages
_CHUNK: Final = 1 << 16  # bytes


def main(arguments: list[str]) -> int:
    """Become the CLI of the description ``arguments[0]``, with the other arguments."""
    try:
        description = json.loads(arguments[0])
        program, words = description["program"], arguments[1:]
        if _STREAMED in words:
            _start_reader(frozenset(description["allowed"]))
        os.execv(program, [program, *words])  # noqa: S606 - the program that the host named
    except (OSError, ValueError, KeyError, IndexError) as error:
        print(f"agent-kit: the CLI could not be started: {error}", file=sys.stderr)  # noqa: T201
        return FAILED


def _start_reader(allowed: Collection[str]) -> None:
    """Put a child between the host's messages and this process's standard input."""
    read, write = os.pipe()
    if os.fork():
        os.close(write)
        os.dup2(read, 0)
        os.close(read)
        return
    try:  # the child
        os.close(read)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for each in (1, 2):  # the host waits for the end of the CLI's output, not of ours
            os.dup2(nowhere, each)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the host or with the CLI
        _hand_on(0, write, allowed)
    finally:
        os._exit(0)


def _hand_on(read: int, write: int, allowed: Collection[str]) -> None:
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
    if any(text.lstrip().startswith(_PROMPTS.NOTIFICATION) for text in texts):
        return True
    command = _PROMPTS.slash_command(texts[-1]) if texts else None
    return command is not None and command[0] not in allowed


def _text(block: Any) -> str:
    text = block.get("text") if isinstance(block, dict) else block
    return text if isinstance(text, str) else ""


def _load_prompts() -> Any:
    """The module beside this file: as a program, this one knows no package."""
    file = Path(__file__).with_name("prompts.py")
    spec = importlib.util.spec_from_file_location("agent_kit_prompts", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_PROMPTS: Final = _load_prompts()

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
