"""Reaches a port of another network namespace from a port of this one; takes root."""

import asyncio
import ctypes
import socket
import threading
from pathlib import Path

START_SECONDS = 10.0
_CLONE_NEWNET = 0x40000000
_CHUNK_BYTES = 64 * 1024


class PortRelay(threading.Thread):
    """Hands connections of a listening socket on; `start` returns when it does.

    Args:
        door: the socket, which stays the caller's.
        namespace: file of the other network namespace.
        port: on the loopback of that.
    """

    def __init__(self, door: socket.socket, namespace: Path, port: int) -> None:
        super().__init__(daemon=True)
        self._door, self._namespace, self._port = door.dup(), namespace, port
        self._ended = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()

    def start(self) -> None:
        """Begin."""
        super().start()
        assert self._started.wait(START_SECONDS)

    def stop(self) -> None:
        """Close everything; returns when it is."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
        self.join()

    def run(self) -> None:
        """Work, until stopped."""
        # Of this thread alone, and so of each socket that it opens.
        with self._namespace.open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._hand_on, sock=self._door)
        self._started.set()
        await self._ended.wait()
        server.close()

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_pump(reader, far_writer))
            tasks.create_task(_pump(far_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
