"""One queue in memory and its readers; see `turnline.transport.Queue`."""

import asyncio
from typing import Self

from turnline.errors import PayloadTooLargeError, TransportUnavailableError
from turnline.protocol import Envelope
from turnline.protocol.clock import Clock
from turnline.protocol.codec import encode
from turnline.telemetry import get_logger
from turnline.transport.in_memory.backlog import Backlog
from turnline.transport.in_memory.dead_letters import InMemoryDeadLetters
from turnline.transport.in_memory.dedup import DedupWindow
from turnline.transport.in_memory.delivery import InMemoryDelivery
from turnline.transport.in_memory.dispatcher import Dispatcher, Leased
from turnline.transport.in_memory.options import InMemoryOptions
from turnline.transport.in_memory.shelf import Shelf
from turnline.transport.port import Capabilities, QueueStats

_log = get_logger("transport")


class InMemoryQueue:
    """A queue of encoded envelopes, as a broker would hold them.

    Args:
        name: `input` or `output`, for logs.
        max_per_session: one session's share of `options.max_messages`; 0 means all of it.
    """

    def __init__(
        self, *, name: str, options: InMemoryOptions, max_per_session: int, clock: Clock
    ) -> None:
        self._name = name
        self._max_bytes = options.max_bytes
        self._clock = clock
        self._dedup = DedupWindow(seconds=options.dedup_window, max_ids=options.max_dedup_ids)
        self._warned_of_dedup = False
        backlog = Backlog(
            lease_seconds=options.ack_wait,
            max_messages=options.max_messages,
            max_per_group=max_per_session,
            max_bytes=options.max_queue_bytes,
        )
        shelf = Shelf(
            queue_name=name,
            max_letters=options.max_dead_letters,
            max_bytes=options.max_dead_letter_bytes,
        )
        self._dispatcher = Dispatcher(name=name, backlog=backlog, shelf=shelf, clock=clock)
        self._dead_letters = InMemoryDeadLetters(self._dispatcher)

    @property
    def capabilities(self) -> Capabilities:
        """All of them but durability."""
        return Capabilities(durable=False, max_bytes=self._max_bytes)

    @property
    def dead_letters(self) -> InMemoryDeadLetters:
        """The dead letters of this queue."""
        return self._dead_letters

    async def send(self, envelope: Envelope) -> bool:
        """Add an envelope; cancelling the call before it returned may leave it out."""
        raw = encode(envelope)
        if len(raw) > self._max_bytes:
            raise PayloadTooLargeError(
                f"The message is larger than {self._max_bytes} bytes", limit_bytes=self._max_bytes
            )
        await asyncio.sleep(0)  # as a broker would: others run, and a cancelled sender stops here
        self._dispatcher.check_open()
        dedup_id = envelope.dedup_id
        now = self._clock.monotonic()
        if self._dedup.seen(dedup_id, now):
            return False
        self._dispatcher.put(raw, envelope.session_key.token)
        if not self._dedup.remember(dedup_id, now):
            self._warn_of_dedup()
        return True

    async def inject(self, raw: bytes, group: str = "") -> None:
        """Put bytes on the queue as they are, past deduplication; for tests and tools.

        Raises:
            QueueFullError: no room.
        """
        self._dispatcher.check_open()
        self._dispatcher.put(raw, group)

    def consumer(self) -> "InMemoryConsumer":
        """Make a reader; readers are served in the order they began to wait."""
        return InMemoryConsumer(self._dispatcher)

    async def stats(self) -> QueueStats:
        """Count; costs a step per session that has something on the queue."""
        self._dispatcher.pass_time()
        backlog = self._dispatcher.backlog
        oldest = backlog.oldest_arrival()
        return QueueStats(
            waiting=backlog.waiting,
            in_flight=backlog.in_flight,
            dead=len(self._dispatcher.shelf),
            oldest_age_seconds=0.0 if oldest is None else self._clock.monotonic() - oldest,
        )

    def open(self) -> None:
        """Begin to serve; for the transport."""
        self._dispatcher.open()

    def close(self) -> None:
        """Send waiting readers away and serve nobody; for the transport."""
        self._dispatcher.close()

    def check_open(self) -> None:
        """Raise TransportUnavailableError unless open; for the transport."""
        self._dispatcher.check_open()

    def _warn_of_dedup(self) -> None:
        if not self._warned_of_dedup:
            self._warned_of_dedup = True
            _log.warning("dedup.window_shortened", queue=self._name)


class InMemoryConsumer:
    """One reader; see `turnline.transport.Consumer`."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._reading = False
        self._waiting: set[asyncio.Future[Leased]] = set()

    async def __aenter__(self) -> Self:
        self._dispatcher.check_open()
        self._reading = True
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop reading; a `receive` that still waits gets TransportUnavailableError."""
        self._reading = False
        for reader in list(self._waiting):
            self._dispatcher.dismiss(reader, "The consumer was closed")

    async def receive(self) -> InMemoryDelivery:
        """Wait for the next delivery."""
        await asyncio.sleep(0)  # a reader that is never out of work lets others run
        self._dispatcher.check_open()
        if not self._reading:
            raise TransportUnavailableError("The consumer is closed")
        lease, envelope = self._dispatcher.take() or await self._wait()
        return InMemoryDelivery(self._dispatcher, lease, envelope)

    async def _wait(self) -> Leased:
        reader = self._dispatcher.enqueue_reader()
        self._waiting.add(reader)
        try:
            return await reader
        except asyncio.CancelledError:
            self._dispatcher.leave(reader)
            raise
        finally:
            self._waiting.discard(reader)
