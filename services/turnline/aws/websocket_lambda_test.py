"""WebSocket through the functions: from `$connect` to the frames that API Gateway is given."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from turnline.aws.rig import NO_MORE, Cloud, opened_cloud
from turnline.aws.rig_lambda_api import LambdaApi
from turnline.protocol.clock import SystemClock
from turnline.store.dynamodb import open_connection_store
from turnline.testing.servers.api_gateway import STAGE, ApiGateway
from turnline.testing.servers.dynamodb import DynamoDbServer
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.testing.servers.event_source import EventSource
from turnline.testing.servers.lambda_runtime import FunctionError, LambdaFunction


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """A WebSocket API: what stands before the functions, and their mappings' events."""

    gateway: ApiGateway
    authorizer: LambdaFunction
    handler: LambdaFunction
    replies: EventSource

    async def connect(self, name: str, token: str | None, *, authorized: bool = True) -> int:
        """Open a socket as API Gateway does; give the status of its handshake."""
        event = socket_event("CONNECT", name)
        if token is not None:
            event["queryStringParameters"] = {"token": token}
        if authorized:
            try:
                verdict = await self.authorizer.invoke(
                    {**event, "type": "REQUEST", "methodArn": f"arn:x:y/{STAGE}/$connect"}
                )
            except FunctionError as error:
                return 401 if error.message == "Unauthorized" else 500
            event["requestContext"]["authorizer"] = {
                **verdict["context"],
                "principalId": verdict["principalId"],
            }
        status = int((await self.handler.invoke(event))["statusCode"])
        if status == 200:
            self.gateway.open(name)
        return status

    async def send(self, name: str, frame: Mapping[str, Any]) -> dict[str, Any]:
        """Send a frame; give the one that answers it."""
        event = socket_event("MESSAGE", name)
        event["body"] = json.dumps(frame)
        answer: dict[str, Any] = json.loads((await self.handler.invoke(event))["body"])
        return answer


def socket_event(kind: str, name: str) -> dict[str, Any]:
    return {
        "requestContext": {
            "eventType": kind,
            "routeKey": {"CONNECT": "$connect", "DISCONNECT": "$disconnect"}.get(kind, "chat"),
            "connectionId": name,
            "domainName": "api.example",
            "stage": STAGE,
        },
        "isBase64Encoded": False,
    }


def chat(prompt: str, session_id: str, request_id: str) -> dict[str, Any]:
    body = {"prompt": prompt, "session_id": session_id}
    return {"route": "chat", "request_id": request_id, "body": body}


@asynccontextmanager
async def running(
    cloud: Cloud, gateway: ApiGateway, mode: str, given: Mapping[str, str] = NO_MORE
) -> AsyncIterator[Api]:
    more = {
        **given,
        "AK_EXECUTION__MODE": mode,
        "AK_WEBSOCKET_API__ENDPOINT_URL": gateway.url,
    }
    runner_app = "app_stream_runner" if mode == "stream" else "app_agent_runner"
    async with (
        cloud.function("app_ws_authorizer") as authorizer,
        cloud.function("app_ws_connection_handler", more=more) as handler,
        cloud.function(runner_app, more=more) as runner,
        cloud.function("app_response_handler", more=more) as responder,
        asyncio.TaskGroup() as tasks,
    ):
        replies = cloud.source(cloud.output_url, responder, batch_size=10)
        mappings = [
            tasks.create_task(cloud.source(cloud.input_url, runner).run()),
            tasks.create_task(replies.run()),
        ]
        yield Api(gateway=gateway, authorizer=authorizer, handler=handler, replies=replies)
        for mapping in mappings:
            mapping.cancel()


@pytest.fixture
async def gateway() -> AsyncIterator[ApiGateway]:
    async with ApiGateway() as gateway:
        yield gateway


async def test_answers_are_pushed_to_all_sockets_of_the_user(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with running(cloud, gateway, "async") as api:
        told = [
            await api.connect("forged", "forged"),
            await api.connect("none", None),
            await api.connect("a", "user-1"),
            await api.connect("b", "user-1"),
            await api.connect("other", "user-2"),
            await api.connect("unchecked", "user-3", authorized=False),
            await api.connect("unchecked-forged", "forged", authorized=False),
        ]
        gateway.close("b")
        queued = await api.send("a", chat("say hello", "s", "r1"))
        custom = await api.send("unchecked", {"route": "status"})
        frames = await gateway.until_done("a", within=90.0)
        await api.handler.invoke(socket_event("DISCONNECT", "a"))
        left = await api.send("a", chat("say again", "s", "r2"))

    assert told == [401, 401, 200, 200, 200, 200, 401]
    assert (queued["type"], queued["request_id"]) == ("CHAT_QUEUED", "r1")
    assert (custom["up"], custom["who"]) == (True, "user-3")
    assert [(frame["type"], frame["result"]) for frame in frames] == [("CHAT_RESPONSE", "hello ")]
    assert gateway.frames["other"] == []
    assert left["status"] == "FAILED"


async def test_a_stream_arrives_in_order_and_ends_once_whatever_is_refused(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with running(cloud, gateway, "stream") as api:
        await api.connect("a", "user-1")
        gateway.refuse("a", 429, *[403] * 2)
        await api.send("a", chat("say one two three", "s", "r1"))
        frames = await gateway.until_done("a", within=90.0)
        failed = [names for names in api.replies.failed if names]

    text = "".join(frame.get("delta", "") for frame in frames)
    assert {frame["type"] for frame in frames} == {"STREAM_CHUNK"}
    assert text == "one two three "
    assert [frame["done"] for frame in frames].count(True) == 1
    assert frames[-1]["done"] is True
    assert failed


async def test_without_an_inbox_an_answer_that_reaches_nobody_is_given_up_as_a_dead_letter(
    tmp_path: Path, sqs: ElasticMqServer, dynamodb: DynamoDbServer, gateway: ApiGateway
) -> None:
    more = {
        "AK_EXECUTION__QUEUES__OUTPUT__MAX_RECEIVE_COUNT": "2",
        "AK_WEBSOCKET_API__INBOX": "off",
    }
    async with (
        opened_cloud(tmp_path, sqs, dynamodb, **more) as cloud,
        running(cloud, gateway, "async") as api,
    ):
        await api.connect("a", "user-1")
        gateway.close("a")
        await api.send("a", chat("say hello", "s", "r1"))
        async with asyncio.timeout(90):
            while not await cloud.dead(cloud.output_url):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.1)
        await api.connect("b", "user-1")
        again = await api.send("b", chat("say hello", "s", "r1"))

    assert (again["type"], again["result"]) == ("CHAT_RESPONSE", "hello ")


async def test_an_answer_that_reaches_nobody_comes_over_the_next_socket(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with LambdaApi() as lambda_api:
        more = {"AWS_ENDPOINT_URL_LAMBDA": lambda_api.url}
        async with running(cloud, gateway, "stream", more) as api:
            await api.connect("a", "user-1")
            gateway.close("a")
            await api.send("a", chat("say one two", "s", "r1"))
            await cloud.until_held("user-1")
            # Refused, as without the right to call itself: left to the first frame.
            await api.connect("b", "user-1")
            before = gateway.frames["b"].copy()
            custom = await api.send("b", {"route": "status"})
            first = gateway.frames["b"].copy()
            gateway.close("b")
            await api.send("b", chat("say three", "s", "r2"))
            await cloud.until_held("user-1")
            lambda_api.function = api.handler
            await api.connect("c", "user-1")
            lambda_api.may_run.set()
            second = await gateway.until_done("c", within=90.0)
            await cloud.until_held("user-1", anything=False)

    assert before == []
    assert custom["up"]
    assert {(f["request_id"], f["done"], f["result"]) for f in first} == {("r1", True, "one two ")}
    assert {(f["request_id"], f["done"], f["result"]) for f in second} == {("r2", True, "three ")}
    asked = [event["turnline_held_frames"]["connection_id"] for _, event in lambda_api.asked]
    assert asked == ["b", "c"]


async def test_a_socket_that_a_push_forgets_while_it_connects_is_noted_again_and_given_what_is_held(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with (
        LambdaApi() as lambda_api,
        open_connection_store(cloud.settings(), SystemClock()) as sockets,
    ):
        more = {
            "AK_EXECUTION__MODE": "async",
            "AK_WEBSOCKET_API__ENDPOINT_URL": gateway.url,
            "AWS_ENDPOINT_URL_LAMBDA": lambda_api.url,
        }
        async with cloud.function("app_ws_connection_handler", more=more) as handler:
            await sockets.hold("user-1", {"push_id": "1"})
            lambda_api.meanwhile = lambda: sockets.remove("user-1", "b")
            event = socket_event("CONNECT", "b")
            event["queryStringParameters"] = {"token": "user-1"}
            await handler.invoke(event)
            noted = [one.connection_id for one in await sockets.connections_of("user-1")]
            [(_, asked)] = lambda_api.asked
            # API Gateway has not opened it yet: Lambda is told, and would call again.
            with pytest.raises(FunctionError, match="held"):
                await handler.invoke(asked)
            gateway.open("b")
            await handler.invoke(asked)
            given = gateway.frames["b"]
            await handler.invoke(socket_event("DISCONNECT", "b"))
            await handler.invoke(asked)
            left = await sockets.connections_of("user-1")

    assert noted == ["b"]
    assert given == [{"push_id": "1"}]
    assert not left
