"""One client socket's outgoing side: a bounded buffer that never blocks whoever fills it.

A sender task exists only while there is something to send, so an idle socket costs no task.  When
the client reads too slowly, adjacent text chunks of a stream are merged without loss; when that is
not enough the socket is closed and its client resumes from its position.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from turnline.gateway.merge import merge_adjacent
from turnline.gateway.places import Places
from turnline.protocol import Position
from turnline.push import Frame, turn_of

Send = Callable[[Frame], Awaitable[None]]
Close = Callable[[int, str], Coroutine[Any, Any, None]]
OnSlow = Callable[[int], None]

SLOW_CONSUMER = 4408
SLOW_CONSUMER_REASON = "too slow; reconnect and resume"

# One for all sockets: Python makes a new one, of 200 bytes, for each `frozenset()`.
_NOTHING: frozenset[str] = frozenset()


class Socket:
    """Frames on their way to one client.

    Attributes:
        connection_id: names the socket in the connection store.
        user_id: whose it is.
    """

    __slots__ = (
        "_buffer",
        "_close",
        "_closed",
        "_early",
        "_idle",
        "_max_frames",
        "_on_slow",
        "_places",
        "_resuming",
        "_send",
        "_sender",
        "_tasks",
        "connection_id",
        "user_id",
    )

    def __init__(
        self,
        *,
        connection_id: str,
        user_id: str,
        send: Send,
        close: Close,
        tasks: asyncio.TaskGroup,
        max_frames: int,
        on_slow: OnSlow = lambda _frames: None,
    ) -> None:
        """Wire it.

        Args:
            send / close: write to the client; may wait for it.  `send` raises OSError when the
                client has left; `close` has a deadline of its own.
            tasks: where the sender runs; of this socket alone, so that its failure stays here.
            max_frames: frames buffered before merging, and then closing, sets in.
            on_slow: told how many frames were dropped when the client read too slowly.
        """
        self.connection_id = connection_id
        self.user_id = user_id
        self._send = send
        self._close = close
        self._tasks = tasks
        self._max_frames = max_frames
        self._on_slow = on_slow
        # A list, since most sockets are idle and an empty deque is 760 bytes.
        self._buffer: list[Frame] = []
        self._sender: asyncio.Task[None] | None = None
        self._closed = False
        self._idle: asyncio.Event | None = None
        self._early: dict[str, list[Frame]] = {}
        self._resuming = _NOTHING
        self._places = Places()

    @property
    def closed(self) -> bool:
        """Whether nothing more can be sent."""
        return self._closed

    @property
    def busy(self) -> bool:
        """Whether frames that were taken are not written yet."""
        return self._sender is not None or any(self._early.values())

    def push(self, frames: Sequence[Frame]) -> bool:
        """Take frames of running turns, in order; False if the socket is closed.

        Frames of a turn that is being admitted wait for its CHAT_QUEUED; those of a turn that is
        being resumed here are dropped, since the resume brings them.
        """
        if self._closed:
            return False
        for frame in frames:
            if not self._take(frame):
                return False
        return self._wake()

    def answer(self, frame: Frame) -> None:
        """Take a frame that answers this socket's own client."""
        if not self._closed:
            self._places.note(frame)
            self._buffer.append(frame)
            self._wake()

    @contextmanager
    def admitting(self, request_id: str) -> Iterator[None]:
        """Hold a turn's pushed frames back for the length of the block: its answer comes first."""
        early = self._early.setdefault(request_id, [])
        try:
            yield
        finally:
            del self._early[request_id]
            self.push(early)

    def start_resume(self, request_id: str, after: Position) -> bool:
        """Leave a turn's frames to a resume from `after`; False if one is running already.

        Unless the resume goes on where pushes have come to, what is still buffered of the turn is
        dropped: the client reads the resume's frames in order and nothing between them.
        """
        if request_id in self._resuming:
            return False
        self._resuming |= {request_id}
        if after != self._places.position(request_id):
            self._buffer = [frame for frame in self._buffer if turn_of(frame) != request_id]
            self._places.rewind(request_id, after)
        return True

    def end_resume(self, request_id: str) -> None:
        """Let pushed frames of this turn through again, behind what the resume has sent."""
        self._resuming -= {request_id}

    def position(self, request_id: str) -> Position | None:
        """Where the client stands in a turn; None if it was sent nothing of it here."""
        return self._places.position(request_id)

    def has_ended(self, request_id: str) -> bool:
        """Whether the client was sent the end of a turn here, not long ago."""
        return self._places.has_ended(request_id)

    def expect(self, request_id: str, *, stream: bool) -> None:
        """The client asked for a turn here, and waits for its end."""
        self._places.expect(request_id, stream=stream)

    def without_end(self) -> list[tuple[str, bool]]:
        """Give the turns whose end the client waits for, and whether it reads them in pieces."""
        return self._places.without_end()

    def forget(self, request_id: str) -> None:
        """A turn of this id begins anew."""
        self._places.forget(request_id)

    async def drained(self) -> None:
        """Wait until everything taken so far was written; bound it from outside."""
        if self._sender is not None and not self._closed:
            if self._idle is None:
                self._idle = asyncio.Event()
            await self._idle.wait()

    async def shut(self, code: int, reason: str) -> None:
        """Close the socket with a code; frames not yet sent are dropped."""
        if not self._closed:
            self._stop()
            await self._close(code, reason)

    def gone(self) -> None:
        """The client has left; send nothing more."""
        self._stop()
        if self._sender is not None:
            self._sender.cancel()

    def _take(self, frame: Frame) -> bool:
        request_id = turn_of(frame)
        if request_id in self._resuming:
            return True
        early = self._early.get(request_id)
        if early is None:
            self._buffer.extend(self._places.take(frame))
            return True
        if len(early) == self._max_frames:
            return self._give_up()
        early.append(frame)
        return True

    def _wake(self) -> bool:
        """See to it that the buffer is sent; False if that is hopeless."""
        if len(self._buffer) > self._max_frames:
            self._buffer = merge_adjacent(self._buffer)
            if len(self._buffer) > self._max_frames:
                return self._give_up()
        if self._sender is None and self._buffer:
            self._sender = self._tasks.create_task(self._send_all())
        return True

    def _give_up(self) -> bool:
        self._on_slow(len(self._buffer))
        self._stop()
        self._tasks.create_task(self._close(SLOW_CONSUMER, SLOW_CONSUMER_REASON))
        return False

    def _stop(self) -> None:
        # Closed before anything else: a task group that is about to end takes no more tasks.
        self._closed = True
        self._buffer.clear()
        for early in self._early.values():
            early.clear()
        self._announce_idle()

    async def _send_all(self) -> None:
        try:
            while self._buffer:
                await self._send(self._buffer.pop(0))
        except OSError:
            self._stop()
        except BaseException:
            self._stop()
            raise
        finally:
            self._sender = None
            self._announce_idle()

    def _announce_idle(self) -> None:
        if self._idle is not None:
            self._idle.set()
            self._idle = None
