"""One question, from its first row to the answer. It runs in a thread, and blocks there."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from agent_kit.policy.approval import Approval, PersonsAnswer, Rejected, approve, edit, reject
from agent_kit.terminal.device import Device, EndOfInput, Withdrawn
from agent_kit.terminal.editor import NotEdited, edit_text, editor_command, read_input
from agent_kit.terminal.literal import is_literal, signs, to_json
from agent_kit.terminal.sheet import Row, choices, heading, sheet

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Dialogue"]

_NARROWEST: Final = 20  # columns
_LOWEST: Final = 5  # rows of a page
_AT_ONCE: Final = 200  # rows that are written before somebody looks whether the question stands
_WIDEST: Final = 10_000  # columns for rich, which may drop blanks beyond (13.7 does)
_DUMB: Final = frozenset({"", "dumb", "unknown"})  # values of TERM

# What an earlier output may have left behind: a scroll region, another character set, invisible
# text, insert mode, no wrapping, no cursor (ECMA-48, DEC VT510).
_SOBER: Final = "\x1b7\x1b[r\x1b8\x0f\x1b(B\x1b[0m\x1b[4l\x1b[?7h\x1b[?25h"

_SHORT_LINE: Final = 1000  # bytes: macOS takes 1023 in a line, Linux 4095
_TOO_LONG: Final = "A line of the terminal is short: set $EDITOR for a long input."


class Dialogue:
    """Shows one question on ``device`` and reads the answer.

    ``waiting`` says how many more questions wait, ``withdrawn`` whether this one is. With ``plain``
    there are no colours. Raises ImportError where rich is missing.
    """

    def __init__(
        self,
        device: Device,
        approval: Approval,
        *,
        plain: bool,
        waiting: Callable[[], int],
        withdrawn: Callable[[], bool],
    ) -> None:
        self._device = device
        self._approval = approval
        self._waiting, self._withdrawn = waiting, withdrawn
        self._steers = not plain and os.environ.get("TERM", "") not in _DUMB
        self._console = _console(self._steers)
        self._editor = editor_command()
        self._draft: str | None = None

    def run(self) -> PersonsAnswer:
        """The answer. Raises Withdrawn, and TypeError, ValueError or RecursionError for an input
        that can't be shown."""
        try:
            return self._show() or self._choose()
        except EndOfInput:
            with suppress(EndOfInput):
                self._device.write("\n")
            return reject()
        except Withdrawn:
            self._device.forget_input()
            with suppress(EndOfInput):
                self._device.write("\nWithdrawn: this call waits for no answer any more.\n")
            raise

    # --- the question ------------------------------------------------------------------------

    def _show(self) -> Rejected | None:
        """All of it, page after page where it is higher than the screen. A page may bring a no."""
        width, height = self._size()
        rows = sheet(self._approval, width, self._device.encoding)
        below = len(self._choices(width)) + 2
        self._device.write("\n" + _SOBER if self._steers else "\n")
        if len(rows) + below <= height:
            self._rows(rows)
            return None
        below += len(recap := heading(self._approval, width, self._device.encoding)) + 1
        shown = 0
        while shown < len(rows):
            now, height = self._size()
            if now != width:  # the rows fit no more: once again
                return self._show()
            page = rows[shown : shown + max(height - 2, _LOWEST)]
            self._rows(page)
            shown += len(page)
            if shown < len(rows) or len(page) + below > height:
                answer = self._more(shown, len(rows))
                if isinstance(answer, Rejected):
                    return answer
                if answer == "all":
                    self._rows(rows[shown:])
                    break
        self._rows([(), *recap])
        return None

    def _more(self, shown: int, rows: int) -> Rejected | str:
        prompt = f"-- {shown} of {rows} rows. Enter: more, a: all the rest, n: no > "
        while True:
            line = self._ask(prompt)
            word, text = _split(line)
            if not line.strip():
                return "more"
            if word in ("a", "all") and not text:
                return "all"
            if (no := _no(word, text)) is not None:
                return no
            self._device.write("First the whole question, then the answer.\n")

    # --- the answer --------------------------------------------------------------------------

    def _choose(self) -> PersonsAnswer:
        remembers, wanted = self._approval.rule is not None, self._approval.asks_for
        question = "Run it?" if wanted is None else "Your answer?"
        keys = f"{'y' if wanted is None else 'g'}/n/e{'/r' if remembers else ''}"
        self._rows(self._choices(self._size()[0]))
        while True:
            if more := self._waiting():
                self._device.write(f"{more} more {'is' if more == 1 else 'are'} waiting.\n")
            word, text = _split(self._ask(f"{question} [{keys}] "))
            if (no := _no(word, text)) is not None:
                return no
            if word in ("y", "yes") and not text and wanted is None:
                return approve()
            if word in ("g", "give") and wanted is not None:
                if (given := self._give(wanted, text)) is not None:
                    return given
                continue
            if word == "r" and not text and remembers:
                return approve(remember=True)
            if word in ("e", "edit") and not text:
                if (edited := self._edit()) is not None:
                    return edited
            else:
                self._device.write(f"Please answer with one of {keys}.\n")

    def _give(self, wanted: str, text: str) -> PersonsAnswer | None:
        """The field that is asked for, as they write it: ``text``, or else on a line of its own."""
        given = text or self._ask(f"{wanted}: ").strip()
        if not given:
            self._device.write("Nothing was given.\n")
            return None
        return edit({**self._approval.tool_input, wanted: given})

    def _edit(self) -> PersonsAnswer | None:
        try:
            before = to_json(dict(self._approval.tool_input), indent=2)
            text = self._new_text(before)
            new = read_input(text) if text.strip() else None
        except NotEdited as why:
            reason = str(why)
            plain = is_literal(reason, self._device.encoding)
            said = "".join(sign for sign, _ in signs(reason, self._device.encoding, literal=plain))
            self._device.write(said + "\n")
            return None
        if new is None or to_json(new, indent=2) == before:
            self._device.write("Nothing was changed.\n")
            return None
        return edit(new)

    def _new_text(self, before: str) -> str:
        if self._editor is not None:
            draft = self._draft or before
            self._draft = edit_text(draft, self._editor, self._device, self._withdrawn)
            return self._draft
        text = self._ask("The new input, as JSON on one line: ")
        if len(text.encode(errors="replace")) >= _SHORT_LINE:
            self._device.write(_TOO_LONG + "\n")
        return text

    # --- the terminal ------------------------------------------------------------------------

    def _ask(self, prompt: str) -> str:
        """A line that was typed after the prompt came."""
        self._device.forget_input()
        self._device.write(prompt)
        return self._device.read_line(self._withdrawn)

    def _size(self) -> tuple[int, int]:
        """Columns that a row may fill, and rows: the last column is left free, for terminals that
        break a line there."""
        columns, rows = self._device.size()
        return max(columns - 1, _NARROWEST), rows

    def _choices(self, width: int) -> list[Row]:
        return choices(self._approval, self._editor, width, self._device.encoding)

    def _rows(self, rows: Sequence[Row]) -> None:
        from rich.text import Text

        for first in range(0, len(rows), _AT_ONCE):
            if self._withdrawn():
                raise Withdrawn
            text = Text()
            for row in rows[first : first + _AT_ONCE]:
                for piece, style in (*row, ("\n", "")):
                    text.append(piece, style or None)
            with self._console.capture() as written:
                self._console.print(text, soft_wrap=True, end="")
            self._device.write(written.get())


def _console(steers: bool) -> Console:
    """A console that writes nowhere: its text goes to the device."""
    from rich.console import Console

    return Console(
        file=io.StringIO(),
        width=_WIDEST,
        force_terminal=steers,
        force_jupyter=False,
        color_system="auto" if steers else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )


def _split(line: str) -> tuple[str, str]:
    """The first word, in small letters, and what follows it."""
    word, _, text = line.strip().partition(" ")
    return word.lower(), text.strip()


def _no(word: str, text: str) -> Rejected | None:
    return reject(text) if word.rstrip(",:;.") in ("n", "no") else None
