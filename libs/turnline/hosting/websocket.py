"""uvicorn's WebSocket protocol, made small while nothing happens and strict with who does not read.

Thousands of sockets are open and silent, so what one of them holds is what a pod costs.  What
uvicorn keeps of each beyond need (empty queues, the handshake, a dictionary of attributes) is
replaced or let go of here; how it speaks is left to it.
"""

import asyncio
from collections import deque

from uvicorn._types import ASGIReceiveEvent, ASGISendEvent
from uvicorn.config import Config
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.http11 import Request

ABORT_EXTENSION = "turnline.abort"
"""In the `extensions` of a WebSocket's scope: a function that drops the connection at once."""


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """Lets go of clients that do not read.

    uvicorn ends a connection by closing its transport, which first waits, without end, for the
    client to read what was written; and it cuts off who sends too large a message before they can
    read why.
    """

    # Attributes of uvicorn's: it has too many for Python to share their names between sockets, and
    # a dictionary of them costs each 1.5 KiB.  One that is not named here works as well.
    __slots__ = (
        "app",
        "app_state",
        "asgi_version",
        "client",
        "close_sent",
        "close_timeout",
        "close_timer",
        "config",
        "conn",
        "connections",
        "curr_msg_data_type",
        "default_headers",
        "disconnected",
        "frames",
        "handshake_complete",
        "handshake_initiated",
        "initial_response",
        "last_ping_rtt",
        "logger",
        "loop",
        "pending_ping_payload",
        "ping_interval",
        "ping_sent_at",
        "ping_timeout",
        "ping_timer",
        "pong_timer",
        "queue",
        "read_paused",
        "request",
        "response",
        "root_path",
        "scheme",
        "scope",
        "server",
        "tasks",
        "transport",
        "writable",
    )

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.queue = Inbox()  # type: ignore[assignment] # does what uvicorn asks of its queue
        self.writable = Gate()  # type: ignore[assignment] # does what uvicorn asks of its event

    def handle_connect(self, event: Request) -> None:
        """Start the application, with a way to drop the connection."""
        super().handle_connect(event)
        if self.response.status_code == 101:
            self.scope["extensions"][ABORT_EXTENSION] = self.transport.abort  # type: ignore[assignment] # an extension of our own

    async def send(self, message: ASGISendEvent) -> None:
        """Take a message of the application."""
        await super().send(message)
        if message["type"] == "websocket.accept":
            self._forget_handshake()
        elif message["type"] == "websocket.close":
            self._abort_later()

    def keepalive_timeout(self) -> None:
        """Close: the client answers no ping."""
        super().keepalive_timeout()
        self._abort_later()

    def handle_parser_exception(self) -> None:
        """Close: the client sent what is no WebSocket, or too much."""
        if self.close_sent:
            # What still comes of the message is read and thrown away: to close now would reset
            # the connection and with it the reason that is on its way to the client.
            return
        close = self.conn.close_sent
        code, reason = (close.code, close.reason) if close is not None else (1002, "")
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.close_sent = True
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.write_eof()
        self.transport.resume_reading()
        self._abort_later()

    def _abort_later(self) -> None:
        if self.close_timer is not None:
            self.close_timer.cancel()
        self.close_timer = self.loop.call_later(self.close_timeout, self.transport.abort)

    def _forget_handshake(self) -> None:
        """Let go of what was needed to open the socket; its scope is the application's."""
        # The parser, too, holds the request, so its headers are cleared and not let go of alone.
        self.request.headers.clear()
        self.response.headers.clear()
        self.server = self.client = None


class Inbox:
    """Messages on their way to the application; one reader at a time.

    An empty `asyncio.Queue` is 3 KiB.  Not bounded itself: uvicorn stops reading from the client
    while a message waits here.
    """

    __slots__ = ("_messages", "_reader")

    def __init__(self) -> None:
        self._messages: deque[ASGIReceiveEvent] | None = None
        self._reader: asyncio.Future[None] | None = None

    def empty(self) -> bool:
        """Whether no message waits."""
        return self._messages is None

    def put_nowait(self, message: ASGIReceiveEvent) -> None:
        """Add a message."""
        if self._messages is None:
            self._messages = deque()
        self._messages.append(message)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def get(self) -> ASGIReceiveEvent:
        """Wait for a message and take it; none is lost if that is cancelled.

        Raises:
            RuntimeError: somebody waits already.
        """
        if self._reader is not None:
            raise RuntimeError("two tasks read from one socket")
        while self._messages is None:
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        message = self._messages.popleft()
        if not self._messages:
            self._messages = None
        return message


class Gate:
    """Whether the client may be written to; an `asyncio.Event`, made only while it may not."""

    __slots__ = ("_opened",)

    def __init__(self) -> None:
        self._opened: asyncio.Event | None = None

    def clear(self) -> None:
        """Close it."""
        if self._opened is None:
            self._opened = asyncio.Event()

    def set(self) -> None:
        """Open it, and wake who waits."""
        if self._opened is not None:
            self._opened.set()
            self._opened = None

    async def wait(self) -> None:
        """Wait until it is open."""
        if self._opened is not None:
            await self._opened.wait()
