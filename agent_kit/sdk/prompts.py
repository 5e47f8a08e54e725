"""How the CLI reads a prompt as a slash command.

Measured on CLI 2.1.332 and 2.1.317:

* A prompt is a command when it begins with ``/`` and a word; white space before it makes it plain
  text. Of a list of content blocks only the last one counts, and only when it is text.
* The word ends at white space (JavaScript's). What follows, trimmed, are the arguments. ``(MCP)``
  as the first of them belongs to the name.
* Letters count as they are: ``/Help`` is not ``/help``. Any word that is a command's name runs it,
  ``/a.b`` and ``/café`` too; ``/a b`` runs ``a:b`` when there is no ``a``.
* A word that no command has is text: with a further slash (``/etc/hosts is broken``), with other
  signs (``/* x``), or when there is such a path (``/tmp``). Else the model is told that the command
  doesn't exist.

This module is loaded alone by :mod:`agent_kit.sdk.verbatim`: it imports the standard library only.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["NOTIFICATION", "slash_command"]

NOTIFICATION: Final = "<task-notification>"
"""How a prompt begins that the CLI submits itself: the words of what ran in the background."""

# As agent_kit.scope.text: what JavaScript takes for white space, and what Python does.
_JS_SPACE: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_ANY_SPACE: Final = _JS_SPACE + "\x1c\x1d\x1e\x1f\x85"
_WORD_END: Final = re.compile(f"[{re.escape(_JS_SPACE)}]")
_MCP: Final = re.compile(rf"\(MCP\)(?=[{re.escape(_JS_SPACE)}]|$)")
_LETTER: Final = re.compile(r"\w")


def slash_command(prompt: str) -> tuple[str, str] | None:
    """The name and the arguments of the command that the CLI may run for ``prompt``.

    ``None``: plain text. White space before the slash is passed over, so that this finds at least
    what any CLI runs; a word with another slash in it, or without a letter or digit, is a path or
    prose. It never raises for any string, and takes time linear in its length.

    >>> slash_command("/sources:cite a  b "), slash_command("/cite")
    (('sources:cite', 'a  b'), ('cite', ''))
    >>> slash_command("/srv/data/x.csv is broken"), slash_command("see /cite"), slash_command("/* x")
    (None, None, None)
    """
    text = prompt.strip(_ANY_SPACE)
    if not text.startswith("/"):
        return None
    end = _WORD_END.search(text)
    name = text[1 : end.start()] if end else text[1:]
    args = text[end.end() :].strip(_JS_SPACE) if end else ""
    if "/" in name or not _LETTER.search(name):
        return None
    if mark := _MCP.match(args):
        return f"{name} (MCP)", args[mark.end() :].strip(_JS_SPACE)
    return name, args
