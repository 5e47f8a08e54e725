"""Names of pages and folders: any script, one spelling, never a way out of the folder.

A page's name that reaches the disk is a :data:`PageName`, and only :func:`page_name` makes one; any
other file's is a :data:`FileName`, of :func:`file_name`. An id is ``type/slug``: the folder and the
file without ``.md``. No name is a control file's: what steers a later session is never written.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NewType

from agent_kit.scope.control import CONTROL_NAMES
from agent_kit.scope.text import fold
from agent_kit.store.errors import StoreCode, StoreError

__all__ = [
    "MAX_NAME",
    "FileName",
    "PageId",
    "PageName",
    "file_name",
    "is_control_name",
    "name_key",
    "page_id",
    "page_name",
    "person_folder",
    "shown",
    "slug_from",
]

PageName = NewType("PageName", str)
FileName = NewType("FileName", str)

MAX_NAME = 80
"""Longest type or slug, in characters."""

_MAX_BYTES = 200  # of UTF-8: a file name may have 255 on every common file system
_JOINERS = "\u200c\u200d"  # Persian and Indic words are spelled with them

_FORBIDDEN = dict.fromkeys('<>:"|?*', "isn't allowed in file names on every platform") | {
    "/": "would leave the folder",
    "\\": "would leave the folder on Windows",
}
_FORBIDDEN_IN_LINKS = dict.fromkeys("#[]^", "can't stand in a link")
_HIDDEN_CATEGORIES = {
    "Cc": "is a control character",
    "Cf": "is an invisible character",
    "Cs": "can't be encoded",
    "Zl": "is a line separator",
    "Zp": "is a paragraph separator",
}
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"]
)
_CONTROL = frozenset(CONTROL_NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageId:
    """The two parts of an id, in NFC. They are single components and safe to join."""

    type: str
    slug: str

    def __str__(self) -> str:
        return f"{self.type}/{self.slug}"


def shown(text: str, limit: int = 120) -> str:
    r"""The text as one line that can be printed and encoded, cut at ``limit`` characters.

    >>> shown("a\nb\udcff")
    'a\\nb\\udcff'
    """
    cut = text[:limit] + ("…" if len(text) > limit else "")
    if cut.isprintable():
        return cut
    return "".join(_visible(char) for char in cut)


def _visible(char: str) -> str:
    hidden = unicodedata.category(char) in _HIDDEN_CATEGORIES and char not in _JOINERS
    return char.encode("unicode_escape").decode("ascii") if hidden else char


def name_key(name: str) -> str:
    """What two names that some file system takes for one have in common.

    >>> name_key("Cafe\u0301") == name_key("CAFÉ")
    True
    """
    if name.isascii() and name.isprintable():
        return name.lower()
    folded = unicodedata.normalize("NFKC", name).casefold()
    kept = "".join(char for char in folded if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", kept)


def is_control_name(name: str) -> bool:
    """Whether a file system may take ``name`` for one that steers a later session.

    >>> is_control_name("Claude.MD"), is_control_name(".gi\u200ct"), is_control_name("claude.txt")
    (True, True, False)
    """
    return not _CONTROL.isdisjoint({fold(name), name_key(name), fold(name_key(name))})


def page_name(text: object, what: str = "slug") -> PageName:
    """``text`` in NFC, as the name of a new folder, or of a page's file without its ``.md``.

    Raises :class:`StoreError` for a name that would leave the folder, that some platform refuses
    or changes, that can't be encoded, and for a control file's.
    """
    name = _nfc(text, what)
    reason = _why_no_page(name)
    if reason:
        raise _bad(f'"{shown(name)}" can\'t be a {what}: {reason}. Choose another {what}.')
    return PageName(name)


def file_name(text: object, what: str = "file name") -> FileName:
    """``text`` in NFC, as the name of a new file or folder of any kind; at most 200 bytes.

    Raises :class:`StoreError` as :func:`page_name`.
    """
    name = _nfc(text, what)
    if is_control_name(name):
        raise _bad(
            f'"{shown(name)}" can\'t be a {what}: a later session would take it for its '
            "instructions or settings, or run it. Choose another name, such as "
            f'"{_harmless(name)}".'
        )
    reason = _why_not(name, _FORBIDDEN, _MAX_BYTES)
    if reason:
        raise _bad(f'"{shown(name)}" can\'t be a {what}: {reason}. Choose another name.')
    return FileName(name)


def _harmless(name: str) -> str:
    """A name that says what the file was, and means nothing to anyone."""
    return f"copy-of-{name_key(name).lstrip('.').replace('.', '-')}.txt"


def _nfc(text: object, what: str) -> str:
    if not isinstance(text, str):
        raise _bad(f"The {what} must be text.")
    return unicodedata.normalize("NFC", text)


def _why_no_page(name: str) -> str | None:
    """The first reason why a type or a slug can't be called so, or ``None``."""
    reason = _why_not(name, _FORBIDDEN | _FORBIDDEN_IN_LINKS, _MAX_BYTES, MAX_NAME)
    if reason is None and (is_control_name(name) or is_control_name(f"{name}.md")):
        return "a later session would read it as instructions"
    return reason


def _why_not(
    name: str, forbidden: Mapping[str, str], most_bytes: int, most: int | None = None
) -> str | None:
    """The first reason why no file can be called so on every platform, or ``None``."""
    return (
        next((reason for char in name if (reason := _why_not_char(char, forbidden))), None)
        or _why_not_shape(name, most_bytes, most)
        or _why_not_reserved(name)
    )


def _why_not_shape(name: str, most_bytes: int, most: int | None) -> str | None:
    if not name or name.isspace():
        return "it is empty"
    if len(name) > (most or most_bytes) or len(name.encode("utf-8", "replace")) > most_bytes:
        return (
            "it has more than " + (f"{most} characters or " if most else "") + f"{most_bytes} bytes"
        )
    if name.startswith((".", "~")):
        return f'it begins with "{name[0]}"'
    if name.strip() != name or name.endswith("."):
        return "it begins or ends with a space, or ends with a dot"
    return None


def _why_not_char(char: str, forbidden: Mapping[str, str]) -> str | None:
    if char in forbidden:
        return f'"{char}" {forbidden[char]}'
    if char in _JOINERS:
        return None
    hidden = _HIDDEN_CATEGORIES.get(unicodedata.category(char))
    return f"U+{ord(char):04X} {hidden}" if hidden else None


def _why_not_reserved(name: str) -> str | None:
    key = name_key(name)
    if key.partition(".")[0].rstrip() in _DEVICES:
        return "Windows keeps that name for a device"
    return None


def page_id(text: object) -> PageId:
    """The id that was written, taken apart. A ``.md`` at the end is left out.

    Raises :class:`StoreError` when it isn't two plain components. Nothing is looked up.

    >>> page_id("concept/Café.md")
    PageId(type='concept', slug='Café')
    """
    if not isinstance(text, str):
        raise _bad("A page id must be text.")
    parts = unicodedata.normalize("NFC", text.strip()).removesuffix(".md").split("/")
    if len(parts) != 2 or not all(_is_component(part) for part in parts):
        raise _bad(
            f'"{shown(text)}" is no page id: write type/slug as the lists show it, '
            "such as concept/photosynthesis."
        )
    return PageId(type=parts[0], slug=parts[1])


def _is_component(part: str) -> bool:
    hidden = any(
        unicodedata.category(char) in _HIDDEN_CATEGORIES and char not in _JOINERS for char in part
    )
    return bool(part.strip()) and not part.startswith(".") and "\\" not in part and not hidden


def slug_from(title: str, fallback: str = "page") -> PageName:
    """A slug for a title: its letters and digits in any script, lower case, joined by hyphens.

    >>> slug_from("¿Qué es la fotosíntesis?"), slug_from("知识库 权限"), slug_from("NUL")
    ('qué-es-la-fotosíntesis', '知识库-权限', 'nul-page')
    """
    words = _letters_only(title).split()
    slug = _cut("-".join(words).lower())
    if not slug:
        return PageName(f"{fallback}-{_digest(title.encode('utf-8', 'replace'))[:8]}")
    return page_name(f"{slug}-{fallback}" if _why_no_page(slug) else slug)


def _letters_only(title: str) -> str:
    """NFC, with a space for what is neither a letter, a digit nor a mark that belongs to one."""
    composed = unicodedata.normalize("NFC", title)
    return "".join(char if char.isalnum() or _is_part(char) else " " for char in composed)


def _is_part(char: str) -> bool:
    return char in _JOINERS or unicodedata.category(char) in ("Mn", "Mc")


def _cut(slug: str) -> str:
    kept = slug[: MAX_NAME - 10]
    while len(kept.encode("utf-8", "replace")) > _MAX_BYTES - 20:
        kept = kept[:-1]
    return kept.strip(f"-{_JOINERS}")


def person_folder(person: str) -> str:
    """The folder name for a person or an agent: readable, and another one for every other text.

    The digest is of the exact text, so that names that differ only in case, Unicode form or
    forbidden characters never share a folder. Raises :class:`StoreError` when it is empty or
    can't be encoded.
    """
    if not person.strip():
        raise _bad("The name of a person can't be empty.")
    try:
        exact = person.encode("utf-8")
    except UnicodeEncodeError:
        raise _bad("The name of a person must be text that can be encoded.") from None
    readable = re.sub(r"[^a-z0-9]+", "-", person.lower()).strip("-")[:30]
    return f"{readable or 'person'}-{_digest(exact)[:20]}"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _bad(message: str) -> StoreError:
    return StoreError(message, code=StoreCode.BAD_NAME)
