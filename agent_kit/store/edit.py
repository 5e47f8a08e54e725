"""One exact change in a page's bytes; every other byte stays as it was."""

from __future__ import annotations

import re

from agent_kit.store import refusals
from agent_kit.store.page import Page, encoded, page_from_bytes

__all__ = ["replaced"]


def replaced(page: Page, data: bytes, old: str, new: str) -> bytes:
    """The page's bytes with the one occurrence of ``old`` changed to ``new``.

    Where the page has Windows line ends, both may be given with plain ones. Raises
    :class:`StoreError` when ``old`` doesn't stand exactly once (overlaps count), when the result
    is too large or not a text, and when the page would lose its front matter.
    """
    text = data.decode("utf-8")
    if "\r\n" in text and old not in text:
        old, new = _as_written(page, text, old), _windows_ends(new)
    needle, patch = encoded(old, "The old text"), encoded(new, "The new text")
    count = _count(data, needle)
    if count != 1:
        raise refusals.not_once(page, count)
    at = data.index(needle)
    changed = data[:at] + patch + data[at + len(needle) :]
    encoded(changed.decode("utf-8"), f'"{page.id}"')
    if page.fields and not page_from_bytes(page.id, changed, changed=0).fields:
        raise refusals.breaks_front_matter(page)
    return changed


def _as_written(page: Page, text: str, old: str) -> str:
    """``old`` with the line ends that it has in the page, where they are of both kinds."""
    lines = old.replace("\r\n", "\n").split("\n")
    pattern = r"\r?\n".join(map(re.escape, lines))
    found = re.findall(f"(?=({pattern}))", text) if old else []
    if len(found) > 1:
        raise refusals.not_once(page, len(found))
    return str(found[0]) if found else _windows_ends(old)


def _windows_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _count(data: bytes, needle: bytes) -> int:
    """How often the needle stands in the data, overlaps included, counted up to two."""
    first = data.find(needle) if needle else -1
    if first < 0:
        return 0
    return 1 if data.find(needle, first + 1) < 0 else 2
