"""The WebSocket route: authenticates a socket, then carries its frames to the handler and back."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import orjson
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from turnline.auth import AuthValidator, Identity, authenticate, websocket_token
from turnline.errors import (
    Code,
    DrainingError,
    InvalidRequestError,
    StoreUnavailableError,
    UnauthenticatedError,
)
from turnline.gateway.frames import failed
from turnline.gateway.handler import FrameHandler
from turnline.gateway.hub import SERVICE_RESTART, Hub
from turnline.gateway.sockets import Socket
from turnline.push import Frame
from turnline.telemetry import get_logger

_log = get_logger("gateway")

POLICY_VIOLATION = 1008
TRY_AGAIN_LATER = 1013
TOKEN_EXPIRED = 4401
TOO_MANY_CONNECTIONS = 4429

MAX_FRAMES_AT_ONCE = 16


class SocketEndpoint:
    """Serves client sockets; `run` must be running meanwhile, it owns their tasks."""

    def __init__(
        self,
        *,
        hub: Hub,
        handler: FrameHandler,
        validator: AuthValidator,
        accepting: Callable[[], bool],
        send_buffer: int,
    ) -> None:
        """Wire it; `send_buffer` is the frames buffered for one client."""
        self._hub = hub
        self._handler = handler
        self._validator = validator
        self._accepting = accepting
        self._send_buffer = send_buffer
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Own the sockets' tasks until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            await asyncio.get_running_loop().create_future()

    def route(self, path: str = "/ws") -> WebSocketRoute:
        """The Starlette route."""
        return WebSocketRoute(path, self._serve)

    async def _serve(self, websocket: WebSocket) -> None:
        # Accepted first, so that a browser can read why it was refused (guide).
        token, subprotocol = websocket_token(websocket.scope)
        await websocket.accept(subprotocol=subprotocol)
        if not self._accepting():
            await websocket.close(SERVICE_RESTART, DrainingError().message)
            return
        try:
            identity = await authenticate(self._validator, token, {"surface": "websocket"})
        except UnauthenticatedError as error:
            await websocket.close(POLICY_VIOLATION, error.message)
            return
        if not self._hub.has_room_for(identity.user_id):
            await websocket.close(TOO_MANY_CONNECTIONS, "too many connections of this user")
            return
        await self._hold(websocket, identity)

    async def _hold(self, websocket: WebSocket, identity: Identity) -> None:
        assert self._tasks is not None, "run() must be running"
        socket = Socket(
            connection_id=uuid.uuid4().hex,
            user_id=identity.user_id,
            send=_sender(websocket),
            close=_closer(websocket),
            tasks=self._tasks,
            max_frames=self._send_buffer,
        )
        try:
            await self._hub.add(socket)
        except StoreUnavailableError as error:
            await websocket.close(TRY_AGAIN_LATER, error.message)
            return
        try:
            async with asyncio.timeout(_seconds_left(identity)):
                await self._read(websocket, socket)
        except TimeoutError:
            await socket.shut(TOKEN_EXPIRED, "token expired; reconnect with a new one")
        finally:
            await asyncio.shield(self._hub.remove(socket))

    async def _read(self, websocket: WebSocket, socket: Socket) -> None:
        tasks = self._tasks
        assert tasks is not None
        working: set[asyncio.Task[None]] = set()

        async def spawn(work: Coroutine[Any, Any, None]) -> None:
            if len(working) >= MAX_FRAMES_AT_ONCE:
                await asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED)
            task = tasks.create_task(work)
            working.add(task)
            task.add_done_callback(working.discard)

        try:
            while True:
                message = await websocket.receive()
                if message["type"] == "websocket.disconnect":
                    return
                text = message.get("text")
                if text is None:
                    socket.answer(failed(_BINARY))
                else:
                    await self._handler.handle(socket, text, spawn)
        finally:
            for task in working:
                task.cancel()


_BINARY = InvalidRequestError(
    "Binary frames are not supported; send JSON text", field="frame", code=Code.MALFORMED_BODY
)


def _sender(websocket: WebSocket) -> Callable[[Frame], Awaitable[None]]:
    async def send(frame: Frame) -> None:
        try:
            await websocket.send_text(orjson.dumps(frame).decode())
        except (WebSocketDisconnect, RuntimeError) as error:
            raise ConnectionResetError("the client has left") from error

    return send


def _closer(websocket: WebSocket) -> Callable[[int, str], Awaitable[None]]:
    async def close(code: int, reason: str) -> None:
        if websocket.application_state is WebSocketState.CONNECTED:
            with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
                await websocket.close(code, reason)

    return close


def _seconds_left(identity: Identity) -> float | None:
    if identity.expires_at is None:
        return None
    return max(0.0, identity.expires_at - time.time())
