"""Servers that restart, hang, refuse or forget: nobody waits for ever, and all of it heals."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from turnline.errors import StoreUnavailableError, TurnlineError
from turnline.protocol import BEGINNING, ReplyKey
from turnline.store import New, Opened
from turnline.store.valkey import (
    ValkeyConnectionOptions,
    ValkeyResponseOptions,
    ValkeyResponseStore,
    ValkeySessionOptions,
    ValkeySessionStore,
)
from turnline.store.valkey.server import open_commands
from turnline.store.valkey.store_rig import (
    CLOCK,
    at,
    open_connections,
    open_replies,
    open_sessions,
)
from turnline.testing.conformance.stores.ledger_rig import KEY, LONG, begin, commit
from turnline.testing.conformance.stores.reply_rig import KEY as TURN
from turnline.testing.conformance.stores.reply_rig import SESSION, add, chunk, reply
from turnline.testing.servers.valkey import ValkeyServer, running_valkey

_REPLIES = ValkeyResponseOptions(prefix="o:", ttl=60)
_SESSIONS = ValkeySessionOptions(prefix="o:", ttl=60)
_DEADLINE = 0.5
_SOON = 10.0


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    with running_valkey() as server:
        yield server


@asynccontextmanager
async def _both(
    server: ValkeyServer,
) -> AsyncIterator[tuple[ValkeyResponseStore, ValkeySessionStore]]:
    options = at(server, deadline=_DEADLINE)
    async with (
        open_replies(options, _REPLIES) as replies,
        open_sessions(options, _SESSIONS) as sessions,
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


@pytest.mark.parametrize("how", ["restart", "pause"])
async def test_a_waiter_learns_of_an_end_put_after_an_outage(
    server: ValkeyServer, how: str
) -> None:
    async with _both(server) as (replies, _), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(replies.wait(TURN, 30))
        await asyncio.sleep(0.1)
        if how == "restart":
            server.restart()
        else:
            server.pause()
            await asyncio.sleep(4 * _DEADLINE)
            server.resume()
        await _until_it_works(lambda: replies.put(TURN, reply()))
        async with asyncio.timeout(_SOON):
            assert await waiting == reply()


async def test_a_reader_goes_on_where_it_was_after_an_outage(server: ValkeyServer) -> None:
    async with _both(server) as (replies, _), asyncio.TaskGroup() as tasks:
        await add(replies, 1, 0, 0)
        items = replies.stream(TURN, BEGINNING)
        assert await anext(items) == chunk(1, 0)
        waiting = tasks.create_task(_next(items))
        await asyncio.sleep(0.1)
        server.restart()
        await _until_it_works(lambda: add(replies, 1, 1, 1))
        async with asyncio.timeout(_SOON):
            assert await waiting == chunk(1, 1)


async def _next(items: AsyncIterator[object]) -> object:
    while True:
        try:
            return await anext(items)
        except StoreUnavailableError:
            continue


async def test_a_runner_is_told_of_a_cancellation_after_an_outage(server: ValkeyServer) -> None:
    async with _both(server) as (_, sessions), asyncio.TaskGroup() as tasks:
        claim = (await begin(sessions, "t1")).claim
        waiting = tasks.create_task(sessions.wait_cancelled(claim))
        await asyncio.sleep(0.1)
        server.pause()
        await asyncio.sleep(3 * _DEADLINE)
        server.resume()
        await _until_it_works(lambda: sessions.cancel_turn(KEY, "t1"))
        async with asyncio.timeout(_SOON):
            await waiting


async def test_a_runner_whose_lease_ran_out_is_told_too(server: ValkeyServer) -> None:
    async with _both(server) as (_, sessions), asyncio.TaskGroup() as tasks:
        claim = (await begin(sessions, "t1", lease=0.05)).claim
        waiting = tasks.create_task(sessions.wait_cancelled(claim))
        await asyncio.sleep(0.1)
        await sessions.cancel_turn(KEY, "t1")

        async with asyncio.timeout(_SOON / 2):
            await waiting


async def test_calls_made_during_a_short_restart_wait_for_its_end(server: ValkeyServer) -> None:
    async with open_sessions(at(server), _SESSIONS) as sessions, asyncio.TaskGroup() as tasks:
        await begin(sessions, "t1")
        server.kill()
        await asyncio.sleep(0.1)
        beginning = tasks.create_task(sessions.begin_turn(KEY, "t1", lease=LONG))
        await asyncio.sleep(0.1)
        server.start()

        assert isinstance(await beginning, New)


async def test_scripts_that_were_flushed_are_sent_again(server: ValkeyServer) -> None:
    async with _both(server) as (replies, sessions), open_commands(at(server), CLOCK) as admin:
        claim = (await begin(sessions, "t1")).claim
        await admin.call("SCRIPT", "FLUSH")
        await asyncio.gather(*(replies.put(ReplyKey("", f"{at}"), reply()) for at in range(20)))
        await admin.call("SCRIPT", "FLUSH")
        await commit(sessions, claim)

        assert await replies.get(ReplyKey("", "19")) == reply()


async def test_a_hanging_server_keeps_nobody_beyond_the_deadline(server: ValkeyServer) -> None:
    async with (
        _both(server) as (replies, sessions),
        open_connections(
            at(server, deadline=_DEADLINE), ValkeyConnectionOptions(prefix="o:", ttl=60)
        ) as connections,
    ):
        claim = (await begin(sessions, "t1")).claim
        server.pause()
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: replies.get(TURN),
            lambda: replies.put(TURN, reply()),
            lambda: replies.wait(TURN, 0.1),
            lambda: anext(replies.stream(TURN, BEGINNING)),
            lambda: sessions.begin_turn(KEY, "t2", lease=LONG),
            lambda: sessions.renew_turn(claim, lease=LONG),
            lambda: connections.connections_of("u"),
            replies.check,
            sessions.check,
        ]
        began = time.monotonic()
        failures = await asyncio.gather(*(_failure(call) for call in calls * 20))
        took = time.monotonic() - began
        server.resume()
        await _until_it_works(lambda: sessions.renew_turn(claim, lease=LONG))

    assert {type(failure) for failure in failures} == {StoreUnavailableError}
    # A stream looks only after it has waited a second for its subscription.
    assert took < 4 * _DEADLINE + 1


async def _failure(call: Callable[[], Awaitable[object]]) -> TurnlineError:
    with pytest.raises(TurnlineError) as raised:
        await call()
    assert raised.value.__cause__ is not None
    return raised.value


async def test_a_hanging_server_does_not_stop_the_loop(server: ValkeyServer) -> None:
    async with _both(server) as (replies, _):
        server.pause()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(200):
                tasks.create_task(_failure(lambda: replies.get(TURN)))
            longest = 0.0
            end = time.monotonic() + 2 * _DEADLINE
            while time.monotonic() < end:
                began = time.monotonic()
                await asyncio.sleep(0)
                longest = max(longest, time.monotonic() - began)
        server.resume()

    assert longest < 0.1


async def test_calls_given_up_before_they_went_out_are_not_made_later(
    server: ValkeyServer,
) -> None:
    async with _both(server) as (replies, _):
        server.kill()
        await asyncio.gather(
            *(
                _failure(lambda: replies.open(TURN, session_id=SESSION, fingerprint="f"))
                for _ in range(5)
            )
        )
        server.start()
        await _until_it_works(replies.check)

        assert await replies.open(TURN, session_id=SESSION, fingerprint="g") is Opened.NEW


async def test_a_call_whose_caller_left_before_it_went_out_is_not_made(
    server: ValkeyServer,
) -> None:
    async with open_commands(at(server), CLOCK) as commands, asyncio.TaskGroup() as tasks:
        await commands.call("PING")
        server.kill()
        await _failure(lambda: commands.call("PING"))
        staying = tasks.create_task(commands.call("PING"))
        leaving = tasks.create_task(commands.call("SET", "o:left", "x", "EX", 60))
        await asyncio.sleep(0)
        leaving.cancel()
        server.start()
        await staying

        assert await commands.call("GET", "o:left") is None


async def test_an_end_put_while_nobody_listened_is_not_missed(server: ValkeyServer) -> None:
    async with _both(server) as (replies, _), open_commands(at(server), CLOCK) as admin:
        for number in range(5):
            key = ReplyKey("", f"unheard-{number}")
            async with asyncio.TaskGroup() as tasks:
                waiting = tasks.create_task(replies.wait(key, 30))
                await asyncio.sleep(0.1)
                await admin.call("CLIENT", "KILL", "TYPE", "pubsub")
                await replies.put(key, reply())
                async with asyncio.timeout(_SOON / 2):
                    assert await waiting == reply()


async def test_a_hanging_server_is_not_taken_for_one_that_is_back(server: ValkeyServer) -> None:
    async with open_commands(at(server, deadline=_DEADLINE), CLOCK) as commands:
        await commands.call("PING")
        server.pause()
        await _failure(lambda: commands.call("PING"))
        seen: list[bool] = []
        for _ in range(20):
            await asyncio.sleep(_DEADLINE / 5)
            seen.append(commands.connected)
        server.resume()
        await _until_it_works(lambda: commands.call("PING"))

        assert commands.connected
        assert not any(seen)


async def test_a_server_that_resets_connections_in_the_handshake_is_tried_until_it_works(
    server: ValkeyServer,
) -> None:
    tries = asyncio.Semaphore(0)

    async def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tries.release()
        writer.transport.abort()

    async with _both(server) as (replies, _), asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(replies.wait(TURN, 30))
        await asyncio.sleep(0.1)
        server.kill()
        async with await asyncio.start_server(refuse, "127.0.0.1", server.port):
            async with asyncio.timeout(_SOON):
                for _ in range(6):
                    await tries.acquire()
        server.start()
        await _until_it_works(lambda: replies.put(TURN, reply()))
        async with asyncio.timeout(_SOON):
            assert await waiting == reply()


async def test_a_full_server_refuses_and_goes_on_when_there_is_room(
    server: ValkeyServer,
) -> None:
    async with _both(server) as (replies, sessions), open_commands(at(server), CLOCK) as admin:
        claim = (await begin(sessions, "t1")).claim
        await admin.call("CONFIG", "SET", "maxmemory", 1)
        refused = await _failure(lambda: replies.put(TURN, reply()))
        uncommitted = await _failure(lambda: commit(sessions, claim))
        await sessions.renew_turn(claim, lease=LONG)
        await admin.call("CONFIG", "SET", "maxmemory", 0)
        await commit(sessions, claim)

    assert isinstance(refused, StoreUnavailableError)
    assert isinstance(uncommitted, StoreUnavailableError)


async def test_a_read_only_server_is_unavailable(server: ValkeyServer) -> None:
    async with _both(server) as (replies, _), open_commands(at(server), CLOCK) as admin:
        await admin.call("REPLICAOF", "127.0.0.1", 1)
        refused = await _failure(lambda: replies.put(TURN, reply()))
        await admin.call("REPLICAOF", "NO", "ONE")
        await replies.put(TURN, reply())

    assert isinstance(refused, StoreUnavailableError)


async def test_a_busy_server_is_unavailable(server: ValkeyServer) -> None:
    async with (
        _both(server) as (replies, _),
        open_commands(at(server), CLOCK) as admin,
        open_commands(at(server), CLOCK) as other,
    ):
        await replies.check()
        await other.call("CONFIG", "SET", "busy-reply-threshold", 1)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_failure(lambda: admin.call("EVAL", "while true do end", 0)))
            await asyncio.sleep(0.05)
            refused = await _failure(lambda: replies.put(TURN, reply()))
            await other.call("SCRIPT", "KILL")
        await _until_it_works(lambda: replies.put(TURN, reply()))

    assert isinstance(refused, StoreUnavailableError)


async def test_names_of_another_application_are_a_fault_and_no_outage(
    server: ValkeyServer,
) -> None:
    async with _both(server) as (replies, _), open_commands(at(server), CLOCK) as admin:
        await admin.call("SET", "o:{r1}:reply", "theirs", "EX", 60)

        refused = await _failure(lambda: replies.put(TURN, reply()))

    assert not isinstance(refused, StoreUnavailableError)


async def test_closing_a_store_ends_the_calls_on_it(server: ValkeyServer) -> None:
    async with asyncio.TaskGroup() as tasks:
        async with open_replies(at(server), _REPLIES) as replies:
            server.pause()
            calling = tasks.create_task(_failure(lambda: replies.get(TURN)))
            await asyncio.sleep(0.05)
        async with asyncio.timeout(1):
            await calling
    server.resume()
