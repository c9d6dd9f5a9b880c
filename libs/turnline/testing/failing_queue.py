"""A queue whose calls fail as a test wants, around a real one: a broker that comes and goes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Self

from turnline.protocol import Envelope
from turnline.transport import Capabilities, Consumer, DeadLetters, Delivery, Queue, QueueStats

Fault = Callable[[], Awaitable[None]]


async def well() -> None:
    """No fault."""


def raising(error: BaseException, *, times: int = 1) -> Fault:
    """Raise the first few times."""
    left = [error] * times

    async def fault() -> None:
        if left:
            raise left.pop()

    return fault


@dataclass(slots=True)
class FailingQueue:
    """Wraps a queue; each fault is awaited before the call it is named after, and may raise.

    Attributes:
        receiving: before a consumer waits for a delivery.
        settling: before a delivery is acked, retried, released or dead-lettered.
        renewing: before a lease is renewed.
    """

    inner: Queue
    receiving: Fault = well
    settling: Fault = well
    renewing: Fault = well

    @property
    def capabilities(self) -> Capabilities:
        """Those of the wrapped queue."""
        return self.inner.capabilities

    @property
    def dead_letters(self) -> DeadLetters:
        """Those of the wrapped queue."""
        return self.inner.dead_letters

    async def send(self, envelope: Envelope) -> bool:
        """Send to the wrapped queue."""
        return await self.inner.send(envelope)

    def consumer(self) -> Consumer:
        """Make a reader whose deliveries fail too."""
        return _FailingConsumer(self, self.inner.consumer())

    async def stats(self) -> QueueStats:
        """Those of the wrapped queue."""
        return await self.inner.stats()


@dataclass(slots=True)
class _FailingConsumer:
    queue: FailingQueue
    inner: Consumer

    async def __aenter__(self) -> Self:
        await self.inner.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.inner.__aexit__(*exc_info)

    async def receive(self) -> Delivery:
        await self.queue.receiving()
        return _FailingDelivery(self.queue, await self.inner.receive())


@dataclass(slots=True)
class _FailingDelivery:
    queue: FailingQueue
    inner: Delivery

    @property
    def envelope(self) -> Envelope:
        return self.inner.envelope

    @property
    def attempt(self) -> int:
        return self.inner.attempt

    async def ack(self) -> None:
        await self.queue.settling()
        await self.inner.ack()

    async def retry(self, after: float) -> None:
        await self.queue.settling()
        await self.inner.retry(after)

    async def release(self) -> None:
        await self.queue.settling()
        await self.inner.release()

    async def dead_letter(self, reason: str) -> None:
        await self.queue.settling()
        await self.inner.dead_letter(reason)

    async def renew(self) -> None:
        await self.queue.renewing()
        await self.inner.renew()
