"""One queue on SQS and its readers; see `turnline.transport.Queue`."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Self

from turnline.errors import TransportUnavailableError
from turnline.protocol import Envelope
from turnline.protocol.clock import Clock
from turnline.transport.background import Background
from turnline.transport.held_delivery import HeldDelivery
from turnline.transport.port import Bookkeeping, Capabilities, QueueStats
from turnline.transport.sqs.api import SqsApi
from turnline.transport.sqs.books import Books
from turnline.transport.sqs.dead_letters import SqsDeadLetters
from turnline.transport.sqs.desk import Desk
from turnline.transport.sqs.differences import differences
from turnline.transport.sqs.facts import QueueFacts
from turnline.transport.sqs.held import Held
from turnline.transport.sqs.intake import Admitted, Intake
from turnline.transport.sqs.leases import Leases
from turnline.transport.sqs.options import QueueOptions, SqsOptions
from turnline.transport.sqs.outbox import WINDOW_SECONDS, Outbox
from turnline.transport.sqs.room import Room
from turnline.transport.sqs.triggered import TriggeredQueue

_PATIENCE_MARGIN_SECONDS = 10.0


class SqsQueue:
    """A FIFO queue and the one of its dead letters."""

    def __init__(
        self,
        *,
        queue: QueueOptions,
        options: SqsOptions,
        api: SqsApi,
        background: Background,
        clock: Clock,
        books: Bookkeeping | None = None,
    ) -> None:
        """Wire it; without `books` what others did is not known here."""
        self._options = options
        self._queue = queue
        self._clock = clock
        self._books = Books(
            books,
            queue=queue.url,
            max_per_group=queue.max_per_session,
            window=WINDOW_SECONDS,
            patience=options.request_timeout + _PATIENCE_MARGIN_SECONDS,
            lease_seconds=options.visibility_timeout,
            clock=clock,
        )
        self._room = Room(
            api=api, url=queue.url, name=queue.name, limit=options.max_messages, clock=clock
        )
        self._outbox = Outbox(
            api=api,
            url=queue.url,
            room=self._room,
            books=self._books,
            background=background,
            clock=clock,
        )
        self._letters = SqsDeadLetters(
            name=queue.name,
            limit=options.max_dead_letters,
            api=api,
            outbox=self._outbox,
            background=background,
            clock=clock,
        )
        self._leases = Leases(
            api=api,
            url=queue.url,
            seconds=options.visibility_timeout,
            books=self._books,
            background=background,
            clock=clock,
        )
        self._intake = Intake(
            api=api,
            url=queue.url,
            options=options,
            leases=self._leases,
            clock=clock,
            new_id=lambda: str(uuid.uuid4()),
        )
        self._desk = Desk(
            name=queue.name,
            intake=self._intake,
            leases=self._leases,
            letters=self._letters,
            room=self._room,
            books=self._books,
        )
        self._intake.admit = self._desk.admit

    @property
    def options(self) -> QueueOptions:
        """Its URL."""
        return self._queue

    @property
    def capabilities(self) -> Capabilities:
        """What SQS can do; see ADR 0012 for what it cannot.

        Without books `release` keeps the attempt for readers of this process; another one takes
        every delivery for an attempt.
        """
        return Capabilities(
            max_bytes=self._outbox.max_bytes or None,
            differences=differences(with_books=self._books.kept),
        )

    @property
    def dead_letters(self) -> SqsDeadLetters:
        """The dead letters of this queue."""
        return self._letters

    async def send(self, envelope: Envelope) -> bool:
        """Add an envelope; cancelling the call before it returned may leave it out."""
        self._intake.check_open()
        return await self._outbox.send(envelope)

    def consumer(self) -> "SqsConsumer":
        """Make a reader; readers are served in the order they began to wait."""
        return SqsConsumer(self._intake, self._desk)

    def triggered(self, records: Sequence[Mapping[str, Any]]) -> TriggeredQueue:
        """Take what an event source mapping handed to this process (`Records` of its event).

        Raises:
            KeyError: a record is none of SQS's.
        """
        return TriggeredQueue(
            records,
            name=self._queue.name,
            queue=self,
            leases=self._leases,
            letters=self._letters,
            room=self._room,
            books=self._books,
        )

    async def stats(self) -> QueueStats:
        """Ask SQS, whose numbers are estimates.

        `in_flight` is less what this process gave back for a pause; that of others counts there.
        The age is that of the oldest delivery out here: SQS tells others to CloudWatch alone.
        """
        self._intake.check_open()
        found = await self._room.count()
        in_flight = max(0, found.hidden - self._leases.count_resting())
        oldest = self._leases.oldest()
        return QueueStats(
            waiting=found.waiting + found.hidden - in_flight,
            in_flight=in_flight,
            dead=await self._letters.count(),
            oldest_age_seconds=max(0.0, self._clock.time() - oldest) if oldest else 0.0,
        )

    def open(self, facts: QueueFacts) -> None:
        """Begin to serve; for the transport."""
        limit = self._options.max_bytes
        self._outbox.max_bytes = min(facts.max_bytes, limit or facts.max_bytes)
        self._outbox.message_bytes = facts.message_bytes
        self._letters.facts = facts
        self._leases.ceiling = facts.ceiling
        self._room.counted = facts.counted
        self._intake.open()

    async def tend(self) -> None:
        """Look after readers and what is held; for the transport, in a task."""
        await self._intake.tend()

    async def close(self) -> None:
        """Serve nobody any more and hand back what is held; for the transport."""
        await self._intake.close()


class SqsConsumer:
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
