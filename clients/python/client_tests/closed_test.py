"""Clients that are closed: what runs on them ends, and what is asked of them later is refused."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from client_tests.conftest import LONG, Rig, admitted
from client_tests.own_server import OwnServer, client_of
from client_tests.statuses_test import PENDING, ROWS, ended
from turnline_client import (
    AsyncClient,
    ChatRequest,
    ChatStream,
    Chunk,
    Client,
    Reply,
    RetryPolicy,
    TurnlineError,
)


def held(rig: Rig) -> ChatRequest:
    return ChatRequest(prompt=str(rig.folder / str(uuid.uuid4())), agent="hold")


@asynccontextmanager
async def running(
    client: AsyncClient, rig: Rig
) -> AsyncIterator[tuple[AsyncClient, asyncio.Future[Reply], str]]:
    """A client to be closed, a call that waits on it, and the name of its turn."""
    name = str(uuid.uuid4())
    async with AsyncClient(rig.open, timeout=LONG) as closing:
        call = asyncio.ensure_future(closing.chat(held(rig), session_id=name, request_id=name))
        await admitted(client, name)
        yield closing, call, name
    await client.cancel(name)


async def test_a_call_that_runs_when_its_client_is_closed_is_cancelled(
    client: AsyncClient, rig: Rig
) -> None:
    async with running(client, rig) as (closing, call, request_id):
        await closing.close()

        with pytest.raises(TurnlineError) as refused:
            await call

    error = refused.value
    assert (error.code, error.retryable, error.request_id) == ("cancelled", False, request_id)


async def test_a_stream_that_runs_when_its_client_is_closed_is_cancelled(
    client: AsyncClient, rig: Rig
) -> None:
    closing = AsyncClient(rig.open, timeout=LONG)
    stream = closing.stream(held(rig), session_id=str(uuid.uuid4()))
    while not isinstance(await anext(stream), Chunk):
        pass
    reading = asyncio.ensure_future(read(stream))
    await asyncio.sleep(0)
    await closing.close()

    with pytest.raises(TurnlineError) as refused:
        await reading

    assert refused.value.code == "cancelled"
    with pytest.raises(StopAsyncIteration):
        await anext(stream)
    await client.cancel(stream.request_id)


async def read(stream: ChatStream) -> None:
    async for _ in stream:
        pass


@pytest.mark.parametrize("way", ["chat", "stream", "submit", "reply", "resume", "cancel"])
async def test_a_closed_client_refuses_and_asks_nobody(way: str) -> None:
    server = OwnServer(lambda _: [PENDING])
    async with client_of(server) as client:
        await client.close()
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "chat": lambda: client.chat("x", session_id="s"),
            "stream": lambda: anext(client.stream("x", session_id="s")),
            "submit": lambda: client.submit("x", session_id="s"),
            "reply": lambda: client.reply("r1"),
            "resume": lambda: anext(client.resume("r1")),
            "cancel": lambda: client.cancel("r1"),
        }
        with pytest.raises(TurnlineError) as refused:
            await calls[way]()

    assert (refused.value.code, refused.value.retryable) == ("cancelled", False)
    assert server.asked == 0


async def test_a_client_that_is_closed_between_two_tries_makes_no_other() -> None:
    paused = asyncio.Event()

    def jitter() -> float:
        paused.set()
        return 0.0

    server = OwnServer(lambda _: [ended(ROWS["unavailable_alone"])])
    retry = RetryPolicy(backoff=LONG / 2, max_backoff=LONG / 2, jitter=jitter)
    async with client_of(server, retry) as client:
        call = asyncio.ensure_future(client.submit("x", session_id="s"))
        async with asyncio.timeout(LONG):
            await paused.wait()
        await client.close()
        with pytest.raises(TurnlineError) as refused:
            await asyncio.wait_for(call, LONG / 4)

    assert (refused.value.code, server.asked) == ("cancelled", 1)


async def test_a_client_that_is_closed_while_a_reply_is_waited_for_does_not_ask_again() -> None:
    asked = asyncio.Event()

    def pending(_: int) -> list[bytes]:
        asked.set()
        return [PENDING]

    async with client_of(OwnServer(pending)) as client:
        call = asyncio.ensure_future(client.reply("r1", wait=LONG))
        async with asyncio.timeout(LONG):
            await asked.wait()
        await client.close()
        with pytest.raises(TurnlineError) as refused:
            await asyncio.wait_for(call, LONG)

    assert refused.value.code == "cancelled"


async def test_a_caller_who_leaves_a_closed_client_is_cancelled_as_ever(
    client: AsyncClient, rig: Rig
) -> None:
    async with running(client, rig) as (closing, call, _):
        call.cancel()
        await closing.close()

        with pytest.raises(asyncio.CancelledError):
            await call


def test_the_client_without_a_loop_refuses_too_and_is_closed_twice(rig: Rig) -> None:
    client = Client(rig.open, timeout=LONG)
    stream = client.stream("a b", session_id=str(uuid.uuid4()))
    next(stream)
    client.close()
    client.close()

    calls: list[Callable[[], object]] = [
        lambda: client.chat("x", session_id="s"),
        lambda: next(stream),
    ]
    for call in calls:
        with pytest.raises(TurnlineError) as refused:
            call()
        assert refused.value.code == "cancelled"
