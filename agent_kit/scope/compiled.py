"""From a scope's fields to the trees that answer questions: names absolute, links resolved."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntFlag
from typing import TYPE_CHECKING

from agent_kit.scope.decision import Access
from agent_kit.scope.disk import Located, Unresolvable, locate
from agent_kit.scope.errors import Fault
from agent_kit.scope.flavour import FLAVOURS, Flavour, Malformed
from agent_kit.scope.index import ClosedTree, Entry, OpenTree, Rank
from agent_kit.scope.left_out import LeftOut
from agent_kit.scope.patterns import Pattern, is_pattern, parse_pattern, unescaped
from agent_kit.scope.text import printable

if TYPE_CHECKING:
    from agent_kit.scope.file_scope import FileScope

__all__ = ["Compiled", "Mark", "compile_scope", "pattern_faults"]


class Mark(IntFlag):
    """What a folder allows below it."""

    READ = 1
    SEARCH = 2
    WRITE = 4


@dataclass(frozen=True, slots=True)
class Compiled:
    """A scope, ready to judge. Paths are canonical; labels are as sentences show them.

    ``closed_paths`` and ``opened_paths`` are the literal entries under every name they have.
    ``left_out`` knows the patterns that stop no search.
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
    left_out: LeftOut
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    searchable: tuple[str, ...]
    control_files_open: bool

    def second_names(self, access: Access) -> tuple[tuple[str, Entry], ...]:
        """The closed entries that a hard link must not lead to, as the system writes them."""
        strongest = Rank.READ_ONLY if access is Access.WRITE else Rank.DENIED
        return tuple(
            (self.flavour.display(path), entry)
            for path, entry in self.closed_paths
            if entry.rank <= strongest
        )

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
    if builder.faults:
        return None, list(dict.fromkeys(builder.faults))
    tree = ClosedTree(closed, patterns)
    return (
        Compiled(
            flavour=flavour,
            native=native,
            project=builder.project,
            home=builder.home,
            open=OpenTree([(names[-1], mark) for names, mark in opened], flavour.exact_case),
            closed=tree,
            closed_paths=tuple(dict.fromkeys(closed)),
            opened_paths=tuple((path, mark) for names, mark in opened for path in names),
            patterns=tuple(pattern for pattern, _ in patterns),
            left_out=LeftOut((p for p, _ in patterns if p.fixed is None), tree.denies),
            readable=builder.labels("readable_dirs"),
            writable=builder.labels("writable_dirs"),
            searchable=builder.labels("searchable_dirs"),
            control_files_open=scope.writable_control_files,
        ),
        [],
    )


def pattern_faults(texts: Iterable[str], flavour: Flavour) -> Iterator[Fault]:
    """What is wrong with the patterns among denied entries."""
    root = _ROOTS[flavour.name]
    for text in texts:
        try:
            if is_pattern(text, flavour.name):
                parse_pattern(text, root, root, flavour)
        except Malformed as error:
            yield _pattern_fault(text, error)


def _pattern_fault(text: str, error: Malformed) -> Fault:
    return Fault(field="denied_paths", value=text, remedy=f"{error}.")


_ROOTS = {"posix": "/", "windows": "/c:"}  # stand in for a project folder that is none

# Field to what it allows. Readable folders left out are the searchable ones (see _Builder.field).
_OPEN = (
    ("writable_dirs", Mark.WRITE),
    ("searchable_dirs", Mark.SEARCH),
    ("readable_dirs", Mark.READ),
    ("also_readable", Mark.READ),
    ("tool_results_dir", Mark.READ),
)


_DEEP = 100  # folders: deeper ones are resolved as a whole, not folder by folder


class _Builder:
    """Reads one scope's fields; what is wrong with them gathers in ``faults``."""

    def __init__(self, scope: FileScope, flavour: Flavour, native: bool) -> None:
        self.scope, self.flavour, self.native = scope, flavour, native
        self.faults: list[Fault] = []
        self._known: dict[str, tuple[Pattern, ...] | None] = {}
        self._real: dict[str, str] = {}
        self._missing: set[str] = set()
        self.home: str | None = None
        self.project = _ROOTS[flavour.name]
        home = scope.home or (os.path.expanduser("~") if native else "~")
        if home != "~":  # which stays where nobody knows
            self.home = self._entry("home", home)
        self.project = self._entry("project_dir", scope.project_dir, self._working_folder())

    def _working_folder(self) -> str:
        if not self.native:
            return "/"
        try:
            return self.flavour.entry(os.getcwd(), "/", None)
        except OSError:
            if not os.path.isabs(os.path.expanduser(self.scope.project_dir)):
                remedy = "write an absolute path: the process's own folder is gone."
                self.faults.append(
                    Fault(field="project_dir", value=self.scope.project_dir, remedy=remedy)
                )
            return "/"

    def _entry(self, name: str, text: str, base: str | None = None) -> str:
        try:
            return self.flavour.entry(text, base or self.project, self.home)
        except Malformed as error:
            self.faults.append(
                Fault(field=name, value=text, remedy=f"write a plain path: {error}.")
            )
            return _ROOTS[self.flavour.name]

    def field(self, name: str) -> str:
        """The field that a person wrote: readable folders left out are the searchable ones."""
        left_out = name == "readable_dirs" and self.scope.readable_dirs is None
        return "searchable_dirs" if left_out else name

    def texts(self, name: str) -> tuple[str, ...]:
        value = getattr(self.scope, self.field(name))
        return (value,) if isinstance(value, str) else tuple(value or ())

    def names(self, name: str, text: str) -> list[str]:
        """An entry's canonical path, and last the resolved one where that is another."""
        path = self._entry(self.field(name), text)
        return [path] if (real := self._resolved(path)) == path else [path, real]

    def _resolved(self, path: str) -> str:
        if not self.native:
            return path
        if (real := self._real.get(path)) is None:
            real = self._real[path] = path if self._is_plain(path) else self._located(path)
        return real

    def _is_plain(self, path: str) -> bool:
        """Whether a look at it, and at its folder once, tells that no link is in it."""
        folder = path.rpartition("/")[0]
        if not folder or self.flavour.name != "posix" or path.count("/") > _DEEP:
            return False
        if self._resolved(folder) != folder:
            return False
        if folder not in self._missing:
            try:
                return not stat.S_ISLNK(os.lstat(path).st_mode)
            except (FileNotFoundError, NotADirectoryError):
                pass
            except (OSError, ValueError):  # told when a call is judged
                return True
        self._missing.add(path)
        return True

    def _located(self, path: str) -> str:
        try:
            return locate(path).path
        except Unresolvable:  # a fault of the plan, which knows what the folder is for
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
        text = printable(text)
        slash = "/" if path.startswith(inside) or "\\" not in text else "\\"
        return text + slash if folder and not text.endswith(("/", "\\")) else text

    def closed_entries(self) -> Iterator[tuple[str, Entry]]:
        """Every literal closed entry, under each name that it has."""
        for tool_only in self.scope.tool_only_dirs:
            yield from self._closed(
                "tool_only_dirs", tool_only.dir, Rank.TOOLS_ONLY, tool_only.instead
            )
        for text in self.scope.denied_paths:
            for spelling in self._spellings(text):
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

    def _spellings(self, text: str) -> tuple[str, ...]:
        """The names that a denied entry (also) is. A pattern is one if that exists."""
        if is_pattern(text, self.flavour.name):
            parsed = self._parsed(text)
            if parsed is None or (parsed and not self._exists(text, parsed)):
                return ()
        escapes = self.flavour.name == "posix"  # elsewhere a backslash divides
        return tuple(dict.fromkeys((text, unescaped(text)))) if escapes else (text,)

    def _exists(self, text: str, parsed: tuple[Pattern, ...]) -> bool:
        """Whether there is something whose very name is the pattern ``text``."""
        if not self.native:
            return False
        fixed = parsed[0].fixed if "{" not in text and "\\" not in text else None
        if fixed is not None and self._resolved(fixed) and fixed in self._missing:
            return False  # the name would be in that folder
        try:
            path = self.flavour.entry(text, self.project, self.home)
        except Malformed:  # "*." is a pattern, and no name on Windows
            return False
        return os.path.lexists(self.flavour.display(path))

    def patterns(self) -> Iterator[tuple[Pattern, Entry]]:
        """Every pattern, below each name of the folder that it is fixed to."""
        for text in self.scope.denied_paths:
            if not is_pattern(text, self.flavour.name):
                continue
            entry = Entry(Rank.DENIED, text, printable(text), pattern=True)
            for pattern in self._parsed(text) or ():
                yield pattern, entry
                fixed = pattern.fixed
                if fixed is not None and (real := self._resolved(fixed)) != fixed:
                    yield pattern.below(real), entry

    def _parsed(self, text: str) -> tuple[Pattern, ...] | None:
        """The pattern's alternatives, ``None`` for a fault."""
        if text not in self._known:
            try:
                self._known[text] = parse_pattern(text, self.project, self.home, self.flavour)
            except Malformed as error:
                self.faults.append(_pattern_fault(text, error))
                self._known[text] = None
        return self._known[text]
