"""An original that counts no more: moved aside in one step, written down, and never removed."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from agent_kit.scope import check_file_scope
from agent_kit.store import StoreCode, StoreError, shown
from agent_kit.store.disk import make_folder, open_folder, settle, sync_folder
from agent_kit_sources.listing import NOT_ORIGINALS
from agent_kit_sources.manifest import write_manifest
from agent_kit_sources.origin import OriginReader
from agent_kit_sources.writing import MOVING, RETIRED, mended, retired_places, writing

__all__ = ["Retirer"]

_LONGEST_PATH = 500  # characters of a path that are shown
_MAX_BYTES = 255  # of a file's name, on every common file system


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirer:
    """Moves originals to ``.retired/``.

    ``root`` is absolute, ``label`` the folder as the model names it. ``permits`` says of an absolute
    path whether the session may know of it, ``steers`` why a file of that path may not be changed.
    ``who`` tells who calls.
    """

    root: Path
    label: str
    reader: OriginReader
    permits: Callable[[Path], bool]
    steers: Callable[[Path], str | None]
    who: Callable[[], Mapping[str, str]]

    def find(self, written: str) -> PurePosixPath:
        """The original that a path names (as ``list_sources`` shows it), relative to the folder.

        Raises :class:`StoreError` for what is no original, is closed, or steers later sessions.
        """
        path = self._inside(written)
        place = self.root / path
        reason = check_file_scope(self.reader.scope(), "Read", {"file_path": str(place)})
        if reason is None and not self.permits(place):
            reason = f'"{self.shown(path)}" is off limits.'
        if reason := reason or self.steers(place):
            known = reason.replace(str(place), self.reader.label(place))
            raise StoreError(f"{known} Nothing was retired.", code=StoreCode.DENIED)
        with open_folder(self.root) as root, ExitStack() as handles:
            self._check(path, self._entered(path, root, handles))
        return path

    def retire(self, written: str, why: str) -> str:
        """Retire the original that a path names; where it lies now, relative to the folder.

        Killed at any moment, it leaves the one or the other, and what the manifest says is right
        once somebody writes in the folder. Raises :class:`StoreError` and ``OSError``; nothing is changed
        then, but for the code ``UNFINISHED``: it was moved, and the disk didn't confirm that.
        """
        with writing(self.root) as (root, manifest), ExitStack() as handles:
            path = self.find(written)
            folder = self._entered(path, root, handles)
            status = self._check(path, folder)
            now = datetime.now(UTC).replace(microsecond=0)
            place = _free_place(path.name, now, {*manifest.retired, *retired_places(root)})
            entry = {
                "path": str(path),
                "when": now.isoformat(),
                "why": why,
                "by": dict(self.who()),
                "size": status.st_size,
                MOVING: True,
            }
            if (was := manifest.files.get(str(path))) is not None:
                entry["was"] = was
            planned = replace(manifest, retired={**manifest.retired, place: entry})
            write_manifest(planned, root=root)
            try:
                _move(path.name, folder, place, root)
            except OSError as error:
                raise _apart(self.shown(path)) if error.errno == errno.EXDEV else error from None
            finally:  # whatever came of it; what can't be written now the next writer mends
                with suppress(OSError, StoreError):
                    write_manifest(mended(planned, root), root=root)
        return place

    def shown(self, path: PurePosixPath) -> str:
        """The original's path as the model knows it."""
        return shown(f"{self.label}{path}", _LONGEST_PATH)

    def place(self, written: str) -> Path:
        """Where the original is that a path names, if there is one. Raises :class:`StoreError` for a path that
        names none of the folder."""
        return self.root / self._inside(written)

    def _inside(self, written: str) -> PurePosixPath:
        if not written.strip() or "\0" in written:
            raise StoreError("Name the original to retire.", code=StoreCode.BAD_NAME)
        path = self.reader.locate(written)
        for root in (self.root, Path(os.path.realpath(self.root))):
            if path.is_relative_to(root) and path != root:
                found = PurePosixPath(path.relative_to(root))
                if NOT_ORIGINALS.isdisjoint(found.parts):
                    return found
        raise StoreError(
            f'"{shown(written.strip(), _LONGEST_PATH)}" is no original: name one as '
            "list_sources shows it. Nothing was retired.",
            code=StoreCode.BAD_NAME,
        )

    def _entered(self, path: PurePosixPath, root: int, handles: ExitStack) -> int:
        """A handle for the folder that the original lies in; no link is followed on the way."""
        try:
            for part in path.parts[:-1]:
                root = handles.enter_context(open_folder(part, inside=root))
        except FileNotFoundError:
            raise self._missing(path) from None
        except StoreError:
            raise self._unfit(path, "a folder on its way is a link, or none") from None
        return root

    def _check(self, path: PurePosixPath, folder: int) -> os.stat_result:
        """The status of the file. Raises StoreError for what isn't one."""
        try:
            status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            raise self._missing(path) from None
        if stat.S_ISLNK(status.st_mode):
            raise self._unfit(path, "it is a link")
        if stat.S_ISDIR(status.st_mode):
            raise self._unfit(path, "it is a folder: name its files, one a call")
        if not stat.S_ISREG(status.st_mode):
            raise self._unfit(path, "it is no file")
        return status

    def _missing(self, path: PurePosixPath) -> StoreError:
        return StoreError(
            f'There is no "{self.shown(path)}": list_sources shows what is there.',
            code=StoreCode.NOT_FOUND,
        )

    def _unfit(self, path: PurePosixPath, why: str) -> StoreError:
        return StoreError(
            f'"{self.shown(path)}" can\'t be retired: {why}.', code=StoreCode.UNREADABLE
        )


def _free_place(name: str, now: datetime, taken: Collection[str]) -> str:
    """Where a file is kept: when, a number, and as much of the end of its name as fits.

    ``taken`` are the places of others.
    """
    place = None
    while place is None or place in taken:
        start = f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(4)}-"
        kept = name
        while len(os.fsencode(start + kept)) > _MAX_BYTES:
            kept = kept[1:]
        place = f"{RETIRED}/{start}{kept}"
    return place


def _move(name: str, folder: int, place: str, root: int) -> None:
    """Move a file from an open folder to its place, which is free: we hold the lock."""
    if make_folder(RETIRED, inside=root, mode=0o777):
        sync_folder(root)
    with open_folder(RETIRED, inside=root) as retired:
        os.rename(name, PurePosixPath(place).name, src_dir_fd=folder, dst_dir_fd=retired)
        for handle in (retired, folder):
            settle(handle)


def _apart(label: str) -> StoreError:
    return StoreError(
        f'"{label}" lies on another disk than the folder of originals, so it can\'t be moved in one '
        "step: nothing was retired. Tell the person.",
        code=StoreCode.DISK,
    )
