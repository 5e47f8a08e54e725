"""One page: Markdown with YAML front matter, byte for byte as it is on the disk.

Front matter that isn't a YAML mapping is plain text: such a page is served, never dropped.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

from agent_kit.store.errors import StoreCode, StoreError
from agent_kit.store.names import PageId, shown

__all__ = [
    "MAX_PAGE",
    "MAX_TITLE",
    "RETIRED",
    "NewPage",
    "Page",
    "check_body",
    "check_line",
    "encoded",
    "exported",
    "front_matter_end",
    "page_from_bytes",
    "text_of",
    "version_of",
]

MAX_PAGE = 1_000_000
"""Most bytes of UTF-8 that a page may have when it is written."""

MAX_TITLE = 200
"""Longest title and alias, in characters."""

RETIRED = ("retired", "superseded")
"""What the field ``status`` says of a page that is no longer valid."""

_MAX_FRONT_MATTER = 65_536  # characters
_FENCED = re.compile(
    r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_BOM = "\ufeff"
_NO_FIELDS: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPage:
    """A page to be made. Without ``slug`` the title gives it. ``fields`` are scalars.

    ``text`` is all of the page as it is to be kept, front matter included; the title then gives no more
    than the slug, and body, aliases and fields count for nothing.
    """

    type: str
    title: str
    body: str
    slug: str | None = None
    aliases: tuple[str, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page as it was read.

    ``text`` is all of it, front matter included, line ends as on the disk; ``body`` is what
    follows the front matter. ``version`` is a digest of the bytes. ``changed`` is the file's time.
    ``fault`` says why a block that looks like front matter was taken as plain text.
    """

    id: PageId
    title: str
    text: str
    body: str
    version: str
    changed: datetime
    fields: Mapping[str, object]
    fault: str | None = None

    @property
    def aliases(self) -> tuple[str, ...]:
        """The page's other names, as its front matter gives them."""
        given = self.fields.get("aliases")
        items = given if isinstance(given, list) else [given]
        return tuple(_one_line(item) for item in items if isinstance(item, str))

    @property
    def is_retired(self) -> bool:
        """Whether its front matter says that it is no longer valid."""
        return self.fields.get("status") in RETIRED

    @property
    def values(self) -> tuple[str, ...]:
        """The texts in the front matter, without the fields' names; for a search."""
        lists = (value if isinstance(value, list) else [value] for value in self.fields.values())
        return tuple(item for items in lists for item in items if isinstance(item, str))


def version_of(data: bytes) -> str:
    """The version of a page with these bytes: 16 hexadecimal characters."""
    return hashlib.sha256(data).hexdigest()[:16]


def page_from_bytes(page_id: PageId, data: bytes, *, changed: float) -> Page:
    """The page that a file holds. ``changed`` is in seconds since the epoch.

    Raises :class:`StoreError` when the bytes are not UTF-8.
    """
    try:
        text = data.decode("utf-8").removeprefix(_BOM)
    except UnicodeDecodeError:
        raise StoreError(
            f'"{page_id}" can\'t be read: it is not UTF-8 text.', code=StoreCode.UNREADABLE
        ) from None
    block, body = _split(text)
    fields, fault = _front_matter(block)
    if fault:
        body = text
    return Page(
        id=page_id,
        title=_title(fields, body) or page_id.slug,
        text=text,
        body=body,
        version=version_of(data),
        changed=datetime.fromtimestamp(changed, UTC),
        fields=fields,
        fault=fault,
    )


def _split(text: str) -> tuple[str | None, str]:
    """The front matter without its fences, and the rest; ``None`` when there is no such block."""
    match = _FENCED.match(text[: _MAX_FRONT_MATTER + 100])
    return (match.group(1), text[match.end() :]) if match else (None, text)


def _front_matter(block: str | None) -> tuple[Mapping[str, object], str | None]:
    """The fields, and the reason when there are none because the block can't be used."""
    if block is None:
        return _NO_FIELDS, None
    fields, fault = _parsed(block)
    return _NO_FIELDS if not fields else MappingProxyType(deepcopy(fields)), fault


@lru_cache(maxsize=64)  # a page is read several times while it is changed
def _parsed(block: str) -> tuple[dict[str, object], str | None]:
    try:
        fields = _handler().load(block)
    except Exception:  # noqa: BLE001 - PyYAML raises ValueError, AttributeError and more on dates, digits and tags
        return {}, "it is no valid YAML"
    if fields is None:
        return {}, None
    if not isinstance(fields, dict):
        return {}, "it is no list of fields"
    return {str(key): value for key, value in fields.items()}, None


@cache
def _handler() -> Any:
    """The YAML reader and writer. Its loader is PyYAML's safe one: it makes plain values only."""
    from frontmatter.default_handlers import YAMLHandler

    return YAMLHandler()


def _title(fields: Mapping[str, object], body: str) -> str:
    given = fields.get("title")
    if isinstance(given, str | int | float | date) and str(given).strip():
        return _one_line(str(given))
    heading = next((line[2:] for line in body.splitlines() if line.startswith("# ")), "")
    return _one_line(heading)


def _one_line(text: str) -> str:
    return shown(" ".join(text.split()), MAX_TITLE)


def text_of(page: NewPage, *, updated: datetime) -> str:
    """The text of a new page: front matter, an empty line, the body.

    Raises :class:`StoreError` for a title or body that can't be used.
    """
    if page.text is not None:
        return page.text
    check_line(page.title, "title")
    for alias in page.aliases:
        check_line(alias, "alias")
    check_body(page.body, shown(page.title))
    fields: dict[str, object] = {"title": page.title.strip(), "type": page.type}
    fields["updated"] = updated.date()
    if page.aliases:
        fields["aliases"] = list(page.aliases)
    front = exported(fields | dict(page.fields))
    body = page.body.strip("\r\n")
    return f"---\n{front}\n---\n\n{body}\n" if body.strip() else f"---\n{front}\n---\n"


def check_body(body: str, name: str) -> None:
    """Raises :class:`StoreError` for a body that begins with front matter of its own."""
    block, _ = _split(body.removeprefix(_BOM))
    if block is not None and not _front_matter(block)[1]:
        raise _bad_text(f'"{name}": leave the front matter out of the body; the fields make it.')


def exported(fields: Mapping[str, object]) -> str:
    """Fields as YAML, in their order, one line for each that has one."""
    return str(_handler().export(fields, sort_keys=False, width=10_000))


def front_matter_end(text: str) -> int | None:
    """Where the line begins that closes the front matter of a file's text; ``None``: it has none."""
    start = len(_BOM) if text.startswith(_BOM) else 0
    match = _FENCED.match(text[start : start + _MAX_FRONT_MATTER + 100])
    return None if match is None else start + match.end(1)


def check_line(text: str, what: str, most: int = MAX_TITLE) -> None:
    """Raises :class:`StoreError` for what isn't one line of 1 to ``most`` characters."""
    if not text.strip() or len(text) > most:
        raise _bad_text(f"The {what} must have 1 to {most} characters.")
    if any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in text):
        raise _bad_text(f'The {what} "{shown(text)}" must be one line without control characters.')


def encoded(text: str, what: str) -> bytes:
    """The text as UTF-8. Raises :class:`StoreError` when it can't be a page's text."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise _bad_text(
            f"{what} holds U+{ord(text[error.start]):04X} at character {error.start}, which can't "
            "be written: leave it out."
        ) from None
    if b"\0" in data:
        raise _bad_text(f"{what} holds a NUL character, which can't be written: leave it out.")
    if len(data) > MAX_PAGE:
        raise StoreError(
            f"{what} has {len(data)} bytes; a page may have {MAX_PAGE}: split it.",
            code=StoreCode.TOO_LARGE,
        )
    return data


def _bad_text(message: str) -> StoreError:
    return StoreError(message, code=StoreCode.BAD_TEXT)
