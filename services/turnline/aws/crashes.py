"""A reader of a queue that breaks: its siblings finish what they have, then the process fails.

The guide's rule for consumers in containers: a process with a dead reader must not look healthy,
and what its other readers work on need not be lost.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from typing_extensions import override

from turnline.aws.forwarding import QueueOver, TransportOver
from turnline.errors import Code, TransportUnavailableError
from turnline.hosting import Lifecycle
from turnline.telemetry import get_logger
from turnline.transport import Consumer, Delivery, Queue, Transport

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


class GuardedQueue(QueueOver):
    """A queue whose readers, when they break, drain the process instead of ending it at once."""

    def __init__(self, queue: Queue, name: str, crashes: Crashes) -> None:
        """Wire it; `name` is `input` or `output`, for logs."""
        super().__init__(queue)
        self._name = name
        self._crashes = crashes

    @override
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


@asynccontextmanager
async def guarded(transport: Transport, lifecycle: Lifecycle) -> AsyncIterator[Transport]:
    """Guard both queues for the length of a block.

    Raises:
        Exception: what a reader was broken by, once the block has drained.
    """
    crashes = Crashes(lifecycle)
    yield TransportOver(
        input=GuardedQueue(transport.input, "input", crashes),
        output=GuardedQueue(transport.output, "output", crashes),
        whole=transport,
    )
    if crashes.first is not None:
        raise crashes.first
