"""Which of many rules matches a path first, in nearly constant time.

Nearly every pattern names one path, all below one folder, or one name anywhere. Those are found on
one walk down the path's components, however many there are; only the others are tried, by an index of
the texts that they fix.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

from agent_kit.policy.patterns import RulePattern, normal
from agent_kit.scope.index import split
from agent_kit.scope.pattern_index import PatternIndex
from agent_kit.scope.patterns import is_pattern, unescaped

__all__ = ["NEVER", "Lookup"]

NEVER: Final = sys.maxsize  # no rule's number

# Keys of a node that are no component. The lowest number of a rule for: the path itself and all below;
# the path as a folder and all below; what is below alone; and, of all above and here, what is below.
_ITSELF, _FOLDER, _BELOW, _PASSED = range(4)
_Node = dict[str | int, Any]
_ALL: Final = ("**", "*")


class Lookup:
    """Numbered patterns. ``first`` is the lowest number of one that matches a path."""

    __slots__ = ("_anywhere", "_folders", "_index", "_lowest", "_numbers", "_root")

    def __init__(self, patterns: Sequence[tuple[int, RulePattern]]) -> None:
        self._root: _Node = {}
        self._anywhere: dict[str, int] = {}  # names, wherever they are
        self._folders: dict[str, int] = {}  # names of folders, wherever they are
        numbers: dict[RulePattern, int] = {}
        for number, pattern in sorted(patterns, key=_number):
            if not self._file(number, pattern):
                numbers.setdefault(pattern, number)
        self._numbers = numbers
        self._index = PatternIndex(list(numbers))
        self._lowest = min(numbers.values(), default=NEVER)
        _inherit(self._root)

    def _file(self, number: int, pattern: RulePattern) -> bool:
        """Whether the pattern was filed as one of those that need no trial."""
        segments, literal = pattern.segments, pattern.literal
        if literal is not None:
            _lower(self._node(literal), _ITSELF, number)
        elif pattern.fixed is None:
            return self._file_anywhere(number, segments)
        elif segments == ("**",) or (segments == ("**", "") and pattern.fixed != "/"):
            _lower(self._node(pattern.fixed), _FOLDER, number)
        elif segments == ("*",):
            _lower(self._node(pattern.fixed), _BELOW, number)
        elif len(segments) == 2 and segments[1] == "" and not is_pattern(segments[0]):
            path = f"{pattern.fixed.rstrip('/')}/{unescaped(segments[0])}"
            _lower(self._node(path), _FOLDER, number)
        else:
            return False
        return True

    def _file_anywhere(self, number: int, segments: tuple[str, ...]) -> bool:
        name, tail = segments[1], segments[2:]
        if name in _ALL and not tail:
            _lower(self._root, _FOLDER if name == "**" else _BELOW, number)
            return True
        if is_pattern(name) or tail not in ((), ("",), ("**",)):
            return False
        names = self._folders if tail else self._anywhere
        names.setdefault(unescaped(name), number)
        return True

    def _node(self, path: str) -> _Node:
        node = self._root
        for name in split(path):
            node = node.setdefault(name, {})
        return node

    def first(self, path: str, folder: bool) -> int:
        """The lowest number of a pattern that matches canonical ``path`` or a folder above it.

        :data:`NEVER` when none does. ``folder`` says that the path is a folder.
        """
        if not path.isascii():
            path = normal(path)
        parts = path[1:].split("/") if path != "/" else []
        node: _Node = self._root
        found: int = NEVER
        for name in parts:
            found = node[_PASSED]
            below = node.get(name)
            if below is None:
                break
            node = below
        else:
            found = min(found, node.get(_ITSELF, NEVER))
            if folder or not parts:
                found = min(found, node.get(_FOLDER, NEVER))
        if self._anywhere or self._folders:
            found = min(found, self._named(parts, folder))
        if self._lowest < found:
            tried = path + "/" if folder and path != "/" else path
            match = self._index.match(tried, path + "/")
            if match is not None:
                found = min(found, self._numbers[match])  # type: ignore[index]
        return found

    def _named(self, parts: list[str], folder: bool) -> int:
        found = NEVER
        for name in self._anywhere.keys() & parts:
            found = min(found, self._anywhere[name])
        if self._folders:
            for name in self._folders.keys() & (parts if folder else parts[:-1]):
                found = min(found, self._folders[name])
        return found


def _number(item: tuple[int, RulePattern]) -> int:
    return item[0]


def _lower(node: _Node, key: int, number: int) -> None:
    node[key] = min(number, node.get(key, NEVER))


def _inherit(root: _Node) -> None:
    """Give every node the lowest number for what is below it, so that a walk looks at the last only."""
    todo = [(root, NEVER)]
    while todo:
        node, above = todo.pop()
        below = [child for name, child in node.items() if type(name) is str]
        passed = min([above, *(node.get(key, NEVER) for key in (_ITSELF, _FOLDER, _BELOW))])
        node[_PASSED] = passed
        todo += [(child, passed) for child in below]
