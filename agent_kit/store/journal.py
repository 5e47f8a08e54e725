"""Several files, all or none, also when the process is killed between two of them.

The files are staged and synced first. Then one journal file in the root says which staged file
gets which name, and only then do they get their names. A process that dies before the journal is
there has written nothing; one that dies later is finished by :func:`recover`, which whoever takes
the folder's lock next calls. Everything here runs under that lock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, fields

from agent_kit.store.disk import (
    is_staged,
    make_folder,
    open_folder,
    publish_new,
    publish_over,
    read_file,
    remove_empty,
    remove_file,
    replace_file,
    settle,
    stage,
    sync_folder,
)
from agent_kit.store.errors import StoreCode, StoreError
from agent_kit.store.names import is_control_name, page_id
from agent_kit.store.page import version_of

__all__ = ["JOURNAL_NAME", "NewFile", "recover", "write_all"]

JOURNAL_NAME = ".agent-kit.pending"
"""The file in the root that names what is staged and not yet in place."""

MAX_OVER = 16_000_000
"""Most bytes of a file whose place another takes."""

_MAX_JOURNAL = 4_000_000  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file's folder in the root, its name, its bytes.

    ``over`` is the version of the bytes whose place it takes, with the permissions ``mode``; ``""``:
    nothing has the name yet.
    """

    folder: str
    name: str
    data: bytes
    over: str = ""
    mode: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Staged:
    folder: str
    temp: str
    name: str
    over: str = ""


def write_all(files: Sequence[NewFile], *, root: int, private: bool) -> None:
    """Write the files, all or none. ``root`` is the root's handle; ``private`` keeps others out.

    Raises ``FileExistsError`` when a single file's name was taken meanwhile, ``OSError`` when
    nothing was written, and :class:`StoreError` (``UNFINISHED``) when all is safe on the disk but
    not yet in place.
    """
    with ExitStack() as handles, ExitStack() as undo:
        folders = _open_folders(files, root=root, private=private, handles=handles, undo=undo)
        staged = tuple(_stage(file, folders[file.folder], private, undo) for file in files)
        if len(staged) == 1:  # and no other one's place is taken
            publish_new(staged[0].temp, staged[0].name, inside=folders[staged[0].folder])
        else:
            for folder in folders.values():
                sync_folder(folder)  # the journal must not outlive the names that it holds
            _commit(staged, root=root, private=private)
        undo.pop_all()  # they are there now: nothing is taken back
        if len(staged) == 1:
            settle(folders[staged[0].folder])
            return
    _finish(staged, root=root)


def _open_folders(
    files: Sequence[NewFile], *, root: int, private: bool, handles: ExitStack, undo: ExitStack
) -> dict[str, int]:
    opened: dict[str, int] = {}
    for folder in dict.fromkeys(file.folder for file in files):
        if make_folder(folder, inside=root, mode=0o700 if private else 0o777):
            undo.callback(remove_empty, folder, inside=root)
            sync_folder(root)
        opened[folder] = handles.enter_context(open_folder(folder, inside=root))
    return opened


def _stage(file: NewFile, handle: int, private: bool, undo: ExitStack) -> _Staged:
    usual = 0o600 if private else 0o666
    mode = usual if file.mode is None else file.mode
    temp = stage(file.data, inside=handle, mode=mode, exact_mode=file.mode is not None)
    undo.callback(remove_file, temp, inside=handle)
    return _Staged(folder=file.folder, temp=temp, name=file.name, over=file.over)


def _commit(staged: Sequence[_Staged], *, root: int, private: bool) -> None:
    """The point of no return: from here on all the files will be there."""
    text = json.dumps([asdict(entry) for entry in staged])
    mode = 0o600 if private else 0o666
    replace_file(JOURNAL_NAME, text.encode("ascii"), inside=root, mode=mode)


def _finish(staged: Sequence[_Staged], *, root: int) -> None:
    try:
        for entry in staged:
            _put_in_place(entry, root=root)
        _forget_journal(root)
    except (OSError, StoreError) as error:
        raise StoreError(
            "The pages are safe on the disk but not all in place yet. List again before you "
            "write them once more: the next call finishes the work.",
            code=StoreCode.UNFINISHED,
        ) from error


def _put_in_place(entry: _Staged, *, root: int) -> None:
    """Give one staged file its name. It is no fault when that was done before."""
    with open_folder(entry.folder, inside=root) as handle:
        try:
            if entry.over:
                _put_over(entry, handle)
            else:
                publish_new(entry.temp, entry.name, inside=handle)
        except FileNotFoundError:
            pass
        except FileExistsError:
            remove_file(entry.temp, inside=handle)
        sync_folder(handle)


def _put_over(entry: _Staged, handle: int) -> None:
    """Unless somebody has changed the file since the journal was written."""
    try:
        now = version_of(read_file(entry.name, inside=handle, limit=MAX_OVER).data)
    except StoreError:
        now = ""
    if now == entry.over:
        publish_over(entry.temp, entry.name, inside=handle)
    else:
        remove_file(entry.temp, inside=handle)


def _forget_journal(root: int) -> None:
    remove_file(JOURNAL_NAME, inside=root)
    sync_folder(root)


def recover(root: int) -> None:
    """Finish what a killed process had committed and remove what it hadn't."""
    for entry in _read_journal(root):
        with suppress(FileNotFoundError, StoreError):
            _put_in_place(entry, root=root)
    _forget_journal(root)
    _sweep(root)


def _read_journal(root: int) -> tuple[_Staged, ...]:
    """The journal's entries; none when there is no journal or it isn't one of ours."""
    try:
        data = read_file(JOURNAL_NAME, inside=root, limit=_MAX_JOURNAL).data
        entries = json.loads(data)
    except (FileNotFoundError, StoreError, ValueError, RecursionError):
        return ()
    return tuple(_Staged(**entry) for entry in entries) if _is_ours(entries) else ()


def _is_ours(entries: object) -> bool:
    names = {field.name for field in fields(_Staged)}
    return isinstance(entries, list) and all(
        isinstance(entry, dict)
        and entry.keys() == names
        and all(_is_component(entry[part]) for part in ("folder", "temp", "name"))
        and isinstance(entry["over"], str)
        and is_staged(entry["temp"])
        and _is_page(entry["folder"], entry["name"])
        for entry in entries
    )


def _is_page(folder: str, name: str) -> bool:
    """Whether a page may have the name. A file that steers later sessions is none."""
    if not name.endswith(".md") or is_control_name(folder) or is_control_name(name):
        return False
    try:
        page_id(f"{folder}/{name}")
    except StoreError:
        return False
    return True


def _is_component(part: object) -> bool:
    return isinstance(part, str) and part not in ("", ".", "..") and not set("/\0") & set(part)


def _sweep(root: int) -> None:
    """Remove the unfinished files of killed processes. No live one has any: we hold the lock."""
    _sweep_folder(root)
    with os.scandir(root) as entries:
        folders = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    for folder in folders:
        with suppress(OSError, StoreError), open_folder(folder, inside=root) as handle:
            _sweep_folder(handle)


def _sweep_folder(handle: int) -> None:
    with os.scandir(handle) as entries:
        left_over = [entry.name for entry in entries if is_staged(entry.name)]
    for name in left_over:
        with suppress(OSError):
            remove_file(name, inside=handle)
