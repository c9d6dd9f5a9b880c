"""Three servers, of which the stream's leader is killed under load."""

import asyncio
from dataclasses import replace

from turnline.errors import TransportUnavailableError
from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.nats import NatsCluster
from turnline.transport import Consumer, Delivery, Queue
from turnline.transport.nats import NatsTransport
from turnline.transport.nats.harness import options_for

SESSIONS = 8
TURNS = 30


async def test_the_death_of_a_leader_loses_doubles_and_reorders_nothing() -> None:
    async with NatsCluster() as cluster:
        options = replace(options_for(cluster.url), replicas=3, ack_wait=5.0)
        async with NatsTransport(options, SystemClock()) as transport, asyncio.timeout(80.0):
            seen: dict[str, list[str]] = {f"session-{number}": [] for number in range(SESSIONS)}
            async with asyncio.TaskGroup() as tasks:
                for session in seen:
                    tasks.create_task(send_all(transport.input, session))
                reading = [tasks.create_task(read(transport.input, seen)) for _ in range(4)]
                await until_seen(seen, SESSIONS * 3)
                cluster.kill_node(await cluster.leader_of(options.input.stream))
                await until_seen(seen, SESSIONS * TURNS)
                for reader in reading:
                    reader.cancel()
            for turns in seen.values():
                assert turns == [f"turn-{number}" for number in range(TURNS)]
            stats = await transport.input.stats()
            assert (stats.waiting, stats.in_flight, stats.dead) == (0, 0, 0)


async def until_seen(seen: dict[str, list[str]], count: int) -> None:
    while True:
        if sum(map(len, seen.values())) >= count:
            return
        await asyncio.sleep(0.05)


async def send_all(queue: Queue, session: str) -> None:
    for number in range(TURNS):
        while True:
            try:
                await queue.send(request(session, f"turn-{number}"))
                break
            except TransportUnavailableError:
                await asyncio.sleep(0.1)
        await asyncio.sleep(0.05)


async def read(queue: Queue, seen: dict[str, list[str]]) -> None:
    async with queue.consumer() as reader:
        while True:
            delivery = await received(reader)
            turns = seen[delivery.envelope.session_id]
            # An ack whose confirmation was lost may come back; the ledger is for that.
            if delivery.envelope.request_id not in turns[-1:]:
                turns.append(delivery.envelope.request_id)
            await settled(delivery)


async def received(reader: Consumer) -> Delivery:
    while True:
        try:
            return await reader.receive()
        except TransportUnavailableError:
            await asyncio.sleep(0.1)


async def settled(delivery: Delivery) -> None:
    while True:
        try:
            return await delivery.ack()
        except TransportUnavailableError:
            await asyncio.sleep(0.1)
