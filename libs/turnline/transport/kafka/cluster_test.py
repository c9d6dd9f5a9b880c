"""Three brokers, of which one dies: what was confirmed stays, and work goes on."""

import asyncio
from dataclasses import replace

import pytest

from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.kafka import KafkaServer
from turnline.transport.kafka import KafkaConsumer, KafkaTransport
from turnline.transport.kafka.harness import QUICK, Topics, options_for

# The others first wait for the dead one's session with the controllers to end.
PATIENCE_SECONDS = 90.0


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_the_death_of_a_broker_loses_doubles_and_reorders_nothing() -> None:
    names = [f"turn-{number}" for number in range(30)]
    seen: list[tuple[str, int]] = []
    async with KafkaServer(nodes=3) as servers:
        options = replace(
            options_for(servers.bootstrap),
            replicas=3,
            delivery_timeout=60.0,
            request_timeout=60.0,
            client_config={**QUICK, "session.timeout.ms": 60_000},
        )
        await Topics(servers.bootstrap).create(options)
        async with (
            KafkaTransport(options, SystemClock()) as transport,
            transport.input.consumer() as reader,
            asyncio.timeout(PATIENCE_SECONDS),
        ):
            for name in names[:15]:
                await transport.input.send(request("session", name))
            for _ in range(5):
                await _take(reader, seen)
            await asyncio.to_thread(servers.kill, 0)
            for name in names[15:]:
                await transport.input.send(request("session", name))
            while len(seen) < len(names):
                await _take(reader, seen)
            await transport.check()
    assert seen == [(name, 1) for name in names]


async def _take(reader: KafkaConsumer, seen: list[tuple[str, int]]) -> None:
    delivery = await reader.receive()
    await delivery.ack()
    seen.append((delivery.envelope.request_id, delivery.attempt))
