"""Pushes over API Gateway's `@connections`."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from turnline.aws.gateway_push import GatewayClients, GatewayRoutes, GatewayUserPush
from turnline.awssdk import AwsOptions
from turnline.errors import TransportUnavailableError
from turnline.protocol.clock import SystemClock
from turnline.push import PushSignals
from turnline.store import Connection
from turnline.store.memory import MemoryConnectionOptions, MemoryConnectionStore
from turnline.telemetry import Metrics
from turnline.testing.servers.api_gateway import ApiGateway

FRAMES = [{"index": 0}, {"index": 1}]


@pytest.fixture
async def gateway() -> AsyncIterator[ApiGateway]:
    async with ApiGateway() as gateway:
        yield gateway


class Rig:
    """A user `u` with the sockets `a` and `b`, and the way to them."""

    def __init__(self, gateway: ApiGateway, parts: AsyncExitStack) -> None:
        clock = SystemClock()
        self._gateway = gateway
        self.connections = MemoryConnectionStore(MemoryConnectionOptions(), clock)
        clients = GatewayClients(AwsOptions(region="eu-west-1"), parts)
        self.push = GatewayUserPush(
            connections=self.connections,
            routes=GatewayRoutes(clients),
            signals=PushSignals(Metrics()),
            clock=clock,
            timeout=30.0,
            rest=0.0,
        )

    async def open(self, *names: str) -> None:
        for name in names:
            self._gateway.open(name)
            await self.connections.add(
                Connection(user_id="u", connection_id=name, endpoint=self._gateway.url)
            )

    async def known(self) -> list[str]:
        return [each.connection_id for each in await self.connections.connections_of("u")]


@pytest.fixture
async def rig(gateway: ApiGateway) -> AsyncIterator[Rig]:
    async with AsyncExitStack() as parts:
        rig = Rig(gateway, parts)
        await rig.open("a", "b")
        yield rig


async def test_every_socket_gets_the_frames_in_order(rig: Rig, gateway: ApiGateway) -> None:
    assert await rig.push.push("u", FRAMES) == 2
    assert gateway.frames == {"a": FRAMES, "b": FRAMES}


async def test_a_socket_that_is_gone_is_forgotten_and_others_get_theirs(
    rig: Rig, gateway: ApiGateway
) -> None:
    gateway.close("a")

    assert await rig.push.push("u", FRAMES) == 1
    assert gateway.frames == {"b": FRAMES}
    assert await rig.known() == ["b"]


async def test_a_socket_that_is_still_connecting_gets_its_frames_once_it_is_open(
    rig: Rig, gateway: ApiGateway
) -> None:
    gateway.refuse("a", 410)

    assert await rig.push.push("u", FRAMES) == 2
    assert gateway.frames == {"a": FRAMES, "b": FRAMES}
    assert await rig.known() == ["a", "b"]


async def test_what_reaches_nobody_is_held(rig: Rig, gateway: ApiGateway) -> None:
    gateway.close("a")
    gateway.close("b")

    assert await rig.push.push_or_hold("u", FRAMES) == 0
    assert (await rig.connections.held("u")).frames == tuple(FRAMES)


async def test_nothing_is_held_for_a_user_whose_socket_refuses_for_now(
    rig: Rig, gateway: ApiGateway
) -> None:
    gateway.close("b")
    gateway.refuse("a", 403)

    with pytest.raises(TransportUnavailableError):
        await rig.push.push_or_hold("u", FRAMES)

    assert (await rig.connections.held("u")).frames == ()


@pytest.mark.parametrize("status", [429, 500])
async def test_a_passing_refusal_is_tried_again_at_once(
    rig: Rig, gateway: ApiGateway, status: int
) -> None:
    gateway.refuse("a", status, status)

    assert await rig.push.push("u", FRAMES) == 2
    assert gateway.frames["a"] == FRAMES


async def test_a_refusal_that_stays_is_said_once_others_have_theirs(
    rig: Rig, gateway: ApiGateway
) -> None:
    gateway.refuse("a", *[429] * 20)

    with pytest.raises(TransportUnavailableError):
        await rig.push.push("u", FRAMES)

    assert gateway.frames == {"a": [], "b": FRAMES}
    assert await rig.known() == ["a", "b"]


async def test_a_socket_that_may_not_be_written_to_is_said_at_once(
    rig: Rig, gateway: ApiGateway
) -> None:
    gateway.refuse("a", 403)

    with pytest.raises(TransportUnavailableError):
        await rig.push.push("u", FRAMES)

    assert gateway.calls.count("a") == 1


async def test_one_refused_push_does_not_spoil_the_next(rig: Rig, gateway: ApiGateway) -> None:
    gateway.refuse("a", 403)
    with pytest.raises(TransportUnavailableError):
        await rig.push.push("u", FRAMES)

    assert await rig.push.push("u", FRAMES) == 2


async def test_a_user_without_sockets_is_reached_by_nothing(rig: Rig) -> None:
    assert await rig.push.push("nobody", FRAMES) == 0


async def test_a_text_larger_than_a_message_arrives_in_parts(rig: Rig, gateway: ApiGateway) -> None:
    frame = {"result": "x" * 300_000, "type": "CHAT_RESPONSE"}

    assert await rig.push.push("u", [frame]) == 2
    parts = gateway.frames["a"]
    assert "".join(part["result"] for part in parts) == frame["result"]
    assert [part["part"] for part in parts] == [0, 1, 2]
