"""HTML as Markdown, event by event: however deep it is nested, nothing here calls itself.

Kept are headings, paragraphs, lists, quotes, preformatted text, tables, the addresses of links and
what stands for a picture. What a page shows and what it hides by its style are not told apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from .cells import table

__all__ = ["markdown"]

_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
# Lines that end before and after: 2 leaves an empty one.
_BREAKS = dict.fromkeys(
    [*_HEADINGS, "p", "ul", "ol", "dl", "pre", "blockquote", "hr", "table", "figure", "caption"], 2
) | dict.fromkeys(
    ["address", "article", "aside", "body", "center", "dd", "details", "div", "dt",
     "fieldset", "figcaption", "footer", "form", "header", "legend", "li", "main", "nav", "option",
     "section", "summary", "tr"], 1,
)  # fmt: skip
_UNSEEN = frozenset({"script", "style", "template", "svg", "iframe", "object"})
_CELLS = frozenset({"td", "th"})
_SPACE = re.compile(r"[ \t\r\n\f]+")
_MOST_TABLES = 5  # in each other; deeper ones are read as lines
_MOST_INDENT = 10  # lists or quotes in each other that are shown
_LONGEST_ADDRESS = 500  # characters


@dataclass(slots=True)
class _Frame:
    """The text of the page, or of one cell. ``lines`` are due before the next text, then ``lead``."""

    pieces: list[str] = field(default_factory=list)
    lines: int = 0
    lead: str = ""
    is_at_start: bool = True  # of a line: no space is wanted

    def break_line(self, lines: int) -> None:
        if not self.lead and self.pieces:  # a list's mark waits for its text
            self.lines = max(self.lines, lines)

    def add(self, text: str, quote: str) -> None:
        if self.lines or self.lead or not self.pieces:
            text = "\n" * self.lines + quote + self.lead + text
            self.lines, self.lead = 0, ""
        self.pieces.append(text)
        self.is_at_start = text.endswith((" ", "\n"))

    def text(self) -> str:
        return "".join(self.pieces).strip()


@dataclass(slots=True)
class _Table:
    rows: list[list[str]] = field(default_factory=list)
    has_open_cell: bool = False


class _Renderer(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self._frames = [_Frame()]
        self._tables: list[_Table] = []
        self._ignored_tables = 0
        self._lists: list[int] = []  # the last number, or -1 in a list of points
        self._quotes = 0
        self._unseen: list[str] = []
        self._pre = 0
        self._in_title = False
        self._links: list[str] = []

    # --- events ------------------------------------------------------------------------------

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN or self._unseen:
            if not self._unseen or tag == self._unseen[-1]:
                self._unseen.append(tag)
            return
        if tag in _BREAKS:
            self._break_line(tag)
        if tag in _HEADINGS:
            self._frame.lead = _HEADINGS[tag]
        elif tag in _CELLS and self._tables and not self._ignored_tables:
            self._open_cell()
        elif (opens := getattr(self, f"_open_{tag}", None)) is not None:
            opens(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if self._unseen:
            if tag == self._unseen[-1]:
                self._unseen.pop()
            return
        if tag in _HEADINGS:
            self._frame.lead = ""  # a heading without text
        elif tag in _CELLS and self._tables and not self._ignored_tables:
            self._close_cell()
        elif (closes := getattr(self, f"_close_{tag}", None)) is not None:
            closes()
        if tag in _BREAKS:
            self._break_line(tag)

    def handle_data(self, data: str) -> None:
        if self._unseen:
            return
        if self._in_title:
            self.title += data
        elif self._pre:
            self._put(data)
        else:
            frame = self._frame
            text = _SPACE.sub(" ", data)
            if frame.is_at_start or frame.lines or frame.lead:
                text = text.lstrip(" ")
            if text:
                self._put(text)

    # --- elements ----------------------------------------------------------------------------

    def _open_title(self, _attributes: dict[str, str | None]) -> None:
        self._in_title = not self.title

    def _close_title(self) -> None:
        self._in_title = False

    def _open_body(self, _attributes: dict[str, str | None]) -> None:
        self._in_title = False

    def _open_br(self, _attributes: dict[str, str | None]) -> None:
        self._put("\n")

    def _open_hr(self, _attributes: dict[str, str | None]) -> None:
        self._put("---")
        self._frame.break_line(2)

    def _open_img(self, attributes: dict[str, str | None]) -> None:
        if text := _SPACE.sub(" ", attributes.get("alt") or "").strip():
            self._put(f"[picture: {text}]")

    def _open_a(self, attributes: dict[str, str | None]) -> None:
        self._links.append((attributes.get("href") or "").strip())

    def _close_a(self) -> None:
        address = self._links.pop() if self._links else ""
        told = address.startswith(("http://", "https://", "mailto:"))
        if told and len(address) <= _LONGEST_ADDRESS and not set(address) & set(" <>\n\r\t"):
            self._put(f" <{address}>")

    def _open_pre(self, _attributes: dict[str, str | None]) -> None:
        self._pre += 1
        self._put("```\n")

    def _close_pre(self) -> None:
        if self._pre:
            self._pre -= 1
            self._put("\n```")

    def _open_blockquote(self, _attributes: dict[str, str | None]) -> None:
        self._quotes += 1

    def _close_blockquote(self) -> None:
        self._quotes = max(0, self._quotes - 1)

    def _open_ul(self, _attributes: dict[str, str | None]) -> None:
        self._lists.append(-1)

    def _open_ol(self, _attributes: dict[str, str | None]) -> None:
        self._lists.append(0)

    def _close_ul(self) -> None:
        self._frame.lead = ""
        if self._lists:
            self._lists.pop()

    _close_ol = _close_ul

    def _open_li(self, _attributes: dict[str, str | None]) -> None:
        indent = "  " * (min(len(self._lists), _MOST_INDENT) - 1)
        if not self._lists or self._lists[-1] < 0:
            self._frame.lead = f"{indent}- "
        else:
            self._lists[-1] += 1
            self._frame.lead = f"{indent}{self._lists[-1]}. "

    def _open_table(self, _attributes: dict[str, str | None]) -> None:
        if self._ignored_tables or len(self._tables) == _MOST_TABLES:
            self._ignored_tables += 1
        else:
            self._tables.append(_Table())

    def _close_table(self) -> None:
        if self._ignored_tables:
            self._ignored_tables -= 1
        elif self._tables:
            self._close_cell()
            rows = [row for row in self._tables.pop().rows if any(row)]
            if not rows:
                return
            inner = "; ".join(", ".join(filter(None, row)) for row in rows)
            self._put(inner if self._tables else table(rows))

    def _open_tr(self, _attributes: dict[str, str | None]) -> None:
        if self._tables and not self._ignored_tables:
            self._close_cell()
            self._tables[-1].rows.append([])

    def _close_tr(self) -> None:
        if self._tables and not self._ignored_tables:
            self._close_cell()

    # --- the text ----------------------------------------------------------------------------

    def _break_line(self, tag: str) -> None:
        """Items of a list, and what is in them, stand without empty lines between."""
        is_tight = self._lists and tag in ("p", "ul", "ol")
        self._frame.break_line(1 if is_tight else _BREAKS[tag])

    @property
    def _frame(self) -> _Frame:
        return self._frames[-1]

    def _put(self, text: str) -> None:
        self._frame.add(text, "> " * min(self._quotes, _MOST_INDENT))

    def _open_cell(self) -> None:
        self._close_cell()
        if not self._tables[-1].rows:
            self._tables[-1].rows.append([])
        self._tables[-1].has_open_cell = True
        self._frames.append(_Frame())

    def _close_cell(self) -> None:
        if self._tables[-1].has_open_cell:
            self._tables[-1].has_open_cell = False
            self._tables[-1].rows[-1].append(self._frames.pop().text())

    def finished(self) -> str:
        self.close()
        while self._tables:
            self._close_table()
        return self._frames[0].text()


def markdown(html: str) -> tuple[str, str]:
    """The page's title, and its text as Markdown."""
    renderer = _Renderer()
    renderer.feed(html)
    text = renderer.finished()
    return _SPACE.sub(" ", renderer.title).strip(), text
