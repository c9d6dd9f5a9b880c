"""Servers that hang, networks that lose: nobody waits for ever, nothing is lost or made twice."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from turnline.errors import StoreUnavailableError
from turnline.protocol import BEGINNING
from turnline.protocol.clock import SystemClock
from turnline.store import Cancelled, Connection, New, Opened, StreamItem
from turnline.store.dynamodb import DynamoDbResponseStore, DynamoDbSessionStore
from turnline.store.dynamodb.store_rig import (
    MovedTime,
    open_connections,
    open_replies,
    open_sessions,
)
from turnline.testing.conformance.stores.ledger_rig import (
    KEY,
    LONG,
    begin,
    commit,
    look,
    run_turn,
    told,
)
from turnline.testing.conformance.stores.reply_rig import KEY as TURN
from turnline.testing.conformance.stores.reply_rig import (
    SESSION,
    add,
    chunk,
    chunks,
    give_up,
    read_all,
    reply,
)
from turnline.testing.servers.dynamodb import DynamoDbServer
from turnline.testing.servers.tcp_proxy import TcpProxy

_CLOCK = SystemClock()
_DEADLINE = 3.0
_TRY = 1.0
_SOON = 60.0


@pytest.fixture
def hang(server: DynamoDbServer) -> Iterator[Callable[[], None]]:
    """Make the server hang, until it is resumed or the test is over."""
    yield server.pause
    server.resume()


@pytest.fixture
async def proxy(server: DynamoDbServer) -> AsyncIterator[TcpProxy]:
    async with TcpProxy(server.port) as proxy:
        yield proxy


@asynccontextmanager
async def _both(
    port: int, *, deadline: float = _DEADLINE
) -> AsyncIterator[tuple[DynamoDbResponseStore, DynamoDbSessionStore]]:
    url = f"http://127.0.0.1:{port}"
    async with (
        open_replies(url, _CLOCK, deadline=deadline, try_seconds=_TRY) as replies,
        open_sessions(url, _CLOCK, deadline=deadline, try_seconds=_TRY) as sessions,
    ):
        yield replies, sessions


async def _until_it_works(call: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(_SOON):
        while True:
            try:
                await call()
            except StoreUnavailableError:
                continue
            return


async def _next(items: AsyncIterator[StreamItem]) -> StreamItem:
    return await anext(items)


async def test_a_waiter_learns_of_an_end_put_after_an_outage(
    server: DynamoDbServer, hang: Callable[[], None]
) -> None:
    async with _both(server.port) as (replies, _), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(replies.wait(TURN, 60))
        await asyncio.sleep(0.1)
        hang()
        await asyncio.sleep(2 * _DEADLINE)
        server.resume()
        await _until_it_works(lambda: replies.put(TURN, reply()))
        async with asyncio.timeout(_SOON):
            assert await waiting == reply()


async def test_a_reader_goes_on_where_it_was_after_an_outage(
    server: DynamoDbServer, hang: Callable[[], None]
) -> None:
    async with _both(server.port) as (replies, _), asyncio.TaskGroup() as tasks:
        await add(replies, 1, 0, 0)
        items = replies.stream(TURN, BEGINNING)
        assert await anext(items) == chunk(1, 0)
        waiting = tasks.create_task(_next(items))
        await asyncio.sleep(0.1)
        hang()
        await asyncio.sleep(2 * _DEADLINE)
        server.resume()
        await _until_it_works(lambda: add(replies, 1, 1, 1))
        async with asyncio.timeout(_SOON):
            assert await waiting == chunk(1, 1)


async def test_a_runner_is_told_of_a_cancellation_after_an_outage(
    server: DynamoDbServer, hang: Callable[[], None]
) -> None:
    async with _both(server.port) as (_, sessions), asyncio.TaskGroup() as tasks:
        claim = (await begin(sessions, "t1")).claim
        waiting = tasks.create_task(sessions.wait_cancelled(claim))
        await asyncio.sleep(0.1)
        hang()
        await asyncio.sleep(2 * _DEADLINE)
        server.resume()
        await _until_it_works(lambda: sessions.cancel_turn(KEY, "t1"))
        async with asyncio.timeout(_SOON):
            await waiting
        assert await sessions.cancel_turn(KEY, "t1") is Cancelled.RUNNING


async def test_every_call_ends_in_time_while_the_server_hangs(
    server: DynamoDbServer, hang: Callable[[], None]
) -> None:
    async with (
        _both(server.port) as (replies, sessions),
        open_connections(server.url, _CLOCK, deadline=_DEADLINE, try_seconds=_TRY) as connections,
    ):
        claim = (await begin(sessions, "t1")).claim
        hang()
        calls: list[Awaitable[object]] = [
            replies.open(TURN, session_id=SESSION, fingerprint="f"),
            replies.discard(TURN),
            replies.put(TURN, reply()),
            replies.get(TURN),
            replies.wait(TURN, 0.2),
            add(replies, 1, 0, 0),
            replies.check(),
            sessions.begin_turn(KEY, "t2", lease=LONG),
            sessions.renew_turn(claim, lease=LONG),
            commit(sessions, claim),
            sessions.abandon_turn(claim),
            sessions.cancel_turn(KEY, "t1"),
            sessions.check(),
            connections.add(Connection(user_id="u", connection_id="c", endpoint="e")),
            connections.remove("u", "c"),
            connections.connections_of("u"),
            connections.hold("u", {}),
            connections.held("u"),
            connections.drop_held("u", "1"),
            connections.check(),
        ]
        began = time.monotonic()
        async with asyncio.timeout(_SOON):
            ends = await asyncio.gather(*calls, return_exceptions=True)
        took = time.monotonic() - began
        server.resume()

    assert [type(end) for end in ends] == [StoreUnavailableError] * len(calls)
    assert took < 10 * _DEADLINE


async def test_a_commit_whose_answer_the_network_lost_is_made_once(proxy: TcpProxy) -> None:
    async with _both(proxy.port, deadline=30.0) as (_, sessions), asyncio.TaskGroup() as tasks:
        begun = await begin(sessions, "t1")
        proxy.swallow("to_client")
        committing = tasks.create_task(commit(sessions, begun.claim, state={"n": 1}))
        await asyncio.sleep(2 * _TRY)
        proxy.cut()
        proxy.heal()
        async with asyncio.timeout(_SOON):
            await committing

        session = await look(sessions)
        assert (told(session), session.state) == ([("t1", "hello")], {"n": 1})


async def test_a_claim_whose_answer_the_network_lost_is_the_callers(proxy: TcpProxy) -> None:
    async with _both(proxy.port, deadline=30.0) as (_, sessions), asyncio.TaskGroup() as tasks:
        await run_turn(sessions, "t0")
        proxy.stall("to_client")
        beginning = tasks.create_task(sessions.begin_turn(KEY, "t1", lease=LONG))
        await asyncio.sleep(2.5 * _TRY)
        proxy.cut()
        proxy.heal()
        async with asyncio.timeout(_SOON):
            begun = await beginning

        assert isinstance(begun, New)
        assert told(begun.session) == [("t0", "hello")]


async def test_admissions_over_a_network_that_cuts_are_new_once(proxy: TcpProxy) -> None:
    async with _both(proxy.port, deadline=30.0) as (replies, _), asyncio.TaskGroup() as tasks:
        opening = [
            tasks.create_task(replies.open(TURN, session_id=SESSION, fingerprint="f"))
            for _ in range(5)
        ]
        for _ in range(10):
            await asyncio.sleep(0.02)
            proxy.cut()
        async with asyncio.timeout(_SOON):
            opened = await asyncio.gather(*opening)

    assert sorted(opened) == [Opened.KNOWN] * 4 + [Opened.NEW]


async def test_a_stream_over_a_network_that_cuts_is_whole_and_in_order(proxy: TcpProxy) -> None:
    async with _both(proxy.port, deadline=30.0) as (replies, _), asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(_all(replies))

        async def write() -> None:
            for index in range(0, 30, 3):
                await add(replies, 1, index, index + 2)
            await replies.put(TURN, reply(chunks=30))

        writing = tasks.create_task(write())
        while not writing.done():
            await asyncio.sleep(0.15)
            proxy.cut()
        async with asyncio.timeout(_SOON):
            assert await reading == [*chunks(1, 0, 29), reply(chunks=30)]
        assert await read_all(replies, MovedTime()) == [*chunks(1, 0, 29), reply(chunks=30)]


async def _all(replies: DynamoDbResponseStore) -> list[StreamItem]:
    return [item async for item in replies.stream(TURN, BEGINNING)]


async def test_a_call_that_is_cancelled_leaves_the_store_usable(
    server: DynamoDbServer, hang: Callable[[], None]
) -> None:
    async with _both(server.port) as (replies, sessions), asyncio.TaskGroup() as tasks:
        claim = (await begin(sessions, "t1")).claim
        hang()
        calls = [
            tasks.create_task(replies.put(TURN, reply())),
            tasks.create_task(commit(sessions, claim)),
            tasks.create_task(_ignore(replies.wait(TURN, 60))),
        ]
        await asyncio.sleep(0.1)
        for call in calls:
            await give_up(call)
            assert call.cancelled()
        server.resume()
        await _until_it_works(lambda: commit(sessions, claim))
        await _until_it_works(lambda: replies.put(TURN, reply()))

        assert told(await look(sessions)) == [("t1", "hello")]


async def _ignore(work: Awaitable[object]) -> None:
    await work
