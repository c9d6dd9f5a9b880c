"""What is kept on the server is bounded, and expires when nobody uses it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from turnline.errors import FencedError
from turnline.protocol import ChatEvent, Chunk, EventType
from turnline.store import Connection, Gap, New
from turnline.store.valkey import (
    ValkeyConnectionOptions,
    ValkeyResponseOptions,
    ValkeySessionOptions,
)
from turnline.store.valkey.commands import Commands
from turnline.store.valkey.server import open_commands
from turnline.store.valkey.store_rig import (
    CLOCK,
    RealTime,
    at,
    open_connections,
    open_replies,
    open_sessions,
)
from turnline.testing.conformance.stores.ledger_rig import KEY, LONG, begin, commit, look, run_turn
from turnline.testing.conformance.stores.reply_rig import KEY as TURN
from turnline.testing.conformance.stores.reply_rig import SESSION, add, read_all, reply
from turnline.testing.servers.valkey import ValkeyServer


@pytest.fixture
async def commands(server: ValkeyServer) -> AsyncIterator[Commands]:
    async with open_commands(at(server), CLOCK) as commands:
        await commands.call("FLUSHALL")
        yield commands


def _large(index: int, size: int) -> Chunk:
    event = ChatEvent(type=EventType.TEXT_DELTA, content="x" * size)
    return Chunk(attempt=1, index=index, event=event)


async def test_of_large_chunks_the_oldest_give_way_and_the_newest_stays(
    server: ValkeyServer, commands: Commands
) -> None:
    options = ValkeyResponseOptions(prefix="b:", ttl=60, max_chunk_bytes=1000)
    async with open_replies(at(server), options) as store:
        for index, size in enumerate([300, 300, 300, 300, 5000]):
            await store.append(TURN, session_id=SESSION, chunks=[_large(index, size)])
            kept = await commands.call("XLEN", "b:{r1}:chunks")
            assert kept == {0: 1, 1: 2, 2: 2, 3: 2, 4: 1}[index]
        await store.put(TURN, reply(chunks=5))
        items = await read_all(store, RealTime())

    assert items == [Gap(attempt=1, first=0, last=3), _large(4, 5000), reply(chunks=5)]


async def test_a_stream_longer_than_one_read_is_read_whole_and_in_order(
    server: ValkeyServer, commands: Commands
) -> None:
    async with open_replies(at(server), ValkeyResponseOptions(prefix="b:", ttl=60)) as store:
        await add(store, 1, 0, 511)
        await store.put(TURN, reply(chunks=512))

        items = await read_all(store, RealTime())

    assert len(items) == 513
    assert items[-1] == reply(chunks=512)


async def test_a_reader_of_a_finished_turn_that_expires_just_ends(
    server: ValkeyServer, commands: Commands
) -> None:
    async with open_replies(at(server), ValkeyResponseOptions(prefix="b:", ttl=60)) as store:
        await add(store, 1, 0, 299)
        await store.put(TURN, reply(chunks=300))
        items = store.stream(TURN, after=_large(0, 0).position)
        first = await anext(items)
        await commands.call("DEL", "b:{r1}:reply", "b:{r1}:chunks")
        async with asyncio.timeout(30):
            rest = [item async for item in items]

    assert isinstance(first, Chunk)
    assert len(rest) == 255


async def test_turns_that_never_end_are_counted_for_the_latest_only(
    server: ValkeyServer, commands: Commands
) -> None:
    options = ValkeySessionOptions(prefix="b:", ttl=60, max_done_per_session=3)
    async with open_sessions(at(server), options) as store:
        for number in range(6):
            begun = await begin(store, f"t{number}")
            await store.abandon_turn(begun.claim)
        counted = await commands.call("HKEYS", "b:{s1}:tries")
        forgotten = await begin(store, "t0")

    assert sorted(counted) == [b"t3", b"t4", b"t5"]
    assert forgotten.claim.attempt == 1


async def test_a_session_keeps_nothing_of_turns_that_ended_but_their_marks(
    server: ValkeyServer, commands: Commands
) -> None:
    options = ValkeySessionOptions(prefix="b:", ttl=60, max_done_per_session=3)
    async with open_sessions(at(server), options) as store:
        for number in range(6):
            await run_turn(store, f"t{number}")
            await store.cancel_turn(KEY, f"c{number}")

    assert await commands.call("HLEN", "b:{s1}:done") == 3
    assert await commands.call("LLEN", "b:{s1}:order") == 3
    assert await commands.call("EXISTS", "b:{s1}:tries", "b:{s1}:recent") == 0


async def test_turns_that_left_the_history_are_not_kept(
    server: ValkeyServer, commands: Commands
) -> None:
    options = ValkeySessionOptions(prefix="b:", ttl=60, max_history_turns=2)
    async with open_sessions(at(server), options) as store:
        for number in range(4):
            await run_turn(store, f"t{number}")

    assert await commands.call("LLEN", "b:{s1}:turns") == 2


async def test_a_session_outlives_its_ttl_while_it_is_claimed(
    server: ValkeyServer, commands: Commands
) -> None:
    async with open_sessions(at(server), ValkeySessionOptions(prefix="b:", ttl=0.2)) as store:
        begun = await begin(store, "t1", lease=2)
        await asyncio.sleep(0.4)
        await commit(store, begun.claim, state={"n": 1})
        kept = await look(store)

    assert kept.state == {"n": 1}


async def test_a_claim_of_a_session_that_was_lost_is_below_every_new_one(
    server: ValkeyServer, commands: Commands
) -> None:
    async with open_sessions(at(server), ValkeySessionOptions(prefix="b:", ttl=60)) as store:
        lost = await begin(store, "t1")
        await commands.call("FLUSHALL")
        found = await store.begin_turn(KEY, "t1", lease=LONG)

        assert isinstance(found, New)
        assert found.claim.fence > lost.claim.fence
        with pytest.raises(FencedError):
            await commit(store, lost.claim)


async def test_sockets_of_dead_pods_do_not_pile_up(
    server: ValkeyServer, commands: Commands
) -> None:
    options = ValkeyConnectionOptions(prefix="b:", ttl=0.1)
    async with open_connections(at(server), options) as store:
        for number in range(20):
            await store.add(
                Connection(user_id="u", connection_id=f"c{number}", endpoint="http://a;b")
            )
            await asyncio.sleep(0.02)
        kept = await commands.call("HLEN", "b:{user:u}:sockets")

    assert 1 <= kept < 10
