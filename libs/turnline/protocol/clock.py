"""Time as an argument: what the time is, and how to wait for a moment.

Everything that measures leases, windows or ages takes a `Clock`, so that a test moves time by hand
(`turnline.testing.FakeClock`).  The one module of this room that touches asyncio, for its sleep.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A call that was asked for and has not been made."""

    def cancel(self) -> None:
        """Make it never; does nothing once it was made."""
        ...


class Clock(Protocol):
    """Two readings of time and two ways to wait.

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

    def call_at(self, monotonic: float, callback: Callable[[], None]) -> Timer:
        """Have the running loop call `callback` soon after `monotonic()` reached `monotonic`."""
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

    def call_at(self, monotonic: float, callback: Callable[[], None]) -> Timer:
        """Have the running loop call `callback`; may come some microseconds early."""
        delay = max(0.0, monotonic - self.monotonic())
        return asyncio.get_running_loop().call_later(delay, callback)
