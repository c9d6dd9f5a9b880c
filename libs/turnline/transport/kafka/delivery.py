"""One receipt of an envelope; see `turnline.transport.Delivery`."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from turnline.errors import FencedError
from turnline.protocol import Envelope
from turnline.transport.kafka.desk import Desk
from turnline.transport.kafka.held import Held


class KafkaDelivery:
    """A held record with its envelope.

    A settlement that found no broker may be tried again, until the lease is over.
    """

    __slots__ = ("_desk", "_envelope", "_held", "_settled", "_turnstile")

    def __init__(self, desk: Desk, held: Held, envelope: Envelope) -> None:
        self._desk = desk
        self._held = held
        self._envelope = envelope
        self._settled = False
        self._turnstile = asyncio.Lock()

    @property
    def envelope(self) -> Envelope:
        """The envelope, decoded."""
        return self._envelope

    @property
    def attempt(self) -> int:
        """1 on the first delivery."""
        return self._held.attempt

    async def ack(self) -> None:
        """Remove the envelope."""
        async with self._settling():
            await self._desk.finish(self._held)

    async def retry(self, after: float) -> None:
        """Give it back for another attempt in `after` seconds, 0 or more."""
        async with self._settling():
            await self._desk.postpone(self._held, after)

    async def release(self) -> None:
        """Give it back at once, unspent."""
        async with self._settling():
            await self._desk.release(self._held)

    async def dead_letter(self, reason: str) -> None:
        """Move it to the dead letters."""
        async with self._settling():
            await self._desk.bury(self._held, reason)

    async def renew(self) -> None:
        """Start the lease anew."""
        self._check()
        await self._desk.renew(self._held)

    @asynccontextmanager
    async def _settling(self) -> AsyncIterator[None]:
        async with self._turnstile:
            self._check()
            yield
            self._settled = True

    def _check(self) -> None:
        if self._settled:
            raise FencedError("This delivery was settled before")
