"""Where a Glob starts, and whether its pattern climbs.

Measured on CLI 2.1.332: ``path`` is trimmed and ``~`` expanded, the pattern is neither. A relative
pattern matches below the path, without a slash at any depth, and follows no link. An absolute one
replaces the path: the CLI goes to its folders before the first of ``* ? [ {``, through links, also
where ripgrep has more to read into them, as in ``@(link)``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent_kit.scope.flavour import Flavour, Malformed
from agent_kit.scope.patterns import alternatives
from agent_kit.scope.text import JS_SPACE

__all__ = ["climbs", "starts"]

_MAX_STARTS = 64  # more alternatives than that are refused, not judged one by one
# What ends the fixed folders: for the CLI, and for everything else that reads a pattern.
_MAGIC = (re.compile(r"[*?\[{]"), re.compile(r"[*?\[{\\]|[!+@]\("))
# What stands for one plain dot, and what divides alternatives.
_DOT = re.compile(r"\\\.|\[\.+\]|\{\.\}")
_DIVIDER = re.compile(r"[/\\{}(),|]")


def climbs(pattern: str) -> bool:
    """Whether a component is ``..``, also as one alternative inside braces or an extended glob.

    >>> climbs("a/../b"), climbs("{..,x}/*"), climbs("@(..)/*"), climbs(".{.,x}/*"), climbs("..a/*")
    (True, True, True, True, False)
    """
    if "." not in pattern:
        return False
    plain = _DOT.sub(".", pattern)
    return any(".." in _DIVIDER.split(text) for text in (pattern, plain, *alternatives(plain)))


def starts(path: str, pattern: str, flavour: Flavour) -> tuple[tuple[str, str], ...]:
    """Every place where a Glob may start, as ``(text, tail)``: the tail is below the text.

    Each alternative in braces is a start of its own, beside the pattern as it is written. A pattern
    without magic names one file, so that is a start as well. Raises Malformed.
    """
    here = path if path.strip(JS_SPACE) else "."
    found = dict.fromkeys(
        start
        for text in (pattern, *alternatives(pattern))
        for magic in _MAGIC
        for start in _starts(here, text, magic, flavour)
    )
    if len(found) > _MAX_STARTS:
        raise Malformed("it starts in too many places")
    return tuple(found)


def _starts(
    here: str, pattern: str, magic: re.Pattern[str], flavour: Flavour
) -> Iterator[tuple[str, str]]:
    names = flavour.split(pattern)
    at = next((i for i, name in enumerate(names) if magic.search(name)), len(names))
    fixed = ["/".join(names[: min(at, len(names) - 1)])]
    if at == len(names):
        fixed.append("/".join(names))
    trimmed = pattern.lstrip(JS_SPACE)
    rooted = _rooted(pattern, flavour)
    for folders in fixed:
        if not rooted:
            yield here, folders
        if rooted or _rooted(trimmed, flavour) or trimmed[:2] in ("~/", "~\\"):
            yield folders + "/", ""


def _rooted(pattern: str, flavour: Flavour) -> bool:
    if flavour.name == "windows":
        return re.match(r"[\\/]|[A-Za-z]:", pattern) is not None
    return pattern.startswith("/")
