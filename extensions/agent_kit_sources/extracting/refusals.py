"""Every sentence about a document that can't be read: what is wrong, and what to do next.

The child says a code, and a few names and numbers; no sentence of a document's gets in here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_kit.store import StoreCode, StoreError, shown
from agent_kit_sources.extracting.limits import Limits

__all__ = ["EXTRA", "refusal"]

EXTRA = "agent-kit[documents]"
"""What to install for the formats that need a library."""

_SENTENCES: Mapping[str, tuple[StoreCode, str]] = {
    "binary": (
        StoreCode.UNREADABLE,
        '"{file}" is none of the formats that are read ({formats}): ask the person for one of those.',
    ),
    "busy": (
        StoreCode.BUSY,
        'Other documents are being read, so "{file}" was not: try once more in a minute.',
    ),
    "corrupt": (
        StoreCode.UNREADABLE,
        '"{file}" is damaged, or not the {kind} that its name says: ask the person for a sound copy.',
    ),
    "deep": (
        StoreCode.UNREADABLE,
        '"{file}" is nested too deeply to be read: ask the person for a simpler copy, such as a PDF.',
    ),
    "died": (
        StoreCode.UNREADABLE,
        'Reading "{file}" failed, and nothing of it can be shown: ask the person for the document in another format.',
    ),
    "encoding": (
        StoreCode.BAD_TEXT,
        '"{file}" is no text in the encoding "{encoding}": leave encoding out, or name another such as windows-1252, shift_jis, gb18030 or koi8-r.',
    ),
    "entities": (
        StoreCode.UNREADABLE,
        '"{file}" declares XML entities, which no {kind} needs and which can be used for attacks: ask the person for a copy that was saved anew.',
    ),
    "locked": (
        StoreCode.UNREADABLE,
        '"{file}" is protected by a password or by rights management: ask the person for a copy without it.',
    ),
    "memory": (
        StoreCode.TOO_LARGE,
        'Reading "{file}" needs more memory than the {memory} MiB that a document gets: ask the person for a part of it.',
    ),
    "missing": (
        StoreCode.UNREADABLE,
        'To read "{file}" a library is missing: ask the person who runs this session to install {extra}.',
    ),
    "no-offset": (
        StoreCode.NOT_FOUND,
        "There is nothing at offset {offset}: the {unit} has {length} characters. Use an offset from 0 that is smaller.",
    ),
    "no-part": (
        StoreCode.NOT_FOUND,
        'There is no {unit} {part}: "{file}" has {count}. Use numbers from 1 to {count}.',
    ),
    "no-parts": (
        StoreCode.NOT_FOUND,
        'There is no {unit} in "{file}" at all: there is nothing to read.',
    ),
    "no-sheet": (
        StoreCode.NOT_FOUND,
        'There is no sheet "{sheet}" in "{file}": use one of {sheets}.',
    ),
    "old-office": (
        StoreCode.UNREADABLE,
        """"{file}" is protected by a password, or in an old format of Office: ask the person for a copy without a password in today's format (docx, pptx or xlsx).""",
    ),
    "part": (
        StoreCode.BAD_NAME,
        'part "{part}" is no range: write a number or two, such as 3, 3-5 or 3-, the smaller first.',
    ),
    "time": (
        StoreCode.TOO_LARGE,
        'Reading "{file}" took longer than a document gets ({cpu} seconds of processor time, {seconds} by the clock): ask for fewer parts, or ask the person for a smaller copy.',
    ),
    "unlocked": (
        StoreCode.UNAVAILABLE,
        'The process that reads "{file}" could not be confined, so nothing was read: tell the person who runs this session.',
    ),
    "unpacked": (
        StoreCode.TOO_LARGE,
        '"{file}" unpacks to more than the {unpacked} MiB or {entries} files that are read: ask the person for a smaller copy.',
    ),
    "whole": (
        StoreCode.BAD_NAME,
        '"{file}" has no pages, slides, rows or chapters to choose from: leave part out, and use offset.',
    ),
}


def refusal(
    code: str, file: str, limits: Limits, details: Mapping[str, Any] | None = None
) -> StoreError:
    """The error for a code; one that isn't known is that the reading failed."""
    kind, sentence = _SENTENCES.get(code, _SENTENCES["died"])
    given = {name: shown(str(value), 400) for name, value in (details or {}).items()}
    own = {
        "file": file,
        "extra": EXTRA,
        "memory": limits.memory_bytes // 1024**2,
        "seconds": f"{limits.seconds:g}",
        "cpu": limits.cpu_seconds,
        "unpacked": limits.unpacked_bytes // 1024**2,
        "entries": limits.entries,
    }
    try:
        return StoreError(sentence.format_map(given | own), code=kind)
    except KeyError:  # a child that says too little
        kind, sentence = _SENTENCES["died"]
        return StoreError(sentence.format_map(own), code=kind)
