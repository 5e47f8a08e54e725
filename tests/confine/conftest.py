"""Programs that really run inside a view."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from agent_kit.confine.backend import Backend
from agent_kit.confine.looking import look
from agent_kit.confine.system import SYSTEM
from agent_kit.confine.view import ConfinedView
from agent_kit.scope import FileScope


@dataclass(frozen=True)
class Inside:
    """A backend with a view. ``sh`` runs a script inside; its output comes with its errors."""

    backend: Backend
    view: ConfinedView

    def sh(self, script: str, *words: str) -> str:
        return self.run(["/bin/sh", "-c", script, "sh", *words]).stdout

    def run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        launch = self.backend.launch(self.view)
        handle = os.memfd_create("test")
        os.write(handle, launch.text or b"")
        os.lseek(handle, 0, os.SEEK_SET)
        try:
            return subprocess.run(
                [*(word.replace("{fd}", str(handle)) for word in launch.argv), *command],
                env={"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "MARK": "kept"},
                pass_fds=[handle],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="surrogateescape",
                timeout=60,
                check=False,
            )
        finally:
            os.close(handle)

    def with_(self, **fields: object) -> Inside:
        return Inside(self.backend, replace(self.view, **fields))  # type: ignore[arg-type]


def view_of(scope: FileScope, tmp: Path) -> ConfinedView:
    return ConfinedView(
        mounts=look(scope).mounts,
        cwd=os.path.realpath(scope.project_dir),
        tmp=str(tmp),
        system=SYSTEM,
        network=False,
    )


@pytest.fixture
def inside(tmp_path: Path) -> Callable[[Backend, FileScope], Inside]:
    tmp = tmp_path / "tmp-inside"
    tmp.mkdir()
    return lambda backend, scope: Inside(backend, view_of(scope, tmp))
