"""What the ``knowledge_*`` tools answer: text for a model, bounded, with the way to the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from agent_kit.store import (
    Change,
    DocumentStore,
    Hit,
    NewPage,
    Page,
    PageId,
    StoreCode,
    StoreError,
    Unusable,
    cut,
    fill,
    shown,
)
from agent_kit.store.tools import whole_number
from agent_kit_knowledge.links import check as check_links

__all__ = [
    "check",
    "create",
    "edit",
    "index",
    "log",
    "new_page",
    "read",
    "retire",
    "rewrite",
    "search",
    "supersede",
]

_LISTED = 200  # pages in one answer
_HITS = 20
_NAMED = 10  # unusable files that are named in one answer

Arguments = Mapping[str, Any]


def index(store: DocumentStore, arguments: Arguments) -> tuple[str, ...]:
    """The pages of the base, ordered by id."""
    offset = whole_number(arguments, "offset", 0)
    listing = store.list(type=arguments.get("type"))
    chosen = listing.ids[offset : offset + _LISTED]
    lines, _ = fill(_lines(store, chosen))
    head = _span("page", "", offset, len(lines), len(listing.ids))
    return ("\n".join([head, *lines, *_unusable(listing.unusable)]),)


def _lines(store: DocumentStore, ids: Sequence[PageId]) -> Iterator[str]:
    for known in ids:
        try:
            page = store.read(known)
        except StoreError as error:
            yield str(error)
        else:
            yield _line(page)


def _line(page: Page) -> str:
    changed = f"{page.changed:%Y-%m-%d %H:%M} UTC"
    line = f"{page.id} | {page.title} | {len(page.text)} characters | {changed}"
    return f"{line} | {page.fields['status']}" if page.is_retired else line


def search(store: DocumentStore, arguments: Arguments) -> tuple[str, ...]:
    """The pages that hold the words, best first."""
    query, offset = str(arguments["query"]), whole_number(arguments, "offset", 0)
    if not query.strip():
        return ("Nothing was searched: give one or more words.",)
    found = store.search(
        query,
        type=arguments.get("type"),
        retired=bool(arguments.get("retired", False)),
        offset=offset,
        limit=_HITS,
    )
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


def read(store: DocumentStore, arguments: Arguments) -> tuple[str, ...]:
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


def create(store: DocumentStore, arguments: Arguments) -> tuple[str, ...]:
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


def edit(store: DocumentStore, arguments: Arguments) -> tuple[str, ...]:
    """One exact change; when the page is newer than the version, its current text instead."""
    with _current_text():
        page = store.edit(
            arguments["id"],
            version=arguments["version"],
            old=arguments["old_text"],
            new=arguments["new_text"],
        )
    return _changed(page, "The page was changed.")


def rewrite(store: DocumentStore, arguments: Arguments) -> tuple[str, ...]:
    """Another body, and title."""
    with _current_text():
        page = store.rewrite(
            arguments["id"],
            version=arguments["version"],
            body=arguments["body"],
            title=arguments.get("title") or None,
        )
    return _changed(page, "The page was rewritten.")


def retire(store: DocumentStore, arguments: Arguments) -> tuple[str, ...]:
    """A page that is no longer valid."""
    with _current_text():
        page = store.retire(
            arguments["id"],
            version=arguments["version"],
            reason=" ".join(str(arguments["reason"]).split()),
        )
    return _changed(page, "The page is retired: it can be read, and is found no more.")


def supersede(store: DocumentStore, arguments: Arguments) -> tuple[str, ...]:
    """A page whose place another takes."""
    with _current_text():
        old, new = store.supersede(
            arguments["id"], version=arguments["version"], by=new_page(arguments["page"])
        )
    made = f"id: {new.id} | version: {new.version}"
    return (f"{made}\nIt takes the place of {old.id}, which says so and is found no more.",)


def log(store: DocumentStore, arguments: Arguments) -> tuple[str, ...]:
    """The last changes of the base, or of one page."""
    offset = whole_number(arguments, "offset", 0)
    told = store.history(arguments.get("id") or None, offset=offset, limit=_LISTED)
    lines, _ = fill(map(_change, told.changes))
    return ("\n".join([_span("change", "", offset, len(lines), told.total), *lines]),)


def _change(change: Change) -> str:
    by = f" | {shown(change.by)}" if change.by else ""
    return f"{change.when:%Y-%m-%d %H:%M} UTC | {change.kind} | {change.id} | {change.version}{by}"


def check(store: DocumentStore, arguments: Arguments) -> tuple[str, ...]:
    """Links that lead nowhere or to what is no longer valid, and pages that nothing leads to."""
    offset = whole_number(arguments, "offset", 0)
    checked = check_links(store)
    found = [
        *(f"{page}: [[{shown(target)}]] leads nowhere" for page, target in checked.broken),
        *(f"{page}: [[{target}]] is no longer valid" for page, target in checked.to_retired),
        *(f"{page}: no page leads to it" for page in checked.orphans),
    ]
    lines, _ = fill(found[offset : offset + _LISTED])
    head = (
        f"{checked.pages} pages looked at. {_span('finding', '', offset, len(lines), len(found))}"
    )
    return ("\n".join([head, *lines]),)


def _changed(page: Page, sentence: str) -> tuple[str, ...]:
    return (f"id: {page.id} | version: {page.version}\n{sentence}",)


@contextmanager
def _current_text() -> Iterator[None]:
    """A change that started from an older version gets the page as it is now."""
    try:
        yield
    except StoreError as error:
        if error.code is StoreCode.STALE and isinstance(error.current, Page):
            details = _shown(error.current, 0)
            raise StoreError(str(error), code=error.code, details=details) from None
        raise
