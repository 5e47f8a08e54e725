"""One line of the decision trail: what is written down of a judged call, and what never is.

Never the content of files (its size in bytes alone), no secrets where they are known for such, and
each value literal: one line, what isn't printable escaped. All of it is bounded, and so is the
work, since it is done while the call waits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from agent_kit.policy.judged import Judged
from agent_kit.scope.text import shown
from agent_kit.scope.tools import FILE_TOOLS, names_path
from agent_kit.session.here_documents import without_documents
from agent_kit.session.trail_secrets import CUT, is_secret_name, without_secrets

__all__ = [
    "MAX_LINE",
    "MAX_NAME",
    "MAX_SHORT",
    "MAX_TARGET",
    "MAX_VALUE",
    "entry_of",
    "line_of",
    "lost_line",
]

MAX_NAME: Final = 150  # characters of an id, of a tool's or a rule's name
MAX_TARGET: Final = 4000  # characters of a path, or of all that is told of an input
MAX_VALUE: Final = 1000  # characters of one value of an input
MAX_SHORT: Final = 64  # bytes of an MCP tool's field that may be told whatever it is called
MAX_LINE: Final = 65_536  # bytes, its end included: more than all of it comes to, escaped

_LOOKED_AT: Final = 4 * MAX_TARGET  # characters of an input that are searched for secrets
_WINDOW: Final = 4 * MAX_VALUE  # of one value: a secret that begins in what is shown is seen whole
_MAX_ITEMS: Final = 20
_MAX_DEPTH: Final = 4
_MAX_COUNTED: Final = 10_000  # values whose size is added up

# Fields that hold what is in a file, or goes into one, whatever the tool; without "_" and case.
_CONTENT: Final = frozenset(
    {
        "blob",
        "body",
        "content",
        "contents",
        "data",
        "diff",
        "edits",
        "filecontent",
        "filetext",
        "inserttext",
        "newcontent",
        "note",
        "quote",
        "newsource",
        "newstr",
        "newstring",
        "newtext",
        "oldcontent",
        "oldstr",
        "oldstring",
        "oldtext",
        "patch",
        "source",
        "text",
    }
)
# Of an MCP tool's, too: nobody knows them, so of what isn't short these names alone are told.
_MCP_CONTENT: Final = frozenset(
    {
        "cell",
        "code",
        "css",
        "csv",
        "filecontents",
        "html",
        "insert",
        "json",
        "line",
        "lines",
        "markdown",
        "md",
        "message",
        "replacement",
        "rows",
        "script",
        "snippet",
        "sql",
        "svg",
        "value",
        "values",
        "xml",
        "yaml",
    }
)
_TOLD: Final = re.compile(
    r"(?i:(?:.*[_-])?(?:ids?|uuid|key|name|slug|query|q|search|filter|pattern|glob|regex|ur[il]s?))"
    r"|.*[a-z0-9](?:Ids?|Name|Query|Ur[il]s?)"
)
_FIRST: Final = frozenset({"command", "url", "query", "subagent_type", "skill"})


def entry_of(judged: Judged) -> dict[str, Any]:
    """The fields of a call's line in their order, but for the time: text, numbers, ``None``."""
    return {
        "session": _name(judged.session_id),
        "agent": _name(judged.agent),
        "agent_id": _name(judged.agent_id),
        "tool": _name(judged.tool),
        "tool_use_id": _name(judged.tool_use_id),
        "target": _guarded(_target, judged.tool, judged.tool_input),
        "sizes": _guarded(_sizes, judged.tool, judged.tool_input),
        "verdict": _name(judged.verdict),
        "code": _name(judged.code),
        "lock": _name(judged.lock),
        "rule": _name(judged.rule),
        "ms": _milliseconds(judged.milliseconds),
        "asked": judged.asked is True,
        "answer": _name(judged.answer),
    }


def line_of(seconds: float, fields: Mapping[str, Any]) -> bytes:
    """A line with ``fields`` and the time, which is given in seconds since 1970."""
    when = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    line = {"time": when.replace("+00:00", "Z"), **fields}
    return json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def lost_line(seconds: float, lost: int) -> bytes:
    """The line that stands for ``lost`` others."""
    return line_of(seconds, {"lost": lost})


def _guarded(function: Any, *args: Any) -> Any:
    """What ``function`` makes of an input, which may be anything."""
    try:
        return function(*args)
    except Exception:  # noqa: BLE001 - a call is recorded whatever its input does
        return "<unreadable>"


def _name(value: object) -> str | None:
    if value is None:
        return None
    text = _plain(value)
    return _short_name(text) if len(text) <= MAX_NAME else _told(text, MAX_NAME)


@lru_cache(maxsize=512)  # most come again with each call
def _short_name(text: str) -> str:
    return _told(text, MAX_NAME)


def _milliseconds(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and -1e12 < value < 1e12:
        return round(float(value), 3)
    return None


def _plain(value: object) -> str:
    """A text as it is, a small number, else what it is: nothing of the host's own runs for it."""
    if isinstance(value, str):
        return str.__str__(value)
    if value is None or type(value) in (bool, float):
        return repr(value)
    if type(value) is int and value.bit_length() < 128:
        return str(value)
    return f"<{type(value).__name__}>"


def _told(text: str, most: int) -> str:
    """The first ``most`` characters, without secrets and literal."""
    bare, left_out = _cut(text, most)
    return _marked(_literal(bare), left_out)


def _cut(text: str, most: int) -> tuple[str, int]:
    """The first ``most`` characters without secrets, and how many are left out."""
    seen = text[: 4 * most]  # a secret that begins in what is shown is seen, if not whole
    bare = without_secrets(seen)
    return bare[:most], len(text) - len(seen) + max(0, len(bare) - most)


def _marked(text: str, left_out: int) -> str:
    return f"{text}… (+{left_out} characters)" if left_out else text


def _literal(text: str) -> str:
    """As ``shown`` has it, whatever the length: that cuts what is longer than 200 characters."""
    return "".join(shown(text[at : at + 200]) for at in range(0, len(text), 200))


def _target(tool: str, given: Mapping[str, Any]) -> str | None:
    """What the call is about: a file tool's path as given, else the input in short."""
    known = FILE_TOOLS.get(tool)
    if known is None:
        summary = _Summary(tool.startswith("mcp__")).mapping(given, top=True)
        return _marked(*_cut(summary, MAX_TARGET)) or None  # once more: a list may spell a secret
    paths = dict.fromkeys(_plain(given[name]) for name in known.fields if name in given)
    text = ", ".join(paths or ("." for _ in range(known.here)))
    if tool == "Glob" and "pattern" in given:  # it names files, as the path does
        text = f"{text} (pattern {_plain(given['pattern'])})"
    return _told(text, MAX_TARGET) or None


def _sizes(tool: str, given: Mapping[str, Any]) -> dict[str, int] | None:
    """Bytes of each field that holds content."""
    mcp = tool.startswith("mcp__")
    names = [
        name
        for name in _first(given)
        if isinstance(name, str)
        and (_is_content(name) or (mcp and _is_untold(name, given[name], MAX_SHORT)))
    ]
    return {_literal(name): _size(given[name]) for name in names[:_MAX_ITEMS]} or None


def _is_content(name: str) -> bool:
    return _plain_name(name) in _CONTENT


def _plain_name(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower() if len(name) < 40 else ""


def _is_untold(name: str, value: object, most: int) -> bool:
    """Whether a field of an MCP tool may hold content: it has text, of more than ``most`` bytes, and its
    name doesn't say that it is a path, an id or a query."""
    if not isinstance(value, str | bytes | bytearray | list | tuple):
        return False
    if not isinstance(value, str | bytes | bytearray) and _holds_fields(value):
        return False  # each of them is looked at by itself
    if _plain_name(name) in _MCP_CONTENT:
        most = 0
    elif names_path(name) or (len(name) < 100 and _TOLD.fullmatch(name)):
        return False
    return _size(value) > most


def _holds_fields(items: list[Any] | tuple[Any, ...]) -> bool:
    return bool(items) and all(isinstance(item, Mapping) for item in items[:_MAX_ITEMS])


def _size(value: object) -> int:
    """Bytes of all text in it, as UTF-8."""
    size, waiting = 0, [value]
    for _ in range(_MAX_COUNTED):
        if not waiting:
            break
        one = waiting.pop()
        if isinstance(one, str):
            size += len(one) if one.isascii() else len(one.encode(errors="surrogatepass"))
        elif isinstance(one, bytes | bytearray):
            size += len(one)
        elif isinstance(one, Mapping):
            waiting += _first(one.values(), _MAX_COUNTED)
        elif isinstance(one, list | tuple):
            waiting += one[:_MAX_COUNTED]
    return size


def _first(items: Iterable[Any], most: int = 200) -> list[Any]:
    return [item for item, _ in zip(items, range(most), strict=False)]


class _Summary:
    """An input in short: ``command="ls", timeout=5``. It stops after so many characters."""

    def __init__(self, mcp: bool) -> None:
        self._left = _LOOKED_AT
        self._mcp = mcp

    def mapping(self, given: Mapping[str, Any], depth: int = 0, *, top: bool = False) -> str:
        items = _first(given.items())
        if top:  # what matters most can't be pushed out by the rest
            items.sort(key=lambda item: not (item[0] in _FIRST or names_path(item[0])))
        pairs = [
            f"{self._key(name)}={self._field(name, value, depth)}"
            for name, value in self._some(items)
        ]
        return ", ".join(pairs) + self._more(len(given), len(pairs))

    def _field(self, name: object, value: object, depth: int) -> str:
        if isinstance(name, str) and is_secret_name(name):
            return CUT
        if isinstance(name, str) and (_is_content(name) or self._is_untold(name, value, depth)):
            return f"<{_size(value)} bytes>"
        return self._value(value, depth)

    def _is_untold(self, name: str, value: object, depth: int) -> bool:
        """Many short fields inside another may hold a text, too: there none is short enough."""
        return self._mcp and _is_untold(name, value, 0 if depth else MAX_SHORT)

    def _value(self, value: object, depth: int) -> str:
        if isinstance(value, str):
            return f'"{self._text(value)}"'
        if depth >= _MAX_DEPTH:
            return "…"
        if isinstance(value, Mapping):
            return f"{{{self.mapping(value, depth + 1)}}}"
        if isinstance(value, list | tuple):
            told = [self._value(item, depth + 1) for item in self._some(value[:_MAX_ITEMS])]
            return f"[{', '.join(told)}{self._more(len(value), len(told))}]"
        return _literal(_plain(value))

    def _text(self, value: str) -> str:
        self._left -= min(len(value), _WINDOW)
        text, left_out = _cut(without_documents(value[:_WINDOW]), MAX_VALUE)
        return _marked(_literal(text), left_out + max(0, len(value) - _WINDOW))

    def _key(self, name: object) -> str:
        return _told(_plain(name), 60)

    def _some(self, items: Iterable[Any]) -> Iterable[Any]:
        for item, _ in zip(items, range(_MAX_ITEMS), strict=False):
            self._left -= 1
            if self._left <= 0:
                return
            yield item

    def _more(self, there: int, told: int) -> str:
        return f"… (+{there - told} more)" if there > told else ""
