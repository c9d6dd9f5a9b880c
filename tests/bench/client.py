"""A load client small enough not to be what is measured: HTTP/1.1 and SSE on bare asyncio.

One `Connection` is one keep-alive socket; it reads whole responses or, for SSE, counts events as
their bytes arrive.  Loopback only.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer; `seconds` from the first byte sent to the last byte read."""

    status: int
    body: bytes
    seconds: float


def chat_request(prompt: str, session: str, *, headers: str = "") -> bytes:
    """Bytes of a POST /api/v1/chat."""
    body = json.dumps({"prompt": prompt, "session_id": session}).encode()
    head = (
        "POST /api/v1/chat HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        f"{headers}content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection:
    """One keep-alive connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> "Connection":
        """Connect to a port of this machine."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
        return cls(reader, writer)

    def close(self) -> None:
        """Close without waiting."""
        self._writer.close()

    async def ask(self, request: bytes) -> Answer:
        """Send a request and read its whole answer."""
        started = time.perf_counter()
        self._writer.write(request)
        status, headers = await self._head()
        body = await self._reader.readexactly(int(headers[b"content-length"]))
        return Answer(status, body, time.perf_counter() - started)

    async def events(self, request: bytes) -> AsyncIterator[int]:
        """Send a request and give, per read, how many SSE events arrived; ends with the stream.

        Raises:
            RuntimeError: the answer is no stream.
        """
        self._writer.write(request)
        status, headers = await self._head()
        if status != 200 or headers.get(b"transfer-encoding") != b"chunked":
            raise RuntimeError(f"no stream: status {status}")
        while size := int(await self._reader.readline(), 16):
            piece = await self._reader.readexactly(size + 2)
            yield piece.count(b"data: ")
        await self._reader.readline()

    async def _head(self) -> tuple[int, dict[bytes, bytes]]:
        head = await self._reader.readuntil(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in lines[1:] if line)
        return int(lines[0].split(b" ")[1]), headers
