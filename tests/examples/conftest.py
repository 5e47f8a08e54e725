"""The files of ``examples/``, as modules and as scripts that a person starts."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agent_kit import build_session_options
from agent_kit.testing import Script, ScriptedModel, SessionRun, cli_env, run_session

EXAMPLES = Path(__file__).parents[2] / "examples"
LIMIT = 60  # seconds until a script that hangs is ended


@pytest.fixture
def example() -> Callable[[str], ModuleType]:
    """Loads an example by its name."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def session(tmp_path: Path) -> Callable[..., Any]:
    """Runs an example's ``SPEC`` with its ``config`` of a folder, on the scripted model."""

    async def run(module: ModuleType, folder: Path, script: Script, prompt: str) -> SessionRun:
        home = tmp_path / "home"
        home.mkdir()
        config = dataclasses.replace(
            module.config(str(folder)), run_dir=tmp_path / "run", env={"HOME": str(home)}
        )
        return await run_session(
            build_session_options(module.SPEC, config), script, prompt=prompt, home=home
        )

    return run


@pytest.fixture
def by_hand(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Starts an example as its first lines say, with ``model`` behind the person's key."""

    def start(
        name: str, *arguments: str, model: ScriptedModel | None = None
    ) -> subprocess.CompletedProcess[str]:
        home = tmp_path / "own-home"
        home.mkdir(exist_ok=True)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
        return subprocess.run(
            [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments],
            env={
                **inherited,
                "HOME": str(home),
                "PYTHONPATH": os.pathsep.join(sys.path),
                **({} if model is None else cli_env(model, home)),
                # An older SDK (0.2.177) starts the CLI once more to ask for its version, and ends that
                # process so that asyncio, before Python 3.12, may complain on standard error.
                "CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK": "1",
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    return start
