"""What a change makes of a page's bytes, the same in every store; each is checked before it is begun."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime

from agent_kit.store import refusals
from agent_kit.store.documents import MAX_REASON
from agent_kit.store.edit import replaced
from agent_kit.store.fields import with_body, with_fields
from agent_kit.store.names import PageId, page_id, page_name, slug_from
from agent_kit.store.page import (
    NewPage,
    Page,
    check_body,
    check_line,
    encoded,
    page_from_bytes,
    text_of,
)

__all__ = [
    "Making",
    "editing",
    "new_bytes",
    "new_id",
    "retiring",
    "rewriting",
    "superseding",
    "wanted",
]

Making = Callable[[Page, bytes], bytes]
"""The bytes that take the place of a page's. It raises :class:`StoreError` to leave them."""


def wanted(written: str | PageId) -> PageId:
    """The id that was written. Raises :class:`StoreError` for what is none."""
    return written if isinstance(written, PageId) else page_id(written)


def new_id(page: NewPage) -> PageId:
    """The id that a new page gets. Raises :class:`StoreError` for names that can't be."""
    slug = page_name(page.slug.removesuffix(".md")) if page.slug else slug_from(page.title)
    return PageId(type=page_name(page.type, "type"), slug=slug)


def new_bytes(page: NewPage, now: datetime) -> tuple[PageId, bytes]:
    """A new page's id and bytes. Raises :class:`StoreError` for what can't be a page."""
    known = new_id(page)
    return known, encoded(text_of(page, updated=now), f'"{known}"')


def editing(old: str, new: str) -> Making:
    """``new`` in the place of ``old``."""
    return lambda page, data: replaced(page, data, old, new)


def rewriting(name: str, body: str, title: str | None) -> Making:
    """Another body; with today's date, where there is front matter to say it in, and the new title."""
    check_body(body, name)
    if title is not None:
        check_line(title, "title")

    def rewritten(page: Page, data: bytes) -> bytes:
        data = with_body(data, page, body)
        fields: dict[str, str | date] = {} if title is None else {"title": title.strip()}
        now = page_from_bytes(page.id, data, changed=0)
        if now.fields:
            fields["updated"] = datetime.now(UTC).date()
        return with_fields(now, data, fields) if fields else data

    return rewritten


def retiring(reason: str) -> Making:
    """A page that is no longer valid."""
    if reason:
        check_line(reason, "reason", MAX_REASON)
    fields = {"status": "retired"} | ({"reason": reason} if reason else {})
    return lambda page, data: with_fields(_valid(page), data, fields)


def superseding(by: PageId) -> Making:
    """A page whose place another takes."""
    fields = {"status": "superseded", "superseded_by": str(by)}
    return lambda page, data: with_fields(_valid(page), data, fields)


def _valid(page: Page) -> Page:
    """The page, unless it was retired before."""
    if page.is_retired:
        raise refusals.retired_already(page)
    return page
