"""Servers that freeze, networks that cut and lose, answers that only AWS gives."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from turnline.errors import ConfigurationError, TransportUnavailableError
from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.aws_front import Answer, AwsFront, error
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.testing.servers.tcp_proxy import TcpProxy
from turnline.transport import Delivery, Transport
from turnline.transport.sqs import SqsOptions, SqsTransport
from turnline.transport.sqs.harness import CALM_SECONDS, fresh_queues, options_for

THROTTLED = error(403, "RequestThrottled", "Rate exceeded", query="RequestThrottled")
DENIED = error(403, "AccessDenied", "User is not authorized", query="AccessDenied")


@pytest.fixture
async def own_server() -> AsyncIterator[ElasticMqServer]:
    """A server this test may freeze."""
    async with ElasticMqServer() as server:
        yield server


def quick(options: SqsOptions, url: str = "") -> SqsOptions:
    """Give short times, and the address of what stands before the server."""
    return replace(
        options,
        endpoint_url=url or options.endpoint_url,
        visibility_timeout=3,
        wait_time=1,
        request_timeout=1.5,
    )


@asynccontextmanager
async def behind_a_front(server: ElasticMqServer) -> AsyncIterator[tuple[AwsFront, SqsTransport]]:
    """Give a transport whose calls pass through a front."""
    async with (
        fresh_queues(server.url) as options,
        AwsFront(server.port) as front,
        SqsTransport(quick(options, front.url), SystemClock()) as transport,
    ):
        yield front, transport


async def receive_one(transport: Transport, seconds: float = 10.0) -> Delivery:
    async with asyncio.timeout(seconds), transport.input.consumer() as reader:
        while True:
            try:
                return await reader.receive()
            except TransportUnavailableError:
                await asyncio.sleep(0.05)


async def until_back(transport: Transport) -> None:
    async with asyncio.timeout(10.0):
        while True:
            try:
                return await transport.check()
            except TransportUnavailableError:
                await asyncio.sleep(0.05)


async def test_nobody_there_at_start_up_is_unavailable() -> None:
    with pytest.raises(TransportUnavailableError):
        async with SqsTransport(options_for("http://127.0.0.1:1"), SystemClock()):
            pass


async def test_a_frozen_server_is_found_out_and_its_return_noticed(
    own_server: ElasticMqServer,
) -> None:
    async with (
        fresh_queues(own_server.url) as options,
        SqsTransport(quick(options), SystemClock()) as transport,
    ):
        own_server.freeze()
        began = time.monotonic()
        with pytest.raises(TransportUnavailableError):
            await transport.check()
        with pytest.raises(TransportUnavailableError):
            await transport.input.send(request("session", "turn"))
        assert time.monotonic() - began < 5.0
        own_server.thaw()
        await until_back(transport)
        await transport.input.send(request("session", "turn"))
        delivery = await receive_one(transport)
        assert (delivery.envelope.request_id, delivery.attempt) == ("turn", 1)
        await delivery.ack()


async def test_a_reader_is_told_of_an_outage_and_served_after_it(server: ElasticMqServer) -> None:
    async with (
        fresh_queues(server.url) as options,
        TcpProxy(server.port) as proxy,
        SqsTransport(quick(options, f"http://127.0.0.1:{proxy.port}"), SystemClock()) as transport,
        transport.input.consumer() as reader,
        asyncio.TaskGroup() as tasks,
    ):
        waiting = tasks.create_task(_expect_unavailable(reader.receive()))
        await asyncio.sleep(CALM_SECONDS)
        proxy.refuse()
        await waiting
        proxy.heal()
        await until_back(transport)
        await transport.input.send(request("session", "turn"))
        assert (await receive_one(transport)).attempt == 1


async def _expect_unavailable(receiving: object) -> None:
    with pytest.raises(TransportUnavailableError):
        await receiving  # type: ignore[misc]  # a coroutine of the caller's


async def test_a_send_whose_answer_is_lost_can_be_repeated(server: ElasticMqServer) -> None:
    async with behind_a_front(server) as (front, transport):
        front.next("SendMessage", error(500, "InternalError", after=True))

        with pytest.raises(TransportUnavailableError):
            await transport.input.send(request("session", "turn"))
        await transport.input.send(request("session", "turn"))

        await (await receive_one(transport)).ack()
        stats = await transport.input.stats()
        assert (stats.waiting, stats.in_flight) == (0, 0)


async def test_what_a_lost_answer_took_is_given_to_the_next_poll_at_once(
    server: ElasticMqServer,
) -> None:
    async with behind_a_front(server) as (front, transport):
        await transport.input.send(request("session", "turn"))
        front.next("ReceiveMessage", error(500, "InternalError", after=True))

        began = time.monotonic()
        delivery = await receive_one(transport)

        assert time.monotonic() - began < 2.5  # its lease would have lasted longer
        assert (delivery.envelope.request_id, delivery.attempt) == ("turn", 1)
        first, second = front.made("ReceiveMessage")[:2]
        assert first["ReceiveRequestAttemptId"] == second["ReceiveRequestAttemptId"]


@pytest.mark.parametrize(
    "answer",
    [
        THROTTLED,
        error(403, "OverLimit", "Too many messages in flight", query="OverLimit"),
        error(400, "KmsThrottled", query="KMS.ThrottlingException"),
    ],
    ids=["throttled", "over-limit", "kms"],
)
async def test_polls_that_are_refused_pause_and_go_on(
    server: ElasticMqServer, answer: Answer
) -> None:
    async with behind_a_front(server) as (front, transport):
        await transport.input.send(request("session", "turn"))
        front.next("ReceiveMessage", answer, answer)

        assert (await receive_one(transport)).attempt == 1
        assert len(front.made("ReceiveMessage")) == 3


async def test_a_refusal_is_told_without_the_account(server: ElasticMqServer) -> None:
    async with behind_a_front(server) as (front, transport):
        front.next("SendMessage", DENIED)

        with pytest.raises(TransportUnavailableError) as raised:
            await transport.input.send(request("session", "turn"))

        assert "not authorized" not in raised.value.message


async def test_a_turn_longer_than_its_lease_runs_once_though_a_renewal_fails(
    server: ElasticMqServer,
) -> None:
    async with behind_a_front(server) as (front, transport), transport.input.consumer() as other:
        await transport.input.send(request("session", "turn"))
        delivery = await receive_one(transport)
        async with asyncio.TaskGroup() as tasks:
            second = tasks.create_task(other.receive())
            for number in range(9):
                await asyncio.sleep(1.0)
                if number == 4:
                    front.next("ChangeMessageVisibility", error(500, "InternalError"))
                    with pytest.raises(TransportUnavailableError):
                        await delivery.renew()
                else:
                    await delivery.renew()
            assert not second.done()
            await delivery.ack()
            second.cancel()


async def test_a_process_that_may_not_read_attributes_works_without_them(
    server: ElasticMqServer,
) -> None:
    async with fresh_queues(server.url) as options, AwsFront(server.port) as front:
        front.always("GetQueueAttributes", DENIED)
        async with SqsTransport(quick(options, front.url), SystemClock()) as transport:
            await transport.check()
            await transport.input.send(request("session", "turn"))
            await (await receive_one(transport)).ack()


async def test_wrong_credentials_stop_start_up_with_the_fix(server: ElasticMqServer) -> None:
    async with fresh_queues(server.url) as options, AwsFront(server.port) as front:
        front.always("GetQueueAttributes", error(403, "InvalidClientTokenId"))

        with pytest.raises(ConfigurationError) as raised:
            async with SqsTransport(quick(options, front.url), SystemClock()):
                pass

    assert len(raised.value.faults) == 2
    assert "AWS_ACCESS_KEY_ID" in raised.value.faults[0]
