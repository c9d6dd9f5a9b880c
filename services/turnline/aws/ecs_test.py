"""The entry points of containers, as processes over a real queue."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from turnline.aws.rig import Cloud
from turnline.aws.rig_container import Container, container
from turnline.testing.servers.api_gateway import ApiGateway

CHAT = "/api/v1/chat"
TOKEN = {"authorization": "Bearer user-1"}


@pytest.fixture
async def gateway() -> AsyncIterator[ApiGateway]:
    async with ApiGateway() as gateway:
        yield gateway


async def test_rest_callers_are_answered_by_two_containers(cloud: Cloud) -> None:
    async with container(cloud, "ecs_io") as io, container(cloud, "ecs_runner") as runner:
        async with io.client() as client:
            refused = await client.post(CHAT, json={"prompt": "x", "session_id": "s"})
            answered = await client.post(
                CHAT, json={"prompt": "say hello", "session_id": "s"}, headers=TOKEN
            )
            health = await client.get("/health")
            own = await client.get("/app")
        readers = [(event["queue"], event["consumers"]) for event in consumers(io)]
        readers += [(event["queue"], event["consumers"]) for event in consumers(runner)]
        codes = [await io.stop(), await runner.stop()]

    assert refused.status_code == 401
    assert (answered.status_code, answered.json()["result"]) == (200, "hello ")
    assert health.status_code == 200
    assert own.json() == {"path": "/app"}
    # The guide's defaults: five readers of turns, two of answers.
    assert {("input", 5), ("output", 2)} <= set(readers)
    assert codes == [0, 0]


def consumers(process: Container) -> list[dict[str, object]]:
    return process.events("transport.consumers")


async def post(
    client: httpx.AsyncClient, path: str, connection: str, **more: object
) -> httpx.Response:
    headers = {"x-ak-connection-id": connection, "x-ak-route": "chat"}
    return await client.post(path, headers=headers, **more)  # type: ignore[arg-type] # as httpx has it


async def test_sockets_behind_a_vpc_link_are_let_in_and_answered(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    more = {"AK_EXECUTION__MODE": "stream", "AK_WEBSOCKET_API__ENDPOINT_URL": gateway.url}
    async with (
        container(cloud, "ecs_io", more) as io,
        container(cloud, "ecs_runner", more),
        io.client() as client,
    ):
        nobody = await client.post("/ws/connect?token=user-1")
        forged = await post(client, "/ws/connect?token=forged", "f")
        opened = await post(client, "/ws/connect?token=user-1", "a")
        gateway.open("a")
        frame = {"request_id": "r", "body": {"prompt": "say one two", "session_id": "s"}}
        queued = await post(client, "/ws/message", "a", json=frame)
        custom = await post(client, "/ws/message", "a", json={"route": "status"})
        frames = await gateway.until_done("a", within=60.0)
        large = await post(client, "/ws/message", "a", content=b"x" * 200_000)
        left = await post(client, "/ws/disconnect", "a")
        unknown = await post(client, "/ws/message", "a", json=frame)

    assert [each.status_code for each in (nobody, forged, opened, left)] == [400, 401, 200, 200]
    assert (queued.json()["type"], queued.json()["user_id"]) == ("CHAT_QUEUED", "user-1")
    assert (custom.json()["up"], custom.json()["who"]) == (True, "user-1")
    assert "".join(frame.get("delta", "") for frame in frames) == "one two "
    assert [frame["done"] for frame in frames].count(True) == 1
    assert large.status_code == 413
    assert unknown.json()["code"] == "unauthenticated"


@pytest.mark.parametrize(
    ("module", "more", "told"),
    [
        (
            "ecs_sockets",
            {"AK_EXECUTION__MODE": "async", "AK_EXECUTION__QUEUES__INPUT__URL": ""},
            [
                "execution.queues.input.url: is not set",
                "websocket_api.endpoint_url: is not set",
                "auth.type: is none",
            ],
        ),
        ("ecs_sockets", {}, ["execution.mode: is rest_sync, but AWSWebsocketAPI"]),
        (
            "ecs_runner",
            {"AK_EXECUTION__QUEUES__TYPE": "nats"},
            ["execution.queues.type: is nats, but the AWS entry points"],
        ),
    ],
)
async def test_settings_that_do_not_fit_end_it_with_all_that_is_wrong(
    cloud: Cloud, module: str, more: dict[str, str], told: list[str]
) -> None:
    process = Container(cloud, module, more)
    code = await process.ended()

    assert code == 78
    for fault in told:
        assert fault in process.log
    assert "push_auth_token" not in process.log


async def test_answers_may_be_taken_by_a_process_of_their_own(cloud: Cloud) -> None:
    async with (
        container(cloud, "ecs_io") as io,
        container(cloud, "ecs_output"),
        container(cloud, "ecs_runner"),
        io.client() as client,
        asyncio.timeout(60),
    ):
        answers = [
            await client.post(
                CHAT, json={"prompt": f"say {number}", "session_id": "s"}, headers=TOKEN
            )
            for number in range(4)
        ]

    assert [answer.json()["result"] for answer in answers] == ["0 ", "1 ", "2 ", "3 "]
