"""What can be done with a held message: hand it out, settle it.

One per queue, shared by its readers and their deliveries.
"""

from typing import Protocol

from turnline.errors import UndecodableError
from turnline.protocol import Envelope
from turnline.telemetry import get_logger
from turnline.transport.sqs.books import Books
from turnline.transport.sqs.dead_letters import SqsDeadLetters
from turnline.transport.sqs.held import Held
from turnline.transport.sqs.leases import Leases
from turnline.transport.sqs.room import Room
from turnline.transport.sqs.wire import envelope_of

_log = get_logger("transport")


class Line(Protocol):
    """Where what is held came from, with what stands behind it in its group."""

    def settled(self, held: Held) -> None:
        """Note that a message is gone."""
        ...

    async def return_followers(self, held: Held, seconds: float) -> None:
        """Give back what stands behind a message, for more than `seconds`."""
        ...


class Desk:
    """The ways of a message from SQS's hands to its settlement."""

    def __init__(
        self,
        *,
        name: str,
        intake: Line,
        leases: Leases,
        letters: SqsDeadLetters,
        room: Room,
        books: Books,
    ) -> None:
        self._name = name
        self._intake = intake
        self._leases = leases
        self._letters = letters
        self._room = room
        self._books = books

    async def admit(self, held: Held) -> Envelope | None:
        """Give the envelope, its delivery counted; None: it was none, and is buried.

        Raises:
            FencedError: its lease is over.
            TransportUnavailableError: SQS did not do its part.
        """
        try:
            envelope = envelope_of(held.body, held.attributes)
        except UndecodableError as error:
            _log.error(
                "message.undecodable",
                queue=self._name,
                reason=error.message,
                size=len(held.body),
            )
            await self.bury(held, error.message)
            return None
        held.dedup_id = envelope.dedup_id
        held.counted = await self._books.begin(held.id)
        return envelope

    async def finish(self, held: Held) -> None:
        """Remove a message for good."""
        await self._leases.end(held)
        await self._gone(held)

    async def postpone(self, held: Held, seconds: float) -> None:
        """Give it back, spent, for `seconds`."""
        self._leases.check(held)
        await self._intake.return_followers(held, seconds)
        await self._leases.give_back(held, seconds)

    async def release(self, held: Held) -> None:
        """Give it back at once, unspent."""
        self._leases.check(held)
        await self._intake.return_followers(held, 0.0)
        await self._leases.give_back_unspent(held, 0.0)

    async def bury(self, held: Held, reason: str) -> None:
        """Move it to the dead letters."""
        self._leases.check(held)
        await self._letters.add(held, reason)
        await self._leases.end(held)
        await self._gone(held)

    async def renew(self, held: Held) -> None:
        """Start its lease anew."""
        await self._leases.renew(held)

    async def _gone(self, held: Held) -> None:
        self._room.gone()
        self._intake.settled(held)
        await self._books.finish(held.id, held.dedup_id, held.group)
