"""Puts envelopes on one queue, each once within five minutes, and a share of each session."""

import asyncio
from collections import OrderedDict

from turnline.errors import (
    PayloadTooLargeError,
    QueueFullError,
    TransportUnavailableError,
)
from turnline.protocol import Envelope
from turnline.protocol.clock import Clock
from turnline.protocol.codec import encode
from turnline.transport.background import Background
from turnline.transport.sqs.api import SqsApi
from turnline.transport.sqs.books import Books
from turnline.transport.sqs.room import Room
from turnline.transport.sqs.wire import Outgoing, outgoing

# AWS's window, fixed, less a margin: what is a copy by this memory is one for SQS too.
WINDOW_SECONDS = 290.0
MAX_REMEMBERED = 100_000
_FULL_RETRY_SECONDS = 2.0


class Outbox:
    """The sending side of one queue.

    SQS drops a copy without saying so, so this process remembers what it sent, and says so itself.
    Of what another one sent the books know; without any, such a copy is dropped in silence (ADR
    0012).

    Attributes:
        max_bytes: of the largest envelope, encoded as Protobuf.
        message_bytes: of the largest message.
    """

    def __init__(
        self,
        *,
        api: SqsApi,
        url: str,
        room: Room,
        books: Books,
        background: Background,
        clock: Clock,
    ) -> None:
        self.max_bytes = 0
        self.message_bytes = 0
        self._api = api
        self._url = url
        self._room = room
        self._books = books
        self._background = background
        self._clock = clock
        self._sending: dict[str, asyncio.Future[bool]] = {}
        self._sent: OrderedDict[str, float] = OrderedDict()

    async def send(self, envelope: Envelope, *, dedup_id: str = "") -> bool:
        """Add an envelope; see `turnline.transport.Queue.send`.

        A cancelled call goes on without its caller.

        Args:
            dedup_id: another one than its own.

        Returns:
            False if one of its id was sent lately, as far as this process knows.
        """
        message = outgoing(envelope, largest=self.message_bytes, dedup_id=dedup_id)
        # JSON is seldom smaller, so that most need not be encoded twice.
        if message.size > self.max_bytes and len(encode(envelope)) > self.max_bytes:
            raise PayloadTooLargeError(
                f"The message is larger than {self.max_bytes} bytes", limit_bytes=self.max_bytes
            )
        name = dedup_id or envelope.dedup_id
        if self._sent.get(name, 0.0) > self._clock.monotonic():
            return False
        earlier = self._sending.get(name)
        if earlier is not None:
            await asyncio.shield(earlier)
            return False
        # Under another id it is no new turn of its session, and no copy.
        placing = self._place(message, name) if dedup_id else self._take_in(message, name)
        work = self._background.start(placing)
        self._sending[name] = work
        work.add_done_callback(lambda _: self._sending.pop(name, None))
        return await asyncio.shield(work)

    async def _take_in(self, message: Outgoing, name: str) -> bool:
        """Place a message that the books admit."""
        verdict = await self._books.admit(name, message.group)
        if verdict == "copy":
            return False
        if verdict == "pending":
            raise TransportUnavailableError(
                "The same message is being sent by another process", retry_after=1.0
            )
        if verdict == "group_full":
            raise QueueFullError(
                "This session has too many messages waiting",
                scope="session",
                retry_after=_FULL_RETRY_SECONDS,
            )
        taken = False
        try:
            taken = await self._place(message, name)
        finally:
            await self._books.sent(name, message.group, taken=taken)
        return taken

    async def _place(self, message: Outgoing, name: str) -> bool:
        await self._room.take()
        taken = False
        # Before the call: the window counts from when SQS takes it.
        until = self._clock.monotonic() + WINDOW_SECONDS
        try:
            await self._api.send(self._url, message)
            taken = True
        finally:
            self._room.sent(taken=taken)
        self._remember(name, until)
        return True

    def _remember(self, name: str, until: float) -> None:
        self._sent[name] = until
        self._sent.move_to_end(name)
        now = self._clock.monotonic()
        while self._sent and (
            len(self._sent) > MAX_REMEMBERED or next(iter(self._sent.values())) <= now
        ):
            self._sent.popitem(last=False)
