"""The WebSocket endpoint: authenticates a socket, then carries its frames to the handler and back.

A socket's tasks live in a group of its own: what breaks in one ends that socket and no other.
"""

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from turnline.auth import AuthValidator, authenticate, websocket_token
from turnline.errors import (
    Code,
    DrainingError,
    InvalidRequestError,
    StoreUnavailableError,
    UnauthenticatedError,
)
from turnline.gateway.asgi import AsgiSocket
from turnline.gateway.handler import FrameHandler
from turnline.gateway.hub import SERVICE_RESTART, Hub
from turnline.gateway.signals import ConnectionEnd, GatewaySignals
from turnline.gateway.sockets import Socket
from turnline.gateway.work import FrameTasks
from turnline.protocol.clock import Clock
from turnline.telemetry import bind

SOCKET_PATH = "/ws"

POLICY_VIOLATION = 1008
TRY_AGAIN_LATER = 1013
TOKEN_EXPIRED = 4401
TOO_MANY_CONNECTIONS = 4429

MAX_FRAMES_AT_ONCE = 32


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


@dataclass(frozen=True, slots=True)
class _Guest:
    """Whose socket it is, and when its token ends (epoch seconds; None: never)."""

    user_id: str
    expires_at: float | None


class SocketEndpoint:
    """Serves client sockets; an ASGI application."""

    def __init__(self, parts: SocketParts) -> None:
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one socket from its handshake to its end."""
        client = AsgiSocket(scope, receive, send)
        guest = await self._welcome(client, scope)
        if guest is None:
            return
        # With its headers the scope is a good part of what an idle socket costs.
        scope.clear()
        connection_id = uuid.uuid4().hex
        with bind(connection_id=connection_id), self._parts.signals.connection() as end:
            await self._hold(client, guest, connection_id, end)

    async def _welcome(self, client: AsgiSocket, scope: Scope) -> _Guest | None:
        """Open a socket and learn whose it is; None, and it is closed, if it may not stay."""
        # Accepted first, so that a browser can read why it was refused (guide).
        token, subprotocol = websocket_token(scope)
        await client.accept(subprotocol)
        if not self._parts.accepting():
            await self._refuse(client, SERVICE_RESTART, DrainingError().message)
            return None
        try:
            identity = await authenticate(self._parts.validator, token, {"surface": "websocket"})
        except UnauthenticatedError as error:
            await self._refuse(client, POLICY_VIOLATION, error.message)
            return None
        if not self._parts.hub.has_room_for(identity.user_id):
            reason = "too many connections of this user"
            await self._refuse(client, TOO_MANY_CONNECTIONS, reason)
            return None
        return _Guest(identity.user_id, identity.expires_at)

    async def _refuse(self, client: AsgiSocket, code: int, reason: str) -> None:
        self._parts.signals.refused_socket(code, reason)
        await client.close(code, reason)

    async def _hold(
        self, client: AsgiSocket, guest: _Guest, connection_id: str, end: ConnectionEnd
    ) -> None:
        hub = self._parts.hub
        async with asyncio.TaskGroup() as tasks:
            socket = Socket(
                connection_id=connection_id,
                user_id=guest.user_id,
                send=client.send,
                close=client.close,
                tasks=tasks,
                max_frames=self._parts.send_buffer,
                on_slow=lambda frames: self._parts.signals.slow(connection_id, frames),
            )
            work = FrameTasks(tasks, at_once=MAX_FRAMES_AT_ONCE)
            try:
                await hub.add(socket)
                await self._converse(client, socket, work, guest.expires_at, end)
            except StoreUnavailableError as error:
                await socket.shut(TRY_AGAIN_LATER, error.message)
            finally:
                socket.gone()
                work.cancel()
                await asyncio.shield(hub.remove(socket))

    async def _converse(
        self,
        client: AsgiSocket,
        socket: Socket,
        work: FrameTasks,
        expires_at: float | None,
        end: ConnectionEnd,
    ) -> None:
        """Read frames until the client leaves or its token expires."""
        token = asyncio.timeout(self._seconds_left(expires_at))
        try:
            async with token:
                await self._read(client, socket, work, end)
        except TimeoutError:
            if not token.expired():
                raise
            end.code, end.reason = TOKEN_EXPIRED, "token expired; reconnect with a new one"
            await socket.shut(end.code, end.reason)

    async def _read(
        self, client: AsgiSocket, socket: Socket, work: FrameTasks, end: ConnectionEnd
    ) -> None:
        handler = self._parts.handler
        while True:
            message = await client.receive()
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

    def _seconds_left(self, expires_at: float | None) -> float | None:
        return None if expires_at is None else max(0.0, expires_at - self._parts.clock.time())


_BINARY = InvalidRequestError(
    "Binary frames are not supported; send JSON text", field="frame", code=Code.MALFORMED_BODY
)
