"""Threads for sync agents: bounded, counted, back-pressured, never waited for in vain."""

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from turnline.agent import BoundedThreads, RetryableAgentError
from turnline.agent.threads import MAX_UNREAD_ITEMS

PATIENCE = 5.0


class Gate:
    """A thread's work that says when it began and ends only when let."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.leave = threading.Event()
        self.ended = threading.Event()

    def items(self) -> Iterator[str]:
        self.began.set()
        self.leave.wait(PATIENCE)
        self.ended.set()
        yield "done"


async def until(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, PATIENCE)


def join_agent_threads() -> None:
    for thread in threading.enumerate():
        if thread.name == "turnline-agent":
            thread.join(PATIENCE)


async def read(threads: BoundedThreads, gate: Gate) -> list[str]:
    return [item async for item in threads.iterate(gate.items)]


async def stop_while_hanging(threads: BoundedThreads) -> Gate:
    gate = Gate()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(read(threads, gate))
        await until(gate.began)
        task.cancel()
    return gate


async def test_items_come_in_order_and_the_thread_is_free_afterwards() -> None:
    threads = BoundedThreads(1)

    items = [item async for item in threads.iterate(lambda: iter(range(1000)))]

    assert items == list(range(1000))
    assert (threads.busy, threads.stuck) == (0, 0)


async def test_the_error_of_the_thread_is_raised_after_its_items() -> None:
    def work() -> Iterator[str]:
        yield "one"
        raise LookupError("two")

    items = BoundedThreads(1).iterate(work)

    assert await anext(items) == "one"
    with pytest.raises(LookupError, match="two"):
        await anext(items)


async def test_a_thread_that_exits_does_not_take_the_process_along() -> None:
    def work() -> Iterator[str]:
        yield from ()
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="SystemExit"):
        [item async for item in BoundedThreads(1).iterate(work)]


async def test_the_thread_sees_the_callers_context() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    variable.set("set")

    seen = [item async for item in BoundedThreads(1).iterate(lambda: iter([variable.get()]))]

    assert seen == ["set"]


async def test_a_producer_waits_for_its_reader() -> None:
    produced = []
    full = threading.Event()

    def work() -> Iterator[int]:
        for number in range(10 * MAX_UNREAD_ITEMS):
            produced.append(number)
            if number == MAX_UNREAD_ITEMS:
                full.set()
            yield number

    async with aclosing(BoundedThreads(1).iterate(work)) as items:
        assert await anext(items) == 0
        await until(full)
        for _ in range(20):
            await asyncio.to_thread(lambda: None)

        assert len(produced) <= MAX_UNREAD_ITEMS + 2


async def test_closing_early_closes_the_iterator_in_its_thread() -> None:
    closed_in = []

    def work() -> Iterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed_in.append(threading.current_thread().name)

    threads = BoundedThreads(1)
    async with aclosing(threads.iterate(work)) as items:
        await anext(items)

    assert closed_in == ["turnline-agent"]
    assert (threads.busy, threads.stuck) == (0, 0)


async def test_a_turn_waits_for_a_busy_thread() -> None:
    threads = BoundedThreads(1)
    first, second = Gate(), Gate()
    second.leave.set()

    async with asyncio.TaskGroup() as group:
        one = group.create_task(read(threads, first))
        await until(first.began)
        two = group.create_task(read(threads, second))
        await asyncio.sleep(0)
        waiting = not second.began.is_set()
        first.leave.set()

    assert waiting
    assert one.result() == two.result() == ["done"]
    assert threads.busy == 0


async def test_a_cancelled_wait_gives_its_place_to_the_next() -> None:
    threads = BoundedThreads(1)
    first, second, third = Gate(), Gate(), Gate()
    third.leave.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(read(threads, first))
        await until(first.began)
        two = group.create_task(read(threads, second))
        three = group.create_task(read(threads, third))
        await asyncio.sleep(0)
        two.cancel()
        first.leave.set()

    assert three.result() == ["done"]
    assert not second.began.is_set()
    assert threads.busy == 0


@pytest.mark.parametrize("moment", ["before the grant arrives", "after the grant arrived"])
async def test_a_place_granted_to_a_cancelled_wait_is_not_lost(moment: str) -> None:
    threads = BoundedThreads(1)
    first, second, third = Gate(), Gate(), Gate()
    third.leave.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(read(threads, first))
        await until(first.began)
        two = group.create_task(read(threads, second))
        await asyncio.sleep(0)
        first.leave.set()
        join_agent_threads()  # the loop stands still, so the grant is still in its queue
        if moment == "before the grant arrives":
            two.cancel()
        else:
            asyncio.get_running_loop().call_soon(two.cancel)

    assert await read(threads, third) == ["done"]
    assert not second.began.is_set()
    assert (threads.busy, threads.stuck) == (0, 0)


async def test_a_stopped_turn_waits_for_a_thread_that_looks_at_the_flag() -> None:
    threads = BoundedThreads(1)
    began, stop, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> Iterator[str]:
        began.set()
        stop.wait(PATIENCE)
        ended.set()
        yield "late"

    async def reading() -> None:
        async for _ in threads.iterate(work, on_stop=stop.set):
            pass

    async with asyncio.TaskGroup() as group:
        task = group.create_task(reading())
        await until(began)
        task.cancel()

    assert ended.is_set()
    assert (threads.busy, threads.stuck) == (0, 0)


async def test_a_thread_that_does_not_stop_is_counted_until_it_ends() -> None:
    threads = BoundedThreads(2, stop_seconds=0.0)
    gate = await stop_while_hanging(threads)
    assert (threads.busy, threads.stuck) == (1, 1)

    gate.leave.set()
    second = Gate()
    second.leave.set()
    await until(gate.ended)
    assert await read(threads, second) == ["done"]

    async with asyncio.timeout(PATIENCE):
        while threads.busy:
            await asyncio.to_thread(lambda: None)
    assert threads.stuck == 0


async def test_turns_are_refused_at_once_when_all_threads_are_stuck() -> None:
    threads = BoundedThreads(1, stop_seconds=0.0)
    gate = await stop_while_hanging(threads)

    with pytest.raises(RetryableAgentError, match="all 1 agent threads are stuck"):
        await read(threads, Gate())

    assert threads.busy == 1
    gate.leave.set()


async def test_turns_that_wait_are_refused_when_the_last_thread_gets_stuck() -> None:
    threads = BoundedThreads(1, stop_seconds=0.0)
    first = Gate()

    async def refused() -> None:
        with pytest.raises(RetryableAgentError, match="stuck"):
            await read(threads, Gate())

    async with asyncio.TaskGroup() as group:
        one = group.create_task(read(threads, first))
        await until(first.began)
        group.create_task(refused())
        await asyncio.sleep(0)
        one.cancel()

    assert (threads.busy, threads.stuck) == (1, 1)
    first.leave.set()


async def test_a_larger_bound_lets_waiting_turns_start() -> None:
    threads = BoundedThreads(1)
    first, second = Gate(), Gate()
    second.leave.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(read(threads, first))
        await until(first.began)
        two = group.create_task(read(threads, second))
        await asyncio.sleep(0)
        threads.resize(2)
        await two
        first.leave.set()

    assert threads.busy == 0


def test_a_thread_survives_the_loop_it_worked_for() -> None:
    threads = BoundedThreads(1, stop_seconds=0.0)

    gate = asyncio.run(stop_while_hanging(threads))
    gate.leave.set()
    assert gate.ended.wait(PATIENCE)

    second = Gate()
    second.leave.set()

    async def later() -> list[str]:
        async with asyncio.timeout(PATIENCE):
            while threads.stuck:
                await asyncio.to_thread(lambda: None)
        return await read(threads, second)

    assert asyncio.run(later()) == ["done"]


def test_no_threads_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        BoundedThreads(0)
