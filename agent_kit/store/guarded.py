"""What the session's rules, people and authorizers say of an extension's own folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agent_kit.store.errors import StoreCode, StoreError
from agent_kit.store.folder import Permits, lets_all, narrowing

if TYPE_CHECKING:
    from agent_kit.policy.guard import Guard

__all__ = ["FolderGuard"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FolderGuard:
    """The session's guard, with the extension's folder open: what file tools may not enter its tools may.

    ``guard`` gives the session's (``ExtensionContext.guard``); before the session is planned nothing is
    refused here. ``root`` is absolute, ``None`` for what lies elsewhere in the session. The scope is
    judged by the extension itself, with sentences of its own: a refusal of the scope's is left to it.
    """

    guard: Callable[[], Guard]
    root: Path | None = None
    writable: bool = False
    _known: list[tuple[Guard, Guard]] = field(default_factory=list)

    async def require(
        self, operation: str, path: Path, *, label: str, filtered: bool = False
    ) -> None:
        """Raise StoreError where it is refused. ``label`` is what the model calls the path."""
        if (guard := self._guard()) is None:
            return
        refused = await guard.check(operation, path, label=label, filtered=filtered)
        if refused is not None and refused.part != "scope":
            raise StoreError(str(refused), code=StoreCode.DENIED)

    def closes(self, path: Path) -> bool:
        """Whether a file is refused whatever a person would say: it is as if it were not there."""
        guard = self._guard()
        return guard is not None and guard.leaves_out(path, asks=False)

    def leaves_out(self, path: Path) -> bool:
        """Whether a list or a search must leave a file out: also what a person must agree to first."""
        guard = self._guard()
        return guard is not None and guard.leaves_out(path)

    def permits(self, also: Permits) -> Permits:
        """Whether a file may be touched, for both :meth:`closes` and ``also``."""
        return _Both(guard=self, also=also, refuses=self.closes)

    def shows(self, also: Permits = lets_all) -> Permits:
        """Whether a file is listed, for both :meth:`leaves_out` and ``also``."""
        return _Both(guard=self, also=also, refuses=self.leaves_out)

    def _guard(self) -> Guard | None:
        """The guard, ``None`` where nothing narrows the session."""
        try:
            session = self.guard()
        except LookupError:  # the session is still being planned
            return None
        if not session.narrows:
            return None
        if self.root is None:
            return session
        if not self._known or self._known[0][0] is not session:
            inside = session.inside(self.root, writable=self.writable)
            self._known[:] = [(session, inside)]
        return self._known[0][1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Both:
    """Lets through what ``also`` does and the guard doesn't refuse."""

    guard: FolderGuard
    also: Permits
    refuses: Permits

    def __call__(self, path: Path) -> bool:
        return self.also(path) and not self.refuses(path)

    def narrows(self) -> bool:
        return self.guard._guard() is not None or narrowing(self.also)
