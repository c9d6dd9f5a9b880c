"""One queue on NATS and its readers; see `turnline.transport.Queue`."""

import asyncio
from typing import Self

from turnline.errors import TransportUnavailableError
from turnline.protocol import Envelope
from turnline.protocol.clock import Clock
from turnline.transport.held_delivery import HeldDelivery
from turnline.transport.nats.connection import Connection
from turnline.transport.nats.credits import Credits
from turnline.transport.nats.dead_letters import NatsDeadLetters
from turnline.transport.nats.desk import Desk
from turnline.transport.nats.held import Held
from turnline.transport.nats.intake import Admitted, Intake
from turnline.transport.nats.jetstream import JetStream, seconds_of
from turnline.transport.nats.leases import Leases
from turnline.transport.nats.options import HEADER_ROOM_BYTES, NatsOptions, QueueOptions
from turnline.transport.nats.outbox import Outbox
from turnline.transport.nats.topology import consumers_of
from turnline.transport.port import Capabilities, QueueStats


class NatsQueue:
    """A work-queue stream with its consumers and companions."""

    def __init__(
        self, *, queue: QueueOptions, options: NatsOptions, connection: Connection, clock: Clock
    ) -> None:
        self._options = options
        self._queue = queue
        self._connection = connection
        self._api = JetStream(connection)
        self._outbox = Outbox(api=self._api, queue=queue, options=options)
        self._letters = NatsDeadLetters(
            name=queue.name,
            stream=queue.stream,
            limit=options.max_dead_letters,
            api=self._api,
            outbox=self._outbox,
            clock=clock,
        )
        self._consumers = tuple(spec.name for spec in consumers_of(options, queue))
        self._leases = Leases(connection=connection, seconds=options.ack_wait, clock=clock)
        credits = Credits(self._api, queue.stream)
        self._intake = Intake(
            connection=connection,
            credits=credits,
            leases=self._leases,
            stream=queue.stream,
            consumers=self._consumers,
            request_timeout=options.server.request_timeout,
            clock=clock,
        )
        self._desk = Desk(
            name=queue.name,
            stream=queue.stream,
            connection=connection,
            api=self._api,
            intake=self._intake,
            leases=self._leases,
            credits=credits,
            letters=self._letters,
            outbox=self._outbox,
        )
        self._intake.admit = self._desk.admit

    @property
    def options(self) -> QueueOptions:
        """Its stream and subjects."""
        return self._queue

    @property
    def capabilities(self) -> Capabilities:
        """All of them; `max_bytes` is what the server takes, less room for headers."""
        return Capabilities(max_bytes=self._outbox.max_bytes or self._options.max_bytes)

    @property
    def dead_letters(self) -> NatsDeadLetters:
        """The dead letters of this queue."""
        return self._letters

    async def send(self, envelope: Envelope) -> bool:
        """Add an envelope; cancelling the call before it returned may leave it out."""
        return await self._outbox.send(envelope)

    def consumer(self) -> "NatsConsumer":
        """Make a reader; readers are served in the order they began to wait."""
        return NatsConsumer(self._intake, self._desk)

    async def stats(self) -> QueueStats:
        """Ask the server.

        `in_flight` is what the server has delivered and seen no settlement of, less what this
        process parked or gave back; what other processes did counts until they deliver it.
        """
        info = await self._api.stream(self._queue.stream)
        if info is None:
            raise TransportUnavailableError("The stream is gone", retry_after=1.0)
        pending = 0
        for name in self._consumers:
            consumer = await self._api.consumer(self._queue.stream, name)
            pending += int(consumer["num_ack_pending"]) if consumer else 0
        messages = int(info["state"]["messages"])
        busy = pending - len(self._intake.lanes) - self._leases.count_resting()
        in_flight = min(messages, max(0, busy))
        first = seconds_of(info["state"]["first_ts"]) if messages else 0.0
        return QueueStats(
            waiting=messages - in_flight,
            in_flight=in_flight,
            dead=await self._letters.count(),
            oldest_age_seconds=max(0.0, seconds_of(info["ts"]) - first) if messages else 0.0,
        )

    async def open(self) -> None:
        """Begin to serve; for the transport."""
        room = self._connection.max_payload - HEADER_ROOM_BYTES
        self._outbox.max_bytes = min(room, self._options.max_bytes or room)
        await self._intake.open()

    async def tend(self) -> None:
        """Look after readers and what is held; for the transport, in a task."""
        await self._intake.tend()

    async def close(self) -> None:
        """Serve nobody any more and hand back what is held; for the transport."""
        await self._intake.close()


class NatsConsumer:
    """One reader; see `turnline.transport.Consumer`."""

    def __init__(self, intake: Intake, desk: Desk) -> None:
        self._intake = intake
        self._desk = desk
        self._reading = False
        self._waiting: set[asyncio.Future[Admitted]] = set()

    async def __aenter__(self) -> Self:
        self._intake.check_open()
        self._reading = True
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop reading; a `receive` that still waits gets TransportUnavailableError."""
        self._reading = False
        self._intake.dismiss(list(self._waiting), "The consumer was closed")

    async def receive(self) -> HeldDelivery[Held]:
        """Wait for the next delivery."""
        if not self._reading:
            raise TransportUnavailableError("The consumer is closed")
        held, envelope = await self._intake.take(self._waiting)
        return HeldDelivery(self._desk, held, envelope)
