"""Which of many rules matches a path first, in nearly constant time.

Nearly every pattern names one path, all below one folder, one name or one ending anywhere below a
folder, or one ending in a folder. Those are found on one walk down the path's components, however many
there are. The others are tried, on what is below the folder that they are fixed to, by an index of the
texts that they fix.
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
# The same of all above and here, for a path that ends here, for a folder, for what is below. Last, what
# else may match below.
_ENDED, _ENDED_FOLDER, _PASSED, _OTHERS = range(3, 7)
_Node = dict[str | int, Any]


class _Endings(dict[str, list[tuple[int, str]]]):
    """Numbered endings of names, by what follows the last dot."""

    __slots__ = ()

    def add(self, number: int, ending: str) -> None:
        self.setdefault(ending.rpartition(".")[2], []).append((number, ending))

    def first(self, names: Sequence[str], found: int) -> int:
        """The lowest number of an ending of one of the names, if it is lower than ``found``."""
        for name in names:
            if "." in name and (kind := name.rpartition(".")[2]) in self:
                for number, ending in self[kind]:
                    if number < found and name.endswith(ending):
                        found = number
        return found


class _Others:
    """What matches below a folder without naming one path there; texts are relative to the folder.

    ``lowest`` is the lowest number among them.
    """

    __slots__ = ("_anywhere", "_beside", "_endings", "_folders", "_index", "_tried", "lowest")

    def __init__(self, lowest: int) -> None:
        self.lowest = lowest  # the first that is added
        self._anywhere: dict[str, int] = {}  # names, however far below
        self._folders: dict[str, int] = {}  # names of folders, however far below
        self._endings = _Endings()  # of names, however far below
        self._beside = _Endings()  # of names in the folder itself
        self._tried: dict[RulePattern, int] = {}
        self._index: PatternIndex | None = None

    def add(self, number: int, pattern: RulePattern) -> None:
        """To be called in the order of the numbers."""
        first, *rest = pattern.segments
        if not rest and (ending := _ending(first)) is not None:
            self._beside.add(number, ending)
        elif first != "**" or not self._add_anywhere(number, rest[0], rest[1:]):
            self._tried.setdefault(_relative(pattern), number)

    def _add_anywhere(self, number: int, name: str, tail: list[str]) -> bool:
        if not tail and (ending := _ending(name)) is not None:
            self._endings.add(number, ending)
        elif not name or is_pattern(name) or tail not in ([], [""], ["**"]):
            return False
        else:
            names = self._folders if tail else self._anywhere
            names.setdefault(unescaped(name), number)
        return True

    def settle(self) -> None:
        """To be called when all are added."""
        if self._tried:
            self._index = PatternIndex(list(self._tried))

    def first(self, parts: list[str], dotted: bool, folder: bool, found: int) -> int:
        """The lowest number, if it is lower than ``found``. ``dotted``: a name may have a dot."""
        if dotted and self._beside:
            found = self._beside.first(parts[:1], found)
        if anywhere := self._anywhere:
            for name in parts:
                if name in anywhere and anywhere[name] < found:
                    found = anywhere[name]
        if dotted and self._endings:
            found = self._endings.first(parts, found)
        if folders := self._folders:
            for name in parts if folder else parts[:-1]:
                found = min(found, folders.get(name, NEVER))
        if self._index is not None:
            path = "/" + "/".join(parts)
            texts = path + "/"
            match = self._index.match(texts if folder else path, texts)
            if match is not None:
                found = min(found, self._tried[match])  # type: ignore[index]
        return found


def _ending(name: str) -> str | None:
    """What ``*.ext`` wants at the end of a name; ``None`` for any other component of a pattern."""
    return unescaped(name[1:]) if name[:2] == "*." and not is_pattern(name[1:]) else None


class Lookup:
    """Numbered patterns. ``first`` is the lowest number of one that matches a path."""

    __slots__ = ("_root",)

    def __init__(self, patterns: Sequence[tuple[int, RulePattern]]) -> None:
        self._root: _Node = {}
        others: list[_Others] = []
        for number, pattern in sorted(patterns, key=_number):
            if not self._file(number, pattern):
                node = self._node(pattern.fixed or "/")
                if _OTHERS not in node:
                    others.append(node.setdefault(_OTHERS, _Others(number)))
                node[_OTHERS].add(number, pattern)
        for each in others:
            each.settle()
        _inherit(self._root)

    def _file(self, number: int, pattern: RulePattern) -> bool:
        """Whether the pattern was filed as one that names a path, or all below one."""
        segments, literal = pattern.segments, pattern.literal
        fixed = pattern.fixed or "/"
        if literal is not None:
            _lower(self._node(literal), _ITSELF, number)
        elif segments in (("*",), ("**", "*")):
            _lower(self._node(fixed), _BELOW, number)
        elif segments == ("**",) or (segments == ("**", "") and pattern.fixed not in (None, "/")):
            _lower(self._node(fixed), _FOLDER, number)
        elif len(segments) == 2 and segments[1] == "" and not is_pattern(segments[0]):
            path = f"{fixed.rstrip('/')}/{unescaped(segments[0])}"
            _lower(self._node(path), _FOLDER, number)
        else:
            return False
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
        node: _Node = self._root
        found: int = NEVER
        parts, dotted = split(path), "." in path
        for depth, name in enumerate(parts):
            if _OTHERS in node and node[_OTHERS].lowest < found:
                found = node[_OTHERS].first(parts[depth:], dotted, folder, found)
            below = node.get(name)
            if below is None:
                number: int = node[_PASSED]
                break
            node = below
        else:
            number = node[_ENDED_FOLDER if folder or not parts else _ENDED]
        return min(found, number)


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
