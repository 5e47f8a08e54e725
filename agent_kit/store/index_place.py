"""Where the indexes of pages lie: in the cache folder of the user whose host it is."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from pathlib import Path
from typing import Final

from agent_kit.scope.control import PAGE_INDEXES

__all__ = ["ENDINGS", "NAME", "all_indexes", "index_folder", "made_in"]

NAME: Final = "pages.sqlite"
ENDINGS: Final = ("", "-journal", "-wal", "-shm")  # of the names of SQLite's files

_ROOT: Final = "root"  # the file that says whose the index is


def all_indexes() -> Path:
    """The folder of all indexes of this user. Raises ``OSError`` where there is no cache folder."""
    import platformdirs  # here, not at import: it takes 18 ms

    cache = platformdirs.user_cache_path()
    if not cache.is_absolute():  # nobody's home is known
        raise OSError(f"{cache} is no user's cache folder")
    return cache / PAGE_INDEXES


def index_folder(root: str | Path) -> Path:
    """Where the index of the pages in ``root`` is kept: for each user, and each root, another folder. Raises
    ``OSError`` where there is no cache folder."""
    real = os.path.realpath(root)
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:32]
    return all_indexes() / digest


def made_in(folder: str, root: str) -> str:
    """The path of the index of ``root`` in its folder, which is made. Raises ``OSError`` where a link leads
    away: SQLite would follow it, and what it found there would lose its tables."""
    every = os.path.dirname(folder)
    os.makedirs(every, 0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
        Path(folder, _ROOT).write_bytes(os.fsencode(os.path.realpath(root)))
        _tidy(every)
    path = os.path.join(folder, NAME)
    for each in (folder, *(path + ending for ending in ENDINGS)):
        if os.path.islink(each):
            raise OSError(f"{os.path.basename(each)} is a link")
    return path


def _tidy(every: str) -> None:
    """Remove the indexes of roots that are gone. One that comes back is read anew."""
    with contextlib.suppress(OSError), os.scandir(every) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                root = Path(entry.path, _ROOT).read_bytes()
                if not os.path.lexists(root):
                    shutil.rmtree(entry.path)
