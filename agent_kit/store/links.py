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

_INLINE: Final = re.compile(r"(`[^`\n]*`)")
_OPENS: Final = ("```", "~~~")
_CLOSES: Final = re.compile(r"(?:```|~~~)[ \t]*\r?\n?")


def links_of(body: str) -> Iterator[str]:
    """The targets of a page's links, each once, as they are written; not those in code.

    >>> list(links_of("[[concept/light]] and [[Concept/Light|it]], not `[[x]]`"))
    ['concept/light', 'Concept/Light']
    """
    found = (link for is_code, part in _parts(body) if not is_code for link in LINK.finditer(part))
    yield from dict.fromkeys(link["target"].strip() for link in found)


def outside_code(body: str, change: Callable[[str], str]) -> str:
    """The body with what isn't code changed, line by line."""
    return "".join(part if is_code else change(part) for is_code, part in _parts(body))


def _parts(body: str) -> Iterator[tuple[bool, str]]:
    """The body in parts, each code or not. A fence that nothing closes is none.

    It takes a step a line, whatever stands there: the pages are written by a model.
    """
    lines = body.split("\n")
    lines = [*(f"{line}\n" for line in lines[:-1]), lines[-1]]
    closing = [at for at, line in enumerate(lines) if _CLOSES.fullmatch(line)]
    at = next_closing = 0
    while at < len(lines):
        while next_closing < len(closing) and closing[next_closing] <= at:
            next_closing += 1
        if lines[at].startswith(_OPENS) and next_closing < len(closing):
            end = closing[next_closing] + 1
            yield True, "".join(lines[at:end])
            at = end
            continue
        for number, part in enumerate(_INLINE.split(lines[at])):
            yield number % 2 == 1, part
        at += 1
