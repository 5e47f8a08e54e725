"""A tool as a value: its schema, and a blocking function that runs in a thread.

Nothing here imports the SDK: an extension turns these into its server when the options are built.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_kit.store.errors import StoreError, sentence_for

__all__ = ["Tool", "flag", "integer", "schema", "text", "texts", "whole_number"]

Blocks = tuple[str, ...]
"""A result: blocks of text, in order."""


_log = logging.getLogger("agent_kit.tools")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool. ``run`` gets the arguments, may block, and returns the blocks of its result.

    ``before`` gets them first and may wait for a person; what it raises is answered as what ``run``
    raises.
    """

    name: str
    description: str
    schema: Mapping[str, Any]
    run: Callable[[Mapping[str, Any]], Blocks]
    read_only: bool
    before: Callable[[Mapping[str, Any]], Awaitable[None]] | None = None

    async def handler(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The MCP result of a call. Never raises: what goes wrong is a sentence for the model."""
        if self.before is not None:
            try:
                await self.before(arguments)
            except Exception as error:  # noqa: BLE001 - its text would reach the model as it is
                return self._failed(error)
        return await asyncio.to_thread(self.call, arguments)

    def call(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The same as :meth:`handler`, without an event loop and without ``before``."""
        try:
            return _result(self.run(arguments), is_error=False)
        except Exception as error:  # noqa: BLE001 - its text would reach the model as it is
            return self._failed(error)

    def _failed(self, error: Exception) -> dict[str, Any]:
        if isinstance(error, StoreError):
            return _result((str(error), *error.details), is_error=True)
        if isinstance(error, OSError):
            return _result((sentence_for(error),), is_error=True)
        _log.error("the tool %s failed", self.name, exc_info=error)
        message = f"{self.name} failed ({type(error).__name__}): list before you try once more."
        return _result((message,), is_error=True)


def _result(blocks: Blocks, *, is_error: bool) -> dict[str, Any]:
    content = [{"type": "text", "text": _encodable(block)} for block in blocks]
    return {"content": content, "is_error": is_error}


def _encodable(text: str) -> str:
    """The text with what JSON can't carry spelled out."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def schema(required: tuple[str, ...] = (), /, **fields: Mapping[str, Any]) -> dict[str, Any]:
    """An object with these fields and no others."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": list(required),
        "additionalProperties": False,
    }


def text(description: str, /, *, choices: tuple[str, ...] = ()) -> dict[str, Any]:
    """A field of text. Lengths are checked by the tool: a schema's error repeats the value."""
    return {"type": "string", "description": description} | (
        {"enum": list(choices)} if choices else {}
    )


def texts(description: str, /) -> dict[str, Any]:
    """A field of several texts."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


def integer(description: str, /, *, least: int = 0, most: int | None = None) -> dict[str, Any]:
    """A field of a whole number between two bounds."""
    bounds = {"minimum": least} | ({} if most is None else {"maximum": most})
    return {"type": "integer", "description": description} | bounds


def flag(description: str, /) -> dict[str, Any]:
    """A field that is true or false."""
    return {"type": "boolean", "description": description}


def whole_number(arguments: Mapping[str, Any], name: str, default: int) -> int:
    """A whole number that JSON may have carried as ``3.0``."""
    return int(arguments.get(name, default))
