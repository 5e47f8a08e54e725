"""A new original: named, written in one step, and entered in the manifest.

Nothing that is there is ever overwritten, and no name leaves the folder, meets another by case or
Unicode form, or is one that a later session takes for its instructions or settings.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.scope.text import fold
from agent_kit.store import StoreCode, StoreError, shown
from agent_kit.store.disk import (
    is_staged,
    make_folder,
    open_folder,
    publish_new,
    remove_empty,
    remove_file,
    stage,
    sync_folder,
)
from agent_kit.store.names import FileName, file_name, name_key
from agent_kit_sources.manifest import Manifest, Provenance, with_entry, write_manifest
from agent_kit_sources.origin import OriginReader
from agent_kit_sources.writing import writing

__all__ = ["MAX_FOLDERS", "Saved", "Saver"]

MAX_FOLDERS = 8
"""Most folders on the way to a new original."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A new original. ``path`` is relative to the folder, ``/`` between names."""

    path: str
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Saver:
    """Copies files of the session into the folder of originals.

    ``root`` is absolute. ``steers`` says why a new file with an absolute path may not be: it is
    asked beside the session's scope, which must let Read open the file afterwards.
    """

    root: Path
    reader: OriginReader
    scope: Callable[[], FileScope]
    steers: Callable[[Path], str | None]

    def save(self, written: str, *, name: str | None = None) -> Saved:
        """Copy the file that ``written`` names; ``name`` is its path in the folder of originals.

        Without ``name`` it keeps its own. Raises :class:`StoreError` when the file may not be read,
        or the name is taken, leaves the folder or can't be one; nothing was written then.
        """
        origin, path = self.places(written, name=name)
        self.check(path)
        data = self.reader.read(origin)
        entry = Provenance(
            origin=self.reader.label(origin),
            when=datetime.now(UTC).replace(microsecond=0),
            size=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
        )
        return self.put(data, path, entry)

    def put(
        self, data: bytes, path: str, entry: Provenance, *, more: Mapping[str, Any] | None = None
    ) -> Saved:
        """Write an original, and its entry: ``more`` is what the manifest says beside it.

        ``path`` is its path in the folder of originals. Raises as :meth:`save`.
        """
        *folders, file = _names(path)
        path = "/".join((*folders, file))
        with writing(self.root) as (root, manifest):
            self.check(path)  # a bare repository may have grown meanwhile
            _sweep(root)
            _put(data, folders, file, with_entry(manifest, path, entry, more or {}), root=root)
        return Saved(path=path, provenance=entry)

    def places(self, written: str, *, name: str | None = None) -> tuple[Path, str]:
        """The absolute path of the file that ``written`` names, and where its copy would lie.

        Raises :class:`StoreError` for a name that can't be one.
        """
        origin = self.reader.locate(written)
        return origin, self.place(origin.name if name is None else name)

    def place(self, name: str) -> str:
        """The path in the folder of originals that ``name`` means. Raises :class:`StoreError`."""
        return "/".join(_names(name))

    def check(self, path: str) -> None:
        """Raise StoreError when no original may have this path. Nothing is written."""
        place = self.root / path
        call = {"file_path": str(place)}
        if (reason := self.steers(place)) or (
            reason := check_file_scope(self.scope(), "Read", call)
        ):
            known = reason.replace(str(place), self.reader.label(place))
            raise StoreError(
                f"{known} Nothing was saved: choose another name.", code=StoreCode.DENIED
            )

    def check_free(self, path: str) -> None:
        """As :meth:`check`, and when something is there. It may be taken before it is written."""
        self.check(path)
        with open_folder(self.root) as root:
            _check_way(_names(path), root)


def _names(written: str) -> list[FileName]:
    """The names of the folders and of the file."""
    parts = written.strip().split("/")
    if len(parts) > MAX_FOLDERS + 1:
        raise StoreError(
            f"The name has more than {MAX_FOLDERS} folders: choose another.",
            code=StoreCode.BAD_NAME,
        )
    return [file_name(part) for part in parts]


def _put(
    data: bytes, folders: list[FileName], file: FileName, manifest: Manifest, *, root: int
) -> None:
    """Write the file under its name, with the folders on the way, and the manifest.

    When one of the two fails nothing is left; a process that dies between them leaves an original
    of which nothing is known.
    """
    with ExitStack() as handles, ExitStack() as undo:
        here = root
        for folder in folders:
            _check_free(folder, here, as_folder=True)
            if make_folder(folder, inside=here, mode=0o777):
                undo.callback(remove_empty, folder, inside=here)
                sync_folder(here)
            try:
                here = handles.enter_context(open_folder(folder, inside=here))
            except StoreError:  # a file or a link
                raise _taken(folder) from None
        _check_free(file, here, as_folder=False)
        if here != root:
            _sweep(here)
        temp = stage(data, inside=here, mode=0o666)
        undo.callback(remove_file, temp, inside=here)
        try:
            publish_new(temp, file, inside=here)
        except FileExistsError:
            raise _taken(file) from None
        undo.callback(remove_file, file, inside=here)
        sync_folder(here)
        write_manifest(manifest, root=root)
        undo.pop_all()


def _check_way(names: list[FileName], here: int) -> None:
    """That a file could have this path. What isn't there yet is free."""
    name, *below = names
    _check_free(name, here, as_folder=bool(below))
    if below and name in os.listdir(here):
        try:
            with open_folder(name, inside=here) as folder:
                _check_way(below, folder)
        except StoreError as error:  # a file or a link
            raise error if error.code is StoreCode.EXISTS else _taken(name) from None


def _check_free(name: FileName, folder: int, *, as_folder: bool) -> None:
    """That no other name there is the same to some file system. A folder may be there already."""
    same = [other for other in os.listdir(folder) if _key(other) == _key(name)]
    if same and not (as_folder and same == [name]):
        raise _taken(same[0])


def _key(name: str) -> str:
    return fold(name_key(name))


def _sweep(folder: int) -> None:
    """Remove the unfinished files of killed processes: we hold the lock, so no live one has any."""
    for name in os.listdir(folder):
        if is_staged(name):
            with suppress(OSError):
                remove_file(name, inside=folder)


def _taken(existing: str) -> StoreError:
    return StoreError(
        f'"{shown(existing)}" is there already, and an original is never overwritten: nothing was '
        "saved. Choose another name.",
        code=StoreCode.EXISTS,
    )
