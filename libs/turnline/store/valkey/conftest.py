"""A server for each module, and fewer runs of the ledger's model: leases run out in real time."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from turnline.testing.servers.valkey import ValkeyServer, running_valkey

settings.register_profile("valkey", max_examples=6)
settings.load_profile("valkey")


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    with running_valkey() as server:
        yield server


@pytest.fixture
def hanging(server: ValkeyServer) -> Iterator[Callable[[], ValkeyServer]]:
    """Make the server hang, until the test is over."""

    def hang() -> ValkeyServer:
        server.pause()
        return server

    yield hang
    server.resume()
