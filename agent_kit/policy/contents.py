"""The authorizers that look at contents: what is about to be written, and how much may be read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from agent_kit.policy.at_once import Ready
from agent_kit.policy.outcome import Action, Answer, Narrowed, allow, deny
from agent_kit.policy.target import AuthorizerContext, Target

__all__ = ["content_check", "is_read_whole", "read_limit", "written_texts"]

_READ: Final = frozenset({Action.READ})
_WRITE: Final = frozenset({Action.WRITE})
_PIECE: Final = 1 << 16  # bytes
_SEARCH: Final = 4.0  # seconds, less than an authorizer has
_COUNTED: Final = 1 << 24  # bytes of a notebook whose lines are counted
_BREAKS: Final = re.compile(rb"\n|\\n|\\u000")  # in JSON: its own, and those of its texts
# What Read gives as a whole, whatever offset and limit say (measured on CLI 2.1.332).
_NOTEBOOK: Final = ".ipynb"
_DOCUMENT: Final = ".pdf"
_IMAGES: Final = (".gif", ".jpeg", ".jpg", ".png", ".webp")
# Built-in tool to the field with what it writes; MultiEdit has a list of them.
_FIELDS: Final[Mapping[str, str]] = {
    "Write": "content",
    "Edit": "new_string",
    "NotebookEdit": "new_source",
}


def written_texts(tool: str, tool_input: Mapping[str, Any]) -> Iterator[str]:
    """The texts that a call is about to write; of a tool that isn't built in every text that it gets.

    Raises TypeError for what is no text.
    """
    if (name := _FIELDS.get(tool)) is not None:
        if name in tool_input:
            yield _text(tool_input[name])
    elif tool == "MultiEdit":
        for edit in tool_input.get("edits", ()):
            yield _text(edit.get("new_string", ""))
    else:
        yield from _texts(tool_input)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"what is to be written is no text but {type(value).__name__}")
    return value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield str(name)
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


@dataclass(frozen=True, slots=True, eq=False)
class _ContentCheck(Ready):
    check: Callable[[str], Any]
    inline: bool = False
    id: ClassVar = "content_check"
    actions: ClassVar = _WRITE

    def authorize(self, target: Target, _context: AuthorizerContext) -> Any:
        for text in written_texts(target.tool, target.tool_input):
            answer = self.check(text)
            if answer is True:
                return deny("what is to be written was refused by a content check")
            if answer is not False and answer != allow():
                return answer  # a deny(), or what nobody should answer
        return allow()


def content_check(pattern_or_function: str | re.Pattern[str] | Callable[[str], Any] | Any) -> Any:
    r"""Refuses to write a text that a regular expression finds something in, or a function objects to.

    Each text is looked at by itself: Write's ``content``, Edit's ``new_string``, NotebookEdit's
    ``new_source``, those of MultiEdit's ``edits``. The function is sync, runs in a thread, and returns
    ``True`` to refuse, ``False`` to go on, or :func:`allow` or :func:`deny`. Anything else refuses.

    An expression of ``re`` has no time limit, and the model writes the text: one in which a repetition
    stands in a repetition (``(\w+ ?)+$``) may hold the whole program for as long as the text is bad. Make
    it possessive (``(\w++ ?)+$``), or give one that the package ``regex`` has compiled: that is searched
    in a thread, and refuses after 4 seconds. A function that takes longer than 5 refuses too, but its
    thread goes on.

    Raises TypeError, or ValueError for a text that is no regular expression.
    """
    if isinstance(pattern_or_function, (str, re.Pattern)):
        return _ContentCheck(_finder(pattern_or_function), inline=True)
    if _is_foreign(pattern_or_function):
        return _ContentCheck(lambda text: _search(pattern_or_function, text))
    if not callable(pattern_or_function):
        raise TypeError("content_check takes a regular expression or a function of the text")
    return _ContentCheck(pattern_or_function)


def _is_foreign(pattern: Any) -> bool:
    """Whether this is an expression that the package ``regex`` has compiled, of text."""
    return callable(getattr(pattern, "search", None)) and isinstance(
        getattr(pattern, "pattern", None), str
    )


def _search(pattern: Any, text: str) -> bool:
    """Raises TimeoutError."""
    return pattern.search(text, timeout=_SEARCH, concurrent=True) is not None


def _finder(pattern: str | re.Pattern[str]) -> Callable[[str], bool]:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"content_check takes a regular expression: {error}") from None
    if not isinstance(expression.pattern, str):
        raise TypeError("content_check takes a regular expression of text, not of bytes")
    return lambda text: expression.search(text) is not None


@dataclass(frozen=True, slots=True)
class _ReadLimit(Ready):
    lines: int | None
    bytes: int | None
    id: ClassVar = "read_limit"
    actions: ClassVar = _READ

    @property
    def inline(self) -> bool:
        """For lines alone no file is looked at but a notebook, which is opened without waiting."""
        return self.bytes is None

    def authorize(self, target: Target, _context: AuthorizerContext) -> Answer | Narrowed:
        if target.tool != "Read" or target.is_folder:
            return allow()
        if is_read_whole(target):
            return self._as_a_whole(target)
        offset = _count(target.tool_input.get("offset"), 1)
        given = target.tool_input.get("limit")
        limits = [] if given is None else [_count(given, 1)]
        limits += [] if self.lines is None else [self.lines]
        if self.bytes is not None and target.size is not None and target.size > self.bytes:
            limits.append(_lines_within(target.resolved, offset, self.bytes))
        if not limits or (given is not None and min(limits) >= given):
            return allow()
        return Narrowed(offset=offset, limit=min(limits))

    def _as_a_whole(self, target: Target) -> Answer:
        if target.size is None:
            return allow()
        if self.bytes is not None and target.size > self.bytes:
            return deny(f"{target.size} bytes is over the limit, and it is read as a whole only")
        if self.lines is None or not _may_have_more(target, self.lines):
            return allow()
        return deny(f"it may have more than {self.lines} lines, and is read as a whole only")


def is_read_whole(target: Target) -> bool:
    """Whether Read gives the file as a whole, by its name: a notebook, a PDF, an image."""
    return _has_ending(target, _NOTEBOOK, _DOCUMENT, *_IMAGES)


def _has_ending(target: Target, *endings: str) -> bool:
    return any(path.lower().endswith(endings) for path in (target.absolute, *target.real_paths))


def _may_have_more(target: Target, lines: int) -> bool:
    """Whether a file that is read as a whole may have more lines; an image has none."""
    if _has_ending(target, _DOCUMENT):
        return True
    if not _has_ending(target, _NOTEBOOK):
        return False
    if target.size is None or target.size > _COUNTED:
        return True
    with open(target.resolved, "rb", opener=_at_once) as file:
        breaks = len(_BREAKS.findall(file.read(_COUNTED + 1)))
    return breaks >= lines


def _at_once(path: str, flags: int) -> int:
    """Open without waiting: a named pipe may have any name."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _count(value: object, least: int) -> int:
    if value is None:
        return least
    if isinstance(value, bool) or not isinstance(value, (int, float)) or int(value) != value:
        raise TypeError("offset and limit are numbers of lines")
    return max(least, int(value))


def _lines_within(path: str, offset: int, room: int) -> int:
    """How many lines from ``offset`` on fit in ``room`` bytes; at least one."""
    number = fitting = 0
    with open(path, "rb") as file:
        while room >= 0 and (piece := file.readline(_PIECE)):  # a line may be larger than memory
            ends = piece.endswith(b"\n")
            if number >= offset - 1:
                room -= len(piece)
                fitting += ends and room >= 0
            number += ends
    return max(1, fitting)


def read_limit(*, lines: int | None = None, bytes: int | None = None) -> Any:  # noqa: A002
    """Cuts a Read short, without refusing it: no more than so many ``lines``, and so many ``bytes``.

    It narrows the call's ``offset`` and ``limit``. A line ends in a line feed, as for the CLI, and is
    never cut: one that is longer than ``bytes`` is read whole, and so is a text whose lines end
    otherwise. What Read gives as a whole only is refused when it is over the limit: a notebook, a PDF
    (which counts as more than any ``lines``), an image (of which only ``bytes`` count).
    Raises TypeError or ValueError.
    """
    for name, value in (("lines", lines), ("bytes", bytes)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise TypeError(f"{name} is a number")
        if value is not None and value < 1:
            raise ValueError(f"{name} must be at least 1")
    if lines is None and bytes is None:
        raise ValueError("read_limit takes lines, bytes, or both")
    return _ReadLimit(lines, bytes)
