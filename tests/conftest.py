"""What holds for all tests."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # no test asserts a time
settings.load_profile("untimed")

_CACHE = pytest.StashKey[tempfile.TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Indexes of pages are kept in a folder that goes with the run."""
    config.stash[_CACHE] = tempfile.TemporaryDirectory(prefix="agent-kit-cache-")
    os.environ["XDG_CACHE_HOME"] = config.stash[_CACHE].name


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove it."""
    config.stash[_CACHE].cleanup()
