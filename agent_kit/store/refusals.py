"""Every refusal of a page store, in one place: what is wrong, and what to do next."""

from __future__ import annotations

from agent_kit.store.errors import StoreCode, StoreError
from agent_kit.store.names import PageId, shown
from agent_kit.store.page import Page

__all__ = [
    "breaks_front_matter",
    "broken_front_matter",
    "denied",
    "not_found",
    "not_once",
    "retired_already",
    "stale",
    "steers",
    "taken",
    "too_many",
    "type_spelled",
]


def not_found(wanted: PageId, fitting: tuple[PageId, ...] = ()) -> StoreError:
    """No page has the id, or several differ from it only in case or Unicode form."""
    if fitting:
        names = ", ".join(f'"{found}"' for found in fitting)
        message = f'"{wanted}" fits more than one page: write one of {names} exactly.'
    else:
        message = f'There is no page "{wanted}": find its id first.'
    return StoreError(message, code=StoreCode.NOT_FOUND)


def taken(existing: PageId) -> StoreError:
    """A new page's name is in use, perhaps in another case or form."""
    return StoreError(
        f'"{existing}" exists already: nothing was written. Read and edit it, or choose another '
        "slug for the new page.",
        code=StoreCode.EXISTS,
    )


def type_spelled(new: str, existing: str) -> StoreError:
    """A new type differs from one that exists only in case or Unicode form."""
    return StoreError(
        f'The type "{new}" exists as "{shown(existing)}": nothing was written. Spell it so.',
        code=StoreCode.EXISTS,
    )


def denied(wanted: PageId) -> StoreError:
    """The session's denied paths close the name."""
    return StoreError(
        f'"{wanted}" is off limits: nothing was written. Choose another type or slug.',
        code=StoreCode.DENIED,
    )


def steers(existing: PageId) -> StoreError:
    """The page's file has the name of a control file: somebody else put it there."""
    return StoreError(
        f'"{existing}" can\'t be changed: a later session would read its file as instructions. '
        "Make a page of another name, and tell the person.",
        code=StoreCode.DENIED,
    )


def too_many(limit: int) -> StoreError:
    """No page was given, or more than one call makes."""
    return StoreError(f"Give 1 to {limit} pages at once.", code=StoreCode.TOO_LARGE)


def stale(page: Page) -> StoreError:
    """The edit started from a version that is no longer on the disk."""
    return StoreError(
        f'"{page.id}" was changed since that version: nothing was written. Its version is now '
        f"{page.version}; start again from the current text.",
        code=StoreCode.STALE,
        current=page,
    )


def not_once(page: Page, count: int) -> StoreError:
    """The text to replace stands nowhere, or in more than one place."""
    found = "doesn't stand in" if count == 0 else "stands more than once in"
    hint = "copy it exactly from the page" if count == 0 else "give more of the text around it"
    return StoreError(
        f'The old text {found} "{page.id}": nothing was changed; {hint}.',
        code=StoreCode.NOT_ONCE,
    )


def breaks_front_matter(page: Page) -> StoreError:
    """The page had fields, and would have none after the edit."""
    return StoreError(
        f'This edit would break the front matter of "{page.id}" (the fields between the two --- '
        "lines): nothing was changed. Give new text that keeps it valid YAML.",
        code=StoreCode.BAD_TEXT,
    )


def broken_front_matter(page: Page) -> StoreError:
    """A field has to be set where that can't be done without touching others."""
    return StoreError(
        f'The front matter of "{page.id}" (the fields between the two --- lines) can\'t be changed '
        "safely: nothing was written. Mend it with an edit first, so that each field is one line of "
        "valid YAML.",
        code=StoreCode.BAD_TEXT,
    )


def retired_already(page: Page) -> StoreError:
    """The page is no longer valid, and nothing takes its place a second time."""
    return StoreError(
        f'"{page.id}" is {page.fields.get("status")} already: nothing was changed. Read it to see why.',
        code=StoreCode.RETIRED,
    )
