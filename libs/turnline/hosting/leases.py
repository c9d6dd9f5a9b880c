"""Keeping leases alive while their holders work (ARCHITECTURE, guarantee 4).

One task renews every lease of a process: a turn costs no task of its own.  A holder whose lease
cannot be renewed is interrupted when its *local* clock says the lease ran out, so it stops acting
before anybody else may start, whether or not the store can be reached.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from turnline.errors import FencedError
from turnline.hosting.interrupts import Interruptible
from turnline.telemetry import Metrics, get_logger, names

_log = get_logger("hosting")

Renew = Callable[[], Awaitable[None]]

_RENEWALS_PER_LEASE = 3
_LONGEST_RETRY_SECONDS = 1.0


class HeldLease(Interruptible):
    """One lease, kept alive while its block runs; made by `LeaseKeeper.held`."""

    def __init__(self, keeper: "LeaseKeeper", renew: Renew, seconds: float) -> None:
        super().__init__()
        self._keeper = keeper
        self.renew = renew
        self.seconds = seconds
        self.due = self.expires = 0.0

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        now = asyncio.get_running_loop().time()
        self.due = now + self.seconds / _RENEWALS_PER_LEASE
        self.expires = now + self.seconds
        self._keeper.take(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._keeper.drop(self)
        await super().__aexit__(kind, error, traceback)


class LeaseKeeper:
    """Renews the leases of all blocks under `held`; `run` must be running meanwhile."""

    def __init__(self, metrics: Metrics) -> None:
        self._lost = metrics.counter(names.LEASE_LOST_TOTAL)
        # Per lease length, in order of due time: renewing moves a lease to the end.
        self._leases: dict[float, OrderedDict[HeldLease, None]] = {}
        self._wake = asyncio.Event()

    def held(self, renew: Renew, *, seconds: float) -> HeldLease:
        """Keep a lease of `seconds` alive for the length of an `async with` block.

        The lease must be fresh: it is taken to end `seconds` from the block's start unless
        renewed.

        Raises:
            FencedError: from the block, when the lease was lost while it ran.
        """
        return HeldLease(self, renew, seconds)

    def take(self, lease: HeldLease) -> None:
        """Start keeping a lease; for `HeldLease`."""
        queue = self._leases.setdefault(lease.seconds, OrderedDict())
        if not queue:
            self._wake.set()
        queue[lease] = None

    def drop(self, lease: HeldLease) -> None:
        """Stop keeping a lease; for `HeldLease`."""
        self._leases[lease.seconds].pop(lease, None)

    async def run(self) -> None:
        """Renew until cancelled."""
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as renewals:
            while True:
                self._wake.clear()
                now = loop.time()
                for lease in self._take_due(now):
                    renewals.create_task(self._renew(lease))
                try:
                    async with asyncio.timeout_at(self._next_due()):
                        await self._wake.wait()
                except TimeoutError:
                    continue

    def _take_due(self, now: float) -> list[HeldLease]:
        due: list[HeldLease] = []
        for queue in self._leases.values():
            while queue and (lease := next(iter(queue))).due <= now:
                lease.due = now + lease.seconds / _RENEWALS_PER_LEASE
                queue.move_to_end(lease)
                due.append(lease)
        return due

    def _next_due(self) -> float | None:
        heads = [next(iter(queue)).due for queue in self._leases.values() if queue]
        return min(heads, default=None)

    async def _renew(self, lease: HeldLease) -> None:
        loop = asyncio.get_running_loop()
        queue = self._leases[lease.seconds]
        while lease in queue:
            asked = loop.time()
            try:
                async with asyncio.timeout_at(lease.expires):
                    await lease.renew()
            except FencedError as error:
                self._lose(lease, error)
            except Exception as error:  # noqa: BLE001 - it would end all leases of the process
                if loop.time() < lease.expires:
                    pause = min(lease.seconds / 10, _LONGEST_RETRY_SECONDS)
                    await asyncio.sleep(min(pause, lease.expires - loop.time()))
                    continue
                self._lose(lease, FencedError(f"the lease ran out: {type(error).__name__}"))
            else:
                lease.expires = asked + lease.seconds
            return

    def _lose(self, lease: HeldLease, error: FencedError) -> None:
        if self._leases[lease.seconds].pop(lease, lease) is None:
            self._lost.inc()
            _log.warning("delivery.lease_lost", reason=error.message)
            lease.interrupt(error)
