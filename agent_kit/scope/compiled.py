"""From a scope's fields to the trees that answer questions: names absolute, links resolved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntFlag
from typing import TYPE_CHECKING

from agent_kit.scope.decision import Access
from agent_kit.scope.disk import Located, Unresolvable, locate
from agent_kit.scope.errors import Fault
from agent_kit.scope.flavour import FLAVOURS, Flavour, Malformed
from agent_kit.scope.index import ClosedTree, Entry, OpenTree, Rank
from agent_kit.scope.patterns import Pattern, is_pattern, parse_pattern, unescaped

if TYPE_CHECKING:
    from agent_kit.scope.file_scope import FileScope

__all__ = ["Compiled", "Mark", "compile_scope"]


class Mark(IntFlag):
    """What a folder allows below it."""

    READ = 1
    SEARCH = 2
    WRITE = 4


@dataclass(frozen=True, slots=True)
class Compiled:
    """A scope, ready to judge. Paths are canonical; labels are as sentences show them.

    ``closed_paths`` and ``opened_paths`` are the literal entries under every name they have.
    """

    flavour: Flavour
    native: bool
    project: str
    home: str | None
    open: OpenTree
    closed: ClosedTree
    closed_paths: tuple[tuple[str, Entry], ...]
    opened_paths: tuple[tuple[str, Mark], ...]
    patterns: tuple[Pattern, ...]
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    searchable: tuple[str, ...]
    control_files_open: bool

    def second_names(self, access: Access) -> tuple[tuple[str, Entry], ...]:
        """The closed entries that a hard link must not lead to."""
        strongest = Rank.READ_ONLY if access is Access.WRITE else Rank.DENIED
        return tuple(item for item in self.closed_paths if item[1].rank <= strongest)

    def locate(self, path: str) -> Located:
        """The path with links resolved; a foreign flavour's is taken as it is."""
        return locate(path) if self.native else Located(path)


def compile_scope(scope: FileScope, *, native: bool) -> tuple[Compiled | None, list[Fault]]:
    """The compiled scope, or ``None`` and every fault."""
    flavour = FLAVOURS[scope.platform]
    builder = _Builder(scope, flavour, native)
    opened = [
        (builder.names(name, text), mark) for name, mark in _OPEN for text in builder.texts(name)
    ]
    closed = list(builder.closed_entries())
    patterns = list(builder.patterns())
    labels = {name: builder.labels(name) for name in ("writable_dirs", "searchable_dirs")}
    readable = "searchable_dirs" if scope.readable_dirs is None else "readable_dirs"
    if builder.faults:
        return None, builder.faults
    return (
        Compiled(
            flavour=flavour,
            native=native,
            project=builder.project,
            home=builder.home,
            open=OpenTree([(names[-1], mark) for names, mark in opened], flavour.exact_case),
            closed=ClosedTree(closed, patterns),
            closed_paths=tuple(dict.fromkeys(closed)),
            opened_paths=tuple((path, mark) for names, mark in opened for path in names),
            patterns=tuple(pattern for pattern, _ in patterns),
            readable=builder.labels(readable),
            writable=labels["writable_dirs"],
            searchable=labels["searchable_dirs"],
            control_files_open=scope.writable_control_files,
        ),
        [],
    )


# Field to what it allows. Readable folders left out are the searchable ones (see _Builder.texts).
_OPEN = (
    ("writable_dirs", Mark.WRITE),
    ("searchable_dirs", Mark.SEARCH),
    ("readable_dirs", Mark.READ),
    ("also_readable", Mark.READ),
    ("tool_results_dir", Mark.READ),
)


class _Builder:
    """Reads one scope's fields; what is wrong with them gathers in ``faults``."""

    def __init__(self, scope: FileScope, flavour: Flavour, native: bool) -> None:
        self.scope, self.flavour, self.native = scope, flavour, native
        self.faults: list[Fault] = []
        self._known: dict[str, tuple[Pattern, ...]] = {}
        self.home: str | None = None
        self.project = "/"
        home = scope.home or (os.path.expanduser("~") if native else None)
        if home is not None:
            self.home = self._entry("home", home)
        base = self._entry("project_dir", os.getcwd()) if native else "/"
        self.project = self._entry("project_dir", scope.project_dir, base)

    def _entry(self, name: str, text: str, base: str | None = None) -> str:
        try:
            return self.flavour.entry(text, base or self.project, self.home)
        except Malformed as error:
            self.faults.append(
                Fault(field=name, value=text, remedy=f"write a plain path: {error}.")
            )
            return "/"

    def texts(self, name: str) -> tuple[str, ...]:
        value = getattr(self.scope, name)
        if name == "readable_dirs" and value is None:
            value = self.scope.searchable_dirs
        if name == "tool_only_dirs":
            return tuple(item.dir for item in value)
        return (value,) if isinstance(value, str) else tuple(value or ())

    def names(self, name: str, text: str) -> list[str]:
        """An entry's canonical path, and last the resolved one where that is another."""
        path = self._entry(name, text)
        return [path] if (real := self._resolved(path)) == path else [path, real]

    def _resolved(self, path: str) -> str:
        if not self.native:
            return path
        try:
            return locate(path).path
        except Unresolvable:  # a fault of the session's plan, which knows what the folder is for
            return path

    def labels(self, name: str) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(self.label(self._entry(name, t), True) for t in self.texts(name))
        )

    def label(self, path: str, folder: bool) -> str:
        """A path as sentences show it: relative inside the project, a folder with a slash."""
        if path == self.project:
            return "./"
        inside = self.project.rstrip("/") + "/"
        text = path[len(inside) :] if path.startswith(inside) else self.flavour.display(path)
        slash = "/" if path.startswith(inside) or "\\" not in text else "\\"
        return text + slash if folder and not text.endswith(("/", "\\")) else text

    def closed_entries(self) -> Iterator[tuple[str, Entry]]:
        """Every literal closed entry, under each name that it has."""
        for tool_only in self.scope.tool_only_dirs:
            yield from self._closed(
                "tool_only_dirs", tool_only.dir, Rank.TOOLS_ONLY, tool_only.instead
            )
        for text in self.scope.denied_paths:
            for spelling in dict.fromkeys((text, unescaped(text))) if self._literal(text) else ():
                yield from self._closed("denied_paths", spelling, Rank.DENIED)
        for text in self.scope.read_only_dirs:
            yield from self._closed("read_only_dirs", text, Rank.READ_ONLY)

    def _closed(
        self, name: str, text: str, rank: Rank, instead: str = ""
    ) -> Iterator[tuple[str, Entry]]:
        names = self.names(name, text)
        label = self.label(names[0], rank is not Rank.DENIED)
        entry = Entry(rank, text, label, instead)
        for path in names:
            yield path, entry

    def _literal(self, text: str) -> bool:
        """Whether a denied entry is (also) the name of a file. A pattern is, if that exists."""
        if self.flavour.name == "windows" or not is_pattern(text):
            return not is_pattern(text)
        if not self._parsed(text):
            return True
        return self.native and os.path.lexists(self._entry("denied_paths", text))

    def patterns(self) -> Iterator[tuple[Pattern, Entry]]:
        for text in self.scope.denied_paths:
            if is_pattern(text):
                entry = Entry(Rank.DENIED, text, text, pattern=True)
                for pattern in self._parsed(text):
                    yield pattern, entry

    def _parsed(self, text: str) -> tuple[Pattern, ...]:
        if (known := self._known.get(text)) is not None:
            return known
        try:
            found = parse_pattern(text, self.project, self.home, self.flavour)
        except Malformed as error:
            self.faults.append(Fault(field="denied_paths", value=text, remedy=f"{error}."))
            found = ()
        self._known[text] = found
        return found
