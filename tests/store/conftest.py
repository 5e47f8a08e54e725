"""One PostgreSQL server for all tests of a worker."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from tests.store.postgres_server import Server, running_server

_NUMBERS = count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A real server. The test fails where no server is installed."""
    with running_server() as running:
        yield running


@pytest.fixture(scope="session")
def shared(server: Server) -> str:
    """The DSN of a database that many tests use, each with bases of its own."""
    return server.make_database("shared")


@pytest.fixture
def fresh(server: Server) -> str:
    """The DSN of an empty database."""
    return server.make_database(f"fresh{next(_NUMBERS)}")
