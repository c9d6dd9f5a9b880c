"""A proxy on loopback between a client and its server, that tests make misbehave."""

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import Literal, Self

Direction = Literal["to_server", "to_client"]

_CHUNK_BYTES = 64 * 1024


class TcpProxy:
    """Passes bytes on, until told otherwise; use as an async context manager.

    Args:
        port: of the server, on loopback.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._sockets: set[asyncio.StreamWriter] = set()
        self._flowing = {"to_server": asyncio.Event(), "to_client": asyncio.Event()}
        self._swallowing: set[str] = set()
        self._refusing = False

    @property
    def port(self) -> int:
        """Where clients connect, on loopback."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Self:
        self.heal()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.heal()
        self.refuse()
        while self._tasks:
            # Each ends once its sockets are gone.
            await asyncio.wait(self._tasks)

    def cut(self) -> None:
        """Reset every connection there is; new ones are taken."""
        for writer in list(self._sockets):
            writer.transport.abort()

    def refuse(self) -> None:
        """Reset every connection, and each new one at once."""
        self._refusing = True
        self.cut()

    def stall(self, direction: Direction) -> None:
        """Pass nothing on in one direction; what comes waits until `heal`."""
        self._flowing[direction].clear()

    def swallow(self, direction: Direction) -> None:
        """Lose what comes in one direction, with the sockets open, until `heal`.

        A stream that lost bytes is of no use afterwards: `cut` it before healing.
        """
        self._swallowing.add(direction)

    def heal(self) -> None:
        """Pass everything on again, and take connections."""
        self._refusing = False
        self._swallowing.clear()
        for event in self._flowing.values():
            event.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if self._refusing:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, far_writer}
        self._sockets |= pair
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, far_writer, "to_server"))
                both.create_task(self._pump(far_reader, writer, "to_client"))
        finally:
            self._sockets -= pair
            for each in pair:
                each.transport.abort()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction
    ) -> None:
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK_BYTES):
                await self._flowing[direction].wait()
                if direction not in self._swallowing:
                    writer.write(chunk)
                    await writer.drain()
        writer.transport.abort()
