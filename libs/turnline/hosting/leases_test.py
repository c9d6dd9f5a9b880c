"""Leases are kept while their holders work, and holders stop when they are lost."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from turnline.errors import FencedError, StoreUnavailableError
from turnline.hosting import LeaseKeeper, alongside
from turnline.telemetry import Metrics

LEASE = 0.06


@pytest.fixture
async def keeper() -> AsyncIterator[LeaseKeeper]:
    keeper = LeaseKeeper(Metrics(process=False))
    async with alongside(keeper.run):
        yield keeper


class Renewals:
    """Counts renewals and fails those a test wants to fail."""

    def __init__(self, *, failures: list[Exception] | None = None, hang: bool = False) -> None:
        self.count = 0
        self.renewed = asyncio.Semaphore(0)
        self._failures = failures or []
        self._hang = hang

    async def __call__(self) -> None:
        if self._hang:
            await asyncio.Event().wait()
        if self._failures:
            raise self._failures.pop(0)
        self.count += 1
        self.renewed.release()

    async def wait(self, count: int) -> None:
        for _ in range(count):
            async with asyncio.timeout(30):
                await self.renewed.acquire()


async def test_a_lease_is_renewed_until_the_block_ends(keeper: LeaseKeeper) -> None:
    renew = Renewals()

    async with keeper.held(renew, seconds=LEASE):
        await renew.wait(5)

    ended_at = renew.count
    other = Renewals()
    async with keeper.held(other, seconds=LEASE):
        await other.wait(2)
    assert renew.count == ended_at


async def test_a_lease_shorter_than_the_work_is_renewed_in_time(keeper: LeaseKeeper) -> None:
    renew = Renewals()
    loop = asyncio.get_running_loop()
    started = loop.time()

    async with keeper.held(renew, seconds=LEASE):
        await renew.wait(9)

    assert loop.time() - started > 2 * LEASE


async def test_a_fenced_renewal_stops_the_holder(keeper: LeaseKeeper) -> None:
    renew = Renewals(failures=[FencedError("newer claim")])

    with pytest.raises(FencedError):
        async with keeper.held(renew, seconds=LEASE):
            await asyncio.Event().wait()


async def test_one_failed_renewal_is_tried_again_within_the_lease(keeper: LeaseKeeper) -> None:
    renew = Renewals(failures=[StoreUnavailableError("away")])

    async with keeper.held(renew, seconds=LEASE):
        await renew.wait(1)


@pytest.mark.parametrize("hang", [True, False])
async def test_a_holder_stops_when_its_own_clock_says_the_lease_ran_out(
    keeper: LeaseKeeper, *, hang: bool
) -> None:
    failures: list[Exception] = [StoreUnavailableError("away") for _ in range(1_000)]
    renew = Renewals(failures=failures, hang=hang)
    loop = asyncio.get_running_loop()
    started = loop.time()

    with pytest.raises(FencedError):
        async with keeper.held(renew, seconds=LEASE):
            await asyncio.Event().wait()

    assert loop.time() - started >= LEASE * 0.9


async def test_losing_one_lease_leaves_the_others_alone(keeper: LeaseKeeper) -> None:
    kept = Renewals()
    lost = Renewals(failures=[FencedError("newer claim")])

    async def lose() -> None:
        async with keeper.held(lost, seconds=LEASE):
            await asyncio.Event().wait()

    async with keeper.held(kept, seconds=LEASE):
        with pytest.raises(FencedError):
            await lose()
        await kept.wait(3)


async def test_a_thousand_leases_cost_no_task_of_their_own(keeper: LeaseKeeper) -> None:
    before = len(asyncio.all_tasks())
    renew = Renewals()

    async def hold(stack: int) -> None:
        if stack:
            async with keeper.held(renew, seconds=60.0):
                await hold(stack - 1)
            return
        assert len(asyncio.all_tasks()) == before

    await hold(100)
