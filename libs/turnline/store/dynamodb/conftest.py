"""An emulator for each module, credentials that mean nothing, and fewer runs of the model."""

from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import settings

from turnline.testing.servers.aws_account import no_account
from turnline.testing.servers.aws_front import AwsFront
from turnline.testing.servers.dynamodb import DynamoDbServer, running_dynamodb

settings.register_profile("dynamodb", max_examples=6)
settings.load_profile("dynamodb")


@pytest.fixture(autouse=True)
def credentials() -> Iterator[None]:
    with no_account():
        yield


@pytest.fixture(scope="module")
def server() -> Iterator[DynamoDbServer]:
    with running_dynamodb() as server:
        yield server


@pytest.fixture
async def front(server: DynamoDbServer) -> AsyncIterator[AwsFront]:
    """What AWS may say, before the emulator."""
    async with AwsFront(server.port) as front:
        yield front
