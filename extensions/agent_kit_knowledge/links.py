"""What is wrong with the links of a base."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent_kit.store import DocumentStore, Page, PageId, StoreError, page_id
from agent_kit.store.links import links_of
from agent_kit.store.names import name_key

__all__ = ["Checked", "check"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What is wrong with the links of a base; ids in order.

    ``broken``: a page, and the target that isn't there. ``to_retired``: a page, and the page that is
    no longer valid. ``orphans``: pages to which no other leads. ``pages`` is how many were looked at.
    """

    broken: Sequence[tuple[PageId, str]]
    to_retired: Sequence[tuple[PageId, PageId]]
    orphans: Sequence[PageId]
    pages: int


def check(store: DocumentStore) -> Checked:
    """Look at every link of every page. Pages that are retired are looked at as targets alone."""
    pages = list(_pages(store))
    known = {name_key(str(page.id)): page for page in pages}
    valid = [page for page in pages if not page.is_retired]
    broken: list[tuple[PageId, str]] = []
    to_retired: list[tuple[PageId, PageId]] = []
    led_to: set[PageId] = set()
    for page in valid:
        for target in links_of(page.body):
            found = known.get(_key(target))
            if found is None:
                broken.append((page.id, target))
            elif found.is_retired:
                to_retired.append((page.id, found.id))
            elif found.id != page.id:
                led_to.add(found.id)
    orphans = [page.id for page in valid if page.id not in led_to]
    return Checked(broken=broken, to_retired=to_retired, orphans=orphans, pages=len(pages))


def _pages(store: DocumentStore) -> Iterator[Page]:
    """Those that can be read. One that was removed meanwhile is none."""
    for known in store.list().ids:
        try:
            yield store.read(known)
        except StoreError:
            continue


def _key(target: str) -> str:
    try:
        return name_key(str(page_id(target)))
    except StoreError:
        return ""
