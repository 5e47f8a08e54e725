"""The changes of a folder's pages, one JSON line each, in a hidden file of the root.

A line is written after its change, under the folder's lock: a process that is killed between the two
leaves a change without a line. Changes that were made without a store, by hand or by a version-control
system, have none either.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from agent_kit.store.disk import read_file, remove_file, replace_file
from agent_kit.store.documents import Change, ChangeKind
from agent_kit.store.errors import StoreError
from agent_kit.store.names import PageId, name_key

__all__ = ["HISTORY_NAME", "MAX_HISTORY", "append", "changes", "forget"]

HISTORY_NAME = ".agent-kit.history.jsonl"
"""The file in the root."""

MAX_HISTORY = 8_000_000
"""Bytes from which the older half is dropped."""

_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def append(made: Sequence[Change], *, root: int, private: bool) -> None:
    """Add lines. ``root`` is the root's handle, whose lock is held."""
    lines = b"".join(_line(change) for change in made)
    handle = os.open(HISTORY_NAME, _APPEND, 0o600 if private else 0o666, dir_fd=root)
    try:
        found = os.fstat(handle)
        size = found.st_size
        if found.st_nlink > 1:  # somebody else's file, by a second name: one of our own replaces it
            _keep([*changes(root), *made], root=root, private=private)
            return
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"  # a killed writer's
        os.write(handle, b"\n" + lines if torn else lines)
    finally:
        os.close(handle)
    if size + len(lines) > MAX_HISTORY:
        kept = changes(root)
        _keep(kept[len(kept) // 2 :], root=root, private=private)


def changes(root: int) -> list[Change]:
    """Every change that is kept, oldest first. Lines that are none are left out."""
    try:
        data = read_file(HISTORY_NAME, inside=root, limit=2 * MAX_HISTORY).data
    except (FileNotFoundError, StoreError):
        return []
    return [change for line in data.splitlines() if (change := _change(line)) is not None]


def forget(gone: PageId, *, root: int, private: bool) -> None:
    """Drop what is said of one page."""
    key = name_key(str(gone))
    known = changes(root)
    kept = [change for change in known if name_key(str(change.id)) != key]
    if len(kept) < len(known):
        _keep(kept, root=root, private=private)


def _keep(kept: Iterable[Change], *, root: int, private: bool) -> None:
    data = b"".join(map(_line, kept))
    if data:
        replace_file(HISTORY_NAME, data, inside=root, mode=0o600 if private else 0o666)
    else:
        remove_file(HISTORY_NAME, inside=root)


def _line(change: Change) -> bytes:
    said = {
        "when": change.when.isoformat(timespec="milliseconds"),
        "kind": change.kind,
        "type": change.id.type,
        "slug": change.id.slug,
        "version": change.version,
        "by": change.by,
    }
    text = json.dumps(said, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _change(line: bytes) -> Change | None:
    try:
        said = json.loads(line)
        known = PageId(type=_text(said["type"]), slug=_text(said["slug"]))
        when = datetime.fromisoformat(_text(said["when"]))
        return Change(
            when=when.astimezone(UTC),
            kind=ChangeKind(said["kind"]),
            id=known,
            version=_text(said["version"]),
            by=_text(said["by"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value
