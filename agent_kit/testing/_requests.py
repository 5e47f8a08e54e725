"""One recorded request, and a search for a text in it that no escape can hide."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

__all__ = ["Request", "tool_result_text"]

_ESCAPE = re.compile(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DEPTH = 4  # JSON inside JSON: a tool's result that quotes a file that quotes a request


@dataclass(frozen=True, kw_only=True)
class Request:
    """One HTTP request that the scripted model got.

    ``text`` is the body as it came, ``body`` what it parses to (empty when it is no JSON object).
    ``agent`` is the subagent's id, ``None`` for the main conversation. ``side`` tells that the CLI
    asked for something of its own, such as a title, or that it was no message request at all.
    """

    method: str
    path: str
    text: str
    body: Mapping[str, Any] = field(repr=False)
    agent: str | None = None
    side: bool = False

    @cached_property
    def _strings(self) -> tuple[tuple[str, str], ...]:
        return tuple(_strings_of(self.body, ""))

    def where(self, text: str) -> tuple[str, ...]:
        """The places that hold ``text``: JSON places, ``raw`` for the body as it came, ``path``."""
        places = [place for place, string in self._strings if _holds(string, text)]
        places += [name for name, raw in (("raw", self.text), ("path", self.path)) if text in raw]
        return tuple(places)

    def saw(self, text: str) -> bool:
        """Whether ``text`` stands anywhere in the request: as it is, escaped, or in base64 data.

        Raises ``ValueError`` for an empty text, which would be found everywhere.
        """
        if not text:
            raise ValueError("An empty text is in every request.")
        return text in self.text or bool(self.where(text))


def tool_result_text(content: object) -> str:
    """The text of a ``tool_result`` block's ``content``, which is a string or a list of blocks."""
    if isinstance(content, list):
        blocks = (block for block in content if isinstance(block, Mapping))
        return "\n".join(str(block.get("text", f"[{block.get('type')}]")) for block in blocks)
    return content if isinstance(content, str) else ""


def _strings_of(value: object, place: str) -> Iterator[tuple[str, str]]:
    """Every string in a JSON value, the keys too, each with its place (``.messages[0].role``)."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, Mapping):
        if value.get("type") == "base64":
            yield f"{place}.data", _decoded(value.get("data"))
        for key, item in value.items():
            yield f"{place}.{key}", str(key)
            yield from _strings_of(item, f"{place}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings_of(item, f"{place}[{index}]")


def _decoded(data: object) -> str:
    """The bytes of an image or a document as text, so that a text inside it can be found."""
    try:
        return base64.b64decode(str(data)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def _holds(string: str, text: str) -> bool:
    """Whether ``string`` holds ``text``, or does once its escapes are taken away, layer by layer."""
    for _ in range(_DEPTH):
        if text in string:
            return True
        if "\\" not in string:
            return False
        plain = _ESCAPE.sub(_unescape, string)
        if plain == string:
            return False
        string = plain
    return text in string


def _unescape(match: re.Match[str]) -> str:
    escape = match.group()
    if not escape.startswith("\\u"):
        return _SHORT.get(escape[1], escape[1])
    units = bytes.fromhex("".join(escape.split("\\u")))
    return units.decode("utf-16-be", "replace")
