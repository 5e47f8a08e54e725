"""The tools of the ``sources`` server."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import islice
from typing import Any

from agent_kit.store import Tool, fill, shown
from agent_kit.store.tools import integer, schema, text, whole_number
from agent_kit_sources.listing import Original, SourceFolder
from agent_kit_sources.origin import MAX_ORIGINAL
from agent_kit_sources.saving import Saver

__all__ = ["PAGE", "tools_for"]

PAGE = 200
"""Most files in one answer."""

_LONGEST_PATH = 500  # characters of a path that are shown


def tools_for(folder: SourceFolder, saver: Saver, *, label: str) -> tuple[Tool, ...]:
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
            read_only=False,
        ),
    )


def _saved(saver: Saver, label: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    name = arguments.get("name")
    if name is not None:
        name = str(name).strip().removeprefix(label)
    saved = saver.save(str(arguments["file"]), name=name or None)
    made = saved.provenance
    path = shown(f"{label}{saved.path}", _LONGEST_PATH)
    return (f"Saved as {path}: {made.size} bytes, SHA-256 {made.sha256}.",)


def _listed(folder: SourceFolder, label: str, arguments: Mapping[str, Any]) -> str:
    offset = whole_number(arguments, "offset", 0)
    under = str(arguments.get("folder", "")).strip().removeprefix(label)
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
