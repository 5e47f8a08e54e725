"""What a text's ``@path`` mentions come to: the CLI attaches the files with no tool call at all."""

from __future__ import annotations

import os
from collections.abc import Callable

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.scope.mentions import Mention, find_mentions
from agent_kit.scope.text import shown

__all__ = ["refused_mention"]


def refused_mention(scope: FileScope, text: str, cwd: str) -> str | None:
    """Why ``text`` may not be expanded, naming the first mention of something outside the scope.

    A mentioned file is judged as a Read, a folder (which is listed) as LS; what doesn't exist is
    attached by nobody. ``cwd`` is what relative mentions are relative to.
    """
    home = scope._compiled.home or ""
    for mention in find_mentions(text):
        for reading in mention.readings:
            if (reason := _objection(scope, reading, cwd, home)) is not None:
                return _sentence(mention, reason)
    return None


def _objection(scope: FileScope, text: str, cwd: str, home: str) -> str | None:
    """The CLI collapses ``..`` as text, a file system follows links first: both are looked at."""
    expanded = home + text[1:] if text == "~" or text.startswith("~/") else text
    path = os.path.join(cwd, expanded)
    for each in dict.fromkeys((os.path.normpath(path), path)):
        tool, field = ("LS", "path") if _exists(os.path.isdir, each) else ("Read", "file_path")
        if _exists(os.path.lexists, each):
            reason = check_file_scope(scope, tool, {field: each}, cwd=cwd)
            if reason is not None:
                return reason
    return None


def _exists(look: Callable[[str], bool], path: str) -> bool:
    try:
        return look(path)
    except ValueError:  # no name holds such a character
        return False


def _sentence(mention: Mention, reason: str) -> str:
    return f"It mentions {shown(mention.text)}, which this agent may not open: {reason}"
