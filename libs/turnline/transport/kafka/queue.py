"""One queue on Kafka and its readers; see `turnline.transport.Queue`."""

from collections.abc import Mapping
from typing import Self

from turnline.errors import TransportUnavailableError
from turnline.protocol import Envelope
from turnline.protocol.clock import Clock
from turnline.transport.held_delivery import HeldDelivery
from turnline.transport.kafka.census import Census
from turnline.transport.kafka.clients import member_config
from turnline.transport.kafka.dead_letters import KafkaDeadLetters
from turnline.transport.kafka.desk import Desk
from turnline.transport.kafka.held import Held
from turnline.transport.kafka.intake import Intake
from turnline.transport.kafka.line import Waiting
from turnline.transport.kafka.member import Member
from turnline.transport.kafka.options import KafkaOptions, QueueOptions
from turnline.transport.kafka.outbox import Outbox
from turnline.transport.kafka.tools import Tools
from turnline.transport.port import Capabilities, QueueStats


class KafkaQueue:
    """A topic with its group and its dead letters."""

    def __init__(
        self, *, queue: QueueOptions, options: KafkaOptions, tools: Tools, clock: Clock
    ) -> None:
        self._queue = queue
        self._shared_books = tools.books.shared
        self._outbox = Outbox(
            queue=queue,
            options=options,
            producer=tools.producer,
            books=tools.books,
            commits=tools.commits,
            background=tools.background,
            clock=clock,
        )
        self._letters = KafkaDeadLetters(
            queue=queue,
            limit=options.max_dead_letters,
            admin=tools.admin,
            reader=tools.reader,
            producer=tools.producer,
            outbox=self._outbox,
            clock=clock,
        )
        self._intake = Intake(
            topic=queue.topic,
            lease_seconds=options.ack_wait,
            commit_seconds=options.request_timeout,
            background=tools.background,
            clock=clock,
            make_member=lambda events: Member(member_config(options, queue), queue.topic, events),
        )
        self._desk = Desk(
            name=queue.name,
            topic=queue.topic,
            window=options.duplicate_window,
            intake=self._intake,
            books=tools.books,
            letters=self._letters,
        )
        self._intake.prepare = self._desk.prepare
        self._intake.unspend = self._desk.unspend
        self._census = Census(
            queue=queue,
            admin=tools.admin,
            commits=tools.commits,
            reader=tools.reader,
            intake=self._intake,
            letters=self._letters,
            clock=clock,
        )

    @property
    def options(self) -> QueueOptions:
        """Its topics and its group."""
        return self._queue

    @property
    def capabilities(self) -> Capabilities:
        """All of them, but that the broker counts no attempts: `Bookkeeping` does.

        A lease is of this process: it runs out here when its holder does not renew it.  Elsewhere
        a delivery comes back when the group gives its partition to another member, at the latest
        `ack_wait` after this process gave its last sign of life.
        """
        return Capabilities(
            native_count=self._shared_books, max_bytes=self._outbox.max_bytes or None
        )

    @property
    def dead_letters(self) -> KafkaDeadLetters:
        """The dead letters of this queue."""
        return self._letters

    async def send(self, envelope: Envelope) -> bool:
        """Add an envelope; cancelling the call before it returned may leave it out."""
        return await self._outbox.send(envelope)

    def consumer(self) -> "KafkaConsumer":
        """Make a reader; all readers of a process are one member of the group."""
        return KafkaConsumer(self._intake, self._desk)

    async def stats(self) -> QueueStats:
        """Ask the brokers; `in_flight` is what this process holds."""
        return await self._census.take()

    def open(self, partitions: Mapping[str, int], max_bytes: int) -> None:
        """Begin to serve; for the transport.

        Args:
            partitions: of every topic.
            max_bytes: largest encoded envelope the topic takes.
        """
        here = partitions[self._queue.topic]
        self._outbox.partitions = self._census.partitions = here
        self._letters.partitions = partitions[self._queue.dead_topic]
        self._outbox.max_bytes = max_bytes
        self._intake.open()

    async def tend(self) -> None:
        """Be a member of the group while somebody reads; for the transport, in a task."""
        await self._intake.tend()

    async def close(self) -> None:
        """Serve nobody any more and leave the group; for the transport."""
        await self._intake.close()


class KafkaConsumer:
    """One reader; see `turnline.transport.Consumer`."""

    def __init__(self, intake: Intake, desk: Desk) -> None:
        self._intake = intake
        self._desk = desk
        self._reading = False
        self._waiting: Waiting = set()

    async def __aenter__(self) -> Self:
        self._intake.add_reader()
        self._reading = True
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop reading; a `receive` that still waits gets TransportUnavailableError."""
        if self._reading:
            self._reading = False
            self._intake.remove_reader()
        self._intake.line.dismiss(list(self._waiting), "The consumer was closed")

    async def receive(self) -> HeldDelivery[Held]:
        """Wait for the next delivery."""
        if not self._reading:
            raise TransportUnavailableError("The consumer is closed")
        held, prepared = await self._intake.take(self._waiting)
        return HeldDelivery(self._desk, held, prepared.envelope)
