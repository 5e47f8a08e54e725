"""Which pages a folder holds, and where each one lies.

Names that come from outside are compared with what the folder lists, or tried as single
components of an open folder: no text is ever joined into a path that could leave it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from agent_kit.store import refusals
from agent_kit.store.disk import FileBytes, open_folder, read_file
from agent_kit.store.documents import Unusable
from agent_kit.store.errors import StoreError
from agent_kit.store.journal import NewFile
from agent_kit.store.names import PageId, name_key, page_id, shown
from agent_kit.store.page import Page, page_from_bytes

__all__ = [
    "MAX_FILE",
    "NO_ID",
    "SUFFIX",
    "Permits",
    "Place",
    "Scan",
    "check_free",
    "find",
    "id_at",
    "id_of",
    "lets_all",
    "load",
    "narrowing",
    "reason_of",
    "scan",
]

MAX_FILE = 16_000_000
"""Most bytes of a file that is read as a page. A page that is written may have fewer."""

SUFFIX = ".md"

NO_ID = "its name can't be an id"
"""Why a file is no page whose folder or name no id could have."""

Permits = Callable[[Path], bool]
"""Whether the session may see and write the file with this absolute path.

It may have an attribute ``narrows``, a function without arguments: where that says ``False`` every page is
let through for now, and it isn't asked about each.
"""


def lets_all(_path: Path, /) -> bool:
    """Every page is let through."""
    return True


def narrowing(permits: Permits) -> bool:
    """Whether it may refuse a page: where it can't, what a search finds isn't asked about one by one."""
    if permits is lets_all:
        return False
    narrows: Callable[[], bool] | None = getattr(permits, "narrows", None)
    return narrows is None or narrows()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a page lies: the names as the disk spells them, which may be in another form."""

    id: PageId
    folder: str
    file: str


@dataclass(slots=True, kw_only=True)
class Scan:
    """What a folder holds: its types as they are spelled, its pages, and what is no page."""

    types: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    others: list[tuple[str, str]] = field(default_factory=list)  # path in the root, and why not

    def of_type(self, type: str | None) -> list[Place]:  # noqa: A002 - the pages' own word
        """The pages of one type (case and form aside) or of all, ordered by id."""
        wanted = None if type is None else name_key(type)
        chosen = (p for p in self.places if wanted is None or name_key(p.id.type) == wanted)
        return sorted(chosen, key=lambda place: str(place.id))

    def unusable(self, path: Path, permits: Permits) -> tuple[Unusable, ...]:
        """What is served as no page, of what ``permits`` lets through; ``path`` as for :meth:`seen`."""
        return tuple(
            Unusable(name=shown(name), reason=reason)
            for name, reason in self.others
            if permits(path / name)
        )

    def skip(self, name: str, reason: str) -> None:
        """Name what is served as no page, by its path in the root."""
        self.others.append((name, reason))

    def seen(self, path: Path, permits: Permits) -> Scan:
        """The pages that ``permits`` lets through. ``path`` is the root's absolute path."""
        places = [place for place in self.places if permits(path / place.folder / place.file)]
        return Scan(types=self.types, places=places, others=self.others)


def scan(root: int) -> Scan:
    """List the root. Hidden names are left out."""
    found = Scan()
    for entry in _visible(root):
        if entry.is_dir(follow_symlinks=False):
            found.types.append(entry.name)
            _scan_type(root, entry.name, found=found)
        elif entry.name.endswith(SUFFIX):
            found.skip(entry.name, "it is in no type's folder")
        elif entry.is_symlink():
            found.skip(entry.name, "it is a link")
    return found


def _scan_type(root: int, folder: str, *, found: Scan, only: str | None = None) -> None:
    """Sort in what a folder holds, or ``only`` what has this key."""
    try:
        with open_folder(folder, inside=root) as handle:
            entries = [
                (entry.name, _why_not(entry))
                for entry in _visible(handle)
                if only is None or name_key(entry.name) == only
            ]
    except (StoreError, OSError) as error:
        found.skip(folder, reason_of(error))
        return
    for name, reason in entries:
        if name.endswith(SUFFIX):
            _sort_in(folder, name, reason, found)


def _sort_in(folder: str, file: str, reason: str, found: Scan) -> None:
    known = id_at(folder, file)
    if known is None:
        found.skip(f"{folder}/{file}", NO_ID)
        return
    if reason:
        found.skip(f"{folder}/{file}", reason)
    else:
        found.places.append(Place(id=known, folder=folder, file=file))


@lru_cache(maxsize=200_000)  # a name is looked at in every list
def id_at(folder: str, file: str) -> PageId | None:
    """The id of a page in this file; ``None``: it can't be one's."""
    try:
        return page_id(f"{folder}/{file}")
    except StoreError:
        return None


def _visible(handle: int) -> list[os.DirEntry[str]]:
    with os.scandir(handle) as entries:
        return sorted((e for e in entries if not e.name.startswith(".")), key=lambda e: e.name)


def _why_not(entry: os.DirEntry[str]) -> str:
    """Why this entry is no page, or nothing."""
    if entry.is_symlink():
        return "it is a link"
    return "" if entry.is_file(follow_symlinks=False) else "it is no regular file"


def reason_of(error: Exception) -> str:
    """Why a file is served as no page, as the end of a sentence."""
    return str(error).split(": ", 1)[-1] if isinstance(error, StoreError) else "the disk refused"


def find(root: int, wanted: PageId, *, path: Path, permits: Permits) -> Place:
    """Where the page lies: under its exact name, or else under the only one that fits.

    Raises :class:`StoreError` when no page fits, or several do.
    """
    exact = Place(id=wanted, folder=wanted.type, file=wanted.slug + SUFFIX)
    if _lies_at(exact, root=root) and permits(path / exact.folder / exact.file):
        return exact
    alike = _alike(wanted, root=root, spelled=_types(root))
    fitting = [place for place in alike if permits(path / place.folder / place.file)]
    same = [place for place in fitting if place.id == wanted]
    if len(same or fitting) != 1:
        raise refusals.not_found(wanted, tuple(place.id for place in fitting))
    return (same or fitting)[0]


def _types(root: int) -> list[str]:
    return [entry.name for entry in _visible(root) if entry.is_dir(follow_symlinks=False)]


def _alike(wanted: PageId, *, root: int, spelled: Sequence[str]) -> list[Place]:
    """The pages whose id is ``wanted``, case and form aside; ``spelled`` are the folders of the root."""
    kind, key, found = name_key(wanted.type), name_key(wanted.slug + SUFFIX), Scan()
    for folder in spelled:
        if name_key(folder.lstrip()) == kind:
            _scan_type(root, folder, found=found, only=key)
    return found.places


def _lies_at(place: Place, *, root: int) -> bool:
    try:
        with open_folder(place.folder, inside=root) as folder:
            os.stat(place.file, dir_fd=folder, follow_symlinks=False)
    except (OSError, StoreError):
        return False
    return True


def load(place: Place, *, root: int) -> tuple[Page, FileBytes]:
    """The page at a place, and its bytes. Raises :class:`StoreError` when it can't be read."""
    try:
        with open_folder(place.folder, inside=root) as folder:
            file = read_file(place.file, inside=folder, limit=MAX_FILE)
    except FileNotFoundError:
        raise refusals.not_found(place.id) from None
    except StoreError as error:
        raise StoreError(
            f'"{place.id}" can\'t be read: {reason_of(error)}', code=error.code
        ) from None
    return page_from_bytes(place.id, file.data, changed=file.changed), file


def id_of(file: NewFile) -> PageId:
    """The id that a new file's page gets."""
    return PageId(type=file.folder, slug=file.name.removesuffix(SUFFIX))


def check_free(files: Sequence[NewFile], *, root: int, path: Path, permits: Permits) -> None:
    """Check that no page has one of the names, nor two of the new ones the same.

    Raises :class:`StoreError`. Case and Unicode form don't make a name another one.
    """
    types = _types(root)
    spelled = {name_key(name): name for name in types}
    taken: dict[str, PageId] = {}
    for file in files:
        new = id_of(file)
        existing = spelled.setdefault(name_key(new.type), new.type)
        if existing != new.type:
            raise refusals.type_spelled(new.type, existing)
        if not permits(path / file.folder / file.name):
            raise refusals.denied(new)
        key = name_key(str(new))
        for place in _alike(new, root=root, spelled=types):
            if permits(path / place.folder / place.file):
                taken.setdefault(key, place.id)
        if key in taken or _is_there(file, root=root):
            raise refusals.taken(taken.get(key, new))
        taken[key] = new


def _is_there(file: NewFile, *, root: int) -> bool:
    """Whether anything at all has the file's name: a link or an unreadable page counts."""
    key = name_key(file.name)
    try:
        with open_folder(file.folder, inside=root) as folder:
            return any(name_key(name) == key for name in os.listdir(folder))
    except FileNotFoundError:
        return False
