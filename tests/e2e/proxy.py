"""A TCP proxy whose connections a test can cut."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Proxy:
    """Passes bytes on to one server.

    Attributes:
        port: where it listens.
        accepted: connections taken so far.
    """

    server_port: int
    port: int = 0
    accepted: int = 0
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def cut(self) -> None:
        """Break every connection, without a word to either side."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one connection on until either side ends it."""
        self.accepted += 1
        back, forth = await asyncio.open_connection("127.0.0.1", self.server_port)
        self._writers += [writer, forth]
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_pass_on(reader, forth))
            tasks.create_task(_pass_on(back, writer))


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        return
    finally:
        writer.close()


@asynccontextmanager
async def proxied(server_port: int) -> AsyncIterator[Proxy]:
    """Run a proxy in front of a server on this machine."""
    proxy = Proxy(server_port)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    async with listener:
        yield proxy
        proxy.cut()
