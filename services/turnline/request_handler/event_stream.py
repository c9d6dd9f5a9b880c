"""Server-sent events: one turn's stream, written to one reader.

Between the store and the reader stands a bounded buffer.  A pump fills it and stops while it is
full, so a slow reader slows its own stream and costs no memory; what is there when the reader is
ready goes out in one write.  Knows the store's items and frames, not how they got there.  Format:
https://html.spec.whatwg.org/multipage/server-sent-events.html.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

import orjson
from starlette.types import Receive, Scope, Send

from turnline.errors import Code, RetryHint, TurnlineError
from turnline.frontdoor import StreamFrames
from turnline.frontdoor.frames import JsonDict
from turnline.protocol import Failure, Position
from turnline.protocol.clock import Clock
from turnline.request_handler.answers import ended_response, stream_location
from turnline.request_handler.handler import TurnStream
from turnline.request_handler.waiting import WaitingRoom
from turnline.store import Gap, StoredReply, StreamItem
from turnline.telemetry import get_logger
from turnline.telemetry.metrics import BoundCounter

_log = get_logger("request_handler")

HEARTBEAT = b": still here\n\n"

_BATCH_ITEMS = 64
_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStreamOptions:
    """Bounds of one stream.

    Attributes:
        heartbeat: seconds of silence after which a comment is sent (`api.sse_heartbeat`).
        idle: seconds without an item after which the reader is sent away.
        opening: seconds to wait for a turn that fails at once, so that the failure can be an
            HTTP status; after that the stream begins.
        send_timeout: seconds a reader may leave a write unread.
        buffer_items: items held for a reader who does not keep up.
        retry_seconds: gives the pause a client is asked to make before it reconnects.
    """

    heartbeat: float
    idle: float
    retry_seconds: Callable[[], float]
    opening: float = 1.0
    send_timeout: float = 30.0
    buffer_items: int = 256


def encode_event(position: Position, frame: JsonDict) -> bytes:
    """Write one event: `id: <attempt>-<index>` and one line of JSON."""
    return b"id: %d-%d\ndata: %b\n\n" % (position.attempt, position.index, orjson.dumps(frame))


class EventStream:
    """One reader's stream; use once.

    Attributes:
        status_code: of the answer; final once it was sent.
    """

    def __init__(
        self,
        stream: TurnStream,
        *,
        waiting: WaitingRoom,
        clock: Clock,
        options: EventStreamOptions,
        gaps: BoundCounter,
        fails_as_status: bool,
    ) -> None:
        """Wire it.

        Args:
            gaps: counts readers told of a gap.
            fails_as_status: answer a turn that failed before its first chunk with its HTTP status
                instead of a stream; off for readers that resume, who expect the terminal event.
        """
        self._stream = stream
        self._waiting = waiting
        self._clock = clock
        self._options = options
        self._gaps = gaps
        self._fails_as_status = fails_as_status
        self._frames = StreamFrames(
            session_id=stream.session_id, request_id=stream.request_id, after=stream.after
        )
        self._buffer: deque[StreamItem] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._last_item = self._last_write = clock.monotonic()
        self._over: Failure | None = None
        self._heartbeat_due = self._gone = self._closing = False
        self.status_code = 200

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write until the turn ends, the reader leaves or the process closes.

        A reader who leaves ends only this call; the turn goes on.
        """
        async with asyncio.TaskGroup() as tasks:
            beside = [
                tasks.create_task(work)
                for work in (self._pump(), self._watch(receive), self._tick())
            ]
            with self._waiting.told(self._close):
                await self._write(scope, receive, send)
            for task in beside:
                task.cancel()

    # --- what the writer hears of -------------------------------------------------------------

    async def _pump(self) -> None:
        items = self._stream.items
        try:
            async for item in items:
                self._buffer.append(item)
                self._last_item = self._clock.monotonic()
                self._news.set()
                if isinstance(item, StoredReply):
                    return
                if len(self._buffer) >= self._options.buffer_items:
                    self._room.clear()
                    await self._room.wait()
            self._end(FAILED)
        except TurnlineError:
            self._end(FAILED)
        finally:
            if isinstance(items, AsyncGenerator):
                await items.aclose()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._news.set()

    async def _tick(self) -> None:
        options = self._options
        while True:
            heartbeat = self._last_write + options.heartbeat
            await self._clock.sleep_until(min(heartbeat, self._last_item + options.idle))
            now = self._clock.monotonic()
            if self._buffer:
                self._last_item = now
            if now >= self._last_item + options.idle:
                self._end(TIMED_OUT)
                _log.info("stream.idle", request_id=self._stream.request_id)
                return
            if now >= self._last_write + options.heartbeat:
                self._last_write = now
                self._heartbeat_due = True
                self._news.set()

    def _end(self, failure: Failure) -> None:
        self._over = failure
        self._news.set()

    def _close(self) -> None:
        self._closing = True
        self._news.set()

    # --- the writer ---------------------------------------------------------------------------

    async def _write(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._fails_as_status and (reply := await self._immediate_failure()) is not None:
            answer = ended_response(reply)
            self.status_code = answer.status_code
            await answer(scope, receive, send)
            return
        location = stream_location(self._stream.request_id).encode()
        headers = [*_HEADERS, (b"content-location", location)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        more = True
        while more and not self._gone:
            if not self._anything_to_say():
                self._news.clear()
                await self._news.wait()
            data, more = self._next_write()
            if data or not more:
                await self._send(send, data, more)

    async def _immediate_failure(self) -> StoredReply | None:
        """Give the failure the stream consists of, if it comes while the stream may still wait."""
        try:
            async with asyncio.timeout(self._options.opening):
                while not self._anything_to_say():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return None
        first = self._buffer[0] if self._buffer else None
        failed = isinstance(first, StoredReply) and isinstance(first.payload, Failure)
        return first if isinstance(first, StoredReply) and failed else None

    def _anything_to_say(self) -> bool:
        return bool(
            self._buffer or self._over or self._heartbeat_due or self._closing or self._gone
        )

    def _next_write(self) -> tuple[bytes, bool]:
        """Give what to write now, and whether more is to come."""
        self._heartbeat_due, beat = False, self._heartbeat_due
        if self._buffer:
            return self._take_batch()
        if self._over is not None:
            return self._terminal(self._over), False
        if self._closing:
            return _farewell(self._options.retry_seconds()), False
        return (HEARTBEAT if beat else b""), True

    def _take_batch(self) -> tuple[bytes, bool]:
        parts: list[bytes] = []
        more = True
        for _ in range(min(len(self._buffer), _BATCH_ITEMS)):
            item = self._buffer.popleft()
            if isinstance(item, Gap):
                self._on_gap(item)
            parts.extend(encode_event(at, frame) for at, frame in self._frames.frames(item))
            more = not isinstance(item, StoredReply)
        self._room.set()
        return b"".join(parts), more

    def _on_gap(self, gap: Gap) -> None:
        self._gaps.inc()
        _log.warning(
            "stream.gap", request_id=self._stream.request_id, first=gap.first, last=gap.last
        )

    def _terminal(self, failure: Failure) -> bytes:
        end = StoredReply(
            request_id=self._stream.request_id,
            session_id=self._stream.session_id,
            status_code=failure.status_code,
            payload=failure,
        )
        return b"".join(encode_event(at, frame) for at, frame in self._frames.frames(end))

    async def _send(self, send: Send, data: bytes, more: bool) -> None:
        try:
            async with asyncio.timeout(self._options.send_timeout):
                await send({"type": "http.response.body", "body": data, "more_body": more})
        except TimeoutError:
            self._gone = True
        self._last_write = self._clock.monotonic()


def _farewell(retry_seconds: float) -> bytes:
    return b"retry: %d\n: closing; reconnect with Last-Event-ID\n\n" % (retry_seconds * 1000)


def _over(code: Code, message: str, *, status: int) -> Failure:
    """Why this reader is sent away; the turn itself may be well, so it is told to resume."""
    return Failure(
        code=code.value,
        message=message,
        status_code=status,
        retry=RetryHint.AFTER,
        retry_after=1.0,
    )


TIMED_OUT = _over(Code.REPLY_NOT_READY, "Stream timed out", status=504)
FAILED = _over(Code.STORE_UNAVAILABLE, "Stream delivery failed", status=503)
