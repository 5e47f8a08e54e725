"""Fixtures for tests of an agent on the real CLI.

Load it with ``pytest_plugins = ["agent_kit.testing.pytest_plugin"]`` in the topmost ``conftest.py``
or in a test module, or with ``-p agent_kit.testing.pytest_plugin``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from agent_kit.testing._model import ScriptedModel
from agent_kit.testing._steps import Script

__all__ = ["StartModel", "fake_home", "scripted_model"]


class StartModel(Protocol):
    """Starts a ``ScriptedModel`` that runs until the test ends."""

    def __call__(
        self, script: Script = (), *, subagents: Mapping[str, Script] | None = None
    ) -> ScriptedModel: ...


def pytest_configure(config: pytest.Config) -> None:
    """Make the ``e2e`` mark known, for ``--strict-markers``."""
    config.addinivalue_line("markers", "e2e: runs the real CLI against the scripted model")


@pytest.fixture
def scripted_model() -> Iterator[StartModel]:
    """A function that starts a scripted model: ``scripted_model([ToolCall(...), "Done."])``."""
    with ExitStack() as stack:

        def start(
            script: Script = (), *, subagents: Mapping[str, Script] | None = None
        ) -> ScriptedModel:
            return stack.enter_context(ScriptedModel(script, subagents=subagents))

        yield start


@pytest.fixture
def fake_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder outside ``tmp_path``, for ``run_session(home=...)``."""
    return tmp_path_factory.mktemp("home")
