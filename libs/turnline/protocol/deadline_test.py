"""`within` is `asyncio.timeout` around one call; a `TimeLimit` is one around many."""

import asyncio
from collections.abc import Coroutine

import pytest

from turnline.protocol.deadline import TimeLimit, within

LONG = 30.0


async def _give(value: str) -> str:
    return value


async def _wait_then_give(event: asyncio.Event, value: str) -> str:
    await event.wait()
    await asyncio.sleep(0)
    return value


class _Witness:
    """Waits for ever and says how it ended."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.ended = ""

    async def run(self) -> None:
        try:
            self.waiting.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise


async def test_a_call_that_never_waits_gives_its_result() -> None:
    assert await within(0.0, _give("at once")) == "at once"


async def test_a_call_that_waits_gives_its_result() -> None:
    event = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(_awaiting(within_long(_wait_then_give(event, "later"))))
        await asyncio.sleep(0)
        event.set()
    assert task.result() == "later"


async def test_a_call_that_takes_too_long_is_cancelled_and_told_as_a_timeout() -> None:
    witness = _Witness()
    with pytest.raises(TimeoutError):
        await within(0.01, witness.run())
    assert witness.ended == "cancelled"


async def test_cancelling_the_caller_cancels_the_call_and_is_no_timeout() -> None:
    witness = _Witness()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(_awaiting(within_long(witness.run())))
        await witness.waiting.wait()
        task.cancel()
    assert task.cancelled()
    assert witness.ended == "cancelled"


@pytest.mark.parametrize("waits", [False, True])
async def test_an_error_of_the_call_comes_through(waits: bool) -> None:
    async def fail() -> None:
        if waits:
            await asyncio.sleep(0)
        raise LookupError("lost")

    with pytest.raises(LookupError, match="lost"):
        await within(LONG, fail())


async def test_a_call_may_catch_what_it_waited_for_and_go_on() -> None:
    failing: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def recover() -> str:
        try:
            await failing
        except ConnectionError:
            await asyncio.sleep(0)
            return "recovered"
        return "untouched"

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(_awaiting(within_long(recover())))
        await asyncio.sleep(0)
        failing.set_exception(ConnectionError())
    assert task.result() == "recovered"


async def test_the_outer_of_two_deadlines_may_end_first() -> None:
    witness = _Witness()
    with pytest.raises(TimeoutError):
        await within(0.01, _awaiting(within_long(witness.run())))
    assert witness.ended == "cancelled"


async def test_what_is_done_in_time_keeps_its_result_whatever_came_before_it() -> None:
    limit = TimeLimit(0.05)
    late, done = _future(), _future()
    limit.add(late)
    limit.add(done)
    done.set_result("in time")
    with pytest.raises(TimeoutError):
        await late
    assert await done == "in time"


async def test_each_has_the_whole_time_from_when_it_was_added() -> None:
    limit = TimeLimit(0.05)
    loop = asyncio.get_running_loop()
    first, second = _future(), _future()
    limit.add(first)
    await asyncio.wait([first])
    added = loop.time()
    limit.add(second)
    await asyncio.wait([second])
    # A clock of some milliseconds is what timers go by.
    assert loop.time() - added > 0.045
    assert isinstance(second.exception(), TimeoutError)
    assert isinstance(first.exception(), TimeoutError)


async def test_one_that_is_late_does_not_end_those_added_after_it() -> None:
    limit = TimeLimit(0.05)
    first, second = _future(), _future()
    ended: list[asyncio.Future[str]] = []
    for future in (first, second):
        future.add_done_callback(ended.append)
    limit.add(first)
    await asyncio.sleep(0.03)
    limit.add(second)
    await asyncio.wait([first, second])

    assert ended == [first, second]
    assert isinstance(second.exception(), TimeoutError)
    assert isinstance(first.exception(), TimeoutError)


async def test_a_caller_that_was_cancelled_is_no_longer_waited_for() -> None:
    limit = TimeLimit(0.02)
    gone, waiting = _future(), _future()
    limit.add(gone)
    limit.add(waiting)
    gone.cancel()
    with pytest.raises(TimeoutError):
        await waiting
    assert gone.cancelled()


def _future() -> "asyncio.Future[str]":
    return asyncio.get_running_loop().create_future()


async def _awaiting(work: Coroutine[None, None, str | None]) -> str | None:
    return await work


async def within_long(work: Coroutine[None, None, str | None]) -> str | None:
    return await within(LONG, work)
