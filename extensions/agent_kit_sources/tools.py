"""The tools of the ``sources`` server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from agent_kit.store import FolderGuard, Tool, fill, shown
from agent_kit.store.tools import integer, schema, text, whole_number
from agent_kit_sources.extracting import extract_tool
from agent_kit_sources.listing import Original, SourceFolder
from agent_kit_sources.origin import MAX_ORIGINAL
from agent_kit_sources.saving import Saver

__all__ = ["PAGE", "Asking", "tools_for"]

PAGE = 200
"""Most files in one answer."""

_LONGEST_PATH = 500  # characters of a path that are shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Who is asked before a tool touches a file: in the folder of originals, and ``elsewhere``."""

    own: FolderGuard
    elsewhere: FolderGuard


def tools_for(
    folder: SourceFolder, saver: Saver, asking: Asking, *, label: str
) -> tuple[Tool, ...]:
    """The tools. ``label`` is the folder as the model names it, with a slash at the end."""
    return (
        Tool(
            name="list_sources",
            description=(
                f"List the original files in {label}: path, type, size in bytes, time of the last "
                "change (UTC), and for one that was saved with save_to_sources where it comes from, "
                "when, and its SHA-256. Read or search one with the file tools. Nothing is changed."
            ),
            schema=schema(
                folder=text(
                    f"Only what lies in this folder, relative to {label}, such as week1. "
                    "Left out: everything."
                ),
                offset=integer(
                    "How many files to skip, from 0; the answer says where the next part begins."
                ),
            ),
            run=lambda arguments: (_listed(folder, label, arguments),),
            before=partial(_before_list, folder, asking, label),
            read_only=True,
        ),
        Tool(
            name="save_to_sources",
            description=(
                f"Copy a file from a folder that you write in, or from the run folder, to {label}, "
                "where it is kept as an original: nobody changes it from then on. Nothing that is "
                "there is overwritten. Where it comes from, when, its size and its SHA-256 are noted."
            ),
            schema=schema(
                ("file",),
                file=text(
                    "The file to copy: a path as Read takes it. At most "
                    f"{MAX_ORIGINAL // 1024**2} MiB; no link."
                ),
                name=text(
                    f"Its path in {label}, such as week1/interview.md; folders are made. Left out: "
                    "the file's own name."
                ),
            ),
            run=partial(_saved, saver, label),
            before=partial(_before_save, saver, asking, label),
            read_only=False,
        ),
        extract_tool(saver.reader, asking.elsewhere, label=label),
    )


async def _before_list(
    folder: SourceFolder, asking: Asking, label: str, arguments: Mapping[str, Any]
) -> None:
    """What may not be read is left out of the list."""
    under = _under(label, arguments)
    place = folder.root / under.lstrip("/")
    await asking.own.require("list", place, label=f"{label}{under}", filtered=True)


async def _before_save(
    saver: Saver, asking: Asking, label: str, arguments: Mapping[str, Any]
) -> None:
    origin, path = saver.places(str(arguments["file"]), name=_name(label, arguments))
    await asking.elsewhere.require("read", origin, label=saver.reader.label(origin))
    await asking.own.require("write", saver.root / path, label=f"{label}{path}")


def _name(label: str, arguments: Mapping[str, Any]) -> str | None:
    return str(arguments.get("name") or "").strip().removeprefix(label) or None


def _under(label: str, arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("folder", "")).strip().removeprefix(label)


def _saved(saver: Saver, label: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    saved = saver.save(str(arguments["file"]), name=_name(label, arguments))
    made = saved.provenance
    path = shown(f"{label}{saved.path}", _LONGEST_PATH)
    return (f"Saved as {path}: {made.size} bytes, SHA-256 {made.sha256}.",)


def _listed(folder: SourceFolder, label: str, arguments: Mapping[str, Any]) -> str:
    offset = whole_number(arguments, "offset", 0)
    under = _under(label, arguments)
    found = islice(folder.originals(under=under), offset, None)
    files = list(islice(found, PAGE + 1))
    lines, complete = fill(_line(file, label) for file in files[:PAGE])
    if not files:
        return _nothing(label, under, offset)
    after = offset + len(lines)
    more = not complete or len(files) > PAGE
    rest = f" More follow: call again with offset {after}." if more else " That is all."
    return "\n".join([f"Files {offset + 1} to {after} in {label}.{rest}", *lines])


def _line(file: Original, label: str) -> str:
    changed = f"{file.changed:%Y-%m-%d %H:%M} UTC"
    path = shown(f"{label}{file.path}", _LONGEST_PATH)
    line = f"{path} | {file.type or 'no extension'} | {file.size} bytes | {changed}"
    if (saved := file.provenance) is None:
        return line
    origin = shown(saved.origin, _LONGEST_PATH)
    return f"{line} | saved {saved.when:%Y-%m-%d %H:%M} UTC from {origin}, SHA-256 {saved.sha256}"


def _nothing(label: str, under: str, offset: int) -> str:
    if offset:
        return f"There are no more than {offset} files here: use a smaller offset."
    where = f'the folder "{shown(under)}" of {label}' if under else label
    return f"No files in {where}."
