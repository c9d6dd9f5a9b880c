"""Receive calls that bring several messages of one session."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.aws_front import AwsFront
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.transport import Consumer, Delivery
from turnline.transport.sqs import SqsTransport
from turnline.transport.sqs.harness import CALM_SECONDS, fresh_queues

NAMES = [f"turn-{number}" for number in range(6)]


class Batch:
    """A transport whose first receive call brings six messages of one session."""

    def __init__(self, front: AwsFront, transport: SqsTransport, reader: Consumer) -> None:
        self.front = front
        self.transport = transport
        self.reader = reader

    async def first(self) -> Delivery:
        """Have six readers wait, so that six are asked for; give the first one's."""
        async with asyncio.TaskGroup() as tasks:
            waits = [tasks.create_task(self.reader.receive()) for _ in NAMES]
            done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(CALM_SECONDS)
            assert [wait.done() for wait in waits].count(True) == 1
            for wait in pending:
                wait.cancel()
        assert self.front.made("ReceiveMessage")[0]["MaxNumberOfMessages"] == len(NAMES)
        return done.pop().result()

    async def rest(self, count: int) -> list[tuple[str, int]]:
        """Take and ack so many."""
        seen = []
        async with asyncio.timeout(15.0):
            for _ in range(count):
                delivery = await self.reader.receive()
                seen.append((delivery.envelope.request_id, delivery.attempt))
                await delivery.ack()
        return seen


@pytest.fixture
async def batch(server: ElasticMqServer) -> AsyncIterator[Batch]:
    async with AsyncExitStack() as parts:
        options = await parts.enter_async_context(fresh_queues(server.url))
        front = await parts.enter_async_context(AwsFront(server.port))
        options = replace(
            options,
            endpoint_url=front.url,
            batch_size=10,
            visibility_timeout=4,
            wait_time=2,
        )
        transport = SqsTransport(options, SystemClock())
        await parts.enter_async_context(transport)
        reader = await parts.enter_async_context(transport.input.consumer())
        for name in NAMES:
            await transport.input.send(request("session", name))
        yield Batch(front, transport, reader)


async def test_they_go_out_one_after_the_other(batch: Batch) -> None:
    first = await batch.first()
    await first.ack()

    assert await batch.rest(5) == [(name, 1) for name in NAMES[1:]]
    assert len(batch.front.made("ReceiveMessage")[0]) > 0


async def test_those_behind_a_long_turn_are_kept(batch: Batch) -> None:
    first = await batch.first()
    for _ in range(6):
        await asyncio.sleep(1.0)
        await first.renew()
    await first.ack()

    assert await batch.rest(5) == [(name, 1) for name in NAMES[1:]]


@pytest.mark.parametrize("settlement", ["retry", "release"])
async def test_the_batch_is_cut_at_the_first_failure(batch: Batch, settlement: str) -> None:
    first = await batch.first()
    await (first.retry(1.0) if settlement == "retry" else first.release())

    attempt = 2 if settlement == "retry" else 1
    assert await batch.rest(6) == [(NAMES[0], attempt), *((name, 1) for name in NAMES[1:])]


async def test_they_go_back_last_first_before_their_head(batch: Batch) -> None:
    first = await batch.first()
    await first.release()

    hidden = batch.front.made("ChangeMessageVisibility")
    assert [call["VisibilityTimeout"] for call in hidden] == [1, 1, 1, 1, 1, 0]


async def test_the_next_goes_out_where_one_is_buried(batch: Batch) -> None:
    first = await batch.first()
    await first.dead_letter("no use")

    assert await batch.rest(5) == [(name, 1) for name in NAMES[1:]]


async def test_a_batch_that_nobody_settles_comes_back_in_order(batch: Batch) -> None:
    await batch.first()

    assert [name for name, _ in await batch.rest(6)] == NAMES
