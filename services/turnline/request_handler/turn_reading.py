"""One turn's stream, read item by item at its reader's pace: nothing is read ahead of it.

Knows the store's items; what they look like to a reader is the surface's business.
"""

import asyncio
from collections.abc import AsyncGenerator

from turnline.errors import DrainingError
from turnline.protocol import Failure
from turnline.request_handler.event_stream import FAILED, TIMED_OUT
from turnline.request_handler.handler import TurnStream
from turnline.request_handler.waiting import WaitingRoom
from turnline.store import Gap, StoredReply, StreamItem
from turnline.telemetry import get_logger
from turnline.telemetry.metrics import BoundCounter

_log = get_logger("request_handler")

# When the room closes no further answer comes, and what is kept is a read away.
_CLOSING_SECONDS = 0.5


class TurnReading:
    """Reads a stream for a reader who waits in `waiting`; use once.

    Args of the constructor:
        idle: seconds without an item after which the reader is sent away.
        gaps: counts readers told of a gap.
    """

    def __init__(
        self, stream: TurnStream, *, waiting: WaitingRoom, idle: float, gaps: BoundCounter
    ) -> None:
        self._stream = stream
        self._waiting = waiting
        self._idle = idle
        self._gaps = gaps
        self._patience: asyncio.Timeout | None = None
        self._closes_at: float | None = None

    async def items(self) -> AsyncGenerator[StreamItem | Failure, None]:
        """Give items up to the end; instead of the end a Failure, if the reader is sent away.

        The turn itself may then be well, and its stream can be resumed.  Close it when done.

        Raises:
            StoreUnavailableError: the store did not answer.
        """
        source = self._stream.items
        try:
            with self._waiting.told(self._close):
                while True:
                    item = await self._next()
                    if isinstance(item, Gap):
                        self._on_gap(item)
                    yield item
                    if isinstance(item, StoredReply | Failure):
                        return
        finally:
            if isinstance(source, AsyncGenerator):
                await source.aclose()

    async def _next(self) -> StreamItem | Failure:
        now = asyncio.get_running_loop().time()
        until = now + self._idle if self._closes_at is None else self._closes_at
        try:
            async with asyncio.timeout_at(until) as self._patience:
                return await anext(self._stream.items, FAILED)
        except TimeoutError:
            if self._closes_at is not None:
                return Failure.from_error(DrainingError())
            _log.info("stream.idle", request_id=self._stream.request_id)
            return TIMED_OUT
        finally:
            self._patience = None

    def _close(self) -> None:
        self._closes_at = asyncio.get_running_loop().time() + _CLOSING_SECONDS
        if self._patience is not None:
            self._patience.reschedule(self._closes_at)

    def _on_gap(self, gap: Gap) -> None:
        self._gaps.inc()
        _log.warning(
            "stream.gap", request_id=self._stream.request_id, first=gap.first, last=gap.last
        )
