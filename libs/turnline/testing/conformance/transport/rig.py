"""One queue of a fresh transport with a reader on it, and the few words cases are written in."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

from turnline.protocol import Envelope
from turnline.testing.conformance.transport.envelopes import answer, request
from turnline.testing.conformance.transport.harness import (
    DEFAULT_BOUNDS,
    Bounds,
    Time,
    TransportHarness,
)
from turnline.transport import Consumer, Delivery, Queue, Transport

Side = Literal["input", "output"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """What a case works with.

    Attributes:
        transport: fresh and entered.
        queue: the side of it that the case is about.
        reader: an entered consumer of `queue`.
        side: which side that is.
        bounds: how the transport was made.
    """

    harness: TransportHarness
    transport: Transport
    queue: Queue
    reader: Consumer
    side: Side
    bounds: Bounds

    @property
    def time(self) -> Time:
        """The transport's time."""
        return self.harness.time

    @property
    def lease_seconds(self) -> float:
        """The lease of a delivery."""
        return self.bounds.lease_seconds

    def envelope(self, session_id: str, request_id: str, *, scope: str = "") -> Envelope:
        """Make what travels on this side: a request, or a final answer."""
        make = request if self.side == "input" else answer
        return make(session_id, request_id, scope=scope)

    async def send(self, session_id: str, *request_ids: str) -> None:
        """Send one envelope per id, one after the other; all must be taken as new."""
        for request_id in request_ids:
            assert await self.queue.send(self.envelope(session_id, request_id)) is True

    async def receive(self, consumer: Consumer | None = None) -> Delivery:
        """Receive what should be there by now."""
        async with asyncio.timeout(self.harness.patience_seconds):
            return await (consumer or self.reader).receive()

    async def soon(self, pending: "asyncio.Task[Delivery]") -> Delivery:
        """Give what a waiting task should have by now; see `waiting`."""
        async with asyncio.timeout(self.harness.patience_seconds):
            return await pending

    async def receive_each(self, count: int) -> dict[str, Delivery]:
        """Receive `count` deliveries, leaving them unsettled; by request id."""
        deliveries = [await self.receive() for _ in range(count)]
        return {delivery.envelope.request_id: delivery for delivery in deliveries}

    async def take(self, count: int) -> list[str]:
        """Receive and ack `count` deliveries, one after the other; give their request ids."""
        taken = []
        for _ in range(count):
            delivery = await self.receive()
            taken.append(delivery.envelope.request_id)
            await delivery.ack()
        return taken

    async def expect_nothing(self, consumer: Consumer | None = None) -> None:
        """Fail if a delivery comes now."""
        async with waiting(consumer or self.reader) as pending:
            await self.time.calm()
            assert not pending.done(), f"unexpected: {pending.result().envelope.request_id}"

    async def expire_leases(self) -> None:
        """Let every lease that is not renewed run out."""
        await self.time.pass_seconds(self.lease_seconds * 1.5)

    async def inject(self, raw: bytes, session_id: str = "foreign") -> None:
        """Put foreign bytes on the queue, in the order of a session."""
        await self.harness.inject(self.queue, raw, session_id)


class RigMaker(Protocol):
    """Makes a rig for a case, to be used in an `async with`."""

    def __call__(self, bounds: Bounds = DEFAULT_BOUNDS) -> AbstractAsyncContextManager[Rig]: ...


def rig_maker(harness: TransportHarness, side: Side) -> RigMaker:
    """Give a maker of rigs over one side of fresh transports."""

    @asynccontextmanager
    async def make(bounds: Bounds = DEFAULT_BOUNDS) -> AsyncIterator[Rig]:
        async with harness.open(bounds) as transport:
            queue = transport.input if side == "input" else transport.output
            async with queue.consumer() as reader:
                yield Rig(
                    harness=harness,
                    transport=transport,
                    queue=queue,
                    reader=reader,
                    side=side,
                    bounds=bounds,
                )

    return make


@asynccontextmanager
async def waiting(consumer: Consumer) -> AsyncIterator["asyncio.Task[Delivery]"]:
    """Have a task wait in `receive` meanwhile; cancelled at the end if nothing came."""
    async with asyncio.TaskGroup() as tasks:
        pending = tasks.create_task(consumer.receive())
        try:
            yield pending
        finally:
            pending.cancel()
