"""Links between pages: ``[[type/slug]]``, with ``#heading`` and ``|words`` behind, as Obsidian has them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

__all__ = ["LINK", "links_of", "outside_code"]

LINK: Final = re.compile(
    r"(?P<embed>!?)\[\[(?P<target>[^\[\]|#^\n]+)(?P<part>[#^][^\[\]|\n]*)?(?P<words>\|[^\[\]\n]*)?\]\]"
)
"""One link: ``target``, and as they are written ``part`` of it and ``words`` in its place."""

_CODE: Final = re.compile(
    r"(^(?:```|~~~).*?^(?:```|~~~)[ \t]*$|`[^`\n]*`)", re.DOTALL | re.MULTILINE
)


def links_of(body: str) -> Iterator[str]:
    """The targets of a page's links, each once, as they are written; not those in code.

    >>> list(links_of("[[concept/light]] and [[Concept/Light|it]], not `[[x]]`"))
    ['concept/light', 'Concept/Light']
    """
    found = LINK.finditer(_CODE.sub("", body))
    yield from dict.fromkeys(link["target"].strip() for link in found)


def outside_code(body: str, change: Callable[[str], str]) -> str:
    """The body with what isn't code changed."""
    parts = _CODE.split(body)
    return "".join(part if at % 2 else change(part) for at, part in enumerate(parts))
