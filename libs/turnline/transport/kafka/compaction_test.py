"""Brokers that clean up as topics are set: dead letters stay right, queues are not compacted."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio
from confluent_kafka import Consumer, KafkaError
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from turnline.errors import ConfigurationError
from turnline.protocol.clock import SystemClock
from turnline.testing.clock import FakeClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.kafka import KafkaServer
from turnline.transport import Transport
from turnline.transport.kafka import KafkaTransport
from turnline.transport.kafka.harness import fresh_topics

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATIENCE_SECONDS = 90.0
CLEANING = """log.cleaner.enable=true
log.cleaner.backoff.ms=100
log.cleaner.threads=1
"""
# Every segment is cleaned at once, and its tombstones go soon after.
AT_ONCE = {
    "segment.ms": "50",
    "min.cleanable.dirty.ratio": "0.0",
    "max.compaction.lag.ms": "100",
    "delete.retention.ms": "100",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cleaning() -> AsyncIterator[KafkaServer]:
    async with KafkaServer(extra=CLEANING) as server:
        yield server


async def configured(server: KafkaServer, topic: str, config: Mapping[str, str]) -> None:
    """Change settings of a topic, as its owner may."""
    client = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 2})
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    await asyncio.wrap_future(client.incremental_alter_configs([resource])[resource])
    asked = ConfigResource(ResourceType.TOPIC, topic)
    # The controller says when it is done, the broker knows a moment later.
    while True:
        found = await asyncio.wrap_future(client.describe_configs([asked])[asked])
        if all(found[name].value == value for name, value in config.items()):
            return
        await asyncio.sleep(0.02)


def kept(server: KafkaServer, topic: str) -> dict[int, bool]:
    """Read a topic whole: the offsets there are, and whether each holds a letter."""
    config = {"group.id": "look", "auto.offset.reset": "earliest", "enable.partition.eof": True}
    reader = Consumer({"bootstrap.servers": server.bootstrap, "log_level": 2, **config})
    reader.subscribe([topic])
    found: dict[int, bool] = {}
    try:
        while True:
            message = reader.poll(5.0)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF
                return found
            found[message.offset() or 0] = message.value() is not None
    finally:
        reader.close()


async def bury(transport: Transport, name: str) -> str:
    """Have a turn given up; give the id of its letter."""
    async with transport.input.consumer() as reader:
        await transport.input.send(request(name, name))
        await (await reader.receive()).dead_letter(name)
    return (await transport.input.dead_letters.list())[-1].id


async def cleaned(server: KafkaServer, transport: Transport, topic: str, below: int) -> None:
    """Write on, so that segments are closed, until below an offset there are letters alone."""
    for number in itertools.count():
        found = await asyncio.to_thread(kept, server, topic)
        if len([offset for offset in found if offset < below]) == sum(
            holds for offset, holds in found.items() if offset < below
        ) and any(offset not in found for offset in range(below)):
            return
        await transport.input.dead_letters.purge(await bury(transport, f"filler-{number}"))


async def names(transport: Transport) -> list[str]:
    return [letter.reason for letter in await transport.input.dead_letters.list()]


async def test_letters_outlive_the_cleaning_of_their_topic_and_deleted_ones_stay_away(
    cleaning: KafkaServer,
) -> None:
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        fresh_topics(cleaning.bootstrap, partitions=1) as options,
    ):
        topic, clock = options.input.dead_topic, FakeClock(time.time())
        await configured(cleaning, topic, AT_ONCE)
        async with (
            KafkaTransport(options, SystemClock()) as transport,
            KafkaTransport(options, clock) as absent,
        ):
            for name in ("first", "second", "third"):
                await bury(transport, name)
            letters = await absent.input.dead_letters.list()
            await transport.input.dead_letters.purge(letters[1].id)
            await cleaned(cleaning, transport, topic, below=4)

            # Its tombstone is gone too, so who has seen the letter can't hear of its end.
            await clock.advance(2 * 3600.0)
            assert await names(absent) == await names(transport) == ["first", "third"]
            assert await absent.input.dead_letters.count() == 2
        async with (
            KafkaTransport(options, SystemClock()) as late,
            late.input.consumer() as reader,
        ):
            assert await names(late) == ["first", "third"]
            await late.input.dead_letters.redrive(letters[0].id)
            assert (await reader.receive()).envelope.request_id == "first"
            assert await names(late) == ["third"]


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
async def test_a_queue_that_brokers_would_compact_is_refused_by_name(
    cleaning: KafkaServer, policy: str
) -> None:
    async with fresh_topics(cleaning.bootstrap) as options:
        await configured(cleaning, options.output.topic, {"cleanup.policy": policy})

        with pytest.raises(ConfigurationError) as refusal:
            await KafkaTransport(options, SystemClock()).__aenter__()

    (fault,) = refusal.value.faults
    assert options.output.topic in fault and "cleanup.policy" in fault
