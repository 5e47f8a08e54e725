"""How texts are compared, trimmed and shown.

Three small facts decide most of this module. Files are compared without regard to case and Unicode
form where something is *denied* (:func:`fold`), since a volume may fold both. The CLI trims paths
as JavaScript does, which differs from ``str.strip`` both ways (:data:`JS_SPACE`). And what a model
wrote is shown to it again escaped, so that a name can't forge a second sentence (:func:`shown`).
"""

from __future__ import annotations

import re
import reprlib
import unicodedata

__all__ = [
    "ANY_SPACE",
    "JS_SPACE",
    "caseless",
    "fold",
    "in_script",
    "is_well_formed",
    "printable",
    "shown",
]

# What String.prototype.trim removes (ECMA-262, WhiteSpace and LineTerminator). U+001C..U+001F and
# U+0085 are not in it, U+FEFF is: str.strip() has it the other way round.
JS_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
ANY_SPACE = JS_SPACE + "\x1c\x1d\x1e\x1f\x85"  # what either of the two trims

_NO_NAME = re.compile("[\0\ud800-\udfff]")
_HALF = re.compile("[\ud800-\udfff]")

# What file systems drop from names: ".cl\u200caude" is ".claude" on HFS+, and on an ext4 or f2fs
# folder that ignores case, which drop every Default_Ignorable_Code_Point (Unicode 12.1).
_IGNORED = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)

_MAX_SHOWN = 200  # characters


def fold(text: str) -> str:
    """The form in which denied names are compared: caseless, one Unicode form (UAX 15, UAX 21).

    >>> fold("STRASSE") == fold("straße"), fold("caf\\u00e9") == fold("CAFE\\u0301")
    (True, True)
    """
    if text.isascii():
        return text.lower()
    bare = unicodedata.normalize("NFD", _IGNORED.sub("", text))
    return unicodedata.normalize("NFC", bare.casefold())


def caseless(text: str) -> str:
    """The form in which allowed names are compared where case doesn't count: that alone is ignored.

    >>> caseless("C:/Work") == caseless("c:/WORK"), caseless("\u017fource") == caseless("source")
    (True, False)
    """
    if text.isascii():
        return text.lower()
    return "".join(low if (low := char.lower()).upper() == char else char for char in text)


def in_script(text: str) -> str:
    """The form in which the CLI compares names with its rules: as JavaScript ignores case (ECMA-262,
    Canonicalize, without the flag u), in UTF-16, where U+10000 and above are two characters.

    >>> in_script("\u212aey") == in_script("KEY"), in_script("\u00e9") == in_script("\u00c9")
    (False, True)
    """
    if text.isascii():
        return text.upper()
    units = _HALF.sub("\ufffd", text).encode("utf-16-le")  # what is no UTF-8 the CLI reads as that
    return "".join(_upper(chr(units[at] | units[at + 1] << 8)) for at in range(0, len(units), 2))


def _upper(char: str) -> str:
    high = char.upper()
    return char if len(high) > 1 or (high.isascii() and not char.isascii()) else high


def is_well_formed(text: str) -> bool:
    """Whether it holds no NUL and no half of a character.

    For the latter the CLI puts U+FFFD and opens that name (measured on 2.1.332).
    """
    return _NO_NAME.search(text) is None


def shown(text: object) -> str:
    """What a model wrote, as a denial quotes it: one line, escaped, at most 200 characters.

    >>> print(shown('a"b\\n'), shown(7))
    a\\"b\\n 7
    """
    raw = text if isinstance(text, str) else _told(text)
    cut = raw if len(raw) <= _MAX_SHOWN else raw[: _MAX_SHOWN - 1] + "…"
    if cut.isprintable() and '"' not in cut and "\\" not in cut:
        return cut
    return "".join(_escaped(char) for char in cut)


def printable(text: str) -> str:
    """``text`` on one line, its control characters and halves of characters escaped."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _told(value: object) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # a number of more digits than Python writes
        return type(value).__name__


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    return char if char.isprintable() else ascii(char)[1:-1]
