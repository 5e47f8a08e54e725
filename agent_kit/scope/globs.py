"""Where a Glob starts, and whether its pattern climbs."""

from __future__ import annotations

import re

from agent_kit.scope.flavour import Flavour, Malformed
from agent_kit.scope.text import JS_SPACE

__all__ = ["climbs", "starts"]

_MAX_STARTS = 64  # more alternatives than that are refused, not judged one by one
_MAGIC = re.compile(r"[*?\[{\\]|[!+@]\(")
# What stands for one plain dot, and what divides alternatives.
_DOT = re.compile(r"\\\.|\[\.+\]")
_DIVIDER = re.compile(r"[/\\{}(),|]")


def climbs(pattern: str) -> bool:
    """Whether a component is ``..``, also as one alternative inside braces or an extended glob.

    >>> climbs("a/../b"), climbs("{..,x}/*"), climbs("@(..)/*"), climbs(".{.,x}/*"), climbs("..a/*")
    (True, True, True, True, False)
    """
    if ".." not in pattern and "." not in pattern:
        return False
    plain = _DOT.sub(".", pattern)
    return any(".." in _DIVIDER.split(text) for text in (pattern, plain, *_expanded(plain)))


def _expanded(pattern: str) -> list[str]:
    """The alternatives in braces. Raises Malformed when there are too many."""
    if "{" not in pattern:
        return [pattern]
    import bracex

    try:
        return list(dict.fromkeys(bracex.expand(pattern, keep_escapes=True, limit=1000)))
    except bracex.ExpansionLimitException:
        raise Malformed("it has too many alternatives") from None


def starts(path: str | None, pattern: str, flavour: Flavour) -> tuple[tuple[str, str], ...]:
    """Every place where a Glob starts, as ``(text, tail)``: the tail is below the text.

    The pattern's fixed folders count; an absolute pattern (or one in the home folder) replaces the
    path. Each alternative in braces is a start of its own, beside the pattern as it is written.
    Raises Malformed.
    """
    found = dict.fromkeys(_start(path, text, flavour) for text in (pattern, *_expanded(pattern)))
    if len(found) > _MAX_STARTS:
        raise Malformed("it starts in too many places")
    return tuple(found)


def _start(path: str | None, pattern: str, flavour: Flavour) -> tuple[str, str]:
    folders = flavour.split(pattern)[:-1]
    at = next((i for i, name in enumerate(folders) if _MAGIC.search(name)), len(folders))
    fixed = "/".join(folders[:at])
    if _rooted(pattern.lstrip(JS_SPACE), flavour):
        return fixed + "/" if at else "/", ""
    # A pattern without magic names one file: it is listed as itself, so it starts there.
    if at == len(folders) and pattern and not _MAGIC.search(pattern):
        fixed = "/".join([*folders, flavour.split(pattern)[-1]])
    text = "." if path is None or not path.strip(JS_SPACE) else path
    return text, fixed


def _rooted(pattern: str, flavour: Flavour) -> bool:
    if pattern[:1] in ("/", "~"):
        return True
    return flavour.name == "windows" and re.match(r"\\|[A-Za-z]:", pattern) is not None
