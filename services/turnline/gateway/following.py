"""Following a turn in the response store, for a client that missed its pushed frames.

While a turn is followed, its pushed frames are dropped on this socket: all of it comes from the
store, in order, from the client's position to the end.  If following stops early the client is
told, and further pushes say what is missing between.
"""

import asyncio
from dataclasses import dataclass

from turnline.errors import Code, InvalidRequestError, StoreUnavailableError, TurnlineError
from turnline.frontdoor import StreamFrames, chat_response_frame
from turnline.gateway.signals import GatewaySignals
from turnline.gateway.sockets import Socket
from turnline.protocol import BEGINNING, Position, ReplyKey
from turnline.push import STREAM_CHUNK, Frame
from turnline.store import Gap, ResponseStore, StoredReply, StreamItem
from turnline.telemetry import get_logger

_log = get_logger("gateway")


class StreamIdleError(TurnlineError):
    """A followed turn brought nothing for too long; it may be well, so the client may resume."""

    code = Code.REPLY_NOT_READY


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """Bounds of following.

    Attributes:
        idle: seconds a stream may bring nothing, or its client read nothing, before it is left.
        wait: seconds to wait for the end of a turn that is not streamed.
    """

    idle: float
    wait: float


class Follower:
    """Follows turns; one per gateway."""

    def __init__(
        self, *, replies: ResponseStore, signals: GatewaySignals, options: FollowOptions
    ) -> None:
        self._replies = replies
        self._signals = signals
        self._options = options

    async def stream(
        self, socket: Socket, key: ReplyKey, *, session_id: str, after: Position
    ) -> None:
        """Send everything of a turn behind `after`, up to its end.

        Raises:
            StoreUnavailableError: the store failed or has lost the turn; the client may resume.
            StreamIdleError: nothing came for too long.
        """
        frames = StreamFrames(session_id=session_id, request_id=key.request_id, after=after)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._options.idle) as idle:
                async for item in self._replies.stream(key, after):
                    self._send(socket, frames, item, key.request_id)
                    await socket.drained()
                    if socket.closed or isinstance(item, StoredReply):
                        return
                    idle.reschedule(loop.time() + self._options.idle)
        except TimeoutError as error:
            _log.info("stream.idle", request_id=key.request_id)
            raise StreamIdleError("Stream timed out", retry_after=1.0) from error
        raise StoreUnavailableError("Stream delivery failed", retry_after=1.0)

    async def end(self, socket: Socket, key: ReplyKey) -> None:
        """Send the end of a turn as a CHAT_RESPONSE once it is there."""
        reply = await self._replies.wait(key, self._options.wait)
        if reply is not None:
            socket.answer(chat_response_frame(reply))

    async def catch_up(self, socket: Socket) -> None:
        """Send the ends that were pushed while this pod could not be reached.

        A push that reached the user at another pod was not held for this one.

        Raises:
            StoreUnavailableError: some may be missing still; do it again.
        """
        for request_id, stream in socket.without_end():
            found = await self._replies.get(ReplyKey(socket.user_id, request_id))
            if isinstance(found, StoredReply):
                # As if it came now: dropped if it came in the meantime.
                socket.push([_end_frame(found, stream=stream)])

    def replay(self, socket: Socket, reply: StoredReply, *, stream: bool) -> None:
        """Send the end of a turn that is over, the whole text in it."""
        socket.answer(_end_frame(reply, stream=stream))

    def _send(
        self, socket: Socket, frames: StreamFrames, item: StreamItem, request_id: str
    ) -> None:
        if isinstance(item, Gap):
            self._signals.gap(request_id, item)
        for _, frame in frames.frames(item):
            socket.answer({**frame, "type": STREAM_CHUNK})


def _end_frame(reply: StoredReply, *, stream: bool) -> Frame:
    """Give the end of a turn for a client that needs nothing before it."""
    if not stream:
        return chat_response_frame(reply)
    frames = StreamFrames(session_id=reply.session_id, request_id=reply.request_id, after=BEGINNING)
    [(_, frame)] = frames.frames(reply)
    return {**frame, "type": STREAM_CHUNK}


def read_position(value: object) -> Position:
    """Read the position a client resumes from; none, or an empty one, means the beginning.

    Raises:
        InvalidRequestError: it is no position.
    """
    if value is None or value == "":
        return BEGINNING
    if isinstance(value, str):
        try:
            return Position.parse(value)
        except ValueError:
            pass
    raise InvalidRequestError("after must be a position such as '1-5'", field="after")
