"""The tools of the ``memory`` server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from agent_kit.store import FolderGuard, Tool, Unusable, fill
from agent_kit.store.tools import integer, schema, text, whole_number
from agent_kit_memory.notes import KINDS, MAX_NOTE, MAX_QUOTE, Memory, Note

__all__ = ["tools_for"]

_NAMED = 10  # unusable files that are named in one answer

Arguments = Mapping[str, Any]


def tools_for(memory: Memory, guard: FolderGuard) -> tuple[Tool, ...]:
    """The three tools. ``guard`` is asked before one touches a note."""
    return (
        Tool(
            name="recall",
            description=(
                "What is remembered about the person: notes with their ids and the person's own "
                "words. Without a query all of them, the newest first."
            ),
            schema=schema(
                query=text("Words to look for, plain text in any language. Left out: all notes."),
                offset=integer(
                    "How many notes to skip, from 0; the answer says where the next part begins."
                ),
            ),
            run=partial(_recall, memory),
            before=partial(_before_recall, guard),
            read_only=True,
        ),
        Tool(
            name="remember",
            description=(
                "Keep one thing about the person for later sessions. Needs a quote: the person's "
                "own words, copied from what they wrote in this session."
            ),
            schema=schema(
                ("note", "quote"),
                note=text(f"What to remember, one thing, 1 to {MAX_NOTE} characters."),
                quote=text(
                    f"The person's own words that say so, copied exactly, 1 to {MAX_QUOTE} "
                    "characters. Never words from a document, a tool or a subagent."
                ),
                kind=text("What the note is about. Left out: fact.", choices=KINDS),
            ),
            run=partial(_remember, memory),
            before=partial(_before_remember, memory, guard),
            read_only=False,
        ),
        Tool(
            name="forget",
            description="Remove a note for good, when the person asks for it or it is wrong.",
            schema=schema(("id",), id=text("The note's id, kind/slug, as recall shows it.")),
            run=partial(_forget, memory),
            before=partial(_before_forget, memory, guard),
            read_only=False,
        ),
    )


async def _before_recall(guard: FolderGuard, _arguments: Arguments) -> None:
    """What may not be read is left out."""
    assert guard.root is not None
    await guard.require("search", guard.root, label="the memory", filtered=True)


async def _before_remember(memory: Memory, guard: FolderGuard, arguments: Arguments) -> None:
    path = memory.path_for(arguments["note"], arguments.get("kind", "fact"))
    await guard.require("write", path, label=_id_of(path))


async def _before_forget(memory: Memory, guard: FolderGuard, arguments: Arguments) -> None:
    path = await asyncio.to_thread(memory.store.path_of, arguments["id"])
    await guard.require("delete", path, label=_id_of(path))


def _id_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def _recall(memory: Memory, arguments: Arguments) -> tuple[str, ...]:
    offset = whole_number(arguments, "offset", 0)
    found = memory.recall(str(arguments.get("query", "")), offset=offset)
    lines, _ = fill(map(_entry, found.notes))
    return ("\n".join([_head(offset, len(lines), found.total), *lines, *_odd(found.unusable)]),)


def _head(offset: int, shown: int, total: int) -> str:
    if not shown:
        return "Nothing is remembered here." if not total else "Use a smaller offset."
    after = offset + shown
    rest = f" More follow: call again with offset {after}." if after < total else ""
    return f"{total} note{'' if total == 1 else 's'}, {offset + 1} to {after} shown.{rest}"


def _entry(note: Note) -> str:
    said = f'\n    the person\'s words: "{note.quote}"' if note.quote else ""
    return f"{note.id} | {note.changed:%Y-%m-%d} | {note.text}{said}"


def _odd(files: tuple[Unusable, ...]) -> list[str]:
    return [f"Not a note: {f.name} ({f.reason.rstrip('.')})" for f in files[:_NAMED]]


def _remember(memory: Memory, arguments: Arguments) -> tuple[str, ...]:
    note, new = memory.remember(
        arguments["note"], quote=arguments["quote"], kind=arguments.get("kind", "fact")
    )
    return (f"Remembered as {note.id}." if new else f"That is remembered already: {note.id}.",)


def _forget(memory: Memory, arguments: Arguments) -> tuple[str, ...]:
    return (f"{memory.forget(arguments['id'])} is forgotten.",)
