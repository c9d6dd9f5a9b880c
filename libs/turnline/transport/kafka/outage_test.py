"""A broker that stops, hangs and comes back: nothing is lost, and nobody hangs with it."""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient

from turnline.errors import ConfigurationError, FencedError, TransportUnavailableError
from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.kafka import KafkaServer
from turnline.transport import Delivery
from turnline.transport.kafka import KafkaOptions, KafkaTransport
from turnline.transport.kafka.harness import QUICK, Topics, options_for

CLOSE_SECONDS = 8.0
PATIENCE_SECONDS = 40.0


@pytest.fixture(scope="module")
def own_server() -> Iterator[KafkaServer]:
    """A broker that tests of this module stop and start."""
    server = KafkaServer()
    try:
        asyncio.run(server.start())
        yield server
    finally:
        server.remove()


async def _fresh(server: KafkaServer) -> KafkaOptions:
    options = replace(options_for(server.bootstrap), delivery_timeout=2.0, request_timeout=2.0)
    await Topics(server.bootstrap).create(options)
    return options


async def test_over_a_restart_of_the_broker_nothing_is_lost_and_order_is_kept(
    own_server: KafkaServer,
) -> None:
    options = replace(
        await _fresh(own_server),
        delivery_timeout=60.0,
        request_timeout=60.0,
        # Longer than the broker is away, or the member is expelled and its delivery fenced.
        client_config={**QUICK, "session.timeout.ms": 60_000},
    )
    names = [f"turn-{number}" for number in range(20)]
    seen: list[str] = []
    async with (
        KafkaTransport(options, SystemClock()) as transport,
        transport.input.consumer() as reader,
        asyncio.timeout(2 * PATIENCE_SECONDS),
        asyncio.TaskGroup() as tasks,
    ):
        for name in names[:10]:
            await transport.input.send(request("session", name))
        first = await reader.receive()
        restart = tasks.create_task(own_server.restart(hard=True))
        await first.ack()
        seen.append(first.envelope.request_id)
        for name in names[10:]:
            await transport.input.send(request("session", name))
        while len(seen) < len(names):
            delivery = await reader.receive()
            await delivery.ack()
            seen.append(delivery.envelope.request_id)
        await restart
        await transport.check()
    assert seen == names


async def test_after_a_restart_of_the_broker_letters_can_be_added_and_all_is_counted_again(
    own_server: KafkaServer,
) -> None:
    # Longer than the broker is away, or the member is expelled and its delivery fenced.
    long = {**QUICK, "session.timeout.ms": 60_000}
    options = replace(await _fresh(own_server), ack_wait=60.0, client_config=long)
    async with (
        KafkaTransport(options, SystemClock()) as transport,
        transport.input.consumer() as reader,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        await transport.input.send(request("session", "turn"))
        await transport.input.stats()
        delivery = await reader.receive()
        await own_server.restart(hard=True)
        await _insist(delivery)
        (letter,) = await transport.input.dead_letters.list()
        while not await _counts(transport, waiting=0):  # noqa: ASYNC110 - the broker gets ready
            await asyncio.sleep(0.2)
    assert letter.reason == "no use"


async def test_a_broker_that_hangs_confirms_nothing_and_check_says_so(
    own_server: KafkaServer,
) -> None:
    async with KafkaTransport(await _fresh(own_server), SystemClock()) as transport:
        await transport.input.send(request("session", "first"))
        own_server.freeze()
        try:
            with pytest.raises(TransportUnavailableError):
                await transport.input.send(request("session", "second"))
            with pytest.raises(TransportUnavailableError):
                await transport.check()
        finally:
            own_server.thaw()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await _works(transport):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.2)


async def _works(transport: KafkaTransport) -> bool:
    try:
        await transport.check()
    except TransportUnavailableError:
        return False
    return True


async def _counts(transport: KafkaTransport, *, waiting: int) -> bool:
    try:
        stats = await transport.input.stats()
    except TransportUnavailableError:
        return False
    return (stats.waiting, stats.in_flight) == (waiting, 0)


@pytest.mark.parametrize("how", ["freeze", "stop"])
async def test_leaving_takes_seconds_whatever_the_broker_does(
    own_server: KafkaServer, how: str
) -> None:
    options = await _fresh(own_server)
    try:
        async with (
            KafkaTransport(options, SystemClock()) as transport,
            transport.input.consumer() as reader,
            transport.output.consumer(),
        ):
            await transport.input.send(request("session", "turn"))
            await reader.receive()
            getattr(own_server, how)()
            began = time.monotonic()
        assert time.monotonic() - began < CLOSE_SECONDS
    finally:
        if how == "freeze":
            own_server.thaw()
        await own_server.start()


async def test_an_ack_that_found_no_broker_may_be_tried_again(own_server: KafkaServer) -> None:
    async with (
        KafkaTransport(await _fresh(own_server), SystemClock()) as transport,
        transport.input.consumer() as reader,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        await transport.input.send(request("session", "first"))
        await transport.input.send(request("session", "second"))
        delivery = await reader.receive()
        own_server.freeze()
        try:
            with pytest.raises(TransportUnavailableError):
                await delivery.ack()
        finally:
            own_server.thaw()
        await delivery.ack()
        assert (await reader.receive()).envelope.request_id == "second"


async def test_without_a_broker_start_up_says_so() -> None:
    options = replace(options_for("127.0.0.1:1"), metadata_timeout=1.0)
    with pytest.raises(TransportUnavailableError):
        await KafkaTransport(options, SystemClock()).__aenter__()


async def test_every_missing_topic_is_named_at_start_up(own_server: KafkaServer) -> None:
    options = options_for(own_server.bootstrap)
    with pytest.raises(ConfigurationError) as refusal:
        await KafkaTransport(options, SystemClock()).__aenter__()
    named = [fault.split(" ")[1] for fault in refusal.value.faults]
    assert named == [name for queue in options.queues for name in (queue.topic, queue.dead_topic)]
    assert all("turnline provision" in fault for fault in refusal.value.faults)


async def test_a_dead_letter_that_nobody_takes_keeps_its_record(own_server: KafkaServer) -> None:
    options = await _fresh(own_server)
    client = AdminClient({"bootstrap.servers": own_server.bootstrap, "log_level": 2})
    async with (
        KafkaTransport(options, SystemClock()) as transport,
        transport.input.consumer() as reader,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        await transport.input.send(request("session", "turn"))
        delivery = await reader.receive()
        for gone in client.delete_topics([options.input.dead_topic]).values():
            await asyncio.wrap_future(gone)
        with pytest.raises(TransportUnavailableError):
            await delivery.dead_letter("no use")
        await Topics(own_server.bootstrap).create(options, only=options.input.dead_topic)
        await _insist(delivery)
        (letter,) = await transport.input.dead_letters.list()
    assert letter.reason == "no use"


async def _insist(delivery: Delivery) -> None:
    """Bury it, as a consume loop does: again and again."""
    while True:
        try:
            await delivery.dead_letter("no use")
        except TransportUnavailableError:
            await delivery.renew()
        else:
            return


async def test_a_member_that_was_expelled_is_fenced_and_comes_back(
    own_server: KafkaServer,
) -> None:
    fresh = await _fresh(own_server)
    quick = {**QUICK, "session.timeout.ms": 2000, "heartbeat.interval.ms": 300}
    async with (
        KafkaTransport(replace(fresh, client_config=quick), SystemClock()) as transport,
        transport.input.consumer() as reader,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        await transport.input.send(request("session", "turn"))
        held = await reader.receive()
        own_server.freeze()
        try:
            await asyncio.sleep(4.0)
        finally:
            own_server.thaw()
        again = await reader.receive()
        assert (again.envelope.request_id, again.attempt) == ("turn", 2)
        with pytest.raises(FencedError):
            await held.ack()
        await again.ack()
