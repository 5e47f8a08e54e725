"""The session's denied paths, for tools that open files themselves.

The gate judges the built-in file tools; a tool of an extension runs in the host's process and has
to ask. The answer is the gate's own: a file that Read refuses as off limits is refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from agent_kit.scope import FileScope, check_file_scope

__all__ = ["permits_for"]


def permits_for(
    root: Path,
    *,
    project_dir: Path,
    denied_paths: Iterable[str] = (),
    home: Path | None = None,
) -> Callable[[Path], bool]:
    """Whether a file in ``root`` may be touched, by its absolute path.

    ``denied_paths`` are the session's, relative to ``project_dir``; ``~`` is ``home``. Links are resolved, so one
    that leaves ``root`` is refused too. Raises ``ConfigError`` for a malformed entry.
    """
    scope = FileScope(
        project_dir=str(project_dir),
        readable_dirs=(str(root),),
        denied_paths=tuple(denied_paths),
        home=None if home is None else str(home),
    )
    return lambda path: check_file_scope(scope, "Read", {"file_path": str(path)}) is None
