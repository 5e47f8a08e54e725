"""The ``@path`` mentions of a prompt, as the CLI reads them.

The CLI attaches the files that a prompt mentions, and lists the folders, before any tool is called.
Measured on CLI 2.1.332:

* A mention begins with ``@`` at the start of the text, after white space (JavaScript's), or after
  one of ``、。！？``. So ``(@x)``, ``"@x"``, ``me@x`` and ``<b>@x`` are none.
* Quoted, it is what stands between ``@"`` and the next ``"``, line breaks included, trimmed.
* Bare, it goes to the next white space and from there back to the last ASCII letter, digit or
  underscore: ``@notes.md),`` names ``notes.md``, and ``@café`` names ``caf``.
* One ``#…`` (or ``#L1-9#…``) at its end is dropped; with more of them the whole text is the name.
* A later mention may stand inside a quoted one; a bare one ends before the next begins.

A mention is a text, not yet a file: the caller reads each of its ``readings`` as it reads a path of
the Read tool (``~`` is the home folder, ``..`` is collapsed as text, before anything is looked up).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent_kit.scope.text import JS_SPACE

__all__ = ["Mention", "find_mentions", "screenshot_twin"]

_SPACE = re.escape(JS_SPACE)
_BEFORE = rf"(?:^|[{_SPACE}、。！？])"
# Possessive: no input makes either of these look at a character more than twice.
_QUOTED = re.compile(rf'{_BEFORE}@"([^"]++)"')
_BARE = re.compile(rf'{_BEFORE}@((?!")[^{_SPACE}]++)')
_RANGE = re.compile(r"([^#]++)(?:#L[0-9]++(?:-[0-9]++)?)?(?:#[^#]*+)?")
_SCREENSHOT = re.compile(r"[^/\\]([ \u202f])[AP]M\.png")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One mention. ``text`` is how it stands in the prompt, ``path`` the path that the CLI opens.

    ``readings`` begin with ``path`` and hold every other path text that the same words might mean:
    with the punctuation that follows, with the ``#…`` at its end, a screenshot's other name. They are relative to the working
    folder of the session unless absolute, trimmed, never empty, and hold no NUL; such a text need
    not be a name that this machine can encode.
    """

    text: str
    path: str
    readings: tuple[str, ...]


def find_mentions(prompt: str) -> tuple[Mention, ...]:
    """Every text in ``prompt`` that the CLI would try to open, in order, each once.

    It finds at least what the CLI expands, and never raises for any string. The time is linear in
    the prompt's length.

    >>> [mention.path for mention in find_mentions('see @a.txt, @"my notes.md"#L3 and (@b.txt)')]
    ['a.txt', 'my notes.md']
    >>> find_mentions("@src/a.py#L1-9.")[0].readings
    ('src/a.py', 'src/a.py#L1-9', 'src/a.py#L1-9.')
    """
    if "@" not in prompt:
        return ()
    found = [*_quoted(prompt), *_bare(prompt)]
    found.sort(key=lambda each: each[0])
    return tuple({mention: None for _, mention in found})


def screenshot_twin(path: str) -> str | None:
    """The other file that the CLI opens when ``path`` is missing, if there may be one.

    macOS writes a narrow no-break space before AM and PM in the names of screenshots. The CLI tries
    the name with that space where it was given a plain one, and the other way round.

    >>> screenshot_twin("Screenshot at 9.41.00 AM.png")
    'Screenshot at 9.41.00\\u202fAM.png'
    """
    match = _SCREENSHOT.fullmatch(path[-8:])
    if match is None:
        return None
    space = " " if match[1] == "\u202f" else "\u202f"
    return path[:-7] + space + path[-6:]


def _quoted(prompt: str) -> Iterator[tuple[int, Mention]]:
    for match in _QUOTED.finditer(prompt):
        inner = match[1]
        mention = _mention(f'@"{inner}"', (_without_range(inner), inner))
        if mention is not None:
            yield match.start(1), mention


def _bare(prompt: str) -> Iterator[tuple[int, Mention]]:
    for match in _BARE.finditer(prompt):
        whole = match[1]
        if not _names_something(whole):
            continue  # "@", "@..", "@/": the CLI finds no word in it
        cut = _cut(whole)
        texts = (_without_range(cut), cut, _without_range(whole), whole)
        mention = _mention(f"@{cut or whole}", texts)
        if mention is not None:
            yield match.start(1), mention


def _mention(text: str, texts: tuple[str, ...]) -> Mention | None:
    trimmed = (each.strip(JS_SPACE) or "." for each in texts if each)  # '@" "' is the folder itself
    possible = [each for each in trimmed if "\0" not in each]
    twins = [twin for each in possible if (twin := screenshot_twin(each)) is not None]
    readings = tuple(dict.fromkeys([*possible, *twins]))
    return Mention(text=text, path=readings[0], readings=readings) if readings else None


def _names_something(text: str) -> bool:
    return any(char.isalnum() or char == "_" for char in text)


def _cut(text: str) -> str:
    """``text`` up to its last ASCII letter, digit or underscore."""
    end = len(text)
    while end and not (
        text[end - 1].isascii() and (text[end - 1].isalnum() or text[end - 1] == "_")
    ):
        end -= 1
    return text[:end]


def _without_range(text: str) -> str:
    """``text`` as the CLI reads it when it looks for a line range at the end."""
    match = _RANGE.fullmatch(text)
    return match[1] if match is not None else text
