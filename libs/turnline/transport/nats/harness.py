"""For tests of this room: transports on a real server, each on streams of its own."""

import asyncio
import itertools
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

from turnline.protocol import SessionKey
from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport import DEFAULT_BOUNDS, Bounds
from turnline.transport import Capabilities, Delivery, Queue, Transport
from turnline.transport.nats import (
    NatsOptions,
    NatsQueue,
    NatsTransport,
    QueueOptions,
    ServerOptions,
)
from turnline.transport.nats.connection import Connection
from turnline.transport.nats.jetstream import JetStream
from turnline.transport.nats.subjects import dead_stream, subject_of, unspent_stream

_NUMBERS = itertools.count()
CALM_SECONDS = 0.3


def options_for(url: str) -> NatsOptions:
    """Give options for streams that nobody uses."""
    name = f"T{next(_NUMBERS)}_{secrets.token_hex(3)}"
    return NatsOptions(
        server=ServerOptions(urls=tuple(url.split(",")), request_timeout=5.0),
        input=QueueOptions(name="input", stream=f"{name}_IN", prefix=f"{name}.in"),
        output=QueueOptions(name="output", stream=f"{name}_OUT", prefix=f"{name}.out"),
        auto_provision=True,
    )


@asynccontextmanager
async def api_of(url: str) -> AsyncIterator[JetStream]:
    """Give the server's API over a connection of its own."""
    connection = Connection(ServerOptions(urls=tuple(url.split(","))), SystemClock())
    await connection.open()
    try:
        yield JetStream(connection)
    finally:
        await connection.close()


async def delete_streams(api: JetStream, options: NatsOptions) -> None:
    """Delete everything a transport made."""
    for queue in options.queues:
        for name in (queue.stream, dead_stream(queue.stream), unspent_stream(queue.stream)):
            if await api.stream(name) is not None:
                await api.call(f"STREAM.DELETE.{name}")


class RealTime:
    """The time everybody lives in."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    async def pass_seconds(self, seconds: float) -> None:
        """Sleep."""
        await asyncio.sleep(seconds)

    async def calm(self) -> None:
        """Sleep for long enough that what comes at once has come."""
        await asyncio.sleep(CALM_SECONDS)


class NatsHarness:
    """Makes transports on one server.

    Args:
        max_ack_pending: None: the default model; otherwise a consumer per partition.
    """

    def __init__(self, url: str, max_ack_pending: int | None = None, partitions: int = 32) -> None:
        self._url = url
        self._max_ack_pending = max_ack_pending
        self._partitions = partitions
        self.time = RealTime()
        self.patience_seconds = 10.0
        self.capabilities = Capabilities(max_bytes=DEFAULT_BOUNDS.max_bytes)

    def open(self, bounds: Bounds) -> AbstractAsyncContextManager[Transport]:
        """Give a transport on fresh streams, which go when it is left."""
        return self._open(bounds)

    async def inject(self, queue: Queue, raw: bytes, group: str) -> None:
        """Publish bytes without headers, as anybody could."""
        assert isinstance(queue, NatsQueue)  # noqa: S101 - used by tests only
        prefix = queue.options.prefix
        subject = subject_of(prefix, SessionKey("", group), self._partitions)
        async with api_of(self._url) as api:
            await api.place(subject, raw)

    async def crash(self, delivery: Delivery) -> None:
        """Nothing to do: a delivery that nobody settles is all a dead holder leaves behind."""

    @asynccontextmanager
    async def _open(self, bounds: Bounds) -> AsyncIterator[Transport]:
        fresh = options_for(self._url)
        options = replace(
            fresh,
            input=replace(fresh.input, max_per_session=bounds.max_per_session),
            partitions=self._partitions,
            max_ack_pending=self._max_ack_pending,
            ack_wait=bounds.lease_seconds,
            duplicate_window=bounds.dedup_seconds,
            max_messages=bounds.max_messages,
            max_bytes=bounds.max_bytes,
            max_dead_letters=bounds.max_dead_letters,
        )
        try:
            async with NatsTransport(options, SystemClock()) as transport:
                yield transport
        finally:
            async with api_of(self._url) as api:
                await delete_streams(api, options)
