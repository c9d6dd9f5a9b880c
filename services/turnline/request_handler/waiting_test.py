"""Everybody who waits can be let go."""

import asyncio
from collections.abc import Awaitable

import pytest

from turnline.errors import DrainingError
from turnline.request_handler.waiting import WaitingRoom


async def test_closing_lets_whoever_waits_go() -> None:
    room = WaitingRoom()
    seated = asyncio.Event()

    async def wait() -> None:
        async with room.seat():
            seated.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as tasks:
        waiter = tasks.create_task(_outcome(wait()))
        await seated.wait()
        await room.close()

    assert isinstance(waiter.result(), DrainingError)
    assert room.waiting == 0


async def test_nobody_waits_in_a_closed_room() -> None:
    room = WaitingRoom()
    await room.close()

    with pytest.raises(DrainingError):
        async with room.seat():
            pass


async def test_an_answer_that_is_here_reaches_its_waiter_before_the_closing() -> None:
    room = WaitingRoom()
    answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    seated = asyncio.Event()

    async def wait() -> str:
        async with room.seat():
            seated.set()
            return await answer

    async with asyncio.TaskGroup() as tasks:
        waiter = tasks.create_task(wait())
        await seated.wait()
        answer.set_result("here")
        await room.close()

    assert waiter.result() == "here"


async def test_whoever_asked_to_be_told_is_told_once() -> None:
    room = WaitingRoom()
    calls: list[str] = []

    with room.told(lambda: calls.append("inside")):
        await room.close()
    with room.told(lambda: calls.append("late")):
        pass

    assert calls == ["inside", "late"]


async def test_cancelling_a_waiter_is_no_closing() -> None:
    room = WaitingRoom()
    seated = asyncio.Event()

    async def wait() -> None:
        async with room.seat():
            seated.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as tasks:
        waiter = tasks.create_task(wait())
        await seated.wait()
        waiter.cancel()

    assert waiter.cancelled()
    assert room.waiting == 0


async def _outcome(work: Awaitable[None]) -> BaseException | None:
    try:
        await work
    except DrainingError as error:
        return error
    return None
