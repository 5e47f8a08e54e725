"""The here-documents of a shell command, left out of it: they hold what is written to files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["without_documents"]

_WORD: Final = r"""(?:'[^']*+'|"(?:\\.|[^"\\])*+"|\\.|[^ \t\n'"\\;&|<>()])++"""
_OPENING: Final = re.compile(
    rf"(?<!<)<<(?P<tabs>-?)(?!<)(?:[ \t]|\\\n)*+(?P<word>{_WORD})", re.DOTALL
)
_QUOTED: Final = re.compile(r"""'([^']*)'|"((?:\\.|[^"\\])*)"|\\\n|\\(.)""", re.DOTALL)
_LINE: Final = re.compile(r"(?:[^\\\n]|\\.|\\\Z)*+(?:\n|\Z)", re.DOTALL)  # with those that go on


@dataclass(frozen=True, slots=True)
class _End:
    """The line that ends a document. ``sure``: the shell reads a document there even if it never comes."""

    line: str
    tabs: bool
    sure: bool

    def search(self, command: str, at: int) -> re.Match[str] | None:
        before = "\t*+" if self.tabs else ""
        return re.compile(rf"^{before}{re.escape(self.line)}$", re.MULTILINE).search(command, at)


def without_documents(command: str) -> str:
    """A command with the size of each here-document in its place, in characters. One that doesn't end goes on to
    the end of the command, as for the shell.

    No shell's grammar is known here. What stands in single quotes or shifts a number is a document where
    a line ends it, and told where none does.

    >>> without_documents("cat <<'THE END' > f\\nsecret\\nTHE END\\nls")
    "cat <<'THE END' > f\\n[here-document: 6 characters]\\nTHE END\\nls"
    """
    told, at, lines = [], 0, {line.lstrip("\t") for line in command.split("\n")}
    while at < len(command) and (opening := _OPENING.search(command, at)):
        line = command.rfind("\n", at, opening.start()) + 1 or at
        ends = _LINE.match(command, opening.end())
        start = ends.end() if ends else len(command)
        told.append(command[at:start])
        at = start
        for end in _ends(command[line:start]):
            if at < len(command) and (end.sure or end.line in lines):
                at = _left_out(command, at, end, told)
    return "".join((*told, command[at:]))


def _ends(line: str) -> list[_End]:
    """The lines that end the documents of a line, in order."""
    found, seen, depth, quotes = [], 0, 0, 0
    for opening in _OPENING.finditer(line):
        between = line[seen : opening.start()]
        seen = opening.start()
        depth += between.count("((") - between.count("))")
        quotes += between.count("'")
        end = _QUOTED.sub(r"\1\2\3", opening["word"])
        sure = not end.isdigit() and depth <= 0 and quotes % 2 == 0
        found.append(_End(end, bool(opening["tabs"]), sure))
    return found


def _left_out(command: str, at: int, end: _End, told: list[str]) -> int:
    """Where the command goes on after the document that begins at ``at``, and the line that ends it."""
    closing = end.search(command, at)
    if closing is None:
        if not end.sure:  # its line stands before
            return at
        told.append(f"[here-document: {len(command) - at} characters]")
        return len(command)
    size = max(closing.start() - 1 - at, 0)
    told.append(
        f"[here-document: {size} characters]\n{command[closing.start() : closing.end() + 1]}"
    )
    return closing.end() + 1
