"""A client's connection from its welcome to its end, whatever carries it.

A connection's tasks live in a group of its own: what breaks in one ends that connection and no
other.  Knows neither WebSockets nor gRPC; close codes are those of `/ws`, and each carrier says
them in its own way.
"""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from turnline.auth import AuthValidator, authenticate
from turnline.errors import (
    DrainingError,
    InvalidRequestError,
    QueueFullError,
    StoreUnavailableError,
    TurnlineError,
    UnauthenticatedError,
)
from turnline.gateway.handler import FrameHandler
from turnline.gateway.hub import SERVICE_RESTART, Hub
from turnline.gateway.signals import ConnectionEnd, GatewaySignals
from turnline.gateway.sockets import Socket
from turnline.gateway.work import FrameTasks
from turnline.protocol.clock import Clock
from turnline.push import Frame
from turnline.telemetry import bind

POLICY_VIOLATION = 1008
TRY_AGAIN_LATER = 1013
TOKEN_EXPIRED = 4401
TOO_MANY_CONNECTIONS = 4429

MAX_FRAMES_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Left:
    """The client is gone: the code and reason it left with, or was closed with."""

    code: int
    reason: str = ""


Said = str | Mapping[str, Any] | InvalidRequestError | Left
"""What a client says next: a frame as JSON text or as an object, what is no frame, or farewell."""


class Peer(Protocol):
    """The client's end of a connection."""

    async def hear(self) -> Said:
        """Wait for what the client says next; `Left` once and last."""
        ...

    async def send(self, frame: Frame) -> None:
        """Write a frame; may wait for the client.

        Raises:
            OSError: the client has left.
        """
        ...

    async def close(self, code: int, reason: str) -> None:
        """Close in time, even if the client reads nothing; `hear` then says that it left."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketParts:
    """What the connections of a pod share.

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
class Guest:
    """Whose connection it is, and when its token ends (epoch seconds; None: never)."""

    user_id: str
    expires_at: float | None


class Reception:
    """Takes connections of one surface."""

    def __init__(self, parts: SocketParts) -> None:
        self._parts = parts

    async def welcome(self, token: str | None) -> Guest:
        """Learn whose connection it is.

        Raises:
            DrainingError, UnauthenticatedError, QueueFullError: it may not stay; it is logged.
        """
        parts = self._parts
        try:
            if not parts.accepting():
                raise DrainingError
            identity = await authenticate(
                parts.validator, token, {"surface": parts.signals.surface}
            )
            if not parts.hub.has_room_for(identity.user_id):
                message = "too many connections of this user"
                raise QueueFullError(message, scope="session", retry_after=1.0)
        except TurnlineError as error:
            parts.signals.refused_socket(refusal_code(error), error.message)
            raise
        return Guest(identity.user_id, identity.expires_at)

    async def hold(self, peer: Peer, guest: Guest) -> None:
        """Carry frames between a client and the handler until either side ends it."""
        connection_id = uuid.uuid4().hex
        with bind(connection_id=connection_id), self._parts.signals.connection() as end:
            await self._hold(peer, guest, connection_id, end)

    async def _hold(self, peer: Peer, guest: Guest, connection_id: str, end: ConnectionEnd) -> None:
        hub = self._parts.hub
        async with asyncio.TaskGroup() as tasks:
            socket = Socket(
                connection_id=connection_id,
                user_id=guest.user_id,
                send=peer.send,
                close=peer.close,
                tasks=tasks,
                max_frames=self._parts.send_buffer,
                on_slow=lambda frames: self._parts.signals.slow(connection_id, frames),
            )
            work = FrameTasks(tasks, at_once=MAX_FRAMES_AT_ONCE)
            try:
                await hub.add(socket)
                await self._converse(peer, socket, work, guest.expires_at, end)
            except StoreUnavailableError as error:
                await socket.shut(TRY_AGAIN_LATER, error.message)
            finally:
                socket.gone()
                work.cancel()
                await asyncio.shield(hub.remove(socket))

    async def _converse(
        self,
        peer: Peer,
        socket: Socket,
        work: FrameTasks,
        expires_at: float | None,
        end: ConnectionEnd,
    ) -> None:
        """Read frames until the client leaves or its token expires."""
        token = asyncio.timeout(self._seconds_left(expires_at))
        try:
            async with token:
                await self._read(peer, socket, work, end)
        except TimeoutError:
            if not token.expired():
                raise
            end.code, end.reason = TOKEN_EXPIRED, "token expired; reconnect with a new one"
            await socket.shut(end.code, end.reason)

    async def _read(self, peer: Peer, socket: Socket, work: FrameTasks, end: ConnectionEnd) -> None:
        handler = self._parts.handler
        while True:
            said = await peer.hear()
            if isinstance(said, Left):
                end.code, end.reason = said.code, said.reason
                return
            if socket.closed:
                continue
            if isinstance(said, InvalidRequestError):
                handler.refuse(socket, said)
            else:
                await handler.handle(socket, said, work)

    def _seconds_left(self, expires_at: float | None) -> float | None:
        return None if expires_at is None else max(0.0, expires_at - self._parts.clock.time())


def refusal_code(error: TurnlineError) -> int:
    """Give the close code of a connection that `Reception.welcome` refused."""
    match error:
        case DrainingError():
            return SERVICE_RESTART
        case UnauthenticatedError():
            return POLICY_VIOLATION
        case _:
            return TOO_MANY_CONNECTIONS
