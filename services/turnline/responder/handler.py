"""One piece of an answer: keep it in the response store, and push it if its caller is on a socket.

Everything is kept whatever the mode, so a caller who lost its connection can still read the reply
or resume the stream.  Both steps may be repeated: the store drops what it has, and frames carry
positions by which clients drop what they saw.
"""

import asyncio
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
from turnline.store import ResponseStore, StoredReply, StreamItem
from turnline.telemetry import get_logger
from turnline.transport import Ack, Bury, Delivery, Settlement

_log = get_logger("responder")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponderOptions:
    """Bounds of a responder.

    Attributes:
        default_mode: how answers go out whose request said nothing and names a user.
        patience: seconds to keep trying a store that does not answer.
    """

    default_mode: DeliveryMode
    patience: float = 60.0


class AnswerHandler:
    """Handles deliveries of the output queue; one instance per process."""

    def __init__(
        self, *, replies: ResponseStore, push: UserPush | None, options: ResponderOptions
    ) -> None:
        """Wire it; `push` is None where no socket can exist."""
        self._replies = replies
        self._push = push
        self._options = options

    async def __call__(self, delivery: Delivery) -> Settlement:
        """Keep and push one piece of an answer."""
        envelope = delivery.envelope
        if isinstance(envelope.payload, ChatRequest):
            return Bury("a chat request on the output queue", Code.UNDECODABLE)
        failures = 0
        give_up_at = asyncio.get_running_loop().time() + self._options.patience
        while True:
            try:
                await self._handle(envelope)
                return Ack()
            except StoreUnavailableError:
                failures += 1
                pause = Backoff(base=0.05, cap=5.0).pause(failures)
                if asyncio.get_running_loop().time() + pause > give_up_at:
                    raise
                _log.warning("dependency.unavailable", dependency="response store")
                await asyncio.sleep(pause)

    async def _handle(self, envelope: Envelope) -> None:
        reply = _stored_reply(envelope)
        if envelope.chunks:
            await self._replies.append(
                envelope.reply_key, session_id=envelope.session_id, chunks=envelope.chunks
            )
        if reply is not None:
            await self._replies.put(envelope.reply_key, reply)
        mode = self._mode(envelope)
        if self._push is None or not mode.pushes:
            return
        if mode.streams:
            await self._push_stream(self._push, envelope, reply)
        elif reply is not None:
            await self._push.push_or_hold(envelope.user_id, [chat_response_frame(reply)])

    def _mode(self, envelope: Envelope) -> DeliveryMode:
        if envelope.delivery_mode is not DeliveryMode.UNSPECIFIED:
            return envelope.delivery_mode
        return self._options.default_mode if envelope.user_id else DeliveryMode.KEEP

    async def _push_stream(
        self, push: UserPush, envelope: Envelope, reply: StoredReply | None
    ) -> None:
        items: list[StreamItem] = list(envelope.chunks)
        if reply is not None:
            items.append(reply)
        frames = _stream_frames(envelope, items)
        if reply is None:
            await push.push(envelope.user_id, frames)
        elif not await push.push(envelope.user_id, frames):
            await push.push_or_hold(envelope.user_id, [_held_end(reply)])


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


def _stream_frames(envelope: Envelope, items: list[StreamItem]) -> list[Frame]:
    frames = StreamFrames(
        session_id=envelope.session_id,
        request_id=envelope.request_id,
        after=_position_before(envelope),
    )
    return [{**frame, "type": "STREAM_CHUNK"} for item in items for _, frame in frames.frames(item)]


def _position_before(envelope: Envelope) -> Position:
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


def _held_end(reply: StoredReply) -> Frame:
    """The end of a stream nobody saw: the whole text in its `done` frame."""
    frames = StreamFrames(session_id=reply.session_id, request_id=reply.request_id, after=BEGINNING)
    frame: Frame = {}
    for _, frame in frames.frames(reply):
        frame["type"] = "STREAM_CHUNK"
    return frame
