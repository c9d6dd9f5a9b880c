"""What can be done with a record: make it ready, hand it out, settle it.

One per queue, shared by its readers and their deliveries.
"""

from turnline.errors import FencedError, StoreUnavailableError, UndecodableError
from turnline.protocol import Envelope
from turnline.protocol.json_body import decode_any
from turnline.telemetry import get_logger
from turnline.transport.kafka.dead_letters import KafkaDeadLetters
from turnline.transport.kafka.errors import unavailable
from turnline.transport.kafka.held import Held
from turnline.transport.kafka.holding import Lane, Prepared, Record
from turnline.transport.kafka.intake import Intake
from turnline.transport.kafka.keys import group_text
from turnline.transport.port import Bookkeeping

_log = get_logger("transport")


class Desk:
    """The ways of a record from the group's hands to its settlement."""

    def __init__(
        self,
        *,
        name: str,
        topic: str,
        window: float,
        intake: Intake,
        books: Bookkeeping,
        letters: KafkaDeadLetters,
    ) -> None:
        self._name = name
        self._topic = topic
        self._window = window
        self._intake = intake
        self._books = books
        self._letters = letters

    async def prepare(self, lane: Lane, record: Record) -> Prepared | None:
        """Count and decode a record; None: it needs no delivery.

        A copy of one that was sent before is passed over, and what is no envelope is buried.

        Raises:
            TransportUnavailableError: the books or the brokers did not do their part.
        """
        try:
            attempt = await self._books.begin(
                self._topic,
                record.name,
                record.dedup_id,
                sent_at=record.sent_at,
                window=self._window,
            )
        except StoreUnavailableError as error:
            raise unavailable(None, "can't be used: its bookkeeping is away") from error
        if record.holding.lost:
            await self.unspend(record)
            return None
        envelope = await self._decoded(record, attempt) if attempt else None
        if envelope is not None:
            return Prepared(envelope, attempt)
        if not record.holding.lost:
            self._intake.skip(record)
            self._intake.drop(lane, record)
        return None

    async def unspend(self, record: Record) -> None:
        """Take back the count of a record that was made ready and not handed out."""
        try:
            await self._books.unspend(self._topic, record.name)
        except StoreUnavailableError as error:
            _warn(error)

    async def finish(self, held: Held) -> None:
        """Remove a record for good."""
        confirmed = self._intake.mark_done(held)
        try:
            await self._intake.commits.confirm(confirmed)
        except FencedError:
            self._intake.end(held)
            raise
        await self._close_book(held.record)
        self._intake.end(held)

    async def postpone(self, held: Held, seconds: float) -> None:
        """Give it back, spent, for `seconds`."""
        self._intake.give_back(held, seconds)

    async def release(self, held: Held) -> None:
        """Give it back at once, unspent."""
        self._intake.check(held)
        try:
            await self._books.unspend(self._topic, held.record.name)
        except StoreUnavailableError as error:
            raise unavailable(None, "can't be used: its bookkeeping is away") from error
        self._intake.give_back(held, 0.0)

    async def bury(self, held: Held, reason: str) -> None:
        """Move it to the dead letters; its letter is confirmed before its offset is."""
        self._intake.check(held)
        await self._letters.add(held.record, held.attempt, reason)
        await self.finish(held)

    async def renew(self, held: Held) -> None:
        """Start its lease anew."""
        self._intake.renew(held)

    async def _decoded(self, record: Record, attempt: int) -> Envelope | None:
        try:
            return decode_any(record.raw, record.headers)
        except UndecodableError as error:
            _log.error(
                "message.undecodable",
                queue=self._name,
                reason=error.message,
                size=len(record.raw),
            )
            await self._letters.add(record, attempt, error.message)
            await self._close_book(record)
            return None

    async def _close_book(self, record: Record) -> None:
        """What is left in the books of a record that is gone runs out by itself."""
        try:
            await self._books.finish(
                self._topic,
                record.name,
                record.dedup_id,
                group_text(record.key),
                window=self._window,
            )
        except StoreUnavailableError as error:
            _warn(error)


def _warn(error: StoreUnavailableError) -> None:
    _log.warning("dependency.unavailable", dependency="bookkeeping", reason=error.message)
