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

__all__ = ["permits_for"]


def permits_for(
    root: Path,
    *,
    project_dir: Path,
    denied_paths: Iterable[str] = (),
    home: Path | None = None,
    scope: Callable[[], FileScope] | None = None,
) -> Callable[[Path], bool]:
    """Whether a file in ``root`` may be touched, by its absolute path.

    ``denied_paths`` are the session's, relative to ``project_dir``; ``~`` is ``home``. ``scope``
    gives the whole of the session's once it is planned: with it, a second name of any file that is
    closed elsewhere is refused as well, and so are the folders of other extensions. Links are
    resolved, so one that leaves ``root`` is refused too. Raises ``ConfigError`` for a malformed
    entry.
    """
    own = FileScope(
        project_dir=str(project_dir),
        readable_dirs=(str(root),),
        denied_paths=tuple(denied_paths),
        home=None if home is None else str(home),
    )
    whole: list[FileScope] = []

    def permits(path: Path) -> bool:
        if not whole and (session := _planned(scope)) is not None:
            whole.append(_widened(own, session, root))
        judge = whole[0] if whole else own
        return check_file_scope(judge, "Read", {"file_path": str(path)}) is None

    return permits


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
