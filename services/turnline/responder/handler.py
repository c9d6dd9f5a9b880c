"""One piece of an answer: keep it in the response store, and push it if its caller is on a socket.

Everything is kept whatever the mode, so a caller who lost its connection can still read the reply
or resume the stream.  Keeping comes first: whoever follows a turn in the store misses nothing that
was pushed.  Both steps may be repeated: the store drops what it has, and so do sockets.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from turnline.errors import Code, StoreUnavailableError
from turnline.frontdoor import StreamFrames, chat_response_frame
from turnline.hosting import Backoff
from turnline.protocol import (
    BEGINNING,
    ChatReply,
    ChatRequest,
    DeliveryMode,
    Envelope,
    Failure,
    Position,
)
from turnline.push import Frame, UserPush
from turnline.responder.signals import ResponderSignals
from turnline.store import ResponseStore, StoredReply, StreamItem
from turnline.transport import Ack, Bury, Delivery, Release, Retry, Settlement


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponderOptions:
    """Bounds of a responder.

    Attributes:
        default_mode: how answers go out whose request said nothing and names a user.
        inbox: hold an end that reaches no socket for its user's next one.  Without it the end is
            tried again and then given up, as in the guide.
        max_attempts: deliveries of an end before it is given up.
        patience: seconds to keep trying a store that does not answer.
    """

    default_mode: DeliveryMode
    inbox: bool = True
    max_attempts: int = 3
    patience: float = 60.0
    backoff: Backoff = Backoff(base=0.05, cap=5.0)


class AnswerHandler:
    """Handles deliveries of the output queue; one instance per process."""

    def __init__(
        self,
        *,
        replies: ResponseStore,
        push: UserPush | None,
        signals: ResponderSignals,
        options: ResponderOptions,
    ) -> None:
        """Wire it; `push` is None where no socket can exist."""
        self._replies = replies
        self._push = push
        self._signals = signals
        self._options = options

    async def __call__(self, delivery: Delivery) -> Settlement:
        """Keep and push one piece of an answer.

        Hands it back, unspent, when a store did not answer for longer than `patience`: an outage,
        however long, must not bury answers.
        """
        envelope = delivery.envelope
        if isinstance(envelope.payload, ChatRequest):
            return Bury("a chat request on the output queue", Code.UNDECODABLE)
        try:
            with self._signals.answer(envelope):
                reached = await self._patiently(envelope)
        except StoreUnavailableError:
            return Release()
        if reached:
            return Ack()
        if delivery.attempt < self._options.max_attempts:
            return Retry()
        return Bury("no socket of its user took the answer", Code.NOT_FOUND)

    async def _patiently(self, envelope: Envelope) -> bool:
        loop = asyncio.get_running_loop()
        began = loop.time()
        failures = 0
        while True:
            try:
                reached = await self._handle(envelope)
            except StoreUnavailableError as error:
                failures += 1
                pause = self._options.backoff.pause(failures)
                if loop.time() + pause > began + self._options.patience:
                    raise
                self._signals.store_unavailable(error.message)
                await asyncio.sleep(pause)
            else:
                if failures:
                    self._signals.store_recovered(loop.time() - began)
                return reached

    async def _handle(self, envelope: Envelope) -> bool:
        """Keep and push; False if an end has reached nobody and is held for nobody."""
        reply = _stored_reply(envelope)
        if envelope.chunks:
            await self._replies.append(
                envelope.reply_key, session_id=envelope.session_id, chunks=envelope.chunks
            )
        if reply is not None:
            await self._replies.put(envelope.reply_key, reply)
            self._signals.stored(envelope)
        mode = self._mode(envelope)
        if self._push is None or not mode.pushes or not envelope.user_id:
            return True
        if mode.streams:
            return await self._push_stream(self._push, envelope, reply)
        if reply is None:
            return True
        return await self._push_end(self._push, envelope, chat_response_frame(reply))

    def _mode(self, envelope: Envelope) -> DeliveryMode:
        if envelope.delivery_mode is not DeliveryMode.UNSPECIFIED:
            return envelope.delivery_mode
        return self._options.default_mode if envelope.user_id else DeliveryMode.KEEP

    async def _push_stream(
        self, push: UserPush, envelope: Envelope, reply: StoredReply | None
    ) -> bool:
        frames = _stream_frames(envelope, reply)
        with self._signals.push(envelope, frames=len(frames)) as span:
            sockets = await push.push(envelope.user_id, frames)
            span.set(sockets=sockets)
        if reply is None or sockets:
            return True
        return await self._push_end(push, envelope, _whole_end(reply))

    async def _push_end(self, push: UserPush, envelope: Envelope, frame: Frame) -> bool:
        """Push what ends a turn, or hold it for the user's next socket; False if neither."""
        send = push.push_or_hold if self._options.inbox else push.push
        with self._signals.push(envelope, frames=1) as span:
            sockets = await send(envelope.user_id, [frame])
            span.set(sockets=sockets)
        return sockets > 0 or self._options.inbox


def _stored_reply(envelope: Envelope) -> StoredReply | None:
    if not isinstance(envelope.payload, ChatReply | Failure):
        return None
    return StoredReply(
        request_id=envelope.request_id,
        session_id=envelope.session_id,
        status_code=envelope.status_code or 200,
        payload=envelope.payload,
        attempt=envelope.attempt,
        chunk_count=envelope.chunk_count,
    )


def _stream_frames(envelope: Envelope, reply: StoredReply | None) -> list[Frame]:
    items: list[StreamItem] = [*envelope.chunks, *([reply] if reply is not None else [])]
    return _frames(envelope.request_id, envelope.session_id, items, after=_before(envelope))


def _whole_end(reply: StoredReply) -> Frame:
    """The end of a stream nobody saw: the whole text in its `done` frame."""
    return _frames(reply.request_id, reply.session_id, [reply], after=BEGINNING)[-1]


def _frames(
    request_id: str, session_id: str, items: Sequence[StreamItem], *, after: Position
) -> list[Frame]:
    frames = StreamFrames(session_id=session_id, request_id=request_id, after=after)
    return [{**frame, "type": "STREAM_CHUNK"} for item in items for _, frame in frames.frames(item)]


def _before(envelope: Envelope) -> Position:
    """Where the sockets' readers stand before this envelope, if they missed nothing.

    At the start of a later attempt they stand somewhere in the one before, so that the frames
    begin with a restart.
    """
    first = envelope.chunks[0].index if envelope.chunks else envelope.chunk_count
    if first == 0 and envelope.attempt > 1:
        return Position(envelope.attempt - 1, 0)
    if first == 0:
        return BEGINNING
    return Position(envelope.attempt, first - 1)
