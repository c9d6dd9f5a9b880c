"""Bringing what is held to a socket that came."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from turnline.aws.gateway_push import GatewayClients, GatewayRoutes
from turnline.aws.inbox import Inbox, SelfCall, asked_for
from turnline.aws.rig_lambda_api import LambdaApi
from turnline.awssdk import AwsOptions
from turnline.protocol.clock import SystemClock
from turnline.push import PushSignals
from turnline.store import Connection
from turnline.store.memory import MemoryConnectionOptions, MemoryConnectionStore
from turnline.telemetry import Metrics
from turnline.testing.servers.api_gateway import ApiGateway

FRAMES = [{"push_id": "1"}, {"push_id": "2"}]


class Rig:
    """Frames held for the user `u`, whose socket `a` is open."""

    def __init__(self, gateway: ApiGateway, parts: AsyncExitStack) -> None:
        self.gateway = gateway
        self.connections = MemoryConnectionStore(MemoryConnectionOptions(), SystemClock())
        self.socket = Connection(user_id="u", connection_id="a", endpoint=gateway.url)
        self.inbox = Inbox(
            connections=self.connections,
            routes=GatewayRoutes(GatewayClients(AwsOptions(region="eu-west-1"), parts)),
            signals=PushSignals(Metrics()),
        )

    async def left(self) -> list[dict[str, object]]:
        return list((await self.connections.held("u")).frames)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with ApiGateway() as gateway, AsyncExitStack() as parts:
        rig = Rig(gateway, parts)
        gateway.open("a")
        for frame in FRAMES:
            await rig.connections.hold("u", frame)
        yield rig


async def test_what_is_held_is_sent_in_order_and_dropped(rig: Rig) -> None:
    before = await rig.inbox.holds_for("u")
    await rig.inbox.give_to(rig.socket)

    assert before
    assert rig.gateway.frames["a"] == FRAMES
    assert not await rig.inbox.holds_for("u")


async def test_a_user_for_whom_nothing_is_held_costs_no_call(rig: Rig) -> None:
    other = Connection(user_id="v", connection_id="a", endpoint=rig.gateway.url)
    await rig.inbox.give_to(other)

    assert rig.gateway.calls == []


async def test_what_a_socket_that_left_was_not_sent_stays_held(rig: Rig) -> None:
    rig.gateway.close("a")
    await rig.inbox.give_to(rig.socket)

    assert await rig.left() == FRAMES


async def test_what_api_gateway_refuses_in_the_middle_stays_held_as_a_whole(rig: Rig) -> None:
    rig.gateway.refuse("a", 403)
    await rig.inbox.give_to(rig.socket)
    refused = await rig.left()
    await rig.inbox.give_to(rig.socket)

    assert refused == FRAMES
    assert rig.gateway.frames["a"] == FRAMES


async def test_the_call_of_the_own_function_names_the_socket(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LambdaApi() as api:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", api.url)
        monkeypatch.setenv("AWS_REGION", "eu-west-1")
        # It is refused, which is only logged.
        await SelfCall(function="f", version="$LATEST").ask(rig.socket)
        await SelfCall(function="", version="").ask(rig.socket)
        [(name, event)] = api.asked

    assert (name, asked_for(event)) == ("f", rig.socket)
    assert asked_for({"requestContext": {}}) is None
