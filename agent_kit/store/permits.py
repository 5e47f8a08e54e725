"""The session's denied paths, for tools that open files themselves.

The gate judges the built-in file tools; a tool of an extension runs in the host's process and has
to ask. The answer is the gate's own: a file that Read refuses as off limits is refused here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from agent_kit.scope import FileScope, check_file_scope
from agent_kit.store.folder import Permits

__all__ = ["permits_for"]

_GLOB = frozenset("*?[]{}!\\")


def permits_for(
    root: Path,
    *,
    project_dir: Path,
    denied_paths: Iterable[str] = (),
    home: Path | None = None,
    scope: Callable[[], FileScope] | None = None,
) -> Permits:
    """Whether a file in ``root`` may be touched, by its absolute path.

    ``denied_paths`` are the session's, relative to ``project_dir``; ``~`` is ``home``. ``scope``
    gives the whole of the session's once it is planned: with it, a second name of any file that is
    closed elsewhere is refused as well, and so are the folders of other extensions. Links are
    resolved, so one that leaves ``root`` is refused too. Raises ``ConfigError`` for a malformed
    entry.
    """
    own = FileScope(
        project_dir=str(project_dir),
        searchable_dirs=(str(root),),
        denied_paths=tuple(denied_paths),
        home=None if home is None else str(home),
    )
    return _InFolder(own, root, scope)


class _InFolder:
    """Judges the files in ``root`` by ``own``, and by the session's scope once there is one."""

    def __init__(self, own: FileScope, root: Path, scope: Callable[[], FileScope] | None) -> None:
        self._own = own
        self._root = root
        self._scope = scope
        self._whole: FileScope | None = None

    def __call__(self, path: Path) -> bool:
        return check_file_scope(self._judge(), "Read", {"file_path": str(path)}) is None

    def narrows(self) -> bool:
        """Whether something in the folder may be closed: a path in it, or what a pattern might match.

        A file's second name is not looked at.
        """
        judge = self._judge()
        if any(_might_match(entry, self._root) for entry in judge.denied_paths):
            return True
        call = {"pattern": "", "path": str(self._root)}
        return check_file_scope(judge, "Grep", call) is not None

    def _judge(self) -> FileScope:
        if self._whole is None and (session := _planned(self._scope)) is not None:
            self._whole = _widened(self._own, session, self._root)
        return self._whole or self._own


def _might_match(entry: str, root: Path) -> bool:
    """Whether an entry is a pattern that a visible file in ``root`` could match, as far as is plain.

    It couldn't where the pattern has a hidden name, and none of the folders that lead here is hidden.
    """
    if _GLOB.isdisjoint(entry):
        return False
    hidden = (p for p in entry.split("/") if p[:1] == "." and p not in (".", ".."))
    plain = any(_GLOB.isdisjoint(part) for part in hidden)
    return not plain or "/." in f"{root}{os.path.realpath(root)}"


def _planned(scope: Callable[[], FileScope] | None) -> FileScope | None:
    try:
        return scope() if scope is not None else None
    except LookupError:  # the session is still being planned
        return None


def _widened(own: FileScope, session: FileScope, root: Path) -> FileScope:
    """``own`` with everything that ``session`` closes, but for what holds ``root`` itself."""
    real = f"{os.path.realpath(root)}/"
    others = [
        entry
        for entry in session.tool_only_dirs
        if not real.startswith(f"{os.path.realpath(os.path.join(session.project_dir, entry.dir))}/")
    ]
    return replace(
        own,
        denied_paths=(*own.denied_paths, *session.denied_paths),
        tool_only_dirs=tuple(others),
    )
