"""Which of many rules matches a path first, in nearly constant time.

Nearly every pattern names one path, all below one folder, one name anywhere or one ending anywhere.
Those are found on one walk down the path's components, however many there are. The others are tried,
those of one folder only for paths in it, by an index of the texts that they fix.
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
# the path as a folder and all below; what is below alone.
_ITSELF, _FOLDER, _BELOW = range(3)
# The same of all above and here, for a path that ends here, for a folder, for what is below. Last, the
# patterns that are tried on what is below.
_ENDED, _ENDED_FOLDER, _PASSED, _TRIED = range(3, 7)
_Node = dict[str | int, Any]


class _Trials:
    """Numbered patterns that must be tried, over paths relative to the folder that they are fixed to."""

    __slots__ = ("_index", "_numbers", "lowest")

    def __init__(self, numbers: dict[RulePattern, int]) -> None:
        self._numbers = numbers
        self._index = PatternIndex(list(numbers))
        self.lowest = min(numbers.values(), default=NEVER)

    def first(self, path: str, folder: bool) -> int:
        texts = path + "/"
        match = self._index.match(texts if folder else path, texts)
        return NEVER if match is None else self._numbers[match]  # type: ignore[index]


class Lookup:
    """Numbered patterns. ``first`` is the lowest number of one that matches a path."""

    __slots__ = ("_anywhere", "_endings", "_folders", "_named", "_root", "_trials")

    def __init__(self, patterns: Sequence[tuple[int, RulePattern]]) -> None:
        self._root: _Node = {}
        self._anywhere: dict[str, int] = {}  # names, wherever they are
        self._folders: dict[str, int] = {}  # names of folders, wherever they are
        self._endings: dict[str, list[tuple[int, str]]] = {}  # by what follows the last dot
        tried: dict[str | None, dict[RulePattern, int]] = {}
        for number, pattern in sorted(patterns, key=_number):
            if not self._file(number, pattern):
                within = tried.setdefault(pattern.fixed, {})
                within.setdefault(_relative(pattern), number)
        self._trials = _Trials(tried.pop(None, {}))
        for fixed, numbers in tried.items():
            self._node(str(fixed))[_TRIED] = _Trials(numbers)
        self._named = bool(self._anywhere or self._folders or self._endings)
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
        if name == "*" and not tail:
            _lower(self._root, _BELOW, number)
        elif name[:2] == "*." and not tail and not is_pattern(name[1:]):
            ending = unescaped(name[1:])
            self._endings.setdefault(ending.rpartition(".")[2], []).append((number, ending))
        elif is_pattern(name) or tail not in ((), ("",), ("**",)):
            return False
        else:
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
        if path == "/":
            return int(self._root[_ENDED_FOLDER])
        parts = path[1:].split("/")
        node: _Node = self._root
        found: int = NEVER
        at = 0  # where what is below the node begins in the path
        for name in parts:
            if _TRIED in node and node[_TRIED].lowest < found:
                found = min(found, node[_TRIED].first(path[at:], folder))
            below = node.get(name)
            if below is None:
                number = node[_PASSED]
                break
            node = below
            at += len(name) + 1
        else:
            number = node[_ENDED_FOLDER] if folder else node[_ENDED]
        found = min(found, number)
        if self._named:
            found = self._by_name(parts, folder, found)
        if self._trials.lowest < found:
            found = min(found, self._trials.first(path, folder))
        return found

    def _by_name(self, parts: list[str], folder: bool, found: int) -> int:
        anywhere, folders, endings = self._anywhere, self._folders, self._endings
        for name in parts:
            if name in anywhere and anywhere[name] < found:
                found = anywhere[name]
            if "." in name and (kind := name.rpartition(".")[2]) in endings:
                for number, ending in endings[kind]:
                    if number < found and name.endswith(ending):
                        found = number
        if folders:
            for name in parts if folder else parts[:-1]:
                found = min(found, folders.get(name, NEVER))
        return found


def _number(item: tuple[int, RulePattern]) -> int:
    return item[0]


def _relative(pattern: RulePattern) -> RulePattern:
    """The pattern over paths relative to the folder that it is fixed to."""
    if pattern.fixed is None:
        return pattern
    return RulePattern(pattern.source, "/" + "/".join(pattern.segments), "/")


def _lower(node: _Node, key: int, number: int) -> None:
    node[key] = min(number, node.get(key, NEVER))


def _inherit(root: _Node) -> None:
    """Give every node the lowest number for what is below it, so that a walk looks at the last only."""
    todo = [(root, NEVER)]
    while todo:
        node, above = todo.pop()
        below = [child for name, child in node.items() if type(name) is str]
        itself = min(above, node.get(_ITSELF, NEVER))
        folder = min(itself, node.get(_FOLDER, NEVER))
        node[_ENDED], node[_ENDED_FOLDER] = itself, folder
        passed = node[_PASSED] = min(folder, node.get(_BELOW, NEVER))
        todo += [(child, passed) for child in below]
