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
* ``[!…]`` and ``[^…]`` do not negate, ``{a,b}`` is plain text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from agent_kit.scope.flavour import FLAVOURS, Malformed
from agent_kit.scope.mentions import screenshot_twin
from agent_kit.scope.patterns import MAX_ALTERNATIVES, Pattern, is_pattern, parse_pattern, unescaped
from agent_kit.scope.text import JS_SPACE

__all__ = [
    "NotAbsoluteError",
    "canonical",
    "exact",
    "names_of",
    "pattern_spellings",
    "spellings",
    "unicode_forms",
]

# How a character stands inside a name. All others stand for themselves.
_INSIDE: Final = {
    **{char: "\\" + char for char in "[]*{}!#"},
    "?": "?",  # neither \? nor [?] is a question mark
    "\\": "?",  # neither \\ nor [\\] is a backslash
}
_STAR = r"[\*]"
# In a pattern the neighbours count for more: ``*?`` would be every name.
_IN_PATTERN: Final = {**_INSIDE, "*": _STAR, "?": "[>-@]", "\\": "[[-^]"}
_UNDECODED = re.compile("[\ud800-\udfff]")  # a byte that is no UTF-8; each is one ? to ripgrep
_SPECIAL = re.compile(rf"[{re.escape(''.join(_INSIDE))}\ud800-\udfff]")
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


def names_of(path: str) -> tuple[str, ...]:
    """Every name by which the CLI may be asked for the file ``path``, as far as texts tell."""
    twin = screenshot_twin(path)
    return tuple(dict.fromkeys(n for p in (path, twin) if p is not None for n in unicode_forms(p)))


def unicode_forms(text: str) -> tuple[str, ...]:
    """``text`` as it is, composed (NFC) and decomposed (NFD), each once."""
    if text.isascii():
        return (text,)
    return tuple(dict.fromkeys((text, *(unicodedata.normalize(f, text) for f in ("NFC", "NFD")))))


def spellings(path: str, platform: str) -> tuple[str, ...]:
    """Every spelling that together refuse canonical ``path``; the first is enough but for searches.

    The file system's root is ``//``.
    """
    stem, last = _head(path, platform)
    body = stem + _plain(last[:-1])
    return tuple(body + end for end in _ends(last[-1:]))


def exact(path: str, platform: str) -> str | None:
    """The spelling that matches canonical ``path`` and no other, case aside; ``None`` if none does."""
    stem, last = _head(path, platform)
    end = _exact_end(last[-1:])
    spelled = stem + _plain(last[:-1]) + end
    return None if "?" in spelled else spelled


def pattern_spellings(
    pattern: str, project: str, home: str | None, platform: str
) -> tuple[str, ...]:
    """The spellings of a gitignore pattern; ``project`` and ``home`` are canonical.

    A text that gitignore finds no pattern in is a name, as it is for ``FileScope``.
    Raises ``Malformed``.
    """
    if platform == "windows" and _anchor(pattern) is not None:
        return (_pattern(pattern, platform),)
    text = pattern.replace("\\", "/") if platform == "windows" else pattern
    if not is_pattern(text):
        return tuple(_name(text, project, home, platform))
    found = [
        spelled
        for alternative in _alternatives(text)
        for spelled in _alternative(alternative, project, home, platform)
    ]
    return tuple(dict.fromkeys(found))


def _anchor(path: str) -> str | None:
    """What a canonical Windows path begins with in a rule: ``/c``, or nothing for a share."""
    if (drive := _DRIVE.match(path)) is not None:
        return "/" + drive[1]
    return "" if path.startswith(_UNC) else None


def _rooted(path: str, platform: str) -> str:
    """On Windows ``/c:/Users`` as ``/c/Users``, ``/unc:/server/share`` as ``/server/share``."""
    if platform != "windows":
        return path
    if (drive := _DRIVE.match(path)) is not None:
        return f"/{drive[1]}{path[3:]}"
    return path[len(_UNC) - 1 :] if path.startswith(_UNC) else path


def _head(path: str, platform: str) -> tuple[str, str]:
    """Everything before the last component, spelled, and the last component as it is."""
    stem, _, last = _rooted(path, platform).rpartition("/")
    return "/" + _plain(stem + "/"), last


def _plain(text: str) -> str:
    return _SPECIAL.sub(lambda match: _INSIDE.get(match[0], "?"), text)


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


def _alternatives(pattern: str) -> list[str]:
    if "{" not in pattern:
        return [pattern]
    import bracex

    try:
        return bracex.expand(pattern, keep_escapes=True, limit=MAX_ALTERNATIVES)
    except bracex.ExpansionLimitException:
        raise Malformed(f"it has more than {MAX_ALTERNATIVES:,} alternatives") from None


def _alternative(text: str, project: str, home: str | None, platform: str) -> Iterator[str]:
    """The spellings of one alternative: ``b*`` and ``b`` apply everywhere, ``a/b`` is a name."""
    parsed: tuple[Pattern, ...] = ()
    if is_pattern(text) or "/" not in text.rstrip("/"):
        parsed = parse_pattern(text, project, home, FLAVOURS[platform])
    for each in parsed:
        yield _pattern(each.absolute, platform)
    if not parsed:
        yield from _name(text, project, home, platform)


def _name(text: str, project: str, home: str | None, platform: str) -> Iterator[str]:
    """The spellings of an entry that is no pattern, with its backslashes and without."""
    for name in dict.fromkeys((text, unescaped(text))):
        yield from spellings(FLAVOURS[platform].entry(name, project, home), platform)


def _pattern(absolute: str, platform: str) -> str:
    """An absolute gitignore pattern (``/srv/*.key``, ``**/.env``) as rules say it."""
    text = absolute if absolute.endswith("\\ ") else absolute.rstrip(" ")
    names = _rooted(text, platform).lstrip("/").split("/")
    if not {*names} - {"**", "*", ""}:
        return "//**"
    if names[-1] in ("", "**"):  # what is in a folder; a rule that ends in /** means the folder too
        names[-1] = "*"
    return "//" + "/".join(_glob(name) for name in names)


_TOKEN = re.compile(r"\\(.)|(\*+)|(\?)|\[([!^]?)(\]?[^\]]*)\]|(.)", re.DOTALL)


def _glob(name: str) -> str:
    """One component of a pattern."""
    if name == "**":
        return name
    tokens = list(_TOKEN.finditer(name))
    last = _literal(tokens[-1])
    if last is None or last not in _TRIMMED:
        return "".join(_token(token) for token in tokens)
    return "".join(_token(token) for token in tokens[:-1]) + _exact_end(last)


def _literal(token: re.Match[str]) -> str | None:
    """The character that a token stands for; ``None`` for a wildcard."""
    return token[1] or token[6]


def _token(token: re.Match[str]) -> str:
    _, stars, any_char, negated, body, _ = token.groups()
    if (literal := _literal(token)) is not None:
        return _IN_PATTERN.get(literal) or _UNDECODED.sub("\ufffd", literal)
    if stars or any_char:
        return "*" if stars else "?"
    return _class(negated, body)


_ITEM = r"[0-9]-[0-9]|[a-z]-[a-z]|[A-Z]-[A-Z]|[^\\\[\]?*!^/\-\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]"
_SIMPLE_CLASS = re.compile(rf"(?:{_ITEM})+")


def _class(negated: str, body: str) -> str:
    """A class that the language reads as gitignore does; any other becomes one character, or more."""
    ordered = all(low <= high for low, high in re.findall(r"(.)-(.)", body))
    if not negated and ordered and _SIMPLE_CLASS.fullmatch(body):
        return f"[{body}]"
    return "*" if any(char > "\uffff" for char in body) else "?"
