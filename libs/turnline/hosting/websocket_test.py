"""What stands in for uvicorn's queue and event keeps their promises, and keeps nothing else."""

import asyncio

import pytest
from uvicorn._types import ASGIReceiveEvent

from turnline.hosting.websocket import Gate, Inbox


def message(text: str) -> ASGIReceiveEvent:
    return {"type": "websocket.receive", "text": text}


async def soon(task: asyncio.Task[ASGIReceiveEvent]) -> ASGIReceiveEvent:
    async with asyncio.timeout(30):
        return await task


async def test_messages_are_read_in_the_order_they_came() -> None:
    inbox = Inbox()
    inbox.put_nowait(message("a"))
    inbox.put_nowait(message("b"))

    assert [await inbox.get(), await inbox.get()] == [message("a"), message("b")]
    assert inbox.empty()


async def test_a_reader_waits_for_a_message() -> None:
    inbox = Inbox()
    async with asyncio.TaskGroup() as tasks:
        reader = tasks.create_task(inbox.get())
        await asyncio.sleep(0)
        assert not reader.done()
        inbox.put_nowait(message("a"))
        inbox.put_nowait(message("b"))

        assert await soon(reader) == message("a")
    assert await inbox.get() == message("b")


async def test_a_reader_cancelled_as_its_message_comes_leaves_it_for_the_next() -> None:
    inbox = Inbox()
    async with asyncio.TaskGroup() as tasks:
        reader = tasks.create_task(inbox.get())
        await asyncio.sleep(0)
        inbox.put_nowait(message("a"))
        reader.cancel()
        await asyncio.wait([reader])

        assert reader.cancelled()
        assert await inbox.get() == message("a")


async def test_a_second_reader_is_an_error_and_not_a_wait_without_end() -> None:
    inbox = Inbox()
    async with asyncio.TaskGroup() as tasks:
        reader = tasks.create_task(inbox.get())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="two tasks"):
            await inbox.get()
        inbox.put_nowait(message("a"))

        assert await soon(reader) == message("a")


async def test_a_gate_is_open_until_it_is_closed_and_lets_everybody_through_again() -> None:
    gate = Gate()
    await gate.wait()
    gate.clear()
    gate.clear()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        waiters = [tasks.create_task(gate.wait()) for _ in range(2)]
        await asyncio.sleep(0)
        assert not any(waiter.done() for waiter in waiters)
        gate.set()
    gate.set()
    await gate.wait()
