"""What lies in the folder of originals, as far as the session may know of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from agent_kit.store import StoreError
from agent_kit.store.disk import open_folder
from agent_kit.store.lock import LOCK_NAME
from agent_kit_sources.manifest import Provenance, provenance_of, read_manifest

__all__ = ["NOT_ORIGINALS", "Original", "SourceFolder"]

NOT_ORIGINALS = frozenset({".git", LOCK_NAME})
"""A repository's own files, and the folder's lock."""

_SOON = timedelta(seconds=60)  # between entry and file, when a disk is slow


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """One file. ``path`` is relative to the folder, ``type`` the extension without its dot.

    ``size`` is in bytes, ``changed`` in UTC. ``provenance`` is what the manifest says of the file
    that was saved here; ``None`` when nothing is known, or the file was changed since.
    """

    path: PurePosixPath
    type: str
    size: int
    changed: datetime
    provenance: Provenance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFolder:
    """The folder of originals.

    ``root`` is absolute. ``permits`` is asked for each absolute path: what it refuses, and
    everything below it, is not listed.
    """

    root: Path
    permits: Callable[[Path], bool]

    def originals(self, *, under: str = "") -> Iterator[Original]:
        """The files, ordered by path, lazily. ``under`` is a folder inside, ``/`` between names.

        Links to files inside are listed, links that leave the folder and special files are not;
        a link to a folder is not entered. Raises ``OSError`` when the root can't be listed.
        """
        wanted = tuple(part for part in under.split("/") if part not in ("", "."))
        with open_folder(self.root) as root:  # one that is gone is an error, not an empty folder
            try:
                known = read_manifest(root).files
            except StoreError:
                known = {}
        yield from self._below(self.root, PurePosixPath(), wanted, known)

    def _below(
        self, folder: Path, path: PurePosixPath, wanted: tuple[str, ...], known: Mapping[str, Any]
    ) -> Iterator[Original]:
        for entry in _entries(folder):
            if (wanted and entry.name != wanted[0]) or entry.name in NOT_ORIGINALS:
                continue
            here = folder / entry.name
            if not self.permits(here):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._below(here, path / entry.name, wanted[1:], known)
            elif not wanted[1:] and (found := self._original(here, path / entry.name, known)):
                yield found

    def _original(
        self, file: Path, path: PurePosixPath, known: Mapping[str, Any]
    ) -> Original | None:
        """The file as an original; ``None`` when it is special, gone, or a link out of the root."""
        try:
            status = file.stat()
            real = os.path.realpath(file)
        except OSError:
            return None
        home = os.path.realpath(self.root)
        if not stat.S_ISREG(status.st_mode) or os.path.commonpath([home, real]) != home:
            return None
        changed = datetime.fromtimestamp(status.st_mtime, UTC)
        saved = provenance_of(known.get(str(path)))
        is_same = saved and saved.size == status.st_size and changed <= saved.when + _SOON
        return Original(
            path=path,
            type=path.suffix.removeprefix(".").lower(),
            size=status.st_size,
            changed=changed,
            provenance=saved if is_same else None,
        )


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """The entries, by name; none when the folder can't be listed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []
