"""Servers that stop, freeze, restart, and networks that lose what they were given."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from nats.aio.msg import Msg

from turnline.errors import TransportUnavailableError
from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.nats import NatsServer
from turnline.testing.servers.tcp_proxy import TcpProxy
from turnline.transport import Delivery, Transport
from turnline.transport.nats import NatsOptions, NatsTransport, ServerOptions
from turnline.transport.nats.client import connect
from turnline.transport.nats.connection import Connection
from turnline.transport.nats.harness import RealTime, options_for


@pytest.fixture
async def own_server() -> AsyncIterator[NatsServer]:
    """A server this test may stop."""
    async with NatsServer() as server:
        yield server


def quick(url: str, *, ack_wait: float = 3.0, request_timeout: float = 2.0) -> NatsOptions:
    options = options_for(url)
    server = replace(options.server, request_timeout=request_timeout)
    return replace(options, ack_wait=ack_wait, server=server)


def opened(options: NatsOptions) -> NatsTransport:
    return NatsTransport(options, SystemClock())


async def receive_one(transport: Transport, seconds: float = 10.0) -> Delivery:
    async with asyncio.timeout(seconds), transport.input.consumer() as reader:
        while True:
            try:
                return await reader.receive()
            except TransportUnavailableError:
                await asyncio.sleep(0.05)


async def until_away(transport: Transport, seconds: float = 12.0) -> None:
    async with asyncio.timeout(seconds):
        while True:
            try:
                await transport.check()
            except TransportUnavailableError:
                return
            await asyncio.sleep(0.05)


async def until_back(transport: Transport, seconds: float = 12.0) -> None:
    async with asyncio.timeout(seconds):
        while True:
            try:
                return await transport.check()
            except TransportUnavailableError:
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("hard", [False, True], ids=["stopped", "killed"])
async def test_a_reader_that_waits_over_a_restart_gets_the_next_message_at_once(
    own_server: NatsServer, hard: bool
) -> None:
    async with opened(quick(own_server.url)) as transport, asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(receive_one(transport, 20.0))
        await RealTime().calm()
        await own_server.restart(hard=hard)
        await until_back(transport)
        began = time.monotonic()
        await transport.input.send(request("session", "turn"))
        delivery = await waiting
        assert time.monotonic() - began < 2.0  # less than a pull's life: it was made anew
        assert (delivery.envelope.request_id, delivery.attempt) == ("turn", 1)
        await delivery.ack()


async def test_messages_outlive_the_server(own_server: NatsServer) -> None:
    async with opened(quick(own_server.url)) as transport:
        for number in range(20):
            await transport.input.send(request(f"session-{number % 3}", f"turn-{number}"))
        await own_server.restart(hard=True)
        await until_back(transport)
        seen = []
        for _ in range(20):
            delivery = await receive_one(transport)
            seen.append(delivery.envelope)
            await delivery.ack()
        for session in range(3):
            turns = [e.request_id for e in seen if e.session_id == f"session-{session}"]
            assert turns == [f"turn-{n}" for n in range(20) if n % 3 == session]


async def test_a_long_outage_is_told_of_and_survived(own_server: NatsServer) -> None:
    async with opened(quick(own_server.url)) as transport:
        await transport.input.send(request("session", "turn"))
        own_server.kill()
        await until_away(transport, 3.0)
        began = time.monotonic()
        with pytest.raises(TransportUnavailableError):
            await transport.input.send(request("session", "later"))
        assert time.monotonic() - began < 3.0
        await asyncio.sleep(8.0)  # the outage itself: many failed attempts to connect
        await own_server.start()
        await until_back(transport, 5.0)
        delivery = await receive_one(transport, 5.0)
        assert delivery.envelope.request_id == "turn"
        await delivery.ack()


async def test_a_frozen_server_is_found_out_and_its_return_noticed(own_server: NatsServer) -> None:
    async with opened(quick(own_server.url)) as transport:
        own_server.freeze()
        began = time.monotonic()
        with pytest.raises(TransportUnavailableError):
            await transport.input.send(request("session", "lost"))
        await until_away(transport, 10.0)
        assert time.monotonic() - began < 10.0
        own_server.thaw()
        await until_back(transport)
        await transport.input.send(request("session", "turn"))


async def test_a_ping_whose_waiter_gave_up_leaves_the_connection_of_use(
    own_server: NatsServer,
) -> None:
    link = await connect(own_server.url, ServerOptions(urls=(own_server.url,)))
    own_server.freeze()
    end = await link.subscribe("somewhere", ignore)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await end()  # unsubscribes, and pings to see that it is done
            raise TimeoutError
    own_server.thaw()
    came = asyncio.Event()

    async def on_message(_: Msg) -> None:
        came.set()

    await link.subscribe("elsewhere", on_message)
    await link.publish("elsewhere", b"", "", None)
    async with asyncio.timeout(30):
        await came.wait()
    assert link.is_up
    await link.close()


async def test_a_connection_lost_before_anybody_watched_it_is_made_anew(
    own_server: NatsServer,
) -> None:
    connection, back = Connection(quick(own_server.url).server, SystemClock()), asyncio.Event()
    connection.when_up(back.set)
    await connection.open()
    await own_server.restart(hard=True)
    with pytest.raises(TransportUnavailableError):
        async with asyncio.timeout(30):
            while True:
                await connection.check()

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(connection.run())
        await back.wait()
        await connection.check()
        running.cancel()
    await connection.close()


async def ignore(_: Msg) -> None:
    """Listen to nothing."""


async def test_a_reader_is_told_when_the_server_says_nothing_for_long(
    own_server: NatsServer,
) -> None:
    async with opened(quick(own_server.url)) as transport, transport.input.consumer() as reader:
        own_server.kill()
        with pytest.raises(TransportUnavailableError):
            async with asyncio.timeout(12.0):
                await reader.receive()


@pytest.mark.parametrize("how", ["kill", "freeze"])
async def test_leaving_takes_seconds_whatever_the_server_does(
    own_server: NatsServer, how: str
) -> None:
    async with opened(quick(own_server.url, ack_wait=60.0)) as transport:
        for number in range(6):
            await transport.input.send(request("session", f"turn-{number}"))
        out = await receive_one(transport)
        assert out.attempt == 1
        getattr(own_server, how)()
        began = time.monotonic()
    assert time.monotonic() - began < 8.0


async def test_an_ack_that_was_lost_is_sent_again_and_the_message_goes(server: NatsServer) -> None:
    async with TcpProxy(server.port) as proxy:
        options = quick(f"nats://127.0.0.1:{proxy.port}", ack_wait=20.0)
        async with opened(options) as transport:
            await transport.input.send(request("session", "turn"))
            delivery = await receive_one(transport)
            proxy.swallow("to_server")
            with pytest.raises(TransportUnavailableError):
                await delivery.ack()
            proxy.cut()
            proxy.heal()
            await until_back(transport)
            await delivery.ack()
            stats = await transport.input.stats()
            assert (stats.waiting, stats.in_flight) == (0, 0)


async def test_an_ack_whose_answer_was_lost_may_be_sent_again(server: NatsServer) -> None:
    async with TcpProxy(server.port) as proxy:
        options = quick(f"nats://127.0.0.1:{proxy.port}", ack_wait=20.0)
        async with opened(options) as transport:
            await transport.input.send(request("session", "turn"))
            delivery = await receive_one(transport)
            proxy.swallow("to_client")
            with pytest.raises(TransportUnavailableError):
                await delivery.ack()
            proxy.cut()
            proxy.heal()
            await until_back(transport)
            await delivery.ack()


async def test_a_send_whose_answer_was_lost_is_there_once(server: NatsServer) -> None:
    async with TcpProxy(server.port) as proxy:
        options = quick(f"nats://127.0.0.1:{proxy.port}")
        async with opened(options) as transport:
            proxy.swallow("to_client")
            with pytest.raises(TransportUnavailableError):
                await transport.input.send(request("session", "turn"))
            proxy.cut()
            proxy.heal()
            await until_back(transport)
            assert await transport.input.send(request("session", "turn")) is False
            assert (await transport.input.stats()).waiting == 1


async def test_what_waits_behind_a_cut_connection_is_delivered_in_order(
    server: NatsServer,
) -> None:
    async with TcpProxy(server.port) as proxy:
        options = quick(f"nats://127.0.0.1:{proxy.port}")
        async with opened(options) as transport:
            names = [f"turn-{number}" for number in range(12)]
            for name in names:
                await transport.input.send(request("session", name))
            seen: list[str] = []
            while len(seen) < len(names):
                delivery = await receive_one(transport, 20.0)
                proxy.cut()
                await until_back(transport)
                await delivery.ack()
                seen.append(delivery.envelope.request_id)
            assert seen == names


async def test_a_server_that_is_not_there_is_said_at_once(own_server: NatsServer) -> None:
    url = own_server.url
    own_server.stop()
    with pytest.raises(TransportUnavailableError, match="can't be reached"):
        async with opened(quick(url)):
            raise AssertionError("entered")


async def test_a_closed_connection_stops_coming_back_though_nobody_cancels_it(
    own_server: NatsServer,
) -> None:
    connection = Connection(quick(own_server.url).server, SystemClock())
    await connection.open()
    async with asyncio.timeout(15), asyncio.TaskGroup() as tasks:
        tasks.create_task(connection.run())
        await asyncio.to_thread(own_server.kill)
        while connection.is_up:  # noqa: ASYNC110 - told when asked only
            await asyncio.sleep(0.01)
        await connection.close()
