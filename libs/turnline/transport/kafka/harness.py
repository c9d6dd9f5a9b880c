"""For tests of this room: transports on a real broker, each on topics of its own.

Leases, pauses and windows are kept by the adapter, with its clock, so the suite moves that by hand:
only what the brokers do takes time.
"""

import asyncio
import itertools
import secrets
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

from confluent_kafka.admin import AdminClient, NewTopic

from turnline.testing.clock import FakeClock
from turnline.testing.conformance.transport import DEFAULT_BOUNDS, Bounds
from turnline.transport import Capabilities, Delivery, Queue, Transport
from turnline.transport.kafka import KafkaOptions, KafkaQueue, KafkaTransport, QueueOptions
from turnline.transport.kafka.clients import producer_config
from turnline.transport.kafka.options import ConfigValue
from turnline.transport.kafka.producer import ConfirmedProducer, Outgoing
from turnline.transport.kafka.topology import topology_of

_NUMBERS = itertools.count()
CALM_SECONDS = 0.25
# For the way of a record that becomes a dead letter: read, found to be none, and sent on.
BURY_SECONDS = 0.5
PARTITIONS = 3
QUICK: Mapping[str, ConfigValue] = {
    # The suite's clock stands still, so the group must not measure by the suite's short leases.
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 500,
    "fetch.wait.max.ms": 20,
    "topic.metadata.refresh.sparse": True,
}


def options_for(bootstrap: str, *, partitions: int = PARTITIONS) -> KafkaOptions:
    """Give options for topics that nobody uses."""
    name = f"t{next(_NUMBERS)}-{secrets.token_hex(3)}"
    return KafkaOptions(
        bootstrap_servers=bootstrap,
        client_config=QUICK,
        input=_queue("input", name),
        output=_queue("output", name),
        partitions=partitions,
    )


def _queue(side: str, name: str) -> QueueOptions:
    topic = f"{name}-{side}"
    return QueueOptions(
        name=side, topic=topic, dead_topic=f"{topic}.dlq", group=f"{name}-group-{side}"
    )


class Topics:
    """Makes and deletes topics, over one connection."""

    def __init__(self, bootstrap: str) -> None:
        self._client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})

    async def create(self, options: KafkaOptions, *, only: str = "") -> None:
        """Create all topics of a transport, or only one."""
        made = self._client.create_topics(
            [
                NewTopic(spec.name, spec.partitions, spec.replicas, config=dict(spec.config))
                for spec in topology_of(options)
                if only in ("", spec.name)
            ]
        )
        for future in made.values():
            await asyncio.wrap_future(future)
        # The controller says when they are made, the broker a moment later knows them.
        async with asyncio.timeout(10.0):
            while not self._know(made):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.01)

    def _know(self, names: Collection[str]) -> bool:
        return set(names) <= self._client.list_topics(timeout=5.0).topics.keys()

    async def delete(self, options: KafkaOptions) -> None:
        """Delete them again."""
        gone = self._client.delete_topics([spec.name for spec in topology_of(options)])
        for future in gone.values():
            await asyncio.wrap_future(future)


@asynccontextmanager
async def fresh_topics(
    bootstrap: str, *, partitions: int = PARTITIONS
) -> AsyncIterator[KafkaOptions]:
    """Give options for fresh topics, which are there for the length of the block."""
    topics, options = Topics(bootstrap), options_for(bootstrap, partitions=partitions)
    await topics.create(options)
    try:
        yield options
    finally:
        await topics.delete(options)


class ClockTime:
    """The time of a clock moved by hand."""

    def __init__(self) -> None:
        self.clock = FakeClock(time.time())
        self.calm_seconds = CALM_SECONDS

    def now(self) -> float:
        """Seconds since the epoch."""
        return self.clock.time()

    async def pass_seconds(self, seconds: float) -> None:
        """Move the clock on, and let what that started reach the broker."""
        await self.clock.advance(seconds)
        await asyncio.sleep(0.01)

    async def calm(self) -> None:
        """Sleep for long enough that what comes at once has come."""
        await asyncio.sleep(self.calm_seconds)


class KafkaHarness:
    """Makes transports on one broker.

    Args:
        config: settings of the clients, beside those that make tests quick.
    """

    def __init__(self, bootstrap: str, config: Mapping[str, ConfigValue] | None = None) -> None:
        self._bootstrap = bootstrap
        self._config = {**QUICK, **(config or {})}
        self._topics = Topics(bootstrap)
        self._foreign: ConfirmedProducer | None = None
        self.time = ClockTime()
        self.patience_seconds = 15.0
        self.capabilities = Capabilities(native_count=False, max_bytes=DEFAULT_BOUNDS.max_bytes)

    def open(self, bounds: Bounds) -> AbstractAsyncContextManager[Transport]:
        """Give a transport on fresh topics, which go when it is left."""
        return self._open(bounds)

    async def inject(self, queue: Queue, raw: bytes, group: str) -> None:
        """Produce bytes without headers, as anybody could."""
        assert isinstance(queue, KafkaQueue)  # noqa: S101 - used by tests only
        if self._foreign is None:
            config = producer_config(options_for(self._bootstrap))
            self._foreign = ConfirmedProducer(config, delivery_timeout=10.0)
            self._foreign.open()
        self.time.calm_seconds = CALM_SECONDS + BURY_SECONDS
        topic, now = queue.options.topic, self.time.now()
        await self._foreign.send(Outgoing(topic=topic, key=group.encode(), value=raw, at=now))

    async def crash(self, delivery: Delivery) -> None:
        """Nothing to do: a delivery that nobody settles is all a dead holder leaves behind."""

    @asynccontextmanager
    async def _open(self, bounds: Bounds) -> AsyncIterator[Transport]:
        # One partition, so that readers meet different sessions in the order sent, as some cases
        # take for granted; what several bring is for the tests of rebalances.
        fresh = options_for(self._bootstrap, partitions=1)
        options = replace(
            fresh,
            input=replace(fresh.input, max_per_session=bounds.max_per_session),
            client_config=self._config,
            ack_wait=bounds.lease_seconds,
            duplicate_window=bounds.dedup_seconds,
            max_messages=bounds.max_messages,
            max_bytes=bounds.max_bytes,
            max_dead_letters=bounds.max_dead_letters,
        )
        await self._topics.create(options)
        try:
            async with KafkaTransport(options, self.time.clock) as transport:
                yield transport
        finally:
            if self._foreign is not None:
                await self._foreign.close()
                self._foreign = None
            await self._topics.delete(options)
