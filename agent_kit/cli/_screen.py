"""What the demo shows, for a terminal of any width, a pipe or a file.

Whatever comes from a model or a file is shown as text: it can't hold markup, and what could steer a
terminal is escaped.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from agent_kit import Lock
    from agent_kit.testing import CallRecord

__all__ = ["Screen"]

_WIDEST: Final = 100  # columns: longer lines are hard to read
_PIPE: Final = 88  # columns where there is no terminal
_LONGEST: Final = 160  # characters of a call's input that are shown
_NARROWEST: Final = 20  # columns
_INDENT: Final = " " * 5  # the answers stand below the tools

# What answered, as it is shown: the words and their style. The keys are those of AnsweredBy.
_ANSWERS: Final[Mapping[str, tuple[str, str]]] = {
    "ran": ("allowed", "green"),
    "gate": ("DENIED by lock 1, the gate", "bold red"),
    "rules": ("DENIED by lock 2, the rules", "bold red"),
    "prompt-gate": ("BLOCKED by lock 3, the prompt gate", "bold red"),
    "tool": ("failed in the tool itself", "yellow"),
}
# The fields that say what a call is about: the first that is there is shown.
_TELLING: Final = (
    "file_path",
    "notebook_path",
    "subagent_type",
    "query",
    "id",
    "note",
    "skill",
    "command",
    "url",
)


class Screen:
    """Prints as things happen, and never twice over the same place.

    With ``plain`` there are no colours, and the demo's own characters are ASCII.
    """

    def __init__(self, *, plain: bool = False) -> None:
        self._plain = plain
        self._console = _console(plain, stderr=False)
        self._ascii = plain or not self._console.encoding.startswith("utf")
        self._numbers: dict[str, int] = {}
        self._last: str | None = None  # the call that was printed last, when nothing followed it

    # --- parts -------------------------------------------------------------------------------

    def title(self, text: str) -> None:
        self._print(Text(text, style="bold"))

    def section(self, text: str) -> None:
        self.gap()
        self._print(Text(text, style="bold cyan"))

    def gap(self) -> None:
        """An empty line."""
        self._last = None
        self._console.print()

    def paragraph(self, text: str, *, indent: int = 2, style: str = "") -> None:
        self._print(Text(_line(text), style=style), " " * indent)

    def rows(self, rows: Iterable[tuple[str, ...]]) -> None:
        """Columns; only the last one is broken into lines."""
        cells = list(rows)
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for *first, last in cells:
            head = "".join(f"{cell:<{width}}  " for cell, width in zip(first, widths, strict=False))
            self._print(Text(last), f"  {head}")

    def locks(self, locks: Mapping[str, Lock]) -> None:
        """Which locks are on, numbered as the answers name them."""
        self.rows(
            (f"lock {number}, {name}", "on" if lock.on else "off", lock.reason)
            for number, (name, lock) in enumerate(locks.items(), start=1)
        )

    def check(self, ok: bool, text: str, details: Iterable[str] = ()) -> None:
        """One claim of the proof, whether it holds, and what speaks against it."""
        words = ("ok    " if ok else "FAILED") if self._ascii else ("✓" if ok else "✗")
        head = Text.assemble("  ", (f"{words} ", "bold green" if ok else "bold red"))
        self._print(Text(text), head)
        for detail in details:
            self._print(Text(_line(detail), style="red"), " " * len(head))

    def error(self, text: str) -> None:
        """One sentence on standard error."""
        console = _console(self._plain, stderr=True)
        console.width = max(console.width, len(text))
        _show(console, Text(_line(text), style="red"))

    # --- a session, as it happens ------------------------------------------------------------

    def prompted(self, prompt: str) -> None:
        self.gap()
        self._print(Text(prompt), Text("The person: ", style="bold"))

    def said(self, text: str, agent: str | None) -> None:
        self._last = None
        who = f"   The {agent}: " if agent else "The model: "
        self._print(Text(text), Text(who, style="bold"))

    def called(self, call: CallRecord) -> None:
        number = self._numbers.setdefault(call.call_id, len(self._numbers) + 1)
        who = f"({call.agent}) " if call.agent else ""
        line = Text.assemble((who, "magenta"), (call.tool, "bold"), " ", _input(call))
        self._print(line, Text(f"{_margin(call)}{number:>3}  ", style="dim"))
        self._last = call.call_id

    def answered(self, call: CallRecord) -> None:
        words, style = _ANSWERS[str(call.lock)]
        if self._last != call.call_id:
            words = f"{self._numbers[call.call_id]} {call.tool}: {words}"
        self._last = None
        line = Text.assemble((words, style), ": ", _line(call.result or "", " / "))
        head = _margin(call) + _INDENT
        if call.lock == "ran":
            line = self._cut(line, self._console.width - len(head))
        self._print(line, head)

    def blocked(self, reason: str) -> None:
        words, style = _ANSWERS["prompt-gate"]
        self._print(Text.assemble((words, style), ": ", _line(reason)), _INDENT)

    def failed(self, reason: str) -> None:
        self._print(Text(_line(reason)), Text("The CLI reports an error: ", style="bold red"))

    # --- printing ----------------------------------------------------------------------------

    def _print(self, text: Text, head: Text | str = "") -> None:
        _show(self._console, text, head)

    def _cut(self, line: Text, width: int) -> Text:
        if len(line) <= width:
            return line
        mark = "..." if self._ascii else "…"
        return line[: max(width, _NARROWEST) - len(mark)] + Text(mark, style="dim")


def _margin(call: CallRecord) -> str:
    """What stands to the left of a call: a subagent's are further to the right."""
    return "   " if call.agent else ""


def _show(console: Console, text: Text, head: Text | str = "") -> None:
    """``head``, and ``text`` beside it, broken into as many lines as it takes.

    A path is never broken. Everything that is shown goes through here: what could steer a terminal
    becomes a "?".
    """
    width = max(console.width - len(head), _NARROWEST)
    for number, line in enumerate(_broken(text, width)):
        line.rstrip()
        whole = Text.assemble(head if number == 0 else " " * len(head), line)
        whole.plain = "".join(char if char.isprintable() else "?" for char in whole.plain)
        console.print(whole, soft_wrap=True)


def _broken(text: Text, width: int) -> Iterator[Text]:
    """The lines of ``text``, broken between words only."""
    for line in text.split("\n", allow_blank=True):
        breaks, column = [], 0
        for word in re.finditer(r"\s*\S+\s*", line.plain):
            if column and column + cell_len(word.group().rstrip()) > width:
                breaks.append(word.start())
                column = 0
            column += cell_len(word.group())
        yield from line.divide(breaks)


def _console(plain: bool, *, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")  # a mark must not end the demo
    if plain:
        console = Console(
            stderr=stderr, color_system=None, force_terminal=False, highlight=False, emoji=False
        )
    else:
        console = Console(stderr=stderr, highlight=False, emoji=False)
    piped = not console.is_terminal and "COLUMNS" not in os.environ
    console.width = _PIPE if piped else min(console.width, _WIDEST)
    return console


def _input(call: CallRecord) -> str:
    """What a call is about, on one line."""
    given = {name: _line(str(value)) for name, value in call.input.items()}
    if "pattern" in given:
        text = f'"{given["pattern"]}"' + (f" in {given['path']}" if "path" in given else "")
    else:
        telling = next((given[name] for name in _TELLING if name in given), None)
        text = telling or ", ".join(f"{name}: {value}" for name, value in given.items())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _line(text: str, between: str = " ") -> str:
    """``text`` on one line, with ``between`` where there were several."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return between.join(line for line in lines if line)
