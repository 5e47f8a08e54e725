r"""Characters that can't be seen: which stay, which go, and which are spelled out.

A document is shown as it is, but nothing in it may work on the reader's screen or hide from the
reader: control characters and those that turn text round (U+202E) or carry hidden letters (the
tags at U+E0000) are spelled as ``agent_kit.store.shown`` does. Unlike there, line ends and tabs
stay, and so do those that belong to a script; those that only say where a word may be broken go.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["plain"]

_TABLE = {
    "\n": "\n",
    "\t": "\t",
    "\r\n": "\n",
    "\r": "\n",
    "\v": "\n",  # a line end inside a paragraph, in Office
    "\f": "\n",
    "\x85": "\n",
    "\u2028": "\n",
    "\u2029": "\n",
    "\u200c": "\u200c",  # joiners: Persian and Indic words, and emoji, are spelled with them
    "\u200d": "\u200d",
    "\u200e": "\u200e",  # marks of direction: Hebrew and Arabic; they turn nothing round
    "\u200f": "\u200f",
    "\u061c": "\u061c",
    "\xad": "",  # where a word may be broken, or not
    "\u200b": "",
    "\u2060": "",
    "\ufeff": "",
}
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
_SUSPECT = re.compile(
    "\r\n|[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001-\U000e007f]"
)


def plain(text: str) -> str:
    r"""The text with one kind of line end and nothing hidden. Twice is the same as once.

    >>> plain("a\r\nb\u202ec\xadd")
    'a\nb\\u202ecd'
    """
    return _SUSPECT.sub(lambda found: _seen(found.group()), text)


def _seen(chars: str) -> str:
    if (known := _TABLE.get(chars)) is not None:
        return known
    if unicodedata.category(chars) not in _HIDDEN:
        return chars
    return chars.encode("unicode_escape").decode("ascii")
