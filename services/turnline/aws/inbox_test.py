"""Bringing what is held to a socket that came."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from turnline.aws.gateway_push import GatewayClients, GatewayRoutes
from turnline.aws.inbox import Inbox, StillHeldError, asked_for, open_self_call
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
    # The first is taken (and not told of), the second refused.
    rig.gateway.refuse("a", 200, 403)
    done = [await rig.inbox.give_to(rig.socket)]
    refused = await rig.left()
    done.append(await rig.inbox.give_to(rig.socket))

    assert refused == FRAMES
    assert rig.gateway.frames["a"] == FRAMES
    assert len(rig.gateway.calls) == 2 + 2
    assert done == [False, True]


@pytest.mark.parametrize("apart", [False, True])
async def test_a_socket_that_a_push_forgot_is_found_again_once_it_is_given_what_is_held(
    rig: Rig, *, apart: bool
) -> None:
    if apart:
        await rig.inbox.give_apart(rig.socket, seconds=30.0)
    else:
        await rig.inbox.give_to(rig.socket, seconds=30.0)

    assert await rig.connections.connections_of("u") == (rig.socket,)


async def test_a_socket_is_noted_by_a_call_of_its_own_though_others_took_what_was_held(
    rig: Rig,
) -> None:
    await rig.inbox.give_to(rig.socket, seconds=30.0)
    await rig.connections.remove("u", "a")
    await rig.inbox.give_apart(rig.socket, seconds=30.0)

    assert await rig.connections.connections_of("u") == (rig.socket,)


async def test_a_call_of_its_own_fails_while_something_is_left(rig: Rig) -> None:
    rig.gateway.refuse("a", 403)
    with pytest.raises(StillHeldError):
        await rig.inbox.give_apart(rig.socket, seconds=30.0)

    assert await rig.left() == FRAMES


async def test_a_frame_does_not_wait_for_a_second_try_at_an_api_that_says_nothing(
    rig: Rig,
) -> None:
    came: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(lambda _, to: came.append(to), "127.0.0.1") as silent:
        port = silent.sockets[0].getsockname()[1]
        there = Connection(user_id="u", connection_id="a", endpoint=f"http://127.0.0.1:{port}/x")
        done = await rig.inbox.give_to(there)
        for writer in came:
            writer.close()

    assert (done, len(came)) == (False, 1)
    assert await rig.left() == FRAMES


async def test_the_call_of_the_own_function_names_the_socket(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LambdaApi() as api:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", api.url)
        monkeypatch.setenv("AWS_REGION", "eu-west-1")
        name = "AWS_LAMBDA_FUNCTION_NAME"
        async with open_self_call({name: "f"}) as named, open_self_call({}) as nameless:
            # It is refused, which is only logged.
            await named.ask(rig.socket)
            await nameless.ask(rig.socket)
        [(name, event)] = api.asked

    assert (name, asked_for(event)) == ("f", rig.socket)
    assert asked_for({"requestContext": {}}) is None
