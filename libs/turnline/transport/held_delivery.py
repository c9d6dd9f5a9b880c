"""A delivery for adapters that settle through one place: what a settlement is, said once.

The adapter's *desk* knows how each settlement is done on its broker; what is *held* is the broker's
receipt.  Here is only that a delivery is settled once, and one settlement at a time.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar

from turnline.errors import FencedError
from turnline.protocol import Envelope


class Held(Protocol):
    """What a broker handed out, under its lease."""

    @property
    def attempt(self) -> int:
        """1 on the first delivery."""
        ...


HeldT = TypeVar("HeldT", bound=Held)
_HeldT = TypeVar("_HeldT", bound=Held, contravariant=True)


class Settling(Protocol[_HeldT]):
    """The ways of what is held to its settlement; each raises as that of `Delivery` does."""

    async def finish(self, held: _HeldT) -> None:
        """Remove it for good."""
        ...

    async def postpone(self, held: _HeldT, seconds: float) -> None:
        """Give it back, spent, for `seconds`."""
        ...

    async def release(self, held: _HeldT) -> None:
        """Give it back at once, unspent."""
        ...

    async def bury(self, held: _HeldT, reason: str) -> None:
        """Move it to the dead letters."""
        ...

    async def renew(self, held: _HeldT) -> None:
        """Start its lease anew."""
        ...


class HeldDelivery(Generic[HeldT]):
    """What is held, with its envelope; a `turnline.transport.Delivery`.

    A settlement that found no broker may be tried again, until the lease is over.
    """

    __slots__ = ("_desk", "_envelope", "_held", "_settled", "_turnstile")

    def __init__(self, desk: Settling[HeldT], held: HeldT, envelope: Envelope) -> None:
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
