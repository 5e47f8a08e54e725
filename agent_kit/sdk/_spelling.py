"""Names and patterns as the CLI's rule language says them.

The language is gitignore's, read twice: by a JavaScript library where a path is judged, and by
ripgrep where Grep and Glob search. Measured on CLI 2.1.332, where the two differ from each other or
from gitignore:

* Case is ignored. A name in one Unicode form is not matched by its other form.
* ``\\?`` and ``\\\\`` do not work, and neither does either of them in a class: ``?`` must do.
* A ``\\*`` at the very end is a wildcard again; ``[\\*]`` is a star anywhere.
* White space at the very end is dropped. A space can be written ``\\ ``; any other after a backslash
  makes ripgrep refuse the whole search.
* ``?`` is one UTF-16 unit where a path is judged, and one byte in a search.
* ``[!…]`` is a class, ``{a,b}`` is plain text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from agent_kit.scope.flavour import FLAVOURS, Malformed
from agent_kit.scope.patterns import parse_pattern
from agent_kit.scope.text import JS_SPACE

__all__ = ["NotAbsoluteError", "canonical", "exact", "pattern_spellings", "spellings", "unicode_forms"]

# How a character stands inside a name. All others stand for themselves.
_INSIDE: Final = {
    **{char: "\\" + char for char in "[]*{}!#"},
    "?": "?",  # neither \? nor [?] is a question mark
    "\\": "?",  # neither \\ nor [\\] is a backslash
}
_STAR = r"[\*]"
_UNDECODED = re.compile("[\ud800-\udfff]")  # a byte that is no UTF-8; each is one ? to ripgrep
_TRIMMED = JS_SPACE + "\x85"  # ripgrep also drops U+0085

_DRIVE = re.compile(r"/([a-z]):(?=/|\Z)")
_UNC = "/unc:/"


class NotAbsoluteError(ValueError):
    """A path that depends on a folder nobody named. No rule can be made of it."""


def canonical(path: str, platform: str) -> str:
    """The canonical form (see ``agent_kit.scope.flavour``) of a native or canonical absolute path.

    Raises ``NotAbsoluteError`` for a relative one and ``Malformed`` for one that names no file.
    """
    if "\0" in path:
        raise Malformed("it holds a NUL")
    if platform != "windows":
        if not path.startswith("/"):
            raise NotAbsoluteError(f"{path!r} is not an absolute path")
        return FLAVOURS["posix"].absolute(path, "/")
    if _anchor(path) is not None:
        return path.rstrip("/")
    if re.match(r"[\\/]{2}|[A-Za-z]:[\\/]|[A-Za-z]:\Z|/[A-Za-z](/|\Z)", path) is None:
        raise NotAbsoluteError(f"{path!r} is not an absolute path")
    return FLAVOURS["windows"].entry(path + "/" if path.endswith(":") else path, "/", None)


def unicode_forms(text: str) -> tuple[str, ...]:
    """``text`` as it is, composed (NFC) and decomposed (NFD), each once."""
    if text.isascii():
        return (text,)
    return tuple(dict.fromkeys((text, *(unicodedata.normalize(f, text) for f in ("NFC", "NFD")))))


def spellings(path: str) -> tuple[str, ...]:
    """Every spelling that together refuse canonical ``path``; the first is enough but for searches.

    The file system's root is ``//``.
    """
    stem, last = _head(path)
    body = stem + _plain(last[:-1])
    return tuple(body + end for end in _ends(last[-1:]))


def exact(path: str) -> str | None:
    """The spelling that matches canonical ``path`` and no other, case aside; ``None`` if none does."""
    stem, last = _head(path)
    end = _exact_end(last[-1:])
    spelled = stem + _plain(last[:-1]) + end
    return None if "?" in spelled else spelled


def pattern_spellings(pattern: str, project: str, home: str | None, platform: str) -> Iterator[str]:
    """The spellings of a gitignore pattern; ``project`` and ``home`` are canonical.

    Raises ``Malformed``.
    """
    for absolute in _absolutes(pattern, project, home, platform):
        yield from _pattern(absolute)


def _anchor(path: str) -> str | None:
    """What a canonical Windows path begins with in a rule: ``/c``, or nothing for a share."""
    if (drive := _DRIVE.match(path)) is not None:
        return "/" + drive[1]
    return "" if path.startswith(_UNC) else None


def _unanchored(path: str) -> str:
    """``/c:/Users`` as ``/c/Users``, ``/unc:/server/share`` as ``/server/share``."""
    if (drive := _DRIVE.match(path)) is not None:
        return f"/{drive[1]}{path[3:]}"
    return path[len(_UNC) - 1 :] if path.startswith(_UNC) else path


def _head(path: str) -> tuple[str, str]:
    """Everything before the last component, spelled, and the last component as it is."""
    stem, _, last = _unanchored(path).rpartition("/")
    return "/" + _plain(stem + "/"), last


def _plain(text: str) -> str:
    return _UNDECODED.sub("?", "".join(_INSIDE.get(char, char) for char in text))


def _ends(char: str) -> tuple[str, ...]:
    """How the last character of a spelling stands."""
    if char == "*":
        return (_STAR,)
    if char == " ":
        return ("\\ ",)
    if not char or char not in _TRIMMED:
        return (_plain(char),)
    if char.isascii():
        return ("?",)  # a class would not stop a search
    return (f"[{char}]", "?" * len(char.encode()))  # for the judge, and for ripgrep


def _exact_end(char: str) -> str:
    if char and char in _TRIMMED and char != " ":
        return f"[{char}]"
    return _ends(char)[0]


def _absolutes(pattern: str, project: str, home: str | None, platform: str) -> list[str]:
    if platform == "windows" and _anchor(pattern) is not None:
        return [pattern]
    parsed = parse_pattern(pattern, project, home, FLAVOURS[platform])
    return [each.absolute for each in parsed]


def _pattern(absolute: str) -> Iterator[str]:
    """An absolute gitignore pattern (``/srv/*.key``, ``**/.env``) as rules say it."""
    text = absolute if absolute.endswith("\\ ") else absolute.rstrip()
    names = _unanchored(text).lstrip("/").split("/")
    if not {*names} - {"**", "*", ""}:
        yield "//**"
        return
    if names[-1] in ("", "**"):  # what is in a folder; a rule that ends in /** means the folder too
        names[-1] = "*"
    stem = "".join(_glob(name)[0] + "/" for name in names[:-1])
    for last in _glob(names[-1]):
        yield f"//{stem}{last}"


_TOKEN = re.compile(r"\\(.)|(\*+)|\[([!^]?)(\]?[^\]]*)\]|(.)", re.DOTALL)


def _glob(name: str) -> tuple[str, ...]:
    """One component of a pattern; more than one spelling when the last character needs it."""
    if name == "**":
        return ("**",)
    tokens = list(_TOKEN.finditer(name))
    body = "".join(_token(token) for token in tokens[:-1])
    literal = _literal(tokens[-1])
    ends = (_token(tokens[-1]),) if literal is None else _ends(literal)
    return tuple(body + end for end in ends)


def _literal(token: re.Match[str]) -> str | None:
    """The character that a token stands for, unless it is a wildcard."""
    escaped, stars, _, body, char = token.groups()
    if stars or body is not None or char == "?":
        return None
    return escaped or char


def _token(token: re.Match[str]) -> str:
    _, stars, negated, body, char = token.groups()
    if stars:
        return "*"
    if body is not None:
        return _class(negated, body)
    if char == "?":
        return "?"
    literal = _literal(token) or ""
    return _STAR if literal == "*" else _plain(literal)


_RANGE = r"[0-9]-[0-9]|[a-z]-[a-z]|[A-Z]-[A-Z]"
_SIMPLE_CLASS = re.compile(rf"(?:{_RANGE}|[^\\\[\]?*!^/&|~\-\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff])+")


def _class(negated: str, body: str) -> str:
    """A class that the language reads as gitignore does; any other becomes one character, or more."""
    if _SIMPLE_CLASS.fullmatch(body) and all(a <= b for a, b in re.findall(r"(.)-(.)", body)):
        return f"[{'^' if negated else ''}{body}]"
    return "*" if any(char > "\uffff" for char in body) else "?"
