"""What a text's ``@path`` mentions come to: the CLI attaches the files with no tool call at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from agent_kit.scope import FileScope
from agent_kit.scope.decision import Access
from agent_kit.scope.judge import NamedPath, judge_whole
from agent_kit.scope.mentions import Mention, find_mentions
from agent_kit.scope.text import shown

__all__ = ["Mentioned", "refused_mention"]


@dataclass(slots=True)
class Mentioned:
    """What texts mention that exists and that the scope opens, and the ``code`` of the first that it
    doesn't."""

    code: str | None = None
    _named: dict[tuple[Access, str], NamedPath] = field(default_factory=dict)

    @property
    def named(self) -> tuple[NamedPath, ...]:
        return tuple(self._named.values())

    def add(self, named: tuple[NamedPath, ...]) -> None:
        self._named.update(((path.access, path.text), path) for path in named)

    def without(self, other: Mentioned) -> tuple[NamedPath, ...]:
        """What the ``other`` texts don't mention."""
        return tuple(path for key, path in self._named.items() if key not in other._named)


def refused_mention(
    scope: FileScope, text: str, cwd: str, seen: Mentioned | None = None
) -> str | None:
    """Why ``text`` may not be expanded, naming the first mention of something outside the scope.

    A mentioned file is judged as a Read, a folder (which is listed) as LS; what doesn't exist is
    attached by nobody. ``cwd`` is what relative mentions are relative to. What may be opened is noted
    in ``seen``.
    """
    home = scope._compiled.home or ""
    seen = Mentioned() if seen is None else seen
    for mention in find_mentions(text):
        for reading in mention.readings:
            if (reason := _objection(scope, reading, cwd, home, seen)) is not None:
                return _sentence(mention, reason)
    return None


def _objection(scope: FileScope, text: str, cwd: str, home: str, seen: Mentioned) -> str | None:
    """The CLI collapses ``..`` as text, a file system follows links first: both are looked at."""
    expanded = home + text[1:] if text == "~" or text.startswith("~/") else text
    path = os.path.join(cwd, expanded)
    for each in dict.fromkeys((os.path.normpath(path), path)):
        tool, field = ("LS", "path") if _exists(os.path.isdir, each) else ("Read", "file_path")
        if _exists(os.path.lexists, each):
            found = judge_whole(scope, tool, {field: each}, cwd)
            if found.reason is not None:
                seen.code = found.code
                return found.reason
            seen.add(found.named)
    return None


def _exists(look: Callable[[str], bool], path: str) -> bool:
    try:
        return look(path)
    except ValueError:  # no name holds such a character
        return False


def _sentence(mention: Mention, reason: str) -> str:
    return f"It mentions {shown(mention.text)}, which this agent may not open: {reason}"
