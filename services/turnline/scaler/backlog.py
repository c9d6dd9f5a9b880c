"""What the input queue holds, measured again and again.

A measure counts turns in flight beside those that wait: a queue whose turns are all being worked on
looks empty, and would have its runners taken away.  While the broker does not answer there is no
measure, never one of 0.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from turnline.errors import TransportUnavailableError, TurnlineError
from turnline.telemetry import get_logger
from turnline.transport import QueueStats

_log = get_logger("scaler")

EVERY_SECONDS = 1.0
KEPT_SECONDS = 15.0
_ANSWER_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """The input queue at one moment.

    Attributes:
        turns: waiting, for their retry included, or in flight.
        oldest_seconds: age of the oldest of them; 0 where none waits: those that run, however
            long, are not helped by more runners.
    """

    turns: int
    oldest_seconds: float


class Backlog:
    """Measures one queue; `run` must be running."""

    def __init__(
        self,
        stats: Callable[[], Awaitable[QueueStats]],
        *,
        every: float = EVERY_SECONDS,
        kept: float = KEPT_SECONDS,
    ) -> None:
        """Wire it.

        Args:
            stats: asks the queue.
            every: seconds between two measures.
            kept: seconds for which a measure says something of now.
        """
        self._stats = stats
        self._every = every
        self._kept = kept
        self._newest: Measure | None = None
        self._measured_at = 0.0
        self._measured = asyncio.Event()
        self._away = False

    @property
    def newest(self) -> Measure:
        """The newest measure.

        Raises:
            TransportUnavailableError: there is none that is fresh.
        """
        fresh = self._fresh()
        if fresh is None:
            raise TransportUnavailableError(
                "The queue could not be counted lately", retry_after=self._every
            )
        return fresh

    async def measures(self) -> AsyncIterator[Measure]:
        """Give each measure from now on, a fresh one first; waits while there are none."""
        while True:
            if (fresh := self._fresh()) is not None:
                yield fresh
            await self._measured.wait()

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            await self._measure()
            await asyncio.sleep(self._every)

    def _fresh(self) -> Measure | None:
        age = asyncio.get_running_loop().time() - self._measured_at
        return self._newest if age <= self._kept else None

    async def _measure(self) -> None:
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                stats = await self._stats()
        except (TurnlineError, TimeoutError) as error:
            if not self._away:
                self._away = True
                reason = type(error).__name__
                _log.warning("dependency.unavailable", dependency="transport", reason=reason)
            return
        self._away = False
        self._newest = Measure(
            turns=stats.waiting + stats.in_flight,
            oldest_seconds=stats.oldest_age_seconds if stats.waiting else 0.0,
        )
        self._measured_at = asyncio.get_running_loop().time()
        # Wakes who waits now; who comes later waits for the next one.
        measured, self._measured = self._measured, asyncio.Event()
        measured.set()
