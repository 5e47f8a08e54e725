"""Lock 3, the prompt gate: a prompt attaches files and runs commands with no tool call at all.

A UserPromptSubmit hook sees the prompt before anything is attached. It blocks one that mentions
something that exists and that the scope doesn't open, and one that begins with a slash command
which isn't the session's. A UserPromptExpansion hook sees what the CLI really makes of it: a command
in the last of several blocks, or one that is named like a path (measured on CLI 2.1.332 and 2.1.317).
It doesn't see the built-in commands that the CLI runs on its own, so :mod:`agent_kit.sdk.verbatim`
keeps those from running.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Collection
from typing import Any, Final

from claude_agent_sdk import HookMatcher

from agent_kit.policy.policy import Policy
from agent_kit.policy.prompted import refused_in_prompt
from agent_kit.scope import FileScope
from agent_kit.scope.text import shown
from agent_kit.sdk.commands import Commands, refused_args, refused_command
from agent_kit.sdk.gate import HOOK_TIMEOUT, GateLog
from agent_kit.sdk.mentions import Mentioned, refused_mention
from agent_kit.sdk.prompts import NOTIFICATION, slash_command

__all__ = ["create_expansion_gate", "create_prompt_gate", "is_notification"]

_log = logging.getLogger("agent_kit.prompt_gate")

_UNCHECKED: Final = "This prompt could not be checked for mentioned files, so it was blocked."
_LISTED: Final = 20  # allowed commands that a message names
_NONE: Final = Commands()

# How the CLI tells of what ran in the background: the id of the call that started it comes first.
_STARTED_BY: Final = re.compile(
    rf"{NOTIFICATION}\n(?:<task-id>[^<]*</task-id>\n)?<tool-use-id>([^<]+)</tool-use-id>\n"
)


def create_prompt_gate(
    scope: FileScope,
    *,
    commands: Commands = _NONE,
    allowed: Collection[str] = (),
    mentions: bool = True,
    log: GateLog | None = None,
    literal_notifications: bool = False,
    reserved: Collection[str] = (),
    policy: Policy | None = None,
) -> HookMatcher:
    """The prompt gate as a ``HookMatcher`` for ``hooks={"UserPromptSubmit": [...]}``.

    ``allowed`` are the slash commands that a prompt may call, by their full name, and ``commands``
    what the session knows of their files; without them every slash command is blocked. A word that
    is the name of a path which exists (``/tmp is full``) is text, unless a command has that name:
    one of the session's, or of the CLI's own in ``reserved``.
    ``mentions=False`` lets mentions of closed files through. Task notifications pass as they are,
    since the CLI expands nothing in them: those of a call in ``log``, or all that look so when
    ``literal_notifications`` says that the CLI takes the host's own word for word, too
    (:mod:`agent_kit.sdk.verbatim`). ``policy`` refuses what it denies (see
    :func:`~agent_kit.policy.prompted.refused_in_prompt`). A prompt that can't be judged is blocked.
    """
    names = frozenset(allowed)
    taken = names.union(
        reserved, commands.offered, *((each.name, *each.aliases) for each in commands.found)
    )

    def judge(payload: Any, cwd: str) -> str | None:
        prompt = payload["prompt"]
        if is_notification(prompt, log, literal=literal_notifications):
            return None
        own, brought = Mentioned(), Mentioned()
        command = slash_command(prompt)
        if command is not None and (command[0] in taken or not _is_path(command[0])):
            given = command[1] if mentions else ""
            reason = _refused(scope, commands, names, command[0], given, cwd, own, brought)
            if reason is not None:
                return reason
        reason = refused_mention(scope, prompt, cwd, own) if mentions else None
        return reason or _by_policy(policy, own, brought)

    return _matcher(scope, judge)


def create_expansion_gate(
    scope: FileScope,
    *,
    commands: Commands = _NONE,
    allowed: Collection[str] = (),
    mentions: bool = True,
    policy: Policy | None = None,
) -> HookMatcher:
    """A ``HookMatcher`` for ``hooks={"UserPromptExpansion": [...]}``: the command as the CLI took it.

    The arguments are those of :func:`create_prompt_gate`. It isn't asked about the Skill tool.
    """
    names = frozenset(allowed)

    def judge(payload: Any, cwd: str) -> str | None:
        own, brought = Mentioned(), Mentioned()
        name, args = payload["command_name"], payload.get("command_args") or ""
        given = args if mentions else ""
        reason = _refused(scope, commands, names, name, given, cwd, own, brought)
        return reason or _by_policy(policy, own, brought)

    return _matcher(scope, judge)


def is_notification(prompt: str, log: GateLog | None, *, literal: bool = False) -> bool:
    """Whether the CLI submitted this itself: the report of a call that the gate has seen.

    Whoever writes a prompt can't know the call's id. ``literal``: how it begins is enough.
    """
    if not prompt.startswith(NOTIFICATION):
        return False
    started = _STARTED_BY.match(prompt)
    return literal or (log is not None and started is not None and started[1] in log.seen)


def _refused(
    scope: FileScope,
    commands: Commands,
    allowed: frozenset[str],
    name: str,
    args: str,
    cwd: str,
    own: Mentioned,
    brought: Mentioned,
) -> str | None:
    """``own`` gets what the arguments mention, ``brought`` that and what the command's file does."""
    if name not in allowed:
        return _not_allowed(name, allowed)
    reason = refused_command(scope, commands, name, args, cwd, brought)
    return reason or refused_args(scope, [args], cwd, own)


def _by_policy(policy: Policy | None, own: Mentioned, brought: Mentioned) -> str | None:
    return None if policy is None else refused_in_prompt(policy, own.named, brought.without(own))


def _not_allowed(name: str, allowed: frozenset[str]) -> str:
    known = [f"/{each}" for each in sorted(allowed)]
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    listed = f"It may run {', '.join(known[:_LISTED])}{more}." if known else "It may run none."
    return (
        f"It begins with the command {shown('/' + name)}, which this agent may not run. {listed}"
        " For plain text, put a word before the slash."
    )


def _is_path(name: str) -> bool:
    """Whether the CLI takes ``/name`` for a path when it knows no such command."""
    return "\0" not in name and os.path.lexists(f"/{name}")


def _matcher(scope: FileScope, judge: Callable[[Any, str], str | None]) -> HookMatcher:
    async def gate(payload: Any, _use_id: str | None, _context: Any) -> dict[str, Any]:
        try:
            cwd = payload.get("cwd") or scope.project_dir
            # In a thread: a disk that hangs may take its time.
            reason = await asyncio.to_thread(judge, payload, cwd)
        except Exception:  # noqa: BLE001 - whatever it is, nothing may be attached
            _log.exception("the prompt gate could not judge a prompt")
            reason = _UNCHECKED
        return {} if reason is None else {"decision": "block", "reason": reason}

    return HookMatcher(
        matcher=None,
        hooks=[gate],  # type: ignore[list-item]
        timeout=HOOK_TIMEOUT,
        on_failure="block",
    )
