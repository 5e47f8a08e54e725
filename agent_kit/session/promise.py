"""What a plan promised of a set of options, kept where overwriting single fields doesn't lose it.

The callbacks that the kit made are looked up by identity, not by an attribute of theirs: a
decorator copies attributes, and what it wraps around the gate may let through what the gate denied.
Beside them there is a table of the sessions of this process.
"""

from __future__ import annotations

import json
import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from claude_agent_sdk import ClaudeAgentOptions

from agent_kit.policy.modes import SessionMode
from agent_kit.scope import FileScope
from agent_kit.sdk.gate import create_file_scope_gate
from agent_kit.session.environment import FIXED
from agent_kit.session.locks import Lock
from agent_kit.session.plan import SessionPlan

__all__ = [
    "Promise",
    "SettingsUnreadable",
    "all_callbacks",
    "is_file_name",
    "keep_promise",
    "plugin_marks",
    "promise_behind",
    "promise_of",
    "promises_in",
    "read_settings",
    "server_marks",
    "session_mode",
    "watched_env",
]

_MAX_SESSIONS: Final = 200  # of this process, the newest
# Where the CLI keeps its things, and what the kit fixes.
_WATCHED: Final = (
    "HOME",
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_TMPDIR",
    *(row.name for row in FIXED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One session's locks, and the values of the options that hold them."""

    session_id: str
    locks: Mapping[str, Lock]
    scope: FileScope
    own_hooks: Mapping[str, int]  # event to the number of the kit's callbacks
    prompt_mentions: str
    unchecked_settings: bool
    settings: Mapping[str, Any] = field(repr=False)  # may hold a key
    env: Mapping[str, str] = field(repr=False)
    cwd: str
    cli_path: str | None
    tools: frozenset[str]
    skills: frozenset[str]
    setting_sources: frozenset[str]
    permission_mode: str | None
    strict_mcp_config: bool
    extra_args: Mapping[str, str | None]
    plugins: tuple[Mapping[str, Any], ...]
    mcp_servers: Mapping[str, Any] = field(repr=False)  # often hold a key
    mode: SessionMode  # of the running session: it may be switched


class SettingsUnreadable(ValueError):
    """Flag settings that are none. The message says why."""


_by_callback: weakref.WeakKeyDictionary[Callable[..., Any], Promise] = weakref.WeakKeyDictionary()
_by_session: OrderedDict[str, Promise] = OrderedDict()


def keep_promise(
    plan: SessionPlan, options: ClaudeAgentOptions, mode: SessionMode | None = None
) -> ClaudeAgentOptions:
    """``options``, just built of ``plan``, with its promise noted."""
    promise = Promise(
        session_id=plan.session_id,
        locks=dict(plan.locks),
        scope=plan.scope,
        own_hooks={
            event: sum(map(_is_made_here, all_callbacks(options, event)))
            for event in options.hooks or {}
        },
        prompt_mentions=plan.config.prompt_mentions,
        unchecked_settings="unchecked_settings" in plan.config.unlock,
        settings=read_settings(options),
        env=watched_env(options),
        cwd=str(plan.project_dir),
        cli_path=None if options.cli_path is None else str(options.cli_path),
        tools=frozenset(plan.tools.names),
        skills=frozenset(plan.skills),
        setting_sources=frozenset(plan.setting_sources),
        permission_mode=options.permission_mode,
        strict_mcp_config=options.strict_mcp_config,
        extra_args=dict(options.extra_args),
        plugins=plugin_marks(options),
        mcp_servers=server_marks(options),
        mode=mode or SessionMode(plan.config.mode),
    )
    for callback in _own_callbacks(options):
        _by_callback[callback] = promise
    _by_session[plan.session_id] = promise
    _by_session.move_to_end(plan.session_id)
    while len(_by_session) > _MAX_SESSIONS:
        _by_session.popitem(last=False)
    return options


def _own_callbacks(options: ClaudeAgentOptions) -> Iterator[Callable[..., Any]]:
    """The locks among the callbacks: what the modules of ``agent_kit.sdk`` made."""
    for event in options.hooks or {}:
        yield from (each for each in all_callbacks(options, event) if _is_made_here(each))
    assert options.can_use_tool is not None
    yield options.can_use_tool


_SDK_PART: Final = os.path.dirname(create_file_scope_gate.__code__.co_filename) + os.sep


def _is_made_here(callback: object) -> bool:
    code = getattr(callback, "__code__", None)
    return code is not None and code.co_filename.startswith(_SDK_PART)


def all_callbacks(options: ClaudeAgentOptions, event: str) -> list[Callable[..., Any]]:
    """The callbacks of every matcher of an event."""
    matchers = (options.hooks or {}).get(event, ())  # type: ignore[call-overload]
    return [each for matcher in matchers for each in getattr(matcher, "hooks", ())]


def promise_behind(callback: object) -> Promise | None:
    """The promise that this very callback was made for."""
    try:
        return _by_callback.get(callback)  # type: ignore[call-overload, no-any-return]
    except TypeError:  # it can't be a key
        return None


def promise_of(options: ClaudeAgentOptions) -> Promise | None:
    """What was promised of these options, or of those that they were made from.

    ``None``: the kit had no hand in them.
    """
    ids = [value for value in (options.session_id, options.resume) if value is not None]
    found = promises_in(options)
    found += [_by_session[name] for name in ids if name in _by_session]
    named = [promise for promise in found if promise.session_id in ids]
    return next(iter((*named, *found)), None)


def session_mode(session: Any) -> SessionMode:
    """The mode of a running session, to be read and switched; the next call is judged by the new one.

    ``session`` is a ``ClaudeSDKClient``, its options, or a :class:`~agent_kit.Session`. Raises
    LookupError for one that the kit didn't build.
    """
    options = getattr(session, "options", session)
    promise = promise_of(options) if isinstance(options, ClaudeAgentOptions) else None
    if promise is None:
        raise LookupError("give the client or the options of a session that agent-kit has built")
    return promise.mode


def promises_in(options: ClaudeAgentOptions) -> list[Promise]:
    """The promises that the callbacks of these options were made for."""
    callbacks = [
        options.can_use_tool,
        *(each for event in options.hooks or {} for each in all_callbacks(options, event)),
    ]
    return [promise for each in callbacks if (promise := promise_behind(each)) is not None]


def watched_env(options: ClaudeAgentOptions) -> dict[str, str]:
    """The variables of the CLI that a lock hangs on, as it will see them."""
    env = {**os.environ, **options.env}
    return {name: env[name] for name in _WATCHED if name in env}


def plugin_marks(options: ClaudeAgentOptions) -> tuple[Mapping[str, Any], ...]:
    """Each plugin with its real folder. A path is relative to ``options.cwd``."""
    cwd = options.cwd or ""
    return tuple(
        {**plugin, "path": os.path.realpath(os.path.join(cwd, plugin.get("path", "")))}
        for plugin in options.plugins
    )


def server_marks(options: ClaudeAgentOptions) -> dict[str, Any]:
    """Each MCP server, to be compared: copied, and one of this process without keeping it alive.

    A text or a file is one entry, whatever is in it: the kit builds none.
    """
    given: Any = options.mcp_servers
    if not isinstance(given, Mapping):
        return {str(given): given} if given else {}
    return {name: _mark(server) for name, server in given.items()}


def _mark(server: Any) -> Any:
    if not isinstance(server, Mapping):
        return server
    try:  # equal to another of the same instance, as long as that lives
        return {**server, "instance": weakref.ref(server["instance"])}
    except (KeyError, TypeError):  # there is none, or of a type that can't be referred to so
        return dict(server)


def is_file_name(text: str) -> bool:
    """Whether a text given for JSON can be shown: it is a file's name, and holds no key."""
    return not {*text} & {*'{}"\n'}


def read_settings(options: ClaudeAgentOptions) -> dict[str, Any]:
    """The flag settings, whether a text, the file of a path, or a dict. Raises SettingsUnreadable.

    A path is relative to ``options.cwd``, as the SDK reads it.
    """
    given: Any = options.settings
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, (str, Path)) or not str(given).strip():
        raise SettingsUnreadable("there are none")
    text = str(given).strip()
    try:
        if not (text.startswith("{") and text.endswith("}")):
            text = (Path(options.cwd or "") / text).read_text(encoding="utf-8-sig")
        content = json.loads(text, parse_constant=_refuse)
    except OSError as error:
        what = text if is_file_name(text) else "the text is no JSON object; as a file it"
        raise SettingsUnreadable(f"{what} can't be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise SettingsUnreadable(f"they are no JSON ({error})") from None
    if not isinstance(content, dict):
        raise SettingsUnreadable("they are no JSON object")
    return content


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
