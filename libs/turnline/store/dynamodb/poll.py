"""Looking again and again at one item, for everybody in this process who waits for it.

DynamoDB tells nobody of a change.  One of those who wait looks, and shares what it saw; when it
leaves, another goes on.  The first looks come some milliseconds apart, later ones up to a bound,
and what this process writes itself is looked at at once.
"""

import asyncio
from collections.abc import Awaitable, Callable

from turnline.errors import StoreUnavailableError
from turnline.protocol.clock import Clock
from turnline.store.dynamodb.items import Item

FIRST_SECONDS = 0.005
LONGEST_SECONDS = 0.25
_GROWTH = 1.5


class Poll:
    """Looks at one item.  Lives as long as somebody holds it; several may wait at once.

    Attributes:
        version: grows with each look.
        seen: what the last look found; None for no item, or before the first look.
    """

    __slots__ = (
        "__weakref__",
        "_changed",
        "_clock",
        "_longest",
        "_look",
        "_looking",
        "_pause",
        "_wake",
        "seen",
        "version",
    )

    def __init__(
        self,
        look: Callable[[], Awaitable[Item | None]],
        clock: Clock,
        *,
        longest: float = LONGEST_SECONDS,
    ) -> None:
        self._look = look
        self._clock = clock
        self._longest = longest
        self._pause = 0.0
        self._looking = False
        self._changed = asyncio.Event()
        self._wake = asyncio.Event()
        self.version = 0
        self.seen: Item | None = None

    def hurry(self) -> None:
        """Look at once: this process wrote the item."""
        self._pause = 0.0
        self._wake.set()

    async def news(self, known: int, *, until: float | None = None) -> None:
        """Return when there was a look after version `known`, or the clock reached `until`.

        A look that the store did not answer is no look; the next one is tried later.
        """
        over = asyncio.Event()
        timers = []
        if until is not None:
            calls = (over.set, self._notify, self._wake.set)
            timers = [self._clock.call_at(until, each) for each in calls]
        try:
            while self.version == known and not over.is_set():
                if self._looking:
                    await self._changed.wait()
                else:
                    await self._lead(over)
        finally:
            for timer in timers:
                timer.cancel()

    async def _lead(self, over: asyncio.Event) -> None:
        """Take one look, for all."""
        self._looking = True
        try:
            await self._rest()
            if over.is_set():
                return
            try:
                found = await self._look()
            except StoreUnavailableError:
                self._slower()
                return
            if self._same(found):
                self._slower()
            else:
                self._pause = FIRST_SECONDS
            self.seen = found
            self.version += 1
        finally:
            self._looking = False
            # Whoever else waits looks at what was seen, or goes on looking.
            self._notify()

    async def _rest(self) -> None:
        """Wait until the next look is due or somebody is in a hurry."""
        if self._pause:
            due = self._clock.call_at(self._clock.monotonic() + self._pause, self._wake.set)
            try:
                await self._wake.wait()
            finally:
                due.cancel()
        self._wake.clear()

    def _same(self, found: Item | None) -> bool:
        return self.version > 0 and found == self.seen

    def _slower(self) -> None:
        self._pause = min(self._longest, max(FIRST_SECONDS, self._pause * _GROWTH))

    def _notify(self) -> None:
        self._changed.set()
        self._changed.clear()
