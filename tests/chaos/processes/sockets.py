"""A user's socket client: asks over it, reads what comes, and comes back to another pod when it is
cut off, where it resumes its stream or asks again.
"""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, WebSocketException

from chaos.processes.callers import PAUSE_SECONDS, UnansweredError, Urls
from e2e.tokens import token_for

JsonFrame = dict[str, Any]

SOCKET_SECONDS = 80.0
OPEN_SECONDS = 5.0
_BROKEN = (OSError, TimeoutError, WebSocketException, InvalidHandshake)


class _CutOffError(Exception):
    """The connection is gone, or is to be left."""


@dataclass(slots=True)
class SocketTurn:
    """One turn as its asker sees it.

    Attributes:
        stream: pieces are wanted.
        leave_after: frames after which its connection is left, once; None: not at all.
        accepted: called once the turn is known to be queued.
        frames: what came of the turn, over all connections, in the order read.
    """

    session: str
    request: str
    prompt: str
    stream: bool
    leave_after: int | None = None
    accepted: Callable[[], None] = lambda: None
    frames: list[JsonFrame] = field(default_factory=list)
    queued: bool = False
    position: str = ""

    @property
    def first_frame(self) -> JsonFrame:
        """What asks for the turn."""
        body = {"prompt": self.prompt, "session_id": self.session}
        return {"request_id": self.request, "stream": self.stream, "body": body}

    @property
    def again_frame(self) -> JsonFrame:
        """What brings the rest of it to another connection."""
        if not (self.queued and self.stream):
            return self.first_frame
        body = {"after": self.position}
        return {"route": "resume", "request_id": self.request, "body": body}


@dataclass(slots=True)
class SocketClient:
    """One user's socket, opened anew whenever it breaks.

    Attributes:
        urls: the gateways that are up now (ws://...).
        connections: every frame of every connection, in the order read, those of the user's other
            clients included.
        closed_with: the codes of those that the other side closed, in order.
        budget: seconds one turn may take, connecting included.
    """

    urls: Urls
    user: str
    rng: random.Random = field(default_factory=random.Random)
    budget: float = SOCKET_SECONDS
    connections: list[list[JsonFrame]] = field(default_factory=list)
    closed_with: list[int] = field(default_factory=list)
    _socket: ClientConnection | None = None

    async def close(self) -> None:
        """Close the socket, for good."""
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close()

    async def turn(self, turn: SocketTurn) -> JsonFrame:
        """Ask, and give the frame that ends the turn: a CHAT_RESPONSE, or `done`.

        Raises:
            UnansweredError: there was none within the budget.
        """
        ends = time.monotonic() + self.budget
        while (left := ends - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left), self._connected() as socket:
                    await socket.send(json.dumps(turn.again_frame))
                    if (end := await self._read(socket, turn)) is not None:
                        return end
            except (*_BROKEN, _CutOffError):
                pass
            await asyncio.sleep(self.rng.uniform(0.5, 1) * PAUSE_SECONDS)
        raise UnansweredError(f"{turn.request} got no end over its sockets: {turn.frames[-3:]}")

    async def hear(self, seconds: float) -> None:
        """Read what comes in the meantime."""
        try:
            async with asyncio.timeout(seconds), self._connected() as socket:
                while True:
                    await self._next(socket)
        except (*_BROKEN, _CutOffError):
            return

    async def heard(self, frame: JsonFrame, *, within: float) -> bool:
        """Read, over new sockets if need be, until one came with all that `frame` has."""
        ends = time.monotonic() + within
        while (left := ends - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left), self._connected() as socket:
                    while not frame.items() <= (await self._next(socket)).items():
                        pass
                return True
            except (*_BROKEN, _CutOffError):
                await asyncio.sleep(PAUSE_SECONDS)
        return False

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[ClientConnection]:
        """Give the open socket, or a new one; one that breaks in the block is given up."""
        if self._socket is None:
            urls = self.urls()
            if not urls:
                raise _CutOffError
            token = token_for(self.user, seconds=36_000)
            self._socket = await connect(
                f"{self.rng.choice(urls)}/ws?token={token}",
                open_timeout=OPEN_SECONDS,
                close_timeout=1.0,
                max_queue=1_000,
            )
            self.connections.append([])
        try:
            yield self._socket
        except BaseException:
            socket, self._socket = self._socket, None
            if socket is not None:
                if socket.close_code is not None:
                    self.closed_with.append(socket.close_code)
                socket.transport.abort()
            raise

    async def _next(self, socket: ClientConnection) -> JsonFrame:
        frame: JsonFrame = json.loads(await socket.recv())
        self.connections[-1].append(frame)
        return frame

    async def _read(self, socket: ClientConnection, turn: SocketTurn) -> JsonFrame | None:
        """Read until the turn ends; None if it is to be asked for again on this connection."""
        while True:
            frame = await self._next(socket)
            if frame.get("request_id") != turn.request:
                continue
            match frame["type"]:
                case "CHAT_QUEUED":
                    self._take_as_queued(turn)
                case "SYSTEM_RESPONSE" if frame["status"] == "FAILED":
                    if frame.get("retry") == "never" and not turn.queued:
                        return frame
                    return None
                case "CHAT_RESPONSE":
                    self._take_as_queued(turn)
                    turn.frames.append(frame)
                    return frame
                case "STREAM_CHUNK":
                    self._take_as_queued(turn)
                    turn.frames.append(frame)
                    if frame.get("done"):
                        return frame
                    self._move(turn, frame)
                case _:
                    pass

    def _take_as_queued(self, turn: SocketTurn) -> None:
        """Note that the turn was accepted: by its CHAT_QUEUED, or by what would not come else."""
        if not turn.queued:
            turn.queued = True
            turn.accepted()

    def _move(self, turn: SocketTurn, frame: JsonFrame) -> None:
        if "index" in frame:
            turn.position = f"{frame['attempt']}-{frame['index']}"
        elif frame.get("event", {}).get("type") == "restart":
            turn.position = f"{frame['attempt']}--1"
        if turn.leave_after is not None and len(turn.frames) >= turn.leave_after:
            turn.leave_after = None
            raise _CutOffError
