"""One broker for all tests of a run."""

import asyncio
from collections.abc import Iterator

import pytest

from turnline.testing.servers.kafka import KafkaServer


@pytest.fixture(scope="session")
def server() -> Iterator[KafkaServer]:
    """A broker that no test stops."""
    server = KafkaServer()
    try:
        asyncio.run(server.start())
        yield server
    finally:
        server.remove()
