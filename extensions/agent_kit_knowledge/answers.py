"""What the ``knowledge_*`` tools answer: text for a model, bounded, with the way to the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_kit.store import (
    Hit,
    MarkdownStore,
    NewPage,
    Page,
    PageId,
    StoreCode,
    StoreError,
    Unusable,
    cut,
    fill,
)
from agent_kit.store.tools import whole_number

__all__ = ["create", "edit", "index", "new_page", "read", "search"]

_LISTED = 200  # pages in one answer
_HITS = 20
_NAMED = 10  # unusable files that are named in one answer

Arguments = Mapping[str, Any]


def index(store: MarkdownStore, arguments: Arguments) -> tuple[str, ...]:
    """The pages of the base, ordered by id."""
    offset = whole_number(arguments, "offset", 0)
    listing = store.list(type=arguments.get("type"))
    chosen = listing.ids[offset : offset + _LISTED]
    lines, _ = fill(_lines(store, chosen))
    head = _span("page", "", offset, len(lines), len(listing.ids))
    return ("\n".join([head, *lines, *_unusable(listing.unusable)]),)


def _lines(store: MarkdownStore, ids: Sequence[PageId]) -> Iterator[str]:
    for known in ids:
        try:
            page = store.read(known)
        except StoreError as error:
            yield str(error)
        else:
            yield _line(page)


def _line(page: Page) -> str:
    changed = f"{page.changed:%Y-%m-%d %H:%M} UTC"
    return f"{page.id} | {page.title} | {len(page.text)} characters | {changed}"


def search(store: MarkdownStore, arguments: Arguments) -> tuple[str, ...]:
    """The pages that hold the words, best first."""
    query, offset = str(arguments["query"]), whole_number(arguments, "offset", 0)
    if not query.strip():
        return ("Nothing was searched: give one or more words.",)
    found = store.search(query, type=arguments.get("type"), offset=offset, limit=_HITS)
    lines, _ = fill(map(_hit, found.hits))
    head = _span("page", " found", offset, len(lines), found.total)
    return ("\n".join([head, *lines, *_unusable(found.unusable)]),)


def _hit(hit: Hit) -> str:
    return f"{hit.id} | {hit.title}\n    {hit.snippet}"


def _span(what: str, found: str, offset: int, shown: int, total: int) -> str:
    counted = f"{total} {what}{'' if total == 1 else 's'}{found}"
    if not shown:
        return f"{counted}." + (" Use a smaller offset." if total else "")
    after = offset + shown
    rest = f" More follow: call again with offset {after}." if after < total else ""
    return f"{counted}, {offset + 1} to {after} shown.{rest}"


def _unusable(files: Sequence[Unusable]) -> Iterator[str]:
    for file in files[:_NAMED]:
        yield f"Not a page: {file.name} ({file.reason.rstrip('.')})"
    if len(files) > _NAMED:
        yield f"Not pages: {len(files) - _NAMED} more files"


def read(store: MarkdownStore, arguments: Arguments) -> tuple[str, ...]:
    """One page as it is on the disk, from an offset."""
    page = store.read(arguments["id"])
    return _shown(page, whole_number(arguments, "offset", 0))


def _shown(page: Page, offset: int) -> tuple[str, ...]:
    """A heading block, then a block with the page's text and nothing else."""
    part = cut(page.text, offset)
    head = [f"id: {page.id}", f"version: {page.version}"]
    if page.fault:
        head.append(f"The block at its top is no front matter: {page.fault}.")
    end = offset + len(part.text)
    head.append(f"Characters {offset} to {end} of {len(page.text)} follow.")
    if part.next_offset is not None:
        head.append(f"For the rest call again with offset {part.next_offset}.")
    return ("\n".join(head), part.text)


def create(store: MarkdownStore, arguments: Arguments) -> tuple[str, ...]:
    """New pages, all or none."""
    made = store.create([new_page(item) for item in arguments["pages"]])
    lines = [f"id: {page.id} | version: {page.version}" for page in made]
    return ("\n".join(["Made:", *lines]),)


def new_page(item: Mapping[str, Any]) -> NewPage:
    """The page that one item of ``pages`` describes."""
    return NewPage(
        type=item["type"],
        title=item["title"],
        body=item["body"],
        slug=item.get("slug") or None,
        aliases=tuple(item.get("aliases", ())),
    )


def edit(store: MarkdownStore, arguments: Arguments) -> tuple[str, ...]:
    """One exact change; when the page is newer than the version, its current text instead."""
    try:
        page = store.edit(
            arguments["id"],
            version=arguments["version"],
            old=arguments["old_text"],
            new=arguments["new_text"],
        )
    except StoreError as error:
        if error.code is StoreCode.STALE and isinstance(error.current, Page):
            details = _shown(error.current, 0)
            raise StoreError(str(error), code=error.code, details=details) from None
        raise
    return (f"id: {page.id} | version: {page.version}\nThe page was changed.",)
