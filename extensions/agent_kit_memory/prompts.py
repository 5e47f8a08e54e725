"""What the person said in this session: the prompts that the host submitted, and nothing else.

The UserPromptSubmit hook also fires for what the CLI puts into the conversation itself, such as a
background subagent's report, and its payload doesn't say so (measured on CLI 2.1.332). Those come
wrapped in a tag and are left out: whoever can make a tool or a subagent say something must not be
able to put words into the person's mouth. A prompt that the model scheduled (CronCreate,
ScheduleWakeup) comes as plain text: it is known by the call that scheduled it, or, from an earlier
session, by the project's file of scheduled tasks.
"""

from __future__ import annotations

import json
import re
import threading
import unicodedata
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["Prompts"]

MAX_PROMPTS = 500
"""How many prompts are kept, the newest; and how many characters of each."""
MAX_CHARS = 200_000

SCHEDULERS = "CronCreate|ScheduleWakeup"
"""The tools whose ``prompt`` comes back as a prompt, as a hook's matcher names them."""

MIN_LETTERS = 3
"""Fewer letters and digits than this prove nothing, unless they are the whole prompt."""

# What the CLI wraps what it submits itself in. One of them anywhere discards the whole prompt.
_INJECTED = re.compile(
    r"<\s*/?\s*(task-notification|teammate-message|cross-session-message|coordinator-task"
    r"|system-reminder|local-command-std|bash-std|bash-input|autonomous-loop)"
)
_MISSED = re.compile(r"scheduled tasks? (was|were) missed while claude")  # and then what it was
_TAG_FIRST = re.compile(r"\s*<[a-z]+(-[a-z]+)+[\s/>]")  # the same in a later CLI

_WIDE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3100-\u312f\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff"
)
_SPACE_AT_WIDE = re.compile(rf"(?<=[{_WIDE}]) | (?=[{_WIDE}])")


class Prompts:
    """The person's words. Safe to use from several threads.

    ``tasks`` is the file in which the CLI keeps the project's scheduled tasks.
    """

    def __init__(self, tasks: Path | None = None) -> None:
        self._said: deque[str] = deque(maxlen=MAX_PROMPTS)
        self._scheduled: set[str] = set()
        self._lock = threading.Lock()
        self._tasks = tasks
        self._read_tasks()

    def add(self, prompt: str) -> bool:
        """Note a prompt; whether it counts as the person's. The host may call this itself."""
        if _is_injected(prompt):
            return False
        said = _levelled(prompt[:MAX_CHARS])
        with self._lock:
            if said in self._scheduled:
                return False
            self._said.append(said)
        return True

    def schedule(self, prompt: str) -> None:
        """Note what the model has scheduled: it is not the person's word when it comes."""
        with self._lock:
            self._scheduled.add(_levelled(prompt[:MAX_CHARS]))

    def hold(self, quote: str) -> bool:
        """Whether the person said these words, white space and Unicode form aside, case included."""
        wanted = _levelled(quote)
        with self._lock:
            said = tuple(self._said)
        if sum(char.isalnum() for char in wanted) < MIN_LETTERS:
            return bool(wanted) and wanted in said
        return any(_holds_words(prompt, wanted) for prompt in said)

    async def on_prompt(
        self, payload: Mapping[str, Any], _tool_use_id: str | None, _context: Any
    ) -> dict[str, Any]:
        """The UserPromptSubmit hook. It changes nothing; a subagent's prompt isn't the person's."""
        prompt = payload.get("prompt")
        if isinstance(prompt, str) and not payload.get("agent_id"):
            self._read_tasks()
            self.add(prompt)
        return {}

    async def on_call(
        self, payload: Mapping[str, Any], _tool_use_id: str | None, _context: Any
    ) -> dict[str, Any]:
        """The PreToolUse hook of the :data:`SCHEDULERS`. It changes nothing."""
        given = payload.get("tool_input")
        prompt = given.get("prompt") if isinstance(given, Mapping) else None
        if isinstance(prompt, str):
            self.schedule(prompt)
        return {}

    def _read_tasks(self) -> None:
        """Note what is scheduled on disk. What can't be read there the CLI doesn't run either."""
        try:
            kept = json.loads(self._tasks.read_bytes()) if self._tasks else {}
        except (OSError, ValueError, RecursionError):
            return
        tasks = kept.get("tasks") if isinstance(kept, dict) else None
        for task in tasks if isinstance(tasks, list) else ():
            prompt = task.get("prompt") if isinstance(task, dict) else None
            if isinstance(prompt, str):
                self.schedule(prompt)


def _is_injected(prompt: str) -> bool:
    plain = unicodedata.normalize("NFKC", prompt).casefold()
    found = _INJECTED.search(plain) or _TAG_FIRST.match(plain) or _MISSED.search(plain)
    return found is not None


def _holds_words(said: str, wanted: str) -> bool:
    """Whether a text holds another that begins and ends where a word does: "send" has no "end"."""
    starts = (each.start() for each in re.finditer(f"(?={re.escape(wanted)})", said))
    return any(
        _parts(said[max(0, at - 1) : at], wanted[0])
        and _parts(wanted[-1], said[at + len(wanted) : at + len(wanted) + 1])
        for at in starts
    )


def _parts(before: str, after: str) -> bool:
    """Whether a word may end between two characters; either may be missing."""
    wide = re.search(f"[{_WIDE}]", before + after)
    return wide is not None or not (before.isalnum() and after.isalnum())


def _levelled(text: str) -> str:
    """One Unicode form, white space as one space, and none beside scripts that use none."""
    spaced = " ".join(unicodedata.normalize("NFKC", text).split())
    return _SPACE_AT_WIDE.sub("", spaced)
