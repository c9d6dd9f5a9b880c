"""One receipt of a message; see `turnline.transport.Delivery`."""

from turnline.protocol import Envelope
from turnline.transport.in_memory.backlog import Lease
from turnline.transport.in_memory.dispatcher import Dispatcher


class InMemoryDelivery:
    """A lease with its envelope; settles through the dispatcher that gave it out."""

    __slots__ = ("_dispatcher", "_envelope", "_lease")

    def __init__(self, dispatcher: Dispatcher, lease: Lease, envelope: Envelope) -> None:
        self._dispatcher = dispatcher
        self._lease = lease
        self._envelope = envelope

    @property
    def envelope(self) -> Envelope:
        """The envelope, decoded."""
        return self._envelope

    @property
    def attempt(self) -> int:
        """1 on the first delivery."""
        return self._lease.attempt

    async def ack(self) -> None:
        """Remove the envelope."""
        self._dispatcher.ack(self._lease)

    async def retry(self, after: float) -> None:
        """Give it back for another attempt in `after` seconds, 0 or more."""
        self._dispatcher.pause(self._lease, after)

    async def release(self) -> None:
        """Give it back at once, unspent."""
        self._dispatcher.put_back(self._lease)

    async def dead_letter(self, reason: str) -> None:
        """Move it to the dead letters."""
        self._dispatcher.bury(self._lease, self._envelope, reason)

    async def renew(self) -> None:
        """Start the lease anew."""
        self._dispatcher.renew(self._lease)
