"""The here-documents of a shell command, left out of it: they hold what is written to files."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["without_documents"]

_WORD: Final = r"""(?:'[^'\n]*+'|"(?:\\.|[^"\\\n])*+"|\\.|[^\s'"\\;&|<>()`])++"""
_OPENING: Final = re.compile(rf"(?<!<)<<-?+(?!<)[ \t]*+(?P<word>{_WORD})(?![)])")
_QUOTED: Final = re.compile(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)""")


def without_documents(command: str) -> str:
    """A command with the size of each here-document in its place, in characters. One that doesn't end goes on to
    the end of the command, as for the shell.

    >>> without_documents("cat <<'THE END' > f\\nsecret\\nTHE END\\nls")
    "cat <<'THE END' > f\\n[here-document: 6 characters]\\nTHE END\\nls"
    """
    told, at, lines = [], 0, {line.strip(" \t") for line in command.split("\n")}
    while opening := _OPENING.search(command, at):
        line = command.rfind("\n", at, opening.start()) + 1 or at
        start = command.find("\n", opening.end()) + 1
        if not start:
            break
        told.append(command[at:start])
        at = start
        for end in _ends(command[line:start]):
            if end in lines or not end.isdigit():  # else it shifts a number by this one
                at = _left_out(command, at, end if end in lines else None, told)
    return "".join((*told, command[at:]))


def _ends(line: str) -> list[str]:
    """The lines that end the documents of a line, in order."""
    found = []
    for opening in _OPENING.finditer(line):
        before = line[: opening.start()]
        if before.count("((") <= before.count("))"):  # else it shifts a number
            found.append(_QUOTED.sub(r"\1\2\3", opening["word"]))
    return found


def _left_out(command: str, at: int, end: str | None, told: list[str]) -> int:
    """Where the command goes on after the document that begins at ``at``, and the line that ends it."""
    closing = None
    if end is not None:
        pattern = rf"^[ \t]*+{re.escape(end)}[ \t]*+$"
        closing = re.compile(pattern, re.MULTILINE).search(command, at)
    if closing is None:
        told.append(f"[here-document: {len(command) - at} characters]")
        return len(command)
    size = max(closing.start() - 1 - at, 0)
    told.append(
        f"[here-document: {size} characters]\n{command[closing.start() : closing.end() + 1]}"
    )
    return closing.end() + 1
