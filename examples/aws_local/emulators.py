"""AWS on this machine: ElasticMQ as SQS, moto as DynamoDB, and what an installation has on them.

Terraform makes queues and tables on AWS; here `turnline provision`'s own code and that of the
DynamoDB stores make the same.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from turnline.awssdk import AwsOptions, open_client
from turnline.protocol.clock import SystemClock
from turnline.store.dynamodb.schema import CONNECTIONS, RESPONSES, SESSIONS, create_table
from turnline.testing.servers.aws_account import no_account
from turnline.testing.servers.dynamodb import running_dynamodb
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.testing.servers.event_source import EventSource, Invoke
from turnline.transport.sqs import QueueOptions, SqsOptions, provision
from turnline.transport.sqs.api import SqsApi

REGION = "eu-west-1"
_ACCOUNT = "000000000000"
_CALL_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Emulators:
    """Where they are."""

    sqs_url: str
    dynamodb_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """The queues and tables of one installation, as one use of the Terraform module makes them.

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


async def make_installation(emulators: Emulators, name: str, *, mode: str) -> Installation:
    """Make queues and tables; their names begin with `name`."""
    made = Installation(
        mode=mode,
        emulators=emulators,
        input_url=f"{emulators.sqs_url}/{_ACCOUNT}/{name}-input.fifo",
        output_url=f"{emulators.sqs_url}/{_ACCOUNT}/{name}-output.fifo",
        responses=f"{name}-responses",
        sessions=f"{name}-sessions",
        connections=f"{name}-connections",
    )
    await _make_queues(made)
    await _make_tables(made)
    return made


async def _make_queues(made: Installation) -> None:
    options = SqsOptions(
        input=QueueOptions(name="input", url=made.input_url),
        output=QueueOptions(name="output", url=made.output_url),
        region=REGION,
        endpoint_url=made.emulators.sqs_url,
    )
    aws = AwsOptions(region=REGION, endpoint_url=made.emulators.sqs_url)
    api = SqsApi(aws, SystemClock(), seconds=_CALL_SECONDS)
    await api.open()
    try:
        await provision.apply(api, options)
    finally:
        await api.close()


async def _make_tables(made: Installation) -> None:
    tables = {made.responses: RESPONSES, made.sessions: SESSIONS, made.connections: CONNECTIONS}
    aws = AwsOptions(region=REGION, endpoint_url=made.emulators.dynamodb_url)
    async with open_client("dynamodb", aws) as client:
        for name, schema in tables.items():
            await create_table(client, name, schema)
