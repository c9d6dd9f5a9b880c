"""What an event source mapping took, as a queue that is read for the length of one invocation.

AWS polls, hands a batch to a function, and removes what the function does not report as failed.
Here is what it leaves to the function: of each group one message at a time, in order, and none
behind one that failed.  What is done is removed at once, so that a sandbox that dies later repeats
nothing; leases are short and renewed, as when this transport polls itself, so that what it held is
back soon (ADR 0014).
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

from turnline.errors import FencedError, TransportUnavailableError
from turnline.protocol import Envelope
from turnline.transport.held_delivery import HeldDelivery
from turnline.transport.port import Capabilities, DeadLetters, Queue, QueueStats
from turnline.transport.sqs.api import Received
from turnline.transport.sqs.books import Books
from turnline.transport.sqs.dead_letters import SqsDeadLetters
from turnline.transport.sqs.desk import Desk
from turnline.transport.sqs.followers import Followers
from turnline.transport.sqs.held import Held
from turnline.transport.sqs.leases import Leases
from turnline.transport.sqs.room import Room

_TICK_SECONDS = 0.25
_SHORTEN_SECONDS = 1.0


class TriggeredQueue:
    """A batch as a queue: its readers get what is in the batch, everything else is the queue's own.

    Attributes:
        over: set when no message of the batch is waiting or worked on any more.
        time_is_up: what is handed back from now on did not fit into the invocation, which is an
            attempt spent.
    """

    def __init__(
        self,
        records: Sequence[Mapping[str, Any]],
        *,
        name: str,
        queue: Queue,
        leases: Leases,
        letters: SqsDeadLetters,
        room: Room,
        books: Books,
    ) -> None:
        """Take a batch.

        Args:
            records: `Records` of the event, in its order.
            name: `input` or `output`, for logs.
            queue: the queue itself.

        Raises:
            KeyError: a record is none of SQS's.
        """
        self.over = asyncio.Event()
        self.time_is_up = False
        self._queue = queue
        self._leases = leases
        self._followers = Followers(leases)
        self._desk = _TriggeredDesk(
            self,
            Desk(name=name, intake=self, leases=leases, letters=letters, room=room, books=books),
        )
        self._shortening = asyncio.Lock()
        self._is_short = False
        self._done: set[Held] = set()
        self._batch = [leases.hold(received_in(record)) for record in records]
        firsts = self._followers.sort(self._batch)
        self._heads = set(firsts)
        self._waiting: asyncio.Queue[Held] = asyncio.Queue()
        for held in firsts:
            self._waiting.put_nowait(held)
        self._end_if_over()

    @property
    def failures(self) -> list[str]:
        """Names (`messageId`) of the messages that are not done, in the batch's order."""
        return [held.id for held in self._batch if held not in self._done]

    # --- a queue -----------------------------------------------------------------------------

    @property
    def capabilities(self) -> Capabilities:
        """What the queue can do."""
        return self._queue.capabilities

    @property
    def dead_letters(self) -> DeadLetters:
        """The dead letters of the queue."""
        return self._queue.dead_letters

    async def send(self, envelope: Envelope) -> bool:
        """Add an envelope to the queue."""
        return await self._queue.send(envelope)

    async def stats(self) -> QueueStats:
        """Count what is on the queue."""
        return await self._queue.stats()

    def consumer(self) -> "TriggeredConsumer":
        """Make a reader of the batch."""
        return TriggeredConsumer(self)

    async def receive(self) -> HeldDelivery[Held]:
        """Wait for the next message of the batch whose turn has come.

        None is given out before all are under short leases, so that none is away for the queue's
        own timeout when its holder dies; SQS is waited for a moment at most.
        """
        await self._shorten_once()
        while True:
            held = await self._waiting.get()
            try:
                envelope = await self._desk.admit(held)
            except (FencedError, TransportUnavailableError):
                # It is no envelope, and could not be buried: it comes back by itself.
                self.close_group(held)
                continue
            if envelope is not None:
                return HeldDelivery(self._desk, held, envelope)

    # --- the batch ---------------------------------------------------------------------------

    async def tend(self) -> None:
        """Keep the leases of what waits, and notice what was lost; ends when cancelled."""
        while True:
            await asyncio.sleep(min(_TICK_SECONDS, self._leases.seconds / 10))
            for held in [held for held in self._heads if self._leases.is_over(held)]:
                await self._followers.give_back(held, 0.0)
                self.close_group(held)
            await self._followers.keep()

    def settled(self, held: Held) -> None:
        """Note that a message is gone: the next of its group may be worked on."""
        self._done.add(held)
        self._heads.discard(held)
        follower = self._followers.next(held)
        if follower is not None:
            self._heads.add(follower)
            self._waiting.put_nowait(follower)
        self._end_if_over()

    async def return_followers(self, held: Held, seconds: float) -> None:
        """Give back what stands behind a message that failed, for more than `seconds`."""
        await self._followers.give_back(held, seconds)

    def close_group(self, held: Held) -> None:
        """Note that a message is back on the queue, and all that stood behind it."""
        self._heads.discard(held)
        self._end_if_over()

    def _end_if_over(self) -> None:
        if not self._heads:
            self.over.set()

    async def _shorten_once(self) -> None:
        async with self._shortening:
            if not self._is_short:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_SHORTEN_SECONDS), asyncio.TaskGroup() as calls:
                        for held in self._batch:
                            calls.create_task(self._shorten(held))
                self._is_short = True

    async def _shorten(self, held: Held) -> None:
        with suppress(FencedError, TransportUnavailableError):
            await self._leases.shorten(held)


class TriggeredConsumer:
    """One reader; see `turnline.transport.Consumer`."""

    def __init__(self, queue: TriggeredQueue) -> None:
        self._queue = queue

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop reading; nothing to do."""

    async def receive(self) -> HeldDelivery[Held]:
        """Wait for the next message of the batch; for ever when there is none any more."""
        return await self._queue.receive()


class _TriggeredDesk:
    """Settles as the queue's own desk, and tells the batch."""

    def __init__(self, batch: TriggeredQueue, desk: Desk) -> None:
        self._batch = batch
        self._desk = desk

    async def admit(self, held: Held) -> Envelope | None:
        return await self._desk.admit(held)

    async def finish(self, held: Held) -> None:
        await self._desk.finish(held)

    async def postpone(self, held: Held, seconds: float) -> None:
        await self._desk.postpone(held, seconds)
        self._batch.close_group(held)

    async def release(self, held: Held) -> None:
        if self._batch.time_is_up:
            await self._desk.postpone(held, 0.0)
        else:
            await self._desk.release(held)
        self._batch.close_group(held)

    async def bury(self, held: Held, reason: str) -> None:
        await self._desk.bury(held, reason)

    async def renew(self, held: Held) -> None:
        await self._desk.renew(held)


def received_in(record: Mapping[str, Any]) -> Received:
    """Read one record of an event.

    Raises:
        KeyError: it is none of SQS's.
    """
    system: Mapping[str, str] = record.get("attributes") or {}
    attributes: Mapping[str, Mapping[str, Any]] = record.get("messageAttributes") or {}
    return Received(
        id=record["messageId"],
        receipt=record["receiptHandle"],
        # Without a group, of a queue that keeps no order, each message is one of its own.
        group=system.get("MessageGroupId", record["messageId"]),
        body=record.get("body") or "",
        attributes={
            name: str(value["stringValue"])
            for name, value in attributes.items()
            if value.get("stringValue") is not None
        },
        received=int(system.get("ApproximateReceiveCount", "1")),
        sent_at=int(system.get("SentTimestamp", "0")) / 1000.0,
        sequence=int(system.get("SequenceNumber", "0")),
    )
