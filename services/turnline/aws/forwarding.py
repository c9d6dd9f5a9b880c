"""A transport and a queue over others, for those who change a part of what these do."""

from dataclasses import dataclass
from typing import Self

from turnline.protocol import Envelope
from turnline.transport import Capabilities, Consumer, DeadLetters, Queue, QueueStats, Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportOver:
    """A transport with other queues; opened and closed elsewhere.

    Attributes:
        whole: the one that is open, with the queues of its own.
    """

    input: Queue
    output: Queue
    whole: Transport

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Nothing to close."""

    async def check(self) -> None:
        """Return if the broker answers now."""
        await self.whole.check()


class QueueOver:
    """A queue that passes everything on; see `turnline.transport.Queue`."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    @property
    def capabilities(self) -> Capabilities:
        """What the queue can do."""
        return self._queue.capabilities

    @property
    def dead_letters(self) -> DeadLetters:
        """The dead letters of the queue."""
        return self._queue.dead_letters

    async def send(self, envelope: Envelope) -> bool:
        """Add an envelope."""
        return await self._queue.send(envelope)

    async def stats(self) -> QueueStats:
        """Count what is on the queue."""
        return await self._queue.stats()

    def consumer(self) -> Consumer:
        """Make a reader."""
        return self._queue.consumer()
