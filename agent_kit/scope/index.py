"""A scope, compiled: every question about a path is one walk down its components.

Two trees. In the *open* tree a folder's mark says what is allowed below it; its names are exact (on
Windows caseless). In the *closed* tree an entry says what is refused below it; its names are folded.
A path's cost is its depth, however many entries there are.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from agent_kit.scope.pattern_index import PatternIndex
from agent_kit.scope.patterns import Pattern
from agent_kit.scope.text import caseless, fold

__all__ = ["ClosedTree", "Entry", "OpenTree", "Rank", "Subtree", "split"]


class Rank(IntEnum):
    """What an entry refuses; the lower rank wins."""

    TOOLS_ONLY = 0
    DENIED = 1
    READ_ONLY = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """One closed entry. ``source`` is as configured, ``label`` as a sentence names it."""

    rank: Rank
    source: str
    label: str
    instead: str = ""
    pattern: bool = False


@dataclass(frozen=True, slots=True)
class Subtree:
    """What lies strictly below a folder (for a pattern: at it, too)."""

    tools_only: Entry | None = None
    denied: Entry | None = None


NOTHING_BELOW = Subtree()

# Keys of a node that are no component, whatever folding makes of a name.
_OWN, _TOOLS, _DENIED = range(3)
_Node = dict[str | int, Any]
_BELOW = {Rank.TOOLS_ONLY: _TOOLS, Rank.DENIED: _DENIED}  # what a folder learns of an entry in it


def split(path: str) -> list[str]:
    """The components of a canonical path; none for the root."""
    return path[1:].split("/") if path != "/" else []


class OpenTree:
    """Allowed folders. ``mask`` is the union of the marks at or above a path."""

    __slots__ = ("_exact", "_root")

    def __init__(self, folders: Iterable[tuple[str, int]], exact_case: bool) -> None:
        self._exact = exact_case
        self._root: _Node = {}
        for path, mark in folders:
            node = self._root
            for name in split(path if exact_case else caseless(path)):
                node = node.setdefault(name, {})
            node[_OWN] = node.get(_OWN, 0) | int(mark)
        self._inherit()

    def _inherit(self) -> None:
        """Give every node the marks above it, so that a walk has to look at the last one only."""
        todo = [(self._root, 0)]
        while todo:
            node, above = todo.pop()
            below = [child for name, child in node.items() if name != _OWN]
            mask = node[_OWN] = above | node.get(_OWN, 0)
            todo += [(child, mask) for child in below]

    def mask(self, path: str) -> int:
        return self.mask_of(split(path if self._exact else caseless(path)))

    def mask_of(self, parts: Sequence[str]) -> int:
        """As :meth:`mask`, of a path's components (caseless where case doesn't count)."""
        node: _Node = self._root
        for name in parts:
            below = node.get(name)
            if below is None:
                break
            node = below
        mask: int = node[_OWN]
        return mask


class ClosedTree:
    """Denied, tools-only and read-only entries, and the denied patterns."""

    __slots__ = ("_patterns", "_root")

    def __init__(
        self,
        entries: Iterable[tuple[str, Entry]],
        patterns: Sequence[tuple[Pattern, Entry]],
    ) -> None:
        self._root: _Node = {}
        for path, entry in entries:
            node = self._descend(path, entry, fixed=False)
            if (known := node.get(_OWN)) is None or entry.rank < known.rank:
                node[_OWN] = entry
        self._patterns: tuple[PatternIndex, dict[Pattern, Entry]] | None = None
        if patterns:
            self._patterns = (PatternIndex([p for p, _ in patterns]), dict(patterns))
            for pattern, entry in patterns:
                if pattern.fixed is not None:
                    self._descend(pattern.fixed, entry, fixed=True)

    def _descend(self, path: str, entry: Entry, *, fixed: bool) -> _Node:
        """The node of a path, made; the folders above it learn that something is below."""
        node = self._root
        key = _BELOW.get(entry.rank)
        for name in split(fold(path)):
            if key is not None and key not in node:
                node[key] = entry
            below = node.get(name)
            if below is None:
                below = node[name] = {}
            node = below
        if fixed:
            node.setdefault(_DENIED, entry)
        return node

    def find(self, path: str, *, folder: bool = False) -> tuple[Entry | None, Subtree]:
        """The strongest entry at or above a canonical path, and what lies below it.

        ``folder`` says that the path is no existing file, so that a pattern for folders fits.
        """
        folded = fold(path)
        return self.find_parts(path, folded, split(folded), folder)

    def denies(self, path: str, folder: bool) -> bool:
        """Whether a canonical path is denied; it is neither reached through tools only, nor read-only."""
        entry, _ = self.find(path, folder=folder)
        return entry is not None and entry.rank is Rank.DENIED

    def find_parts(
        self, path: str, folded: str, parts: Sequence[str], folder: bool
    ) -> tuple[Entry | None, Subtree]:
        """As :meth:`find`, with the path folded, whole and in components."""
        node: _Node | None = self._root
        found: Entry | None = self._root.get(_OWN)
        for name in parts:
            node = node.get(name)  # type: ignore[union-attr]
            if node is None:
                break
            own = node.get(_OWN)
            if own is not None and (found is None or own.rank < found.rank):
                found = own
        if self._patterns is not None and (found is None or found.rank > Rank.DENIED):
            found = self._by_pattern(path, folded, folder=folder) or found
        if node is None:
            return found, NOTHING_BELOW
        return found, Subtree(node.get(_TOOLS), node.get(_DENIED))

    def _by_pattern(self, path: str, folded: str, *, folder: bool) -> Entry | None:
        assert self._patterns is not None
        index, entries = self._patterns
        texts = folded + "/"
        match = index.match(texts if folder else folded, texts)
        if match is None and not path.isascii():
            # "?" is one character: folding may have made two of it, or none.
            plain = unicodedata.normalize("NFC", path).replace("\u0130", "i").lower()
            match = index.match(plain + "/" if folder else plain, f"{texts}{plain}/")
        return None if match is None else entries[match]
