"""An ASGI server that starts, drains and stops on this process's terms.

uvicorn does the protocol work.  Its own signal handling is off (the process runner owns signals),
and its stop flag is an event, so shutdown starts at once.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Generator
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from turnline.errors import ConfigurationError
from turnline.hosting.websocket import WebSocketProtocol

_DATE_HEADER_SECONDS = 1.0
_MAX_HELD_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class WebOptions:
    """Where and how to serve.

    Attributes:
        port: 0 lets the system choose; see `WebServer.port`.
        max_frame_bytes: largest WebSocket message taken; a larger one closes the socket (1009).
        ping_interval / ping_timeout: seconds between pings to idle sockets, and to wait for pongs.
        close_seconds: how long open connections may take to end at shutdown.
    """

    host: str
    port: int
    max_frame_bytes: int = 131_072
    ping_interval: float = 20.0
    ping_timeout: float = 20.0
    close_seconds: float = 3.0


class WebServer:
    """One listening socket and the app behind it."""

    def __init__(self, app: ASGIApp, options: WebOptions) -> None:
        """Bind the socket.

        Raises:
            ConfigurationError: the address cannot be bound.
        """
        self._socket = _bind(options.host, options.port)
        self._front = _Front(app)
        config = uvicorn.Config(
            self._front,
            interface="asgi3",
            http=_HttpProtocol,
            proxy_headers=False,
            ws=WebSocketProtocol,
            ws_max_size=options.max_frame_bytes,
            ws_ping_interval=options.ping_interval,
            ws_ping_timeout=options.ping_timeout,
            ws_per_message_deflate=False,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=max(1, int(options.close_seconds)),
        )
        self.started = asyncio.Event()
        self._server = _Server(config, self.started)

    @property
    def port(self) -> int:
        """The port that is listened on."""
        port: int = self._socket.getsockname()[1]
        return port

    def serve_sockets(self, path: str, app: ASGIApp) -> None:
        """Have `app` serve the WebSockets of a path; call it before `run`."""
        self._front.sockets[path] = app

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then close: no new connections, idle ones end, sockets get
        1012, and running requests have `close_seconds`."""
        self._server.stop = stop
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            self._socket.close()


class _Front:
    """Brings requests to the app, and sockets past it to theirs.

    A web framework's layers stay on the stack of a socket for as long as it is open, 3 KiB each.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.sockets: dict[str, ASGIApp] = {}
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        app = self.sockets.get(scope["path"]) if scope["type"] == "websocket" else None
        return (app or self._app)(scope, receive, send)


class _Corked:
    """A transport that writes once per pass of the loop.

    uvicorn writes a response's head and body, and each piece of a stream, with a system call of
    its own; written together they cost one.  At most `_MAX_HELD_BYTES` are held, and not beyond
    the pass, so that the transport's flow control still works.
    """

    __slots__ = ("_held", "_held_bytes", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] | None = None
        self._held_bytes = 0

    def write(self, data: bytes) -> None:
        if self._held is None:
            self._held = []
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes > _MAX_HELD_BYTES:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def _flush(self) -> None:
        if self._held is not None:
            held, self._held, self._held_bytes = self._held, None, 0
            self._transport.write(held[0] if len(held) == 1 else b"".join(held))

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the transport has
        return getattr(self._transport, name)


class _HttpProtocol(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # uvicorn narrows it
        super().connection_made(_Corked(transport, self.loop))  # type: ignore[arg-type] # stands in for it


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, ready: asyncio.Event) -> None:
        super().__init__(config)
        self.stop = asyncio.Event()
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready.set()

    async def main_loop(self) -> None:
        while not self.stop.is_set():
            await self.on_tick(0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DATE_HEADER_SECONDS):
                    await self.stop.wait()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        fault = f"api.host/api.port: cannot listen on {host}:{port} ({error.strerror}); "
        raise ConfigurationError([fault + "set AK_API__PORT to a free port"]) from error
    return listener
