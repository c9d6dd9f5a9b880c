"""For this room's tests: the client of a socket, and frames as responders push them."""

import asyncio

from turnline.push import Frame


class Client:
    """Whoever is at the other end.

    Attributes:
        seen: frames it has read.
        closed: code and reason it was closed with; None while it is open.
        arrived / ended: set when a frame came, and when it was closed.
        reading: cleared, it reads nothing more.
        broken: raised by the next write.
        slow: frames dropped because it read too slowly, each time.
    """

    def __init__(self) -> None:
        self.seen: list[Frame] = []
        self.closed: tuple[int, str] | None = None
        self.arrived = asyncio.Event()
        self.ended = asyncio.Event()
        self.reading = asyncio.Event()
        self.reading.set()
        self.broken: Exception | None = None
        self.slow: list[int] = []

    async def send(self, frame: Frame) -> None:
        if self.broken is not None:
            raise self.broken
        self.seen.append(frame)
        self.arrived.set()
        await self.reading.wait()

    async def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)
        self.ended.set()


def chunk(index: int, *, attempt: int = 1, turn: str = "r") -> Frame:
    return {
        "delta": f"{attempt}.{index} ",
        "event": {"type": "text_delta", "content": f"{attempt}.{index} "},
        "done": False,
        "request_id": turn,
        "session_id": "s",
        "attempt": attempt,
        "index": index,
        "type": "STREAM_CHUNK",
    }


def done(index: int, *, attempt: int = 1, turn: str = "r", **fields: object) -> Frame:
    return {
        "done": True,
        "request_id": turn,
        "session_id": "s",
        "attempt": attempt,
        "index": index,
        "type": "STREAM_CHUNK",
        **fields,
    }


def restart(attempt: int) -> Frame:
    return {
        "event": {"type": "restart", "attempt": attempt},
        "done": False,
        "request_id": "r",
        "session_id": "s",
        "attempt": attempt,
        "type": "STREAM_CHUNK",
    }


def gap(first: int, last: int, *, attempt: int = 1) -> Frame:
    return {
        "event": {"type": "gap", "first": first, "last": last},
        "done": False,
        "request_id": "r",
        "session_id": "s",
        "attempt": attempt,
        "type": "STREAM_CHUNK",
    }
