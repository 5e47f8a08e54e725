"""What a session that is resumed would do before any lock is asked.

A call that a hook has answered with "defer" is kept in the transcript, and the CLI runs it at the
resume: before it knows the hooks of the new session, so that mostly none is asked (measured on CLI
2.1.332). The kit defers nothing that way, but another session of the same transcript may have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_kit.scope import Fault

__all__ = ["resume_faults"]

_REMEDY = (
    "its transcript ends in a call of {tool} that a hook deferred, which the CLI would run before any"
    " lock is asked: resume and finish it where it was deferred, or begin a new session."
)


def resume_faults(session_id: str | None, config_dir: Path) -> list[Fault]:
    """What is wrong with resuming a session. ``config_dir`` is where the CLI keeps its transcripts."""
    if session_id is None:
        return []
    tools = [
        tool
        for transcript in sorted(config_dir.glob(f"projects/*/{session_id}.jsonl"))
        for tool in _deferred(transcript)
    ]
    remedies = [_REMEDY.format(tool=tool) for tool in tools]
    return [Fault(field="resume", value=session_id, remedy=remedy) for remedy in remedies]


def _deferred(transcript: Path) -> Iterator[str]:
    """The tools of deferred calls that have no result yet."""
    try:
        with transcript.open(encoding="utf-8", errors="replace") as file:
            lines = [line for line in file if "hook_deferred_tool" in line or "tool_result" in line]
    except OSError:  # the CLI can't read it either
        return
    waiting: dict[str, str] = {}
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        except RecursionError:  # nested too deeply to be read here; the CLI may read it
            if "hook_deferred_tool" in line:
                yield "some tool"
            continue
        _take(entry if isinstance(entry, dict) else {}, waiting)
    yield from waiting.values()


def _take(entry: dict[str, Any], waiting: dict[str, str]) -> None:
    found = entry.get("attachment")
    if isinstance(found, dict) and found.get("type") == "hook_deferred_tool":
        waiting[str(found.get("toolUseID"))] = str(found.get("toolName"))
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == "tool_result":
            waiting.pop(str(block.get("tool_use_id")), None)
