"""One server for all tests of a module, and credentials that no account has."""

import asyncio
from collections.abc import Iterator

import pytest

from turnline.testing.servers.aws_account import no_account
from turnline.testing.servers.elasticmq import ElasticMqServer


@pytest.fixture(scope="session", autouse=True)
def credentials() -> Iterator[None]:
    with no_account():
        yield


@pytest.fixture(scope="module")
def server() -> Iterator[ElasticMqServer]:
    """A server that no test of the module stops."""
    server = ElasticMqServer()
    asyncio.run(server.start())
    yield server
    server.remove()
