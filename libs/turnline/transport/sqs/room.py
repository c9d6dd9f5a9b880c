"""How full a queue is, as far as SQS tells; refuses what is too much.

SQS gives estimates, right within a minute at most.  Between two looks this process adds what it
sent and takes off what it removed.
"""

import asyncio
from dataclasses import dataclass

from turnline.errors import QueueFullError
from turnline.protocol.clock import Clock
from turnline.transport.sqs.api import SqsApi

_FRESH_SECONDS = 1.0
_FRESH_WHEN_FULL_SECONDS = 0.2
_FULL_RETRY_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Messages on a queue, as SQS estimates them: waiting, and out or pausing."""

    waiting: int
    hidden: int


class Room:
    """The room on one queue.

    Attributes:
        counted: whether this process may ask for the numbers; without, nothing is refused.
    """

    def __init__(self, *, api: SqsApi, url: str, name: str, limit: int, clock: Clock) -> None:
        self.counted = True
        self._api = api
        self._url = url
        self._name = name
        self._limit = limit
        self._clock = clock
        self._asking = asyncio.Lock()
        self._found = 0
        self._asked_at: float | None = None
        self._since = 0
        self._sending = 0

    async def take(self) -> None:
        """Take room for one message; say with `sent` what became of it.

        Raises:
            QueueFullError: there is none.
        """
        if self.counted:
            await self._look(_FRESH_SECONDS)
            if self._estimate >= self._limit:
                await self._look(_FRESH_WHEN_FULL_SECONDS)
            if self._estimate >= self._limit:
                raise QueueFullError(
                    f"The {self._name} queue is full",
                    scope="queue",
                    retry_after=_FULL_RETRY_SECONDS,
                )
        self._sending += 1

    def sent(self, *, taken: bool) -> None:
        """Say whether what room was taken for is on the queue."""
        self._sending -= 1
        self._since += taken

    def gone(self) -> None:
        """Note that this process removed a message."""
        self._since -= 1

    async def count(self) -> Counts:
        """Ask SQS now."""
        waiting, hidden = await self._api.counts(self._url)
        return Counts(waiting=waiting, hidden=hidden)

    @property
    def _estimate(self) -> int:
        return max(0, self._found + self._since) + self._sending

    async def _look(self, fresh_seconds: float) -> None:
        async with self._asking:
            now = self._clock.monotonic()
            if self._asked_at is not None and now - self._asked_at < fresh_seconds:
                return
            found = await self.count()
            self._found = found.waiting + found.hidden
            self._since = 0
            self._asked_at = self._clock.monotonic()
