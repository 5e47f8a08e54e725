"""The files that the decisions are about."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_kit import FileScope

__all__ = ["DEPTH", "Place", "place"]

DEPTH = 8  # folders above a file


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A prepared project. Paths are absolute and canonical.

    ``near`` is the folder that makes its files ``DEPTH`` folders deep, counted from the root;
    ``far`` makes them so, counted from the project.
    """

    project: str
    near: str
    far: str

    @property
    def file(self) -> str:
        return f"{self.near}/file.md"

    def scope(self, denied: Sequence[str] = ("agent.config.json",)) -> FileScope:
        """A scope in which the files may be read, searched and written."""
        folders = [self.near, self.far]
        return FileScope(
            project_dir=self.project,
            writable_dirs=folders,
            searchable_dirs=folders,
            denied_paths=denied,
        )


@contextmanager
def place() -> Iterator[Place]:
    """A project in a temporary folder, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="agent-kit-bench-") as root:
        project = Path(os.path.realpath(root)) / "course"
        above = len(project.parts) - 1  # the root counts as a part
        near = project.joinpath(*(f"folder{n}" for n in range(above, DEPTH)))
        far = project.joinpath(*(f"folder{n}" for n in range(DEPTH)))
        for folder in (near, far):
            folder.mkdir(parents=True)
            for name in ("file.md", "größe.md", "course.env", "second.md"):
                (folder / name).write_text("text")
            os.link(folder / "second.md", folder / "first.md")
        (project / "link").symlink_to(near)
        yield Place(project=str(project), near=str(near), far=str(far))
