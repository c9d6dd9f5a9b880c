"""The fake clock wakes whom it should, when it should, in order."""

import asyncio

from turnline.protocol.clock import Clock, SystemClock
from turnline.testing import FakeClock


async def _log_after(clock: Clock, moments: list[float], log: list[tuple[float, float]]) -> None:
    for moment in moments:
        await clock.sleep_until(moment)
        log.append((moment, clock.monotonic()))


async def test_each_sleeper_wakes_at_its_own_moment() -> None:
    clock = FakeClock()
    log: list[tuple[float, float]] = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_log_after(clock, [3.0, 4.0], log))
        tasks.create_task(_log_after(clock, [1.0, 3.5], log))
        await clock.advance(5.0)
    assert log == [(1.0, 1.0), (3.0, 3.0), (3.5, 3.5), (4.0, 4.0)]
    assert clock.monotonic() == 5.0


async def test_a_sleeper_stays_asleep_before_its_moment() -> None:
    clock = FakeClock()
    log: list[tuple[float, float]] = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_log_after(clock, [3.0], log))
        await clock.advance(2.9)
        assert log == []
        await clock.advance(0.2)
        assert log == [(3.0, 3.0)]


async def test_a_cancelled_sleeper_is_passed_over() -> None:
    clock = FakeClock()
    log: list[tuple[float, float]] = []
    async with asyncio.TaskGroup() as tasks:
        given_up = tasks.create_task(_log_after(clock, [1.0], log))
        tasks.create_task(_log_after(clock, [2.0], log))
        await clock.run_ready()
        given_up.cancel()
        await clock.advance(2.0)
    assert log == [(2.0, 2.0)]


async def test_time_and_monotonic_move_together() -> None:
    clock = FakeClock(now=100.0)
    await clock.advance(2.5)
    assert (clock.time(), clock.monotonic()) == (102.5, 2.5)


async def test_a_moment_that_has_passed_is_no_wait() -> None:
    clock = FakeClock()
    await clock.advance(2.0)
    await clock.sleep_until(1.0)


async def test_the_system_clock_sleeps_at_least_until_the_moment() -> None:
    clock = SystemClock()
    moment = clock.monotonic() + 0.01
    await clock.sleep_until(moment)
    assert clock.monotonic() >= moment


async def test_a_call_is_made_at_its_moment_and_a_cancelled_one_never() -> None:
    clock = FakeClock()
    calls: list[tuple[str, float]] = []
    clock.call_at(2.0, lambda: calls.append(("kept", clock.monotonic())))
    clock.call_at(1.0, lambda: calls.append(("dropped", clock.monotonic()))).cancel()
    await clock.advance(3.0)
    assert calls == [("kept", 2.0)]


async def test_a_call_whose_moment_has_passed_is_made_soon() -> None:
    clock = FakeClock()
    called = asyncio.Event()
    clock.call_at(0.0, called.set)
    assert not called.is_set()
    await clock.run_ready()
    assert called.is_set()


async def test_the_system_clock_calls_back() -> None:
    clock = SystemClock()
    called = asyncio.Event()
    clock.call_at(clock.monotonic() + 0.01, called.set)
    async with asyncio.timeout(30):
        await called.wait()
