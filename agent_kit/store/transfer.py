"""Pages in and out: from a folder of Markdown, such as an Obsidian vault, and from one store to another."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Final

from agent_kit.store.disk import open_folder, read_file
from agent_kit.store.documents import MAX_NEW_PAGES, DocumentStore, Unusable
from agent_kit.store.errors import StoreError
from agent_kit.store.links import LINK, outside_code
from agent_kit.store.names import PageId, name_key, page_name, shown, slug_from
from agent_kit.store.page import MAX_PAGE, NewPage

__all__ = ["Progress", "Transferred", "copy_pages", "import_folder"]

Progress = Callable[[int, int], object]
"""Called with how many pages are done, and how many there are."""

_SUFFIX: Final = ".md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transferred:
    """The pages that were made, and what was left out and why."""

    made: tuple[PageId, ...]
    left_out: tuple[Unusable, ...]


def copy_pages(
    source: DocumentStore, target: DocumentStore, *, progress: Progress | None = None
) -> Transferred:
    """Copy every page of a store into another, with the text that it has.

    A page that is there already is left out. To export a base give ``MarkdownStore(folder)``.
    """
    ids = source.list().ids

    def pages() -> Iterator[NewPage | Unusable]:
        for known in ids:
            try:
                yield _whole(known, source.read(known).text)
            except StoreError as error:
                yield _left_out(str(known), error)

    return _make(target, pages(), len(ids), progress)


def import_folder(
    store: DocumentStore,
    folder: str | os.PathLike[str],
    *,
    type: str = "note",  # noqa: A002 - the pages' own word
    progress: Progress | None = None,
) -> Transferred:
    """Make a page of each Markdown file in ``folder`` and below, with the text that it has.

    The first folder on the way to a file is its page's type, ``type`` where there is none; its name is
    the slug, changed where it can't be one or is taken. Links that name a file by its name or its path,
    as Obsidian has them, name the page afterwards. Hidden files, links of the file system and what
    isn't UTF-8 are left out. Raises ``OSError`` when the folder can't be read.
    """
    root = Path(folder)
    files = sorted(_files(root))
    ids = _ids_for(files, type)
    places = _places(ids)

    def pages() -> Iterator[NewPage | Unusable]:
        for file in files:
            try:
                text = _text(root, file)
            except (StoreError, OSError, UnicodeError) as error:
                yield _left_out(str(file), error)
            else:
                yield _whole(ids[file], _linked(text, places, file))

    return _make(store, pages(), len(files), progress)


# --- writing --------------------------------------------------------------------------------------


def _make(
    store: DocumentStore,
    pages: Iterable[NewPage | Unusable],
    total: int,
    progress: Progress | None,
) -> Transferred:
    made: list[PageId] = []
    left_out: list[Unusable] = []
    waiting: list[NewPage] = []

    def write() -> None:
        made.extend(_written(store, waiting, left_out))
        waiting.clear()
        if progress is not None:
            progress(len(made) + len(left_out), total)

    for page in pages:
        if isinstance(page, Unusable):
            left_out.append(page)
            continue
        waiting.append(page)
        if len(waiting) == MAX_NEW_PAGES:
            write()
    if waiting or total == len(left_out):
        write()
    return Transferred(made=tuple(made), left_out=tuple(left_out))


def _written(
    store: DocumentStore, pages: Sequence[NewPage], left_out: list[Unusable]
) -> list[PageId]:
    """All at once, or where one of them can't be made one by one."""
    if not pages:
        return []
    try:
        return [page.id for page in store.create(pages)]
    except StoreError as error:
        if len(pages) == 1:
            left_out.append(_left_out(f"{pages[0].type}/{pages[0].slug}", error))
            return []
    return [known for page in pages for known in _written(store, [page], left_out)]


def _whole(known: PageId, text: str) -> NewPage:
    return NewPage(type=known.type, title=known.slug, slug=known.slug, body="", text=text)


def _left_out(name: str, error: Exception) -> Unusable:
    if isinstance(error, UnicodeError):
        return Unusable(name=shown(name), reason="it is not UTF-8 text")
    if isinstance(error, StoreError):
        return Unusable(name=shown(name), reason=str(error))
    return Unusable(name=shown(name), reason="the disk refused")


# --- a folder -------------------------------------------------------------------------------------


def _files(root: Path) -> Iterator[PurePosixPath]:
    def failed(error: OSError) -> None:
        if Path(error.filename or root) == root:
            raise error

    for folder, names, files in os.walk(root, onerror=failed):
        names[:] = [name for name in names if not name.startswith(".")]
        for name in files:
            path = Path(folder, name)
            if name.endswith(_SUFFIX) and not name.startswith(".") and not path.is_symlink():
                yield PurePosixPath(path.relative_to(root).as_posix())


def _text(root: Path, file: PurePosixPath) -> str:
    with open_folder(root / file.parent) as handle:
        return read_file(file.name, inside=handle, limit=MAX_PAGE).data.decode("utf-8")


def _ids_for(files: Sequence[PurePosixPath], type: str) -> dict[PurePosixPath, PageId]:  # noqa: A002
    """An id for each file, no two of them the same to any file system."""
    ids: dict[PurePosixPath, PageId] = {}
    types: dict[str, str] = {}
    taken: set[str] = set()
    for file in files:
        wanted = _name(file.parts[0] if len(file.parts) > 1 else type, "type")
        kind = types.setdefault(name_key(wanted), wanted)
        slug = _name(file.name.removesuffix(_SUFFIX), "slug")
        for number in count(1):
            known = PageId(type=kind, slug=slug if number == 1 else f"{slug}-{number}")
            if (key := name_key(str(known))) not in taken:
                taken.add(key)
                ids[file] = known
                break
    return ids


def _name(text: str, what: str) -> str:
    try:
        return page_name(text.strip(), what)
    except StoreError:
        return slug_from(text)


# --- links ----------------------------------------------------------------------------------------


def _places(ids: Mapping[PurePosixPath, PageId]) -> dict[str, PageId | None]:
    """What a link may name a file by: its path, or its name where no other has it."""
    places: dict[str, PageId | None] = {}
    for file, known in ids.items():
        name = name_key(file.name.removesuffix(_SUFFIX))
        places[name] = None if name in places else known
    for file, known in ids.items():
        if len(file.parts) > 1:
            places[name_key(str(file.with_suffix("")))] = known
    return places


def _linked(text: str, places: Mapping[str, PageId | None], file: PurePosixPath) -> str:
    def named(link: re.Match[str]) -> str:
        target = link["target"].strip()
        key = name_key(target.removesuffix(_SUFFIX))
        known = places.get(name_key(f"{file.parent}/{target}")) or places.get(key)
        if known is None or str(known) == target:
            return link[0]
        words = link["words"] or f"|{target}"
        return f"{link['embed']}[[{known}{link['part'] or ''}{words}]]"

    return outside_code(text, lambda part: LINK.sub(named, part))
