"""Puts envelopes on the topic of one queue, each once within the window."""

import asyncio

from turnline.errors import (
    PayloadTooLargeError,
    QueueFullError,
    StoreUnavailableError,
    TransportUnavailableError,
    TurnlineError,
)
from turnline.protocol import Envelope
from turnline.protocol.clock import Clock
from turnline.protocol.codec import encode, headers
from turnline.telemetry import get_logger
from turnline.transport.background import Background
from turnline.transport.kafka.commit_reader import CommitReader
from turnline.transport.kafka.errors import unavailable
from turnline.transport.kafka.keys import group_of, record_key
from turnline.transport.kafka.options import KafkaOptions, QueueOptions
from turnline.transport.kafka.producer import ConfirmedProducer, Outgoing, Place
from turnline.transport.port import Admission, Bookkeeping

_log = get_logger("transport")

_DEDUP_HEADER = "ak-dedup-id"
_PATIENCE_MARGIN_SECONDS = 10.0
_FULL_RETRY_SECONDS = 2.0
_LOOK_AGAIN_SECONDS = 0.5


class Outbox:
    """The sending side of one queue."""

    def __init__(
        self,
        *,
        queue: QueueOptions,
        options: KafkaOptions,
        producer: ConfirmedProducer,
        books: Bookkeeping,
        commits: CommitReader,
        background: Background,
        clock: Clock,
    ) -> None:
        self._queue = queue
        self._options = options
        self._producer = producer
        self._books = books
        self._commits = commits
        self._background = background
        self._clock = clock
        self._sending: dict[str, asyncio.Future[bool]] = {}
        self._looked_at = 0.0
        self.max_bytes = options.max_bytes or 0
        self.partitions = 0

    async def send(self, envelope: Envelope) -> bool:
        """Add an envelope; see `turnline.transport.Queue.send`."""
        return await self.place(envelope, encode(envelope), envelope.dedup_id)

    async def place(self, envelope: Envelope, raw: bytes, message_id: str) -> bool:
        """Add an envelope under an id; return False if one of that id came lately.

        A cancelled call goes on without its caller, so that the books stay right.
        """
        if len(raw) > self.max_bytes:
            raise PayloadTooLargeError(
                f"The message is larger than {self.max_bytes} bytes", limit_bytes=self.max_bytes
            )
        earlier = self._sending.get(message_id)
        if earlier is not None:
            await asyncio.shield(earlier)
            return False
        work = self._background.start(self._place(envelope, raw, message_id))
        self._sending[message_id] = work
        work.add_done_callback(lambda _: self._sending.pop(message_id, None))
        return await asyncio.shield(work)

    async def _place(self, envelope: Envelope, raw: bytes, message_id: str) -> bool:
        group = group_of(envelope.session_key)
        try:
            verdict = await self._admitted(message_id, group)
        except StoreUnavailableError as error:
            raise unavailable(None, "can't be used: its bookkeeping is away") from error
        if verdict == "copy":
            return False
        if verdict == "pending":
            raise TransportUnavailableError(
                "The same message is being sent by another process", retry_after=1.0
            )
        if verdict != "taken":
            raise self._full(verdict)
        try:
            place = await self._producer.send(self._outgoing(envelope, raw, message_id))
        except TurnlineError:
            await self._note(message_id, group, None)
            raise
        await self._note(message_id, group, place)
        return True

    def _full(self, verdict: Admission) -> QueueFullError:
        if verdict == "group_full":
            text, scope = "This session has too many messages waiting", "session"
        else:
            text, scope = f"The {self._queue.name} queue is full", "queue"
        return QueueFullError(text, scope=scope, retry_after=_FULL_RETRY_SECONDS)

    def _outgoing(self, envelope: Envelope, raw: bytes, message_id: str) -> Outgoing:
        mirrored = {name: text.encode() for name, text in headers(envelope).items()}
        mirrored.pop("dedup_id", None)
        return Outgoing(
            topic=self._queue.topic,
            key=record_key(envelope.session_key),
            value=raw,
            at=self._clock.time(),
            headers={**mirrored, _DEDUP_HEADER: message_id.encode()},
        )

    async def _admitted(self, message_id: str, group: str) -> Admission:
        verdict = await self._admit(message_id, group)
        if verdict in ("queue_full", "group_full") and await self._made_room():
            return await self._admit(message_id, group)
        return verdict

    async def _admit(self, message_id: str, group: str) -> Admission:
        return await self._books.admit(
            self._queue.topic,
            message_id,
            group,
            patience=self._options.delivery_timeout + _PATIENCE_MARGIN_SECONDS,
            max_messages=self._options.max_messages,
            max_per_group=self._queue.max_per_session,
        )

    async def _made_room(self) -> bool:
        """Where the books are this process's own, learn from the brokers what others finished."""
        now = self._clock.monotonic()
        if self._books.shared or now - self._looked_at < _LOOK_AGAIN_SECONDS:
            return False
        self._looked_at = now
        committed = await self._commits.read(
            self._queue.group, self._queue.topic, range(self.partitions)
        )
        below = {number: offset for number, (offset, _) in committed.items()}
        await self._books.forget(self._queue.topic, below)
        return True

    async def _note(self, message_id: str, group: str, place: Place | None) -> None:
        """Tell the books; without them the id is free again soon, and a copy is caught later."""
        try:
            await self._books.sent(
                self._queue.topic,
                message_id,
                group,
                window=self._options.duplicate_window,
                place=place,
            )
        except StoreUnavailableError as error:
            _log.warning(
                "dependency.unavailable",
                dependency="bookkeeping",
                reason=error.message,
            )
