"""One client's WebSocket, over an ASGI server that the test is."""

import asyncio
from collections.abc import Callable

import pytest
from starlette.types import Message

from turnline.gateway.asgi import AsgiSocket, close_reason
from turnline.hosting import ABORT_EXTENSION


class Server:
    """The server's side of one socket.

    Attributes:
        sent: what the application said.
        fault: raised by the next message.
        writable: cleared, messages wait.
    """

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.fault: Exception | None = None
        self.aborted = False
        self.writable = asyncio.Event()
        self.writable.set()

    async def receive(self) -> Message:
        return {"type": "websocket.connect"}

    async def send(self, message: Message) -> None:
        await self.writable.wait()
        if self.fault is not None:
            raise self.fault
        self.sent.append(message)

    def abort(self) -> None:
        self.aborted = True

    @property
    def said(self) -> list[str]:
        return [message["type"].removeprefix("websocket.") for message in self.sent]

    async def accepted(self) -> AsgiSocket:
        extensions: dict[str, Callable[[], None]] = {ABORT_EXTENSION: self.abort}
        socket = AsgiSocket({"extensions": extensions}, self.receive, self.send)
        await socket.accept(None)
        return socket


def test_a_reason_is_cut_at_a_whole_character() -> None:
    assert close_reason("é" * 100) == "é" * 61
    assert close_reason("short") == "short"


async def test_nothing_is_sent_after_a_close_and_a_socket_is_closed_once() -> None:
    server = Server()
    socket = await server.accepted()
    await socket.close(1000, "")
    await socket.close(1001, "")
    with pytest.raises(ConnectionResetError):
        await socket.send({})

    assert server.said == ["accept", "close"]


@pytest.mark.parametrize("fault", [OSError("gone"), RuntimeError("closed already")])
async def test_a_client_that_has_left_is_told_nothing_more(fault: Exception) -> None:
    server = Server()
    socket = await server.accepted()
    server.fault = fault
    with pytest.raises(ConnectionResetError):
        await socket.send({})
    server.fault = None
    await socket.close(1000, "")

    assert server.said == ["accept"]


async def test_a_client_that_reads_nothing_is_cut_off() -> None:
    server = Server()
    socket = await server.accepted()
    server.writable.clear()
    async with asyncio.timeout(30):
        await socket.close(1000, "")

    assert server.aborted
    assert server.said == ["accept"]
