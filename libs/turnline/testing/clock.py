"""A clock that moves only when told to.

Sleepers wake in the order of their moments, equal moments in the order they began to sleep, and
what each wakes runs until it blocks before the next one wakes: a test sees the same run each time.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable

from turnline.protocol.clock import Timer

# Passes over the loop's ready queue given to woken tasks; each lets every ready task run once, so
# this bounds the length of a chain of tasks that wake one another, not their number.
_PASSES = 100


class FakeClock:
    """A `Clock` for tests.

    Args:
        now: the first reading of `time`, seconds since the epoch.
    """

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._epoch = now
        self._elapsed = 0.0
        self._order = itertools.count()
        self._timers: list[tuple[float, int, _Timer]] = []

    def time(self) -> float:
        """Seconds since the epoch, as far as this clock knows."""
        return self._epoch + self._elapsed

    def monotonic(self) -> float:
        """Seconds this clock was advanced by since it was made."""
        return self._elapsed

    async def sleep_until(self, monotonic: float) -> None:
        """Wait until somebody advances the clock to `monotonic`."""
        if monotonic <= self._elapsed:
            await asyncio.sleep(0)
            return
        woken = asyncio.Event()
        timer = self.call_at(monotonic, woken.set)
        try:
            await woken.wait()
        finally:
            timer.cancel()

    def call_at(self, monotonic: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` when somebody advances the clock to `monotonic`; soon if it is there."""
        if monotonic <= self._elapsed:
            return asyncio.get_running_loop().call_soon(callback)
        timer = _Timer(callback)
        heapq.heappush(self._timers, (monotonic, next(self._order), timer))
        return timer

    async def advance(self, seconds: float) -> None:
        """Move time forward, waking sleepers on the way, each at its own moment.

        Sleeps that begin meanwhile and end within the span are woken too.
        """
        end = self._elapsed + seconds
        await self.run_ready()
        while self._timers and self._timers[0][0] <= end:
            moment, _, timer = heapq.heappop(self._timers)
            if timer.cancelled:
                continue
            self._elapsed = moment
            timer.callback()
            await self.run_ready()
        self._elapsed = end
        await self.run_ready()

    async def run_ready(self) -> None:
        """Let every other task run until it waits for time, for input or for ever."""
        for _ in range(_PASSES):
            await asyncio.sleep(0)


class _Timer:
    """One entry of the heap; a cancelled one stays there until its moment."""

    __slots__ = ("callback", "cancelled")

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True
