"""Stopping code for a reason, and leaving stubborn code behind."""

import asyncio

import pytest

from turnline.errors import FencedError, TurnCancelledError
from turnline.hosting import Interruptible, alongside, leave_behind


async def test_an_interrupted_block_raises_the_given_error() -> None:
    scope = Interruptible()

    with pytest.raises(TurnCancelledError):
        async with scope:
            scope.interrupt(TurnCancelledError())
            await asyncio.Event().wait()


async def test_the_first_reason_wins() -> None:
    scope = Interruptible()

    with pytest.raises(FencedError):
        async with scope:
            scope.interrupt(FencedError("lost"))
            scope.interrupt(TurnCancelledError())
            await asyncio.Event().wait()


async def test_an_interrupt_after_the_last_await_is_not_lost() -> None:
    scope = Interruptible()

    with pytest.raises(FencedError):
        async with scope:
            scope.interrupt(FencedError("lost"))

    await asyncio.sleep(0)  # the task is not cancelled any more


async def test_outer_cancellation_passes_through() -> None:
    scope = Interruptible()
    entered = asyncio.Event()

    async def block() -> None:
        async with scope:
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.get_running_loop().create_task(block())
    await entered.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_outer_cancellation_wins_over_an_interrupt_at_the_same_moment() -> None:
    scope = Interruptible()
    entered = asyncio.Event()

    async def block() -> None:
        async with scope:
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.get_running_loop().create_task(block())
    await entered.wait()
    scope.interrupt(FencedError("lost"))
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_interrupt_after_the_block_does_nothing() -> None:
    scope = Interruptible()
    async with scope:
        pass

    scope.interrupt(FencedError("lost"))

    await asyncio.sleep(0)


async def test_alongside_ends_its_work_with_the_block() -> None:
    stopped = asyncio.Event()

    async def watch() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with alongside(watch):
        await asyncio.sleep(0)

    assert stopped.is_set()


async def test_work_that_would_start_after_the_block_never_starts() -> None:
    started = asyncio.Event()

    async def watch() -> None:
        started.set()

    async with alongside(watch, after=30.0):
        await asyncio.sleep(0)

    assert not started.is_set()


async def test_work_starts_when_its_time_has_come() -> None:
    started = asyncio.Event()

    async def watch() -> None:
        started.set()

    async with alongside(watch, after=0.001), asyncio.timeout(30):
        await started.wait()


async def test_a_failing_watcher_does_not_disturb_the_block() -> None:
    async def watch() -> None:
        raise RuntimeError("watcher")

    async with alongside(watch):
        await asyncio.sleep(0)
        reached = True

    assert reached


async def test_code_that_ignores_cancellation_is_left_behind() -> None:
    release = asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with leave_behind(stubborn(), after=0.01) as work:
        await asyncio.sleep(0)

    assert work.stuck
    release.set()


async def test_code_that_stops_is_not_stuck() -> None:
    async def willing() -> None:
        await asyncio.Event().wait()

    async with leave_behind(willing(), after=1.0) as work:
        await asyncio.sleep(0)

    assert not work.stuck
