"""A question as rows of a given width: who asks, for what, why, and the whole input.

The words of the model and of the host's rules stand to the right of a mark: ``|`` begins a line of
theirs, ``:`` goes on with it on the next row. So no text, however long, can pass for another field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, Final

from agent_kit.policy.approval import Approval
from agent_kit.policy.folder import needs_folder
from agent_kit.terminal.literal import is_literal, on_rows, signs, to_json

__all__ = ["Piece", "Row", "choices", "heading", "sheet"]

Piece = tuple[str, str]
"""A text and its style, as rich names it."""

Row = tuple[Piece, ...]

_MARKS: Final = ("| ", ": ")
_NO_MARKS: Final = ("", "")
_ESCAPE: Final = "bold red"
_LABEL: Final = "bold"
_OWN: Final = "dim"
_DEEPEST: Final = 4  # levels that are shown as a tree; what lies deeper is shown as JSON
_NARROWEST: Final = 10  # cells for a text, however far it is indented
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")


def sheet(approval: Approval, width: int, encoding: str = "utf-8") -> list[Row]:
    """The whole question, cut nowhere. Raises what ``to_json`` raises for an input that is no JSON."""
    return [
        (("-" * width, _OWN),),
        (("A call waits for your answer.", _LABEL),),
        *heading(approval, width, encoding),
        *_input(approval.tool_input, width, encoding),
    ]


def heading(approval: Approval, width: int, encoding: str = "utf-8") -> list[Row]:
    """What is asked, without the input."""
    fields = (
        ("tool", approval.tool),
        ("agent", approval.agent),
        ("target", approval.target),
        ("folder", _folder(approval)),
        ("reason", approval.reason),
    )
    rows: list[Row] = []
    for label, text in fields:
        head = f"  {label:<7}"
        if text is not None:
            rows += _beside(head, text, width, encoding)
        elif label == "agent":
            rows.append(((head, _LABEL), ("= the main agent", "")))
    return rows


def _folder(approval: Approval) -> str | None:
    """The folder that the call is made in, where that counts."""
    return approval.cwd if needs_folder(approval.tool, approval.tool_input) else None


def choices(approval: Approval, editor: str | None, width: int, encoding: str) -> list[Row]:
    """What may be answered."""
    how = f"in {editor}" if editor else "as JSON on one line"
    no = 'no; "n" and a text tells the model the text ("n use the copy in drafts")'
    wanted = approval.asks_for
    offers = [
        ("y", "yes, run it") if wanted is None else ("g", f"give it: {wanted}, on one line"),
        ("n", no),
        (
            "e",
            f"edit the {'input first' if wanted is None else 'whole input'} ({how}); it is judged again",
        ),
    ]
    if approval.rule is not None:
        again = f"yes, and don't ask again for {approval.rule} in this session"
        offers.append(("r", again))
    rows: list[Row] = [()]
    for key, text in offers:
        rows += _beside(f"  {key}  ", text, width, encoding, marks=_NO_MARKS)
    return rows


def _input(tool_input: Mapping[str, Any], width: int, encoding: str) -> Iterator[Row]:
    if not tool_input:
        yield ("  input  ", _LABEL), ("= {}", "")
        return
    yield (("  input", _LABEL),)
    for key, value in tool_input.items():
        yield from _field(_key(key, encoding), value, 2, width, encoding)


def _field(label: str, value: object, level: int, width: int, encoding: str) -> Iterator[Row]:
    """One field, below its label, as deep as ``level``."""
    margin = "  " * level
    if isinstance(value, str):
        plain = is_literal(value, encoding)
        yield from _label(margin, label, "" if plain else "escaped: \\\\ is one backslash", width)
        yield from _lines(margin + "  ", value.split("\n"), width, encoding, literal=plain)
    elif level > _DEEPEST and value and isinstance(value, Mapping | list | tuple):
        yield from _label(margin, label, "as JSON", width)
        lines = to_json(value, indent=1, encoding=encoding).split("\n")
        yield from _lines(margin + "  ", lines, width, encoding, literal=True)
    elif value and isinstance(value, Mapping):
        yield from _label(margin, label, "", width)
        for key, inner in value.items():
            yield from _field(_key(key, encoding), inner, level + 1, width, encoding)
    elif value and isinstance(value, list | tuple):
        yield from _label(margin, label, "", width)
        for number, inner in enumerate(value):
            yield from _field(f"[{number}]", inner, level + 1, width, encoding)
    else:
        said = f"{label} = {to_json(value, encoding=encoding)}"
        yield from _lines(margin, [said], width, encoding, literal=True, marks=("", ": "))


def _key(key: object, encoding: str) -> str:
    """A key, in quotes unless it is a plain word."""
    if isinstance(key, str) and _PLAIN_KEY.fullmatch(key):
        return key
    return to_json(key, encoding=encoding)


def _label(margin: str, label: str, note: str, width: int) -> Iterator[Row]:
    rows = _lines(margin, [label], width, "utf-8", literal=True, marks=("", ": "), style=_LABEL)
    yield from rows
    if note:
        yield ((f"{margin}  ({note})", _OWN),)


def _beside(
    head: str, text: str, width: int, encoding: str, *, marks: tuple[str, str] = _MARKS
) -> Iterator[Row]:
    """``text`` as one line, beside ``head``. A line break in it is shown as an escape."""
    plain = "\n" not in text and is_literal(text, encoding)
    rows = _lines(" " * len(head), [text], width, encoding, literal=plain, marks=marks)
    for number, row in enumerate(rows):
        yield ((head, _LABEL), *row[1:]) if number == 0 else row


def _lines(
    margin: str,
    lines: Iterable[str],
    width: int,
    encoding: str,
    *,
    literal: bool,
    marks: tuple[str, str] = _MARKS,
    style: str = "",
) -> Iterator[Row]:
    """``lines`` below each other, each on as many rows as it takes."""
    first, further = marks
    room = max(width - len(margin) - len(further), _NARROWEST)
    for line in lines:
        if literal and len(line) <= room and line.isascii():
            yield (margin, ""), (first, _OWN), (line, style)
            continue
        for number, row in enumerate(on_rows(signs(line, encoding, literal=literal), room)):
            mark = further if number else first
            yield (margin, ""), (mark, _OWN), *_pieces(row, style)


def _pieces(row: list[tuple[str, bool]], style: str) -> Iterator[Piece]:
    for escaped, run in groupby(row, key=lambda sign: sign[1]):
        yield "".join(text for text, _ in run), _ESCAPE if escaped else style
