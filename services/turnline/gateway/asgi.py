"""One WebSocket as ASGI gives it, in the few words the gateway needs.

Knows no frames' meaning.  It stands in for a web framework's socket, whose objects and layers of
calls would stay in memory for as long as the socket is open.
"""

import asyncio
import contextlib

import orjson
from starlette.types import Receive, Scope, Send

from turnline.errors import Code, InvalidRequestError
from turnline.gateway.reception import Left, Said
from turnline.hosting import ABORT_EXTENSION
from turnline.push import Frame

CLOSE_SECONDS = 1.0

_MAX_REASON_BYTES = 123
_BROKEN = 1006

_BINARY = InvalidRequestError(
    "Binary frames are not supported; send JSON text", field="frame", code=Code.MALFORMED_BODY
)


class AsgiSocket:
    """Reads and writes one client's WebSocket; a `Peer`."""

    __slots__ = ("_abort", "_open", "_receive", "_send")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wire it; the scope is not kept."""
        self._receive = receive
        self._send = send
        self._abort = scope.get("extensions", {}).get(ABORT_EXTENSION, lambda: None)
        self._open = False

    async def accept(self, subprotocol: str | None) -> None:
        """Open the socket.

        Raises:
            OSError: the client has left.
        """
        await self._receive()
        await self._send({"type": "websocket.accept", "subprotocol": subprotocol})
        self._open = True

    async def hear(self) -> Said:
        """See `Peer`."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            return Left(message.get("code") or _BROKEN, message.get("reason") or "")
        text: str | None = message.get("text")
        return _BINARY if text is None else text

    async def send(self, frame: Frame) -> None:
        """Write a frame; may wait for the client.

        Raises:
            ConnectionResetError: the client has left, or the socket was closed.
        """
        if not self._open:
            raise ConnectionResetError("the socket was closed")
        text = orjson.dumps(frame).decode()
        try:
            await self._send({"type": "websocket.send", "text": text})
        except (OSError, RuntimeError) as error:
            self._open = False
            raise ConnectionResetError("the client has left") from error

    async def close(self, code: int, reason: str) -> None:
        """Close in time even if the client reads nothing: then without telling it."""
        if not self._open:
            return
        self._open = False
        message = {"type": "websocket.close", "code": code, "reason": close_reason(reason)}
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                with contextlib.suppress(RuntimeError, OSError):
                    await self._send(message)
        except TimeoutError:
            self._abort()


def close_reason(text: str) -> str:
    """Cut a text to what a close frame can hold (RFC 6455: 123 bytes), at a whole character."""
    return text.encode()[:_MAX_REASON_BYTES].decode(errors="ignore")
