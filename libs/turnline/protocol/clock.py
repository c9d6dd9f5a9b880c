"""Time as an argument: what the time is, and how to wait for a moment.

Everything that measures leases, windows or ages takes a `Clock`, so that a test moves time by hand
(`turnline.testing.FakeClock`).  The one module of this room that touches asyncio, for its sleep.
"""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Two readings of time and one way to wait.

    Compare and subtract only readings of `monotonic`; `time` is for what people and other
    processes see.
    """

    def time(self) -> float:
        """Seconds since the epoch; may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds since an unnamed moment; never goes back."""
        ...

    async def sleep_until(self, monotonic: float) -> None:
        """Return once `monotonic()` reached `monotonic`; yields once if it has already."""
        ...


class SystemClock:
    """The machine's clock."""

    def time(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since an unnamed moment."""
        return time.monotonic()

    async def sleep_until(self, monotonic: float) -> None:
        """Sleep until `monotonic()` is at least `monotonic`."""
        await asyncio.sleep(max(0.0, monotonic - self.monotonic()))
