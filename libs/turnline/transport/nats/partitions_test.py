"""With `max_ack_pending`: a consumer per partition, down to the guide's exact model."""

import asyncio
import random
from dataclasses import replace

import pytest

from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.consumers import ConsumerCases
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.conformance.transport.ordering import OrderingCases
from turnline.testing.servers.nats import NatsServer
from turnline.transport.nats import NatsOptions, NatsTransport
from turnline.transport.nats.harness import NatsHarness, options_for


class TestOrdering(OrderingCases):
    """Every case, with room for all of its sessions in each partition."""

    @pytest.fixture
    def harness(self, server: NatsServer) -> TransportHarness:
        return NatsHarness(server.url, max_ack_pending=100, partitions=4)


class TestConsumers(ConsumerCases):
    """Every case, likewise."""

    @pytest.fixture
    def harness(self, server: NatsServer) -> TransportHarness:
        return NatsHarness(server.url, max_ack_pending=100, partitions=4)


@pytest.fixture
def options(server: NatsServer) -> NatsOptions:
    """The guide's model: one turn per partition at a time."""
    fresh = options_for(server.url)
    return replace(fresh, partitions=8, max_ack_pending=1, ack_wait=60.0)


async def test_one_turn_of_a_partition_is_out_at_a_time(options: NatsOptions) -> None:
    one = replace(options, partitions=1)
    async with (
        NatsTransport(one, SystemClock()) as transport,
        transport.input.consumer() as reader,
        asyncio.timeout(30),
    ):
        await transport.input.send(request("session-1", "first"))
        await transport.input.send(request("session-2", "second"))
        first = await reader.receive()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await reader.receive()
        await first.ack()
        assert (await reader.receive()).envelope.request_id == "second"


async def test_no_turn_waits_for_a_lease_while_readers_come_and_go(options: NatsOptions) -> None:
    """Four readers of eight partitions that are busy between their waits, as in report P06."""
    chance = random.Random(6)
    turns, waits, attempts = 100, list[float](), list[int]()
    sent: dict[str, float] = {}
    loop = asyncio.get_running_loop()

    async def read(transport: NatsTransport) -> None:
        async with transport.input.consumer() as reader:
            while True:
                delivery = await reader.receive()
                waits.append(loop.time() - sent[delivery.envelope.request_id])
                attempts.append(delivery.attempt)
                await asyncio.sleep(0.05)
                await delivery.ack()

    async with (
        NatsTransport(options, SystemClock()) as transport,
        asyncio.timeout(50.0),
        asyncio.TaskGroup() as tasks,
    ):
        readers = [tasks.create_task(read(transport)) for _ in range(4)]
        for number in range(turns):
            await asyncio.sleep(chance.random() * 0.05)
            sent[f"turn-{number}"] = loop.time()
            await transport.input.send(request(f"session-{number}", f"turn-{number}"))
        while True:
            if len(waits) == turns and (await transport.input.stats()).waiting == 0:
                break
            await asyncio.sleep(0.05)
        for reader in readers:
            reader.cancel()
    assert set(attempts) == {1}
    assert sorted(waits)[-1] < 10.0
    assert sorted(waits)[turns * 95 // 100] < 2.0
