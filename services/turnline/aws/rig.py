"""For this room's tests: queues, tables and functions as they are on AWS, all real but AWS itself.

Functions run under the real Lambda runtime client, in processes of their own; what they are told
and answer goes through the mapping and the gateway of `turnline.testing.servers`.
"""

import asyncio
import itertools
import json
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from turnline.aws.rig_apps import APPS
from turnline.awssdk import AwsOptions, open_client
from turnline.config import Settings, load_settings
from turnline.protocol import SessionKey, TurnRecord
from turnline.protocol.clock import SystemClock
from turnline.store import New
from turnline.store.dynamodb import open_connection_store, open_session_store
from turnline.store.dynamodb.schema import CONNECTIONS, RESPONSES, SESSIONS, create_table
from turnline.testing.servers.aws_account import CREDENTIALS
from turnline.testing.servers.dynamodb import DynamoDbServer
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.testing.servers.event_source import EventSource
from turnline.testing.servers.lambda_runtime import LambdaFunction
from turnline.transport.sqs import QueueOptions, SqsOptions, provision
from turnline.transport.sqs.api import SqsApi
from turnline.transport.sqs.wire import Outgoing

REGION = "eu-west-1"
ACCOUNT = "000000000000"
LEASE_SECONDS = 2
NO_MORE: Mapping[str, str] = MappingProxyType({})
_NUMBERS = itertools.count()
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """Fresh queues and tables of one installation.

    Attributes:
        folder: of the application's files; agents write what they do to `starts` there.
        environment: variables of every function.
    """

    folder: Path
    sqs_url: str
    input_url: str
    output_url: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def function(
        self, module: str, *, timeout: float = 30.0, more: Mapping[str, str] = NO_MORE
    ) -> LambdaFunction:
        """Give a function of the application; `more` are further variables."""
        return LambdaFunction(
            f"{module}.handler",
            self.folder,
            environment={**self.environment, **more},
            timeout=timeout,
        )

    @property
    def no_queues(self) -> dict[str, str]:
        """Variables that take the queues' away; an empty one counts as not set."""
        return dict.fromkeys((n for n in self.environment if "__QUEUES__" in n), "")

    def source(self, url: str, function: LambdaFunction, *, batch_size: int = 1) -> EventSource:
        """Give the mapping from a queue to a function."""
        return EventSource(
            url, endpoint=self.sqs_url, invoke=function.invoke, batch_size=batch_size
        )

    @property
    def starts(self) -> list[str]:
        """What agents noted when they were started, in order."""
        file = self.folder / "starts"
        return file.read_text().splitlines() if file.exists() else []

    async def until_started(self, count: int, *, within: float = 60.0) -> list[str]:
        """Wait until agents were started so often."""
        async with asyncio.timeout(within):
            while len(self.starts) < count:  # noqa: ASYNC110 - other processes write
                await asyncio.sleep(_LOOK_SECONDS)
        return self.starts

    async def history(self, session_id: str, *, scope: str = "") -> tuple[TurnRecord, ...]:
        """Give the turns of a session that nobody is working on."""
        settings = self.settings()
        async with open_session_store(settings, SystemClock()) as sessions:
            begun = await sessions.begin_turn(SessionKey(scope, session_id), "look", lease=5.0)
            assert isinstance(begun, New)  # noqa: S101 - used by tests only
            await sessions.abandon_turn(begun.claim)
            return tuple(begun.session.history)

    async def until_held(
        self, user_id: str, *, anything: bool = True, within: float = 90.0
    ) -> None:
        """Wait until frames are held for a user, or none any more; one may be held twice."""
        async with (
            open_connection_store(self.settings(), SystemClock()) as sockets,
            asyncio.timeout(within),
        ):
            held = await sockets.held(user_id)
            while bool(held.frames) != anything:
                await asyncio.sleep(_LOOK_SECONDS)
                held = await sockets.held(user_id)

    def settings(self) -> Settings:
        """Give the settings as functions read them."""
        return load_settings(environ=self.environment, cwd=self.folder).settings

    async def counts(self, url: str) -> tuple[int, int]:
        """Give messages on a queue: waiting, and out."""
        async with _api(self.sqs_url) as api:
            return await api.counts(url)

    async def send_plain(self, url: str, body: object, *, group: str) -> None:
        """Send a body as EventBridge Scheduler does: with no attributes."""
        message = Outgoing(
            body=json.dumps(body), attributes={}, group=group, dedup_id=secrets.token_hex(8)
        )
        async with _api(self.sqs_url) as api:
            await api.send(url, message)

    async def until_empty(self, url: str, *, within: float = 30.0) -> None:
        """Wait until a queue holds nothing."""
        async with asyncio.timeout(within), _api(self.sqs_url) as api:
            while await api.counts(url) != (0, 0):  # noqa: ASYNC110 - another process
                await asyncio.sleep(_LOOK_SECONDS)

    async def dead(self, url: str) -> int:
        """Count the dead letters of a queue."""
        waiting, out = await self.counts(url.removesuffix(".fifo") + "-dlq.fifo")
        return waiting + out


@asynccontextmanager
async def opened_cloud(
    folder: Path, sqs: ElasticMqServer, dynamodb: DynamoDbServer, **more: str
) -> AsyncIterator[Cloud]:
    """Make queues and tables of their own, and give them; `more` are further variables."""
    name = f"t{next(_NUMBERS)}-{secrets.token_hex(3)}"
    options = SqsOptions(
        input=QueueOptions(name="input", url=f"{sqs.url}/{ACCOUNT}/{name}-in.fifo"),
        output=QueueOptions(name="output", url=f"{sqs.url}/{ACCOUNT}/{name}-out.fifo"),
        region=REGION,
        endpoint_url=sqs.url,
    )
    async with _api(sqs.url) as api:
        await provision.apply(api, options)
    aws = AwsOptions(region=REGION, endpoint_url=dynamodb.url)
    async with open_client("dynamodb", aws) as client:
        for suffix, schema in (("r", RESPONSES), ("s", SESSIONS), ("c", CONNECTIONS)):
            await create_table(client, f"{name}-{suffix}", schema)
    for module, code in APPS.items():
        (folder / f"{module}.py").write_text(code)
    yield Cloud(
        folder=folder,
        sqs_url=sqs.url,
        input_url=options.input.url,
        output_url=options.output.url,
        environment={**_environment(options, dynamodb.url, name), **more},
    )


def _environment(options: SqsOptions, dynamodb_url: str, name: str) -> dict[str, str]:
    table = {"REGION": REGION, "ENDPOINT_URL": dynamodb_url}
    queues = "AK_EXECUTION__QUEUES__"
    return {
        **CREDENTIALS,
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        # Nobody listens there: no test calls AWS.
        "AWS_ENDPOINT_URL_LAMBDA": "http://127.0.0.1:1",
        f"{queues}TYPE": "sqs",
        f"{queues}INPUT__URL": options.input.url,
        f"{queues}OUTPUT__URL": options.output.url,
        f"{queues}SQS__REGION": REGION,
        f"{queues}SQS__ENDPOINT_URL": options.endpoint_url or "",
        f"{queues}SQS__VISIBILITY_TIMEOUT": str(LEASE_SECONDS),
        f"{queues}SQS__RETRY_BACKOFF": "1",
        "AK_EXECUTION__RESPONSE_STORE__TYPE": "dynamodb",
        "AK_EXECUTION__RESPONSE_STORE__DYNAMODB__TABLE_NAME": f"{name}-r",
        "AK_EXECUTION__RESPONSE_STORE__RETRY_COUNT": "20",
        "AK_EXECUTION__RESPONSE_STORE__DELAY": "1",
        "AK_SESSION__TYPE": "dynamodb",
        "AK_SESSION__LEASE": str(LEASE_SECONDS),
        "AK_SESSION__DYNAMODB__TABLE_NAME": f"{name}-s",
        "AK_SESSION__CONNECTION_STORE__TABLE_NAME": f"{name}-c",
        **{f"AK_EXECUTION__RESPONSE_STORE__DYNAMODB__{k}": v for k, v in table.items()},
        **{f"AK_SESSION__DYNAMODB__{k}": v for k, v in table.items()},
    }


@asynccontextmanager
async def _api(url: str) -> AsyncIterator[SqsApi]:
    options = AwsOptions(region=REGION, endpoint_url=url)
    api = SqsApi(options, SystemClock(), seconds=10.0)
    await api.open()
    try:
        yield api
    finally:
        await api.close()


def http_event(
    method: str,
    path: str = "/api/v1/chat",
    *,
    body: object = None,
    query: str = "",
    headers: Mapping[str, str] | None = None,
    authorizer: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Make an event of an HTTP API (format 2.0)."""
    context: dict[str, Any] = {
        "stage": "$default",
        "http": {"method": method, "path": path, "sourceIp": "192.0.2.1", "protocol": "HTTP/1.1"},
    }
    if authorizer is not None:
        context["authorizer"] = authorizer
    return {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {"content-type": "application/json", **(headers or {})},
        "requestContext": context,
        "body": None if body is None else json.dumps(body),
        "isBase64Encoded": False,
    }


def body_of(answer: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any JSON
    """Read the JSON of an answer."""
    return json.loads(answer["body"])
