"""Every name of the file that a text means: as written and as resolved."""

from __future__ import annotations

import stat
from typing import NamedTuple

from agent_kit.policy.compiled import RuleList
from agent_kit.scope.disk import walk
from agent_kit.scope.flavour import Malformed
from agent_kit.scope.text import JS_SPACE, is_well_formed

__all__ = ["Named", "folder_of", "named"]


class Named(NamedTuple):
    """Canonical names of one path. ``folder``: it is one, or was written with a slash at its end."""

    names: tuple[str, ...]
    folder: bool
    exists: bool


def named(rules: RuleList, text: object, cwd: str | None = None, tail: str = "") -> Named:
    """What ``text`` (and ``tail`` below it) may mean, relative to ``cwd`` (default: the project).

    Raises Malformed or Unresolvable for what can't be judged.
    """
    if not isinstance(text, str) or not is_well_formed(text) or not is_well_formed(tail):
        raise Malformed("it is no text that a name can hold")
    base = folder_of(rules, cwd)
    readings = rules.flavour.readings(text, base, rules.home, tail)
    places = [rules.locate(path) for path in (*readings.cli, *readings.other)]
    if rules.native:
        places += [walk(path) for path in readings.physical]
    names = (*readings.cli, *readings.other, *(place.path for place in places))
    return Named(
        tuple(dict.fromkeys(names)),
        (tail or text)
        .rstrip(JS_SPACE)
        .endswith(("/", "\\") if rules.flavour.name == "windows" else "/")
        or any(stat.S_ISDIR(place.mode) for place in places),
        any(place.mode for place in places),
    )


def folder_of(rules: RuleList, cwd: str | None) -> str:
    """The canonical folder that relative texts are relative to. Raises Malformed."""
    if cwd is None:
        return rules.project
    if not isinstance(cwd, str) or not is_well_formed(cwd):
        raise Malformed("its folder can't be judged")
    return rules.flavour.absolute(cwd, rules.project)
