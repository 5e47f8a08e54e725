"""What the CLI makes of a skill's or command's body before it looks for mentions in it.

Measured on CLI 2.1.317 and 2.1.332:

* The front matter goes: from a first line ``---`` to the next ``---``.
* ``$name`` for each of the front matter's ``arguments``, ``$ARGUMENTS[n]``, ``$ARGUMENTS`` and
  ``$n`` (from 0) become the arguments, in one pass. A word that there is none of stays, a missing
  named one goes. ``\\$`` keeps the ``$``. If nothing was replaced, the arguments are added at the end.
* After that, ``${CLAUDE_…}`` becomes a folder or a value, in what came from the arguments, too.
* The words of the arguments are those of a shell command: quotes and backslashes go, operators end
  the list, assignments and some keywords are dropped. What no shell could read is one word.
* A skill is preceded by a line that names its folder.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from agent_kit.scope.text import JS_SPACE

__all__ = [
    "ANY_VARIABLE",
    "UNKNOWN_VARIABLE",
    "expanded",
    "has_words",
    "in_reach",
    "plain_words",
    "text_of",
]

# As everybody writes it; of any other the whole is judged.
_FRONT: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(?:(?!---)[^\n]|\n(?!---))*\n---[ \t]*\r?\n")
_INDEXED: Final = r"\$ARGUMENTS\[(?P<at>[0-9]+)\]|\$(?P<number>[0-9]+)(?!\w)"
_ALL: Final = r"\$ARGUMENTS"
_WORD: Final = re.compile(_INDEXED, re.ASCII)  # JavaScript's word is ASCII
_RUN: Final = re.compile(rf"[^{re.escape(JS_SPACE)}]+")
_VARIABLE: Final = re.compile(r"\$\{(CLAUDE_[A-Z_]+)\}")
# A mention with a value in it that is known to the CLI alone.
_BEGUN: Final = rf"""@(?:"[^"]*|[^{re.escape(JS_SPACE)}]*)\$\{{"""
_KNOWN: Final = "PROJECT_DIR|SKILL_DIR|PLUGIN_ROOT"
UNKNOWN_VARIABLE: Final = re.compile(rf"{_BEGUN}(?:CLAUDE_(?!(?:{_KNOWN})\}})|user_config)")
ANY_VARIABLE: Final = re.compile(rf"{_BEGUN}(?:CLAUDE_|user_config)")

_DIGITS: Final = 9  # of a number that nobody means as a place among the arguments

# A shell would read these as something other than words of their own letters.
_QUOTED: Final = re.compile(
    r"""(?:[^'"\\$`|&;<>()\[\]{}#=*!\x00-\x08\n-\x1f\x7f]|'[^'\\$`!\0]*'|"[^"\\$`!\0]*")*"""
)
_KEYWORDS: Final = frozenset(
    [
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "do",
        "done",
        "while",
        "until",
        "for",
        "case",
        "esac",
        "in",
        "select",
        "function",
        "time",
        "coproc",
    ]
)


def text_of(body: str) -> str:
    """A body without what is surely its front matter."""
    return _FRONT.sub("", body, count=1)


def plain_words(args: str) -> tuple[str, ...] | None:
    """The words of ``args`` as the CLI takes them apart, or ``None`` where only a shell knows."""
    if not _QUOTED.fullmatch(args):
        return None
    words = shlex.split(args)
    return None if words and words[0] in _KEYWORDS else tuple(words)


def has_words(text: str, names: Sequence[str]) -> bool:
    """Whether single words of the arguments have a place in it."""
    return _WORD.search(text) is not None or any(f"${name}" in text for name in names)


def in_reach(text: str, names: Sequence[str]) -> bool:
    """Whether a word of the arguments may become a part of a mention that ``text`` begins."""
    if '@"' in text and has_words(text, names):
        return True
    return any("@" in run and has_words(run, names) for run in _RUN.findall(text))


def expanded(
    text: str, args: str, words: Sequence[str], names: Sequence[str], folders: Mapping[str, str]
) -> Iterator[str]:
    """The forms that ``text`` may take: with the arguments in their places, and with them at its end.

    ``names`` are the front matter's ``arguments``, ``folders`` the values of variables by name.
    """
    places = [rf"\$(?P<name>{'|'.join(map(re.escape, names))})(?![\[\w])"] if names else []
    pattern = re.compile("|".join([r"(?P<kept>\\\$(?=\w))", *places, _INDEXED, _ALL]), re.ASCII)

    def put(match: re.Match[str]) -> str:
        found = match.groupdict()
        if found["kept"]:
            return "$"
        if found.get("name") is not None:
            at = names.index(found["name"])
            return words[at] if at < len(words) else ""
        number = found["at"] or found["number"]
        if number is None:
            return args
        at = int(number) if len(number) < _DIGITS else len(words)
        return words[at] if at < len(words) else match[0]

    for form in dict.fromkeys((pattern.sub(put, text), f"{text}\n\nARGUMENTS: {args}")):
        yield form  # should the CLI not know the variable here
        yield _VARIABLE.sub(lambda match: folders.get(match[1], match[0]), form)
