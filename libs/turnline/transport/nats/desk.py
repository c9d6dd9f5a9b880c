"""What can be done with a held message: look at it, hand it out, settle it.

One per queue, shared by its readers and their deliveries.
"""

from turnline.errors import FencedError, UndecodableError
from turnline.protocol import Envelope
from turnline.protocol.json_body import decode_any
from turnline.telemetry import get_logger
from turnline.transport.nats.connection import Connection
from turnline.transport.nats.credits import Credits
from turnline.transport.nats.dead_letters import NatsDeadLetters
from turnline.transport.nats.held import Held
from turnline.transport.nats.intake import Intake
from turnline.transport.nats.jetstream import JetStream
from turnline.transport.nats.leases import ACK, TERM, Leases
from turnline.transport.nats.outbox import Outbox
from turnline.transport.nats.subjects import settled_subject

_log = get_logger("transport")


class Desk:
    """The ways of a message from the server's hands to its settlement."""

    def __init__(
        self,
        *,
        name: str,
        stream: str,
        connection: Connection,
        api: JetStream,
        intake: Intake,
        leases: Leases,
        credits: Credits,
        letters: NatsDeadLetters,
        outbox: Outbox,
    ) -> None:
        self._name = name
        self._stream = stream
        self._connection = connection
        self._api = api
        self._intake = intake
        self._leases = leases
        self._credits = credits
        self._letters = letters
        self._outbox = outbox

    async def admit(self, held: Held) -> Envelope | None:
        """Give the envelope if the message is the head of its session; None: it is not for now.

        What is not the head is parked, what is no envelope is buried, what is gone is dropped.

        Raises:
            TransportUnavailableError: the server did not do its part.
        """
        try:
            return await self._admit(held)
        except FencedError:
            return None

    async def _admit(self, held: Held) -> Envelope | None:
        if self._leases.is_over(held) or not await self._is_head(held):
            return None
        if held.unspent is None:
            held.unspent = await self._credits.read(held)
        envelope = await self._decoded(held)
        if envelope is None:
            return None
        if held.since:
            await self._start_parked(held)
        return envelope

    async def finish(self, held: Held) -> None:
        """Remove a message for good."""
        await self._leases.end(held, ACK)
        await self._tell_settled(held)

    async def postpone(self, held: Held, seconds: float) -> None:
        """Give it back, spent, for `seconds`."""
        await self._leases.give_back(held, max(0.0, seconds))

    async def release(self, held: Held) -> None:
        """Give it back at once, unspent."""
        self._leases.check(held)
        await self._credits.write(held, (held.unspent or 0) + 1)
        await self._leases.give_back(held, 0.0)

    async def bury(self, held: Held, reason: str) -> None:
        """Move it to the dead letters."""
        self._leases.check(held)
        await self._letters.add(held, reason)
        await self._leases.end(held, TERM)
        await self._tell_settled(held)

    async def renew(self, held: Held) -> None:
        """Start its lease anew."""
        await self._leases.renew(held)

    async def _is_head(self, held: Held) -> bool:
        first = await self._api.first_on(self._stream, held.subject)
        if first is not None and first.sequence == held.sequence:
            held.raw, held.headers = first.raw, first.headers
            return True
        if first is not None and first.sequence < held.sequence:
            self._intake.park(held)
        elif await self._api.holds(self._stream, held.sequence):
            self._intake.park(held)  # a replica that lags has not seen it yet
        else:
            await self._connection.publish(held.reply, TERM)
        return False

    async def _decoded(self, held: Held) -> Envelope | None:
        try:
            if len(held.raw) > self._outbox.max_bytes:
                raise UndecodableError(f"larger than {self._outbox.max_bytes} bytes")
            return decode_any(held.raw, held.headers)
        except UndecodableError as error:
            _log.error(
                "message.undecodable",
                queue=self._name,
                reason=error.message,
                size=len(held.raw),
            )
            await self.bury(held, error.message)
            return None

    async def _start_parked(self, held: Held) -> None:
        """Give what was parked a whole lease, and have this delivery count again."""
        await self._leases.renew(held)
        if held.credited:
            await self._credits.write(held, held.unspent or 0)
            held.credited = False
        held.since = 0.0

    async def _tell_settled(self, held: Held) -> None:
        self._intake.wake(held.subject)
        if self._connection.is_up:
            await self._connection.publish(settled_subject(self._stream, held.subject))
