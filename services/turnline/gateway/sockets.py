"""One client socket's outgoing side: a bounded buffer that never blocks whoever fills it.

A sender task exists only while there is something to send, so an idle socket costs no task.  When
the client reads too slowly, adjacent text chunks of a stream are merged without loss; when that is
not enough the socket is closed and its client resumes from its position.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from turnline.push import Frame

Send = Callable[[Frame], Awaitable[None]]
Close = Callable[[int, str], Awaitable[None]]

SLOW_CONSUMER = 4408
SLOW_CONSUMER_REASON = "too slow; reconnect and resume"


class Socket:
    """Frames on their way to one client.

    Attributes:
        connection_id: names the socket in the connection store.
        user_id: whose it is.
    """

    __slots__ = (
        "_awaiting_ack",
        "_buffer",
        "_close",
        "_closed",
        "_idle",
        "_max_frames",
        "_resuming",
        "_send",
        "_sending",
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
    ) -> None:
        """Wire it.

        Args:
            send / close: write to the client; may wait for it.
            tasks: where the sender runs.
            max_frames: frames buffered before merging, and then closing, sets in.
        """
        self.connection_id = connection_id
        self.user_id = user_id
        self._send = send
        self._close = close
        self._tasks = tasks
        self._max_frames = max_frames
        self._buffer: deque[Frame] = deque()
        self._sending = False
        self._closed = False
        self._idle: asyncio.Event | None = None
        self._awaiting_ack: dict[str, list[Frame]] = {}
        self._resuming: set[str] = set()

    def push(self, frames: Sequence[Frame]) -> bool:
        """Take frames of running turns; False if the socket is closed.

        Frames of a turn whose CHAT_QUEUED is not out yet wait for it; those of a turn that is
        being resumed on this socket are dropped, since the resume brings them.
        """
        if self._closed:
            return False
        for frame in frames:
            request_id = frame.get("request_id", "")
            if request_id in self._resuming:
                continue
            waiting = self._awaiting_ack.get(request_id)
            if waiting is not None:
                waiting.append(frame)
            else:
                self._buffer.append(frame)
        self._wake()
        return not self._closed

    def answer(self, frame: Frame) -> None:
        """Take a frame that answers this socket's own client."""
        if not self._closed:
            self._buffer.append(frame)
            self._wake()

    def expect_ack(self, request_id: str) -> None:
        """Hold this turn's frames back until `ack`."""
        self._awaiting_ack[request_id] = []

    def ack(self, request_id: str, frame: Frame) -> None:
        """Send the answer to a chat frame, then what its turn has brought meanwhile."""
        self.answer(frame)
        for waiting in self._awaiting_ack.pop(request_id, ()):
            self.answer(waiting)

    def start_resume(self, request_id: str) -> bool:
        """Leave this turn's frames to a resume; False if one is running already."""
        if request_id in self._resuming:
            return False
        self._resuming.add(request_id)
        return True

    def end_resume(self, request_id: str) -> None:
        """Let pushed frames of this turn through again."""
        self._resuming.discard(request_id)

    async def drained(self) -> None:
        """Wait until everything taken so far was written; bound it from outside."""
        if self._sending and not self._closed:
            if self._idle is None:
                self._idle = asyncio.Event()
            await self._idle.wait()

    async def shut(self, code: int, reason: str) -> None:
        """Close the socket with a code; frames not yet sent are dropped."""
        if not self._closed:
            self._closed = True
            self._buffer.clear()
            await self._close(code, reason)

    def gone(self) -> None:
        """The client has left; send nothing more."""
        self._closed = True
        self._buffer.clear()

    def _wake(self) -> None:
        if len(self._buffer) > self._max_frames:
            self._buffer = merge_adjacent(self._buffer)
            if len(self._buffer) > self._max_frames:
                self._tasks.create_task(self.shut(SLOW_CONSUMER, SLOW_CONSUMER_REASON))
                return
        if not self._sending and self._buffer:
            self._sending = True
            self._tasks.create_task(self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._buffer:
                await self._send(self._buffer.popleft())
        except OSError:
            self.gone()
        finally:
            self._sending = False
            if self._idle is not None:
                self._idle.set()
                self._idle = None


def merge_adjacent(frames: deque[Frame]) -> deque[Frame]:
    """Merge runs of adjacent text chunks of one stream; the text and the last position remain."""
    merged: deque[Frame] = deque()
    for frame in frames:
        if merged and _follows(merged[-1], frame):
            merged[-1] = _joined(merged[-1], frame)
        else:
            merged.append(frame)
    return merged


def _follows(first: Frame, second: Frame) -> bool:
    def place(frame: Frame) -> tuple[Any, ...]:
        event = frame.get("event", {})
        return (frame.get("request_id"), frame.get("attempt"), event.get("message_id"))

    return (
        "delta" in first
        and "delta" in second
        and place(first) == place(second)
        and second["index"] == first["index"] + 1
    )


def _joined(first: Frame, second: Frame) -> Frame:
    text = first["delta"] + second["delta"]
    event = {**second["event"], "content": text}
    first_index = first.get("first_index", first["index"])
    return {**second, "delta": text, "event": event, "first_index": first_index}
