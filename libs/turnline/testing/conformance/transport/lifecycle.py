"""Cases: entering, leaving, and what a transport says of itself."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from turnline.errors import TransportUnavailableError
from turnline.testing.conformance.transport.harness import DEFAULT_BOUNDS, TransportHarness
from turnline.testing.conformance.transport.rig import RigMaker
from turnline.testing.conformance.transport.topic import Topic
from turnline.transport import Consumer

CLOSE_SECONDS = 10.0


async def _expect_unavailable(consumer: Consumer) -> None:
    with pytest.raises(TransportUnavailableError):
        await consumer.receive()


class LifecycleCases(Topic):
    """The transport as a whole."""

    async def test_check_passes_while_the_transport_is_open(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            await r.transport.check()

    async def test_check_fails_after_it_was_left(self, harness: TransportHarness) -> None:
        async with harness.open(DEFAULT_BOUNDS) as transport:
            pass
        with pytest.raises(TransportUnavailableError):
            await transport.check()

    async def test_nothing_is_sent_after_it_was_left(self, rig: RigMaker) -> None:
        async with rig() as r:
            pass
        with pytest.raises(TransportUnavailableError):
            await r.queue.send(r.envelope("session", "turn"))

    async def test_nothing_is_received_after_it_was_left(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
        with pytest.raises(TransportUnavailableError):
            await r.receive()

    async def test_leaving_with_deliveries_out_takes_no_longer(self, rig: RigMaker) -> None:
        async with asyncio.timeout(CLOSE_SECONDS), rig() as r:
            await r.send("session-1", "first")
            await r.send("session-2", "second")
            await r.receive_each(2)

    async def test_leaving_a_reader_ends_its_wait(self, harness: TransportHarness) -> None:
        async with (
            asyncio.timeout(CLOSE_SECONDS),
            asyncio.TaskGroup() as tasks,
            harness.open(DEFAULT_BOUNDS) as transport,
            transport.input.consumer() as consumer,
        ):
            tasks.create_task(_expect_unavailable(consumer))
            await harness.time.calm()

    async def test_leaving_the_transport_ends_a_wait(self, harness: TransportHarness) -> None:
        async with (
            asyncio.timeout(CLOSE_SECONDS),
            AsyncExitStack() as after,
            asyncio.TaskGroup() as tasks,
            harness.open(DEFAULT_BOUNDS) as transport,
        ):
            consumer = await after.enter_async_context(transport.input.consumer())
            tasks.create_task(_expect_unavailable(consumer))
            await harness.time.calm()

    async def test_an_error_inside_comes_out_as_it_is(self, harness: TransportHarness) -> None:
        class OwnError(Exception):
            pass

        with pytest.raises(OwnError):
            async with harness.open(DEFAULT_BOUNDS) as t, t.input.consumer():
                raise OwnError

    async def test_fresh_transports_share_nothing(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
        async with rig() as r:
            await r.expect_nothing()
            await r.send("session", "turn")

    async def test_both_queues_say_what_the_adapter_says(self, harness: TransportHarness) -> None:
        async with harness.open(DEFAULT_BOUNDS) as transport:
            assert transport.input.capabilities == harness.capabilities
            assert transport.output.capabilities == harness.capabilities
