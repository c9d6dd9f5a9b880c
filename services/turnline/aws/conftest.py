"""One server of each kind for all tests of a module, and credentials that no account has."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from turnline.aws.rig import Cloud, opened_cloud
from turnline.testing.servers.aws_account import no_account
from turnline.testing.servers.dynamodb import DynamoDbServer, running_dynamodb
from turnline.testing.servers.elasticmq import ElasticMqServer


@pytest.fixture(scope="session", autouse=True)
def credentials() -> Iterator[None]:
    with no_account():
        yield


@pytest.fixture(scope="module")
def sqs() -> Iterator[ElasticMqServer]:
    server = ElasticMqServer()
    asyncio.run(server.start())
    yield server
    server.remove()


@pytest.fixture(scope="module")
def dynamodb() -> Iterator[DynamoDbServer]:
    with running_dynamodb() as server:
        yield server


@pytest.fixture
async def cloud(
    tmp_path: Path, sqs: ElasticMqServer, dynamodb: DynamoDbServer
) -> AsyncIterator[Cloud]:
    async with opened_cloud(tmp_path, sqs, dynamodb) as cloud:
        yield cloud
