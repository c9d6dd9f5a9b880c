"""The WebSocket route: authenticates a socket, then carries its frames to the handler and back.

A socket's tasks live in a group of its own: what breaks in one ends that socket and no other.
"""

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
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
from turnline.gateway.handler import FrameHandler
from turnline.gateway.hub import SERVICE_RESTART, Hub
from turnline.gateway.signals import ConnectionEnd, GatewaySignals
from turnline.gateway.sockets import Socket
from turnline.gateway.work import FrameTasks
from turnline.hosting import ABORT_EXTENSION
from turnline.protocol.clock import Clock
from turnline.push import Frame
from turnline.telemetry import bind

POLICY_VIOLATION = 1008
TRY_AGAIN_LATER = 1013
TOKEN_EXPIRED = 4401
TOO_MANY_CONNECTIONS = 4429

MAX_FRAMES_AT_ONCE = 32
CLOSE_SECONDS = 1.0

_MAX_REASON_BYTES = 123


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketParts:
    """What the sockets of a pod share.

    Attributes:
        accepting: False while the process drains.
        send_buffer: frames buffered for one client (`websocket_api.send_buffer`).
    """

    hub: Hub
    handler: FrameHandler
    validator: AuthValidator
    clock: Clock
    signals: GatewaySignals
    accepting: Callable[[], bool]
    send_buffer: int


class SocketEndpoint:
    """Serves client sockets."""

    def __init__(self, parts: SocketParts) -> None:
        self._parts = parts

    def route(self, path: str = "/ws") -> WebSocketRoute:
        """The Starlette route."""
        return WebSocketRoute(path, self._serve)

    async def _serve(self, websocket: WebSocket) -> None:
        # Accepted first, so that a browser can read why it was refused (guide).
        token, subprotocol = websocket_token(websocket.scope)
        await websocket.accept(subprotocol=subprotocol)
        if not self._parts.accepting():
            await self._refuse(websocket, SERVICE_RESTART, DrainingError().message)
            return
        try:
            identity = await authenticate(self._parts.validator, token, {"surface": "websocket"})
        except UnauthenticatedError as error:
            await self._refuse(websocket, POLICY_VIOLATION, error.message)
            return
        if not self._parts.hub.has_room_for(identity.user_id):
            reason = "too many connections of this user"
            await self._refuse(websocket, TOO_MANY_CONNECTIONS, reason)
            return
        connection_id = uuid.uuid4().hex
        with bind(connection_id=connection_id), self._parts.signals.connection() as end:
            await self._hold(websocket, identity, connection_id, end)

    async def _refuse(self, websocket: WebSocket, code: int, reason: str) -> None:
        self._parts.signals.refused_socket(code, reason)
        await _closer(websocket)(code, reason)

    async def _hold(
        self, websocket: WebSocket, identity: Identity, connection_id: str, end: ConnectionEnd
    ) -> None:
        hub = self._parts.hub
        async with asyncio.TaskGroup() as tasks:
            socket = Socket(
                connection_id=connection_id,
                user_id=identity.user_id,
                send=_sender(websocket),
                close=_closer(websocket),
                tasks=tasks,
                max_frames=self._parts.send_buffer,
                on_slow=lambda frames: self._parts.signals.slow(connection_id, frames),
            )
            work = FrameTasks(tasks, at_once=MAX_FRAMES_AT_ONCE)
            try:
                await hub.add(socket)
                await self._converse(websocket, socket, work, identity, end)
            except StoreUnavailableError as error:
                await socket.shut(TRY_AGAIN_LATER, error.message)
            finally:
                socket.gone()
                work.cancel()
                await asyncio.shield(hub.remove(socket))

    async def _converse(
        self,
        websocket: WebSocket,
        socket: Socket,
        work: FrameTasks,
        identity: Identity,
        end: ConnectionEnd,
    ) -> None:
        """Read frames until the client leaves or its token expires."""
        token = asyncio.timeout(self._seconds_left(identity))
        try:
            async with token:
                await self._read(websocket, socket, work, end)
        except TimeoutError:
            if not token.expired():
                raise
            end.code, end.reason = TOKEN_EXPIRED, "token expired; reconnect with a new one"
            await socket.shut(end.code, end.reason)

    async def _read(
        self, websocket: WebSocket, socket: Socket, work: FrameTasks, end: ConnectionEnd
    ) -> None:
        handler = self._parts.handler
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                end.code = message.get("code") or end.code
                end.reason = message.get("reason") or ""
                return
            text = message.get("text")
            if socket.closed:
                continue
            if text is None:
                handler.refuse(socket, _BINARY)
            else:
                await handler.handle(socket, text, work)

    def _seconds_left(self, identity: Identity) -> float | None:
        if identity.expires_at is None:
            return None
        return max(0.0, identity.expires_at - self._parts.clock.time())


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


def _closer(websocket: WebSocket) -> Callable[[int, str], Coroutine[Any, Any, None]]:
    """Close in time even if the client reads nothing: then without telling it."""
    abort = websocket.scope.get("extensions", {}).get(ABORT_EXTENSION, lambda: None)

    async def close(code: int, reason: str) -> None:
        if websocket.application_state is not WebSocketState.CONNECTED:
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                with contextlib.suppress(WebSocketDisconnect, RuntimeError, OSError):
                    await websocket.close(code, close_reason(reason))
        except TimeoutError:
            abort()

    return close


def close_reason(text: str) -> str:
    """Cut a text to what a close frame can hold (RFC 6455: 123 bytes), at a whole character."""
    return text.encode()[:_MAX_REASON_BYTES].decode(errors="ignore")
