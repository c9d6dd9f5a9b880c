"""The leases of one queue's messages: when they end by our clock, and how they are used.

The server takes a settlement from whoever sends it, however late.  So the clock here decides: a
lease is over a tenth before the server's own end of it, counted from when the message came or from
before the last renewal was sent, and what is over settles nothing.
"""

from dataclasses import dataclass, field

from turnline.errors import FencedError
from turnline.protocol.clock import Clock
from turnline.transport.nats.connection import Connection
from turnline.transport.nats.held import Held
from turnline.transport.nats.topology import SECOND

_MARGIN = 0.1
_RENEW_AT = 1 / 3
_MAX_RESTING = 20_000

ACK, NAK, PROGRESS, TERM = b"+ACK", b"-NAK", b"+WPI", b"+TERM"


@dataclass(slots=True)
class _Book:
    """What lies with whom, as far as this process knows.

    Attributes:
        out: handed to readers and not settled, by sequence.
        resting: given back and not seen since, by sequence -> when to forget it.
    """

    out: dict[int, Held] = field(default_factory=dict)
    resting: dict[int, float] = field(default_factory=dict)


class Leases:
    """The leases of what this process holds of one queue."""

    def __init__(self, *, connection: Connection, seconds: float, clock: Clock) -> None:
        self.seconds = seconds
        self._connection = connection
        self._clock = clock
        self._book = _Book()

    @property
    def usable_seconds(self) -> float:
        """How long a lease lasts by our clock."""
        return self.seconds * (1 - _MARGIN)

    def is_over(self, held: Held) -> bool:
        """Whether a lease has run out, or its message was delivered again since."""
        return self._clock.monotonic() >= held.lease_until

    def wants_renewal(self, held: Held) -> bool:
        """Whether a third of the lease is over."""
        left = held.lease_until - self._clock.monotonic()
        return left <= self.usable_seconds - self.seconds * _RENEW_AT

    def check(self, held: Held) -> None:
        """Return if a lease may be used.

        Raises:
            FencedError: it is over.
        """
        if self.is_over(held):
            raise FencedError("This delivery's lease ran out")

    def arrived(self, held: Held) -> None:
        """Note a delivery by the server: whatever was known of that message is over."""
        self._book.resting.pop(held.sequence, None)
        old = self._book.out.pop(held.sequence, None)
        if old is not None:
            old.lease_until = 0.0

    def hand_out(self, held: Held) -> None:
        """Note that a reader has it."""
        self._book.out[held.sequence] = held

    def subjects_out(self) -> set[str]:
        """Give the subjects of which a reader of this process has a message."""
        return {held.subject for held in self._book.out.values()}

    async def renew(self, held: Held) -> None:
        """Start the lease anew, as the server confirms.

        Raises:
            FencedError: it was over already.
            TransportUnavailableError: no confirmation; the lease goes on to its old end.
        """
        self.check(held)
        sent = self._clock.monotonic()
        await self._connection.request(held.reply, PROGRESS)
        self.check(held)
        held.lease_until = sent + self.usable_seconds

    async def end(self, held: Held, word: bytes) -> None:
        """Settle for good, as the server confirms.

        Raises:
            FencedError: the lease is over.
            TransportUnavailableError: no confirmation; do it again.
        """
        self.check(held)
        await self._connection.request(held.reply, word)
        self._book.out.pop(held.sequence, None)
        held.lease_until = 0.0

    async def give_back(self, held: Held, delay: float) -> None:
        """Have the server deliver it again after `delay` seconds.

        Raises:
            FencedError: the lease is over.
            TransportUnavailableError: no confirmation; do it again.
        """
        self.check(held)
        word = NAK
        if delay > 0:
            word += b' {"delay": %d}' % round(delay * SECOND)
        await self._connection.request(held.reply, word)
        self._book.out.pop(held.sequence, None)
        held.lease_until = 0.0
        self._book.resting[held.sequence] = self._clock.monotonic() + delay + self.seconds
        if len(self._book.resting) > _MAX_RESTING:
            self.count_resting()

    def count_resting(self) -> int:
        """Count messages that the server takes for being worked on, and nobody does."""
        now = self._clock.monotonic()
        book = self._book
        live = [(sequence, at) for sequence, at in book.resting.items() if at > now]
        book.resting = dict(live[-_MAX_RESTING // 2 :])
        for sequence, held in list(book.out.items()):
            if held.lease_until + self.seconds < now:
                del book.out[sequence]
        expired = sum(1 for held in book.out.values() if held.lease_until <= now)
        return len(book.resting) + expired
