"""A reader of a queue that breaks: its siblings finish what they have, then the process fails.

The guide's rule for consumers in containers: a process with a dead reader must not look healthy,
and what its other readers work on need not be lost.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

from turnline.errors import Code, TransportUnavailableError
from turnline.hosting import Lifecycle
from turnline.protocol import Envelope
from turnline.telemetry import get_logger
from turnline.transport import (
    Capabilities,
    Consumer,
    DeadLetters,
    Delivery,
    Queue,
    QueueStats,
    Transport,
)

_log = get_logger("aws")


class Crashes:
    """What broke in this process; the first one counts."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle
        self.first: Exception | None = None

    def note(self, error: Exception, *, queue: str) -> None:
        """Note a crash, and have the process drain."""
        _log.error("delivery.handler_failed", queue=queue, code=Code.INTERNAL.value, exc_info=error)
        self.first = self.first or error
        self._lifecycle.drain()


class GuardedQueue:
    """A queue whose readers, when they break, drain the process instead of ending it at once."""

    def __init__(self, queue: Queue, name: str, crashes: Crashes) -> None:
        """Wire it; `name` is `input` or `output`, for logs."""
        self._queue = queue
        self._name = name
        self._crashes = crashes

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

    def consumer(self) -> "GuardedConsumer":
        """Make a reader."""
        return GuardedConsumer(self._queue.consumer(), self._name, self._crashes)


class GuardedConsumer:
    """One reader; see `turnline.transport.Consumer`."""

    def __init__(self, consumer: Consumer, name: str, crashes: Crashes) -> None:
        self._consumer = consumer
        self._name = name
        self._crashes = crashes

    async def __aenter__(self) -> Self:
        await self._consumer.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop reading."""
        await self._consumer.__aexit__(*exc_info)

    async def receive(self) -> Delivery:
        """Wait for the next delivery; a broken reader waits until it is cancelled."""
        try:
            return await self._consumer.receive()
        except TransportUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - its siblings finish before it is raised
            self._crashes.note(error, queue=self._name)
        await asyncio.Event().wait()
        raise AssertionError("nothing sets this event")


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardedTransport:
    """A transport with guarded queues; opened and closed elsewhere."""

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


@asynccontextmanager
async def guarded(transport: Transport, lifecycle: Lifecycle) -> AsyncIterator[Transport]:
    """Guard both queues for the length of a block.

    Raises:
        Exception: what a reader was broken by, once the block has drained.
    """
    crashes = Crashes(lifecycle)
    yield GuardedTransport(
        input=GuardedQueue(transport.input, "input", crashes),
        output=GuardedQueue(transport.output, "output", crashes),
        whole=transport,
    )
    if crashes.first is not None:
        raise crashes.first
