"""One server for all tests of a module."""

import asyncio
from collections.abc import Iterator

import pytest

from turnline.testing.servers.nats import NatsServer


@pytest.fixture(scope="module")
def server() -> Iterator[NatsServer]:
    """A server that no test of the module stops."""
    server = NatsServer()
    asyncio.run(server.start())
    yield server
    server.remove()
