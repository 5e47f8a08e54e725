"""The offer of the CLI, found once, and worlds to try it in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doors.offer import Offer, find_offer
from tests.doors.world import World


@pytest.fixture(scope="session")
def offer(tmp_path_factory: pytest.TempPathFactory) -> Offer:
    """What the CLI offers, found in a world of its own."""
    with World(tmp_path_factory.mktemp("offer")) as world:
        return find_offer(world)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as made:
        yield made
