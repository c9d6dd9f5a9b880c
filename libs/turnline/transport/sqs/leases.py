"""The leases of one queue's messages: when they end by our clock, and how they are used.

A lease is a visibility timeout.  By our clock it is over a tenth before SQS's own end of it; what
is over settles nothing, and SQS refuses a late receipt as well.
"""

import math
from collections.abc import Iterable

from turnline.errors import FencedError
from turnline.protocol.clock import Clock
from turnline.transport.background import Background
from turnline.transport.sqs.api import Received, SqsApi
from turnline.transport.sqs.batches import Batches
from turnline.transport.sqs.books import Books
from turnline.transport.sqs.held import Held
from turnline.transport.sqs.options import MOST_VISIBLE_SECONDS
from turnline.transport.sqs.unspent import Unspent

_MARGIN = 0.1
_RENEW_AT = 1 / 3
# Turns renew at times of their own; a little patience lets them share calls.
_LINGER_SECONDS = 0.05
_MAX_RESTING = 20_000


class Leases:
    """The leases of what this process holds of one queue.

    Attributes:
        seconds: of a lease, as SQS counts it.
        ceiling: the delivery after which SQS gives a message up; 0: unknown.
    """

    def __init__(
        self,
        *,
        api: SqsApi,
        url: str,
        seconds: int,
        books: Books,
        background: Background,
        clock: Clock,
    ) -> None:
        self.seconds = seconds
        self.ceiling = 0
        self.unspent = Unspent()
        self._books = books
        self._clock = clock
        self._out: dict[str, Held] = {}
        self._resting: dict[str, float] = {}
        self._deletes = Batches[str](lambda receipts: api.delete(url, receipts), background)
        self._hides = Batches[tuple[str, int]](lambda entries: api.hide(url, entries), background)
        self._renewals = Batches[tuple[str, int]](
            lambda entries: api.hide(url, entries), background, linger=_LINGER_SECONDS
        )

    def hold(self, received: Received) -> Held:
        """Begin the lease of what just came."""
        now = self._clock.monotonic()
        self._resting.pop(received.id, None)
        old = self._out.pop(received.id, None)
        if old is not None:
            old.lease_until = 0.0
        return Held(
            id=received.id,
            receipt=received.receipt,
            group=received.group,
            body=received.body,
            attributes=received.attributes,
            received=received.received,
            sent_at=received.sent_at,
            came_at=now,
            lease_until=now + self.seconds * (1 - _MARGIN),
            unspent=self.unspent.of(received.id),
            ceiling=self.ceiling,
        )

    def hand_out(self, held: Held) -> None:
        """Note that a reader has it."""
        self._out[held.id] = held

    def is_over(self, held: Held) -> bool:
        """Whether a lease has run out, or its message was settled or delivered again since."""
        return self._clock.monotonic() >= held.lease_until

    def wants_renewal(self, held: Held) -> bool:
        """Whether a third of the lease is over."""
        left = held.lease_until - self._clock.monotonic()
        return left <= self.seconds * (1 - _MARGIN - _RENEW_AT)

    def check(self, held: Held) -> None:
        """Return if a lease may be used.

        Raises:
            FencedError: it is over.
        """
        if self.is_over(held):
            raise FencedError("This delivery's lease ran out")

    async def renew(self, held: Held) -> None:
        """Start the lease anew, as SQS confirms.

        Raises:
            FencedError: it was over already, or is as old as SQS lets one be.
            TransportUnavailableError: no confirmation; the lease goes on to its old end.
        """
        await self._extend(held, self._renewals)

    async def shorten(self, held: Held) -> None:
        """Have SQS, too, count a lease of this length from now on; as `renew`, without delay."""
        await self._extend(held, self._hides)

    async def _extend(self, held: Held, calls: Batches[tuple[str, int]]) -> None:
        self.check(held)
        sent = self._clock.monotonic()
        seconds = min(self.seconds, self._most(held))
        if seconds < 1:
            raise FencedError("SQS lets nobody hold a message for more than 12 hours")
        await calls.put((held.receipt, seconds))
        self.check(held)
        held.lease_until = sent + seconds * (1 - _MARGIN)

    async def end(self, held: Held) -> None:
        """Remove the message, as SQS confirms.

        Raises:
            FencedError: the lease is over.
            TransportUnavailableError: no confirmation; do it again.
        """
        self.check(held)
        await self._deletes.put(held.receipt)
        self._out.pop(held.id, None)
        held.lease_until = 0.0
        self.unspent.forget(held.id)

    async def give_back(self, held: Held, delay: float) -> None:
        """Have SQS deliver it again after `delay` seconds, rounded up to whole ones.

        Raises:
            FencedError: the lease is over.
            TransportUnavailableError: no confirmation; do it again.
        """
        self.check(held)
        seconds = max(0, min(math.ceil(delay), self._most(held)))
        await self._hides.put((held.receipt, seconds))
        self._out.pop(held.id, None)
        held.lease_until = 0.0
        if seconds:
            self._resting[held.id] = self._clock.monotonic() + seconds
            if len(self._resting) > _MAX_RESTING:
                self._resting.pop(next(iter(self._resting)))

    async def give_back_unspent(self, held: Held, delay: float) -> None:
        """Give it back, and have this delivery count for nothing; errors are `give_back`'s."""
        self.check(held)
        # Before the call: the next delivery may be here before its answer.
        if held.counted:
            held.counted = 0
            await self._books.unspend(held.id)
        self.unspent.note(held.id)
        try:
            await self.give_back(held, delay)
        except BaseException:
            self.unspent.note(held.id, -1)
            raise

    def count_resting(self) -> int:
        """Count messages that SQS takes for being worked on, and nobody does."""
        now = self._clock.monotonic()
        self._resting = {name: at for name, at in self._resting.items() if at > now}
        return len(self._resting)

    def oldest(self) -> float:
        """Give when the oldest message out here was sent, seconds since the epoch; 0: none is."""
        return min((held.sent_at for held in self._live()), default=0.0)

    def _live(self) -> Iterable[Held]:
        for held in list(self._out.values()):
            if held.lease_until + self.seconds < self._clock.monotonic():
                del self._out[held.id]
        return (held for held in self._out.values() if not self.is_over(held))

    def _most(self, held: Held) -> int:
        """Whole seconds for which SQS lets a delivery be hidden from now on."""
        used = self._clock.monotonic() - held.came_at
        return int(MOST_VISIBLE_SECONDS - used) - 1
