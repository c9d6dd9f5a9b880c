"""A WebSocket API of API Gateway: who is let in, what its integration is told, who may write."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from turnline.hosting import WebOptions, WebServer
from turnline.testing.servers.api_gateway import MAX_BYTES
from turnline.testing.servers.lambda_runtime import FunctionError
from turnline.testing.servers.vpc_link import VpcLink
from turnline.testing.servers.websocket_api import WebSocketApi


class Function:
    """Notes its events, and answers each kind as it is told to."""

    def __init__(self) -> None:
        self.events: list[Mapping[str, Any]] = []
        self.connect: object = {"statusCode": 200}
        self.message: object = {"statusCode": 200, "body": '{"ok": true}'}
        self.left = asyncio.Event()

    async def invoke(self, event: Mapping[str, Any]) -> object:
        self.events.append(event)
        kind = event["requestContext"]["eventType"]
        if kind == "DISCONNECT":
            self.left.set()
        answer = {"CONNECT": self.connect, "MESSAGE": self.message}.get(kind, {"statusCode": 200})
        if isinstance(answer, asyncio.Event):
            await answer.wait()
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def kinds(self) -> list[str]:
        return [event["requestContext"]["routeKey"] for event in self.events]


async def judge(event: Mapping[str, Any]) -> dict[str, Any]:
    token = event["queryStringParameters"]["token"]
    if token == "forged":
        raise FunctionError("Error", "Unauthorized")
    if token == "broken":
        raise FunctionError("KeyError", "x")
    effect = "Deny" if token == "denied" else "Allow"
    return {
        "principalId": token,
        "policyDocument": {"Statement": [{"Effect": effect, "Resource": event["methodArn"]}]},
        "context": {"userId": token},
    }


@asynccontextmanager
async def served(function: Function) -> AsyncIterator[WebSocketApi]:
    api = WebSocketApi(routes=["chat", "status"])
    async with api.serving(function.invoke, authorizer=judge):
        yield api


@asynccontextmanager
async def opened(function: Function) -> AsyncIterator[tuple[WebSocketApi, ClientConnection]]:
    async with served(function) as api, connect(f"{api.url}?token=ann") as client:
        yield api, client


def name_of(function: Function) -> str:
    return str(function.events[0]["requestContext"]["connectionId"])


async def test_a_socket_is_an_event_at_each_of_its_turns() -> None:
    function = Function()
    async with served(function) as api:
        async with connect(f"{api.url}?token=ann", additional_headers={"x-mine": "1"}) as client:
            await client.send('{"route": "chat", "body": {}}')
            answered = await client.recv()
            for frame in ('{"route": "status"}', '{"route": "else"}', "no JSON", "[1]"):
                await client.send(frame)
                await client.recv()
        await asyncio.wait_for(function.left.wait(), 10)
    connected, chat, *_, left = function.events

    assert answered == '{"ok": true}'
    assert function.kinds == [
        *("$connect", "chat", "status", "$default", "$default", "$default", "$disconnect")
    ]
    assert connected["headers"]["x-mine"] == "1"
    assert connected["queryStringParameters"] == {"token": "ann"}
    assert connected["requestContext"]["authorizer"] == {"principalId": "ann", "userId": "ann"}
    assert chat["body"] == '{"route": "chat", "body": {}}'
    assert chat["requestContext"]["authorizer"]["userId"] == "ann"
    assert (chat["requestContext"]["stage"], "headers" in chat) == ("live", False)
    assert left["requestContext"]["disconnectStatusCode"] == 1000
    assert {each["requestContext"]["connectionId"] for each in function.events} == {
        connected["requestContext"]["connectionId"]
    }


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 401), ("?token=forged", 401), ("?token=denied", 403), ("?token=broken", 500)],
)
async def test_whom_the_authorizer_does_not_let_in_the_integration_never_sees(
    query: str, status: int
) -> None:
    function = Function()
    async with served(function) as api:
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"{api.url}{query}")

    assert refused.value.response.status_code == status
    assert function.events == []


async def test_the_integration_may_refuse_too_and_its_failure_does() -> None:
    function = Function()
    told = []
    async with served(function) as api:
        for function.connect in ({"statusCode": 401, "body": "no"}, RuntimeError("boom")):
            with pytest.raises(InvalidStatus) as refused:
                await connect(f"{api.url}?token=ann")
            told.append(refused.value.response.status_code)

    assert told == [401, 500]


async def test_the_subprotocol_is_the_integrations() -> None:
    function = Function()
    function.connect = {"statusCode": 200, "headers": {"Sec-WebSocket-Protocol": "b"}}
    offered = [Subprotocol("a"), Subprotocol("b")]
    async with (
        served(function) as api,
        connect(f"{api.url}?token=ann", subprotocols=offered) as client,
    ):
        taken = client.subprotocol

    assert taken == "b"


async def test_what_is_posted_reaches_the_socket_and_a_closed_one_is_gone() -> None:
    function = Function()
    async with httpx.AsyncClient() as http, opened(function) as (api, client):
        url = f"{api.endpoint_url}/@connections/{name_of(function)}"
        posted = await http.post(url, content=b'{"n": 1}')
        received = await client.recv()
        seen = await http.get(url)
        large = await http.post(url, content=b"x" * (MAX_BYTES + 1))
        deleted = await http.delete(url)
        with pytest.raises(ConnectionClosed):
            await client.recv()
        await asyncio.wait_for(function.left.wait(), 10)
        gone = await http.post(url, content=b"{}")

    assert [each.status_code for each in (posted, large, deleted, gone)] == [200, 413, 204, 410]
    assert received == '{"n": 1}'
    assert seen.json()["identity"]["sourceIp"] == "127.0.0.1"
    assert gone.headers["x-amzn-errortype"] == "GoneException"


async def test_nothing_can_be_posted_while_a_socket_connects() -> None:
    function = Function()
    function.connect = may_open = asyncio.Event()
    async with (
        served(function) as api,
        asyncio.TaskGroup() as tasks,
        httpx.AsyncClient() as http,
    ):
        opening = tasks.create_task(connect(f"{api.url}?token=ann").__aenter__())
        async with asyncio.timeout(30):
            while not function.events:  # noqa: ASYNC110 - another task
                await asyncio.sleep(0.01)
        early = await http.post(f"{api.endpoint_url}/@connections/{name_of(function)}")
        may_open.set()
        await (await opening).close()

    assert early.status_code == 410


async def test_a_frame_whose_integration_fails_is_answered_so() -> None:
    function = Function()
    function.message = RuntimeError("boom")
    async with opened(function) as (_, client):
        await client.send("{}")
        told = json.loads(await client.recv())

    assert told["message"] == "Internal server error"
    assert told["connectionId"] == name_of(function)


async def test_frames_are_worked_on_side_by_side() -> None:
    function = Function()
    function.message = held = asyncio.Event()
    async with opened(function) as (_, client):
        await client.send("first")
        async with asyncio.timeout(30):
            while len(function.events) < 2:  # noqa: ASYNC110 - another task
                await asyncio.sleep(0.01)
        function.message = {"statusCode": 200, "body": "second"}
        await client.send("second")
        answered = await client.recv()
        held.set()

    assert answered == "second"


async def test_binary_and_too_large_frames_end_a_socket() -> None:
    codes = []
    for frame in (b"binary", "x" * (MAX_BYTES + 1)):
        async with opened(Function()) as (_, client):
            with pytest.raises(ConnectionClosed) as closed:
                await client.send(frame)
                await client.recv()
            codes.append(closed.value.rcvd and closed.value.rcvd.code)

    assert codes == [1003, 1009]


async def test_a_vpc_link_posts_what_containers_are_told() -> None:
    seen: list[tuple[str, str, str, str]] = []

    async def container(request: Request) -> Response:
        headers = request.headers
        seen.append(
            (
                str(request.url).partition("/ws/")[2],
                headers["x-ak-route"],
                (await request.body()).decode(),
                headers["x-ak-connection-id"],
            )
        )
        return JSONResponse({"status": "SUCCESS"})

    stop = asyncio.Event()
    web = WebServer(
        Starlette(routes=[Route("/ws/{what}", container, methods=["POST"])]),
        WebOptions(host="127.0.0.1", port=0),
    )
    api = WebSocketApi()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(web.run(stop))
        async with VpcLink(f"http://127.0.0.1:{web.port}") as link, api.serving(link.invoke):
            with pytest.raises(InvalidStatus) as refused:
                await connect(api.url)
            async with connect(f"{api.url}?token=ann&other=1") as client:
                await client.send('{"route": "chat"}')
                answered = json.loads(await client.recv())
            async with asyncio.timeout(30):
                while len(seen) < 3:  # noqa: ASYNC110 - another task
                    await asyncio.sleep(0.01)
        stop.set()

    assert refused.value.response.status_code == 400
    assert answered == {"status": "SUCCESS"}
    assert [each[:3] for each in seen] == [
        ("connect?token=ann", "$connect", ""),
        ("message", "chat", '{"route": "chat"}'),
        ("disconnect", "$disconnect", ""),
    ]
    assert len({each[3] for each in seen}) == 1
