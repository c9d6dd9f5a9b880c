"""One server for all tests of a module, and credentials that no account has."""

import asyncio
from collections.abc import Iterator

import pytest

from turnline.testing.servers.elasticmq import ElasticMqServer


@pytest.fixture(scope="session", autouse=True)
def credentials() -> Iterator[None]:
    """Whatever this machine's AWS environment says."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_ACCESS_KEY_ID", "tests")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "tests")
        patch.setenv("AWS_CONFIG_FILE", "/nonexistent")
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
        yield


@pytest.fixture(scope="module")
def server() -> Iterator[ElasticMqServer]:
    """A server that no test of the module stops."""
    server = ElasticMqServer()
    asyncio.run(server.start())
    yield server
    server.remove()
