"""A proxy whose connections can be cut."""

import asyncio
from contextlib import suppress
from typing import Self


class Proxy:
    """Passes bytes on to a server; use as an async context manager.

    Attributes:
        connections: that there were.
        refused: set while it refuses, once it has refused a connection.
    """

    def __init__(self, target: str) -> None:
        self.connections = 0
        self.refused = asyncio.Event()
        host, _, port = target.rpartition(":")
        self._server_at = (host, int(port))
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._refusing = False

    @property
    def target(self) -> str:
        """Where clients connect."""
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.refuse()

    def cut(self) -> None:
        """Reset every connection; new ones are taken."""
        for writer in self._writers:
            writer.transport.abort()

    def refuse(self) -> None:
        """Reset every connection, and each new one at once, until `heal`."""
        self._refusing = True
        self.cut()

    def heal(self) -> None:
        """Take connections again."""
        self._refusing = False
        self.refused.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.transport.abort()
            self.refused.set()
            return
        self.connections += 1
        far_reader, far_writer = await asyncio.open_connection(*self._server_at)
        pair = {writer, far_writer}
        self._writers |= pair
        await asyncio.gather(_pump(reader, far_writer, pair), _pump(far_reader, writer, pair))
        self._writers -= pair


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, pair: set[asyncio.StreamWriter]
) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    for each in pair:
        each.close()
