"""Fields set in a page's front matter; every other byte stays as it was."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date

from agent_kit.store import refusals
from agent_kit.store.page import Page, encoded, exported, front_matter_end, page_from_bytes

__all__ = ["with_body", "with_fields"]

Fields = Mapping[str, str | date]


def with_fields(page: Page, data: bytes, fields: Fields) -> bytes:
    """The page's bytes with these fields set; a page without front matter gets one.

    Raises :class:`StoreError` where the front matter can't be changed without changing more: one that
    is no valid YAML, or whose field stands over several lines.
    """
    if page.fault:
        raise refusals.broken_front_matter(page)
    text = data.decode("utf-8")
    changed = text
    for name, value in fields.items():
        changed = _with_field(changed, name, exported({name: value}))
    done = encoded(changed, f'"{page.id}"')
    after = page_from_bytes(page.id, done, changed=0)
    if after.fields != {**page.fields, **fields} or after.body.lstrip() != page.body.lstrip():
        raise refusals.broken_front_matter(page)
    return done


def _with_field(text: str, name: str, line: str) -> str:
    end = front_matter_end(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    if end is None:
        bom = "\ufeff" if text.startswith("\ufeff") else ""
        return f"{bom}---{newline}{line}{newline}---{newline}{newline}{text.removeprefix(bom)}"
    block, rest = text[:end], text[end:]
    known = re.compile(rf"^{re.escape(name)}[ \t]*:[^\r\n]*", re.MULTILINE)
    if known.search(block):
        return known.sub(lambda _: line, block, count=1) + rest
    return f"{block}{line}{newline}{rest}"


def with_body(data: bytes, page: Page, body: str) -> bytes:
    """The page's bytes with another body. Raises :class:`StoreError` for a body that can't be one."""
    text = data.decode("utf-8")
    head = text[: len(text) - len(page.body)] if page.body else text
    plain = body.replace("\r\n", "\n").strip("\n")
    if "\r\n" in head:
        plain = plain.replace("\n", "\r\n")
    newline = "\r\n" if "\r\n" in head else "\n"
    between = newline if front_matter_end(text) is not None else ""
    return encoded(f"{head}{between}{plain}{newline}", f'"{page.id}"')
