"""AWS on this machine: ElasticMQ as SQS, moto as DynamoDB, and what an installation has on them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from turnline.testing.servers.aws_account import no_account
from turnline.testing.servers.dynamodb import running_dynamodb
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.testing.servers.event_source import EventSource, Invoke

REGION = "eu-west-1"
_ACCOUNT = "000000000000"


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulators:
    """Where they are."""

    sqs_url: str
    dynamodb_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The names of what one installation has, as one use of the Terraform module makes it.

    Attributes:
        mode: `execution_mode`.
    """

    mode: str
    emulators: Emulators
    input_url: str
    output_url: str
    responses: str
    sessions: str
    connections: str

    @asynccontextmanager
    async def mapped(self, url: str, invoke: Invoke, *, batch_size: int) -> AsyncIterator[None]:
        """Have a function work on a queue, as an event source mapping does."""
        source = EventSource(
            url, endpoint=self.emulators.sqs_url, invoke=invoke, batch_size=batch_size
        )
        async with source.polling():
            yield


@asynccontextmanager
async def running_emulators() -> AsyncIterator[Emulators]:
    """Run both for the length of the block; what they hold ends with it."""
    with no_account(), running_dynamodb() as dynamodb:
        async with ElasticMqServer() as sqs:
            yield Emulators(sqs_url=sqs.url, dynamodb_url=dynamodb.url)


def installation_on(emulators: Emulators, name: str, *, mode: str) -> Installation:
    """Name queues and tables; their names begin with `name`."""
    return Installation(
        mode=mode,
        emulators=emulators,
        input_url=f"{emulators.sqs_url}/{_ACCOUNT}/{name}-input.fifo",
        output_url=f"{emulators.sqs_url}/{_ACCOUNT}/{name}-output.fifo",
        responses=f"{name}-responses",
        sessions=f"{name}-sessions",
        connections=f"{name}-connections",
    )
