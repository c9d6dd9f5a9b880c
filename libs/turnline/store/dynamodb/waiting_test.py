"""What waiting costs the table, and that nobody is forgotten."""

import asyncio
from collections.abc import AsyncIterator
from random import Random

import pytest

from turnline.protocol import BEGINNING, ReplyKey
from turnline.protocol.clock import SystemClock
from turnline.store import StreamItem
from turnline.store.dynamodb import DynamoDbResponseStore
from turnline.store.dynamodb.poll import FIRST_SECONDS, LONGEST_SECONDS
from turnline.store.dynamodb.store_rig import open_replies, open_sessions
from turnline.testing.conformance.stores.ledger_rig import begin
from turnline.testing.conformance.stores.reply_rig import KEY, add, chunk, give_up, reply
from turnline.testing.servers.aws_front import AwsFront, error

_CLOCK = SystemClock()
_SOON = 60.0


@pytest.fixture
async def store(front: AwsFront) -> AsyncIterator[DynamoDbResponseStore]:
    async with open_replies(front.url, _CLOCK) as store:
        yield store


async def _looks(front: AwsFront, count: int) -> None:
    """Return when there were so many reads more."""
    wanted = len(front.made("GetItem")) + count
    async with asyncio.timeout(_SOON):
        while len(front.made("GetItem")) < wanted:  # noqa: ASYNC110  # the front tells nobody
            await asyncio.sleep(0.005)


async def _next(items: AsyncIterator[StreamItem]) -> StreamItem:
    return await anext(items)


async def test_all_who_wait_for_one_turn_share_one_loop(
    store: DynamoDbResponseStore, front: AwsFront
) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(store.wait(KEY, 30)) for _ in range(100)]
        await _looks(front, 5)
        before = len(front.made("GetItem"))
        await asyncio.sleep(1.0)
        looked = len(front.made("GetItem")) - before
        await store.put(KEY, reply())

    assert [task.result() for task in waiting] == [reply()] * 100
    assert looked <= 1.0 / FIRST_SECONDS / 4


async def test_looks_become_rare_and_stay_regular(
    store: DynamoDbResponseStore, front: AwsFront
) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(store.wait(KEY, 30))
        await _looks(front, 11)
        before = len(front.made("GetItem"))
        await asyncio.sleep(8 * LONGEST_SECONDS)
        looked = len(front.made("GetItem")) - before
        await give_up(waiting)

    assert 1 <= looked <= 9


async def test_nobody_looks_when_nobody_waits(
    store: DynamoDbResponseStore, front: AwsFront
) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(store.wait(KEY, 30)) for _ in range(3)]
        await _looks(front, 3)
        for task in waiting:
            await give_up(task)
        items = store.stream(KEY, BEGINNING)
        reading = tasks.create_task(_next(items))
        await _looks(front, 3)
        await give_up(reading)
    del items
    before = len(front.made("GetItem"))

    await asyncio.sleep(2 * LONGEST_SECONDS)

    assert len(front.made("GetItem")) == before


async def test_an_end_put_in_this_process_is_seen_at_once(
    store: DynamoDbResponseStore, front: AwsFront
) -> None:
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(store.wait(KEY, 30))
        await _looks(front, 14)  # far apart by now
        await store.put(KEY, reply())
        before = loop.time()
        await waiting

    assert loop.time() - before < LONGEST_SECONDS / 2


async def test_who_looked_for_all_may_leave_at_any_moment(
    store: DynamoDbResponseStore,
) -> None:
    chance = Random(7)
    async with asyncio.TaskGroup() as tasks:
        staying = [tasks.create_task(store.wait(KEY, 30)) for _ in range(3)]
        for _ in range(40):
            leaving = tasks.create_task(store.wait(KEY, 30))
            await asyncio.sleep(chance.random() * 0.01)
            await give_up(leaving)
            first = staying.pop(0)
            await give_up(first)
            staying.append(tasks.create_task(store.wait(KEY, 30)))
        await store.put(KEY, reply())
        async with asyncio.timeout(_SOON):
            assert await asyncio.gather(*staying) == [reply()] * 3


async def test_a_wait_ends_in_time_while_others_wait_on(store: DynamoDbResponseStore) -> None:
    async with asyncio.TaskGroup() as tasks:
        long = [tasks.create_task(store.wait(KEY, 30)) for _ in range(2)]
        await asyncio.sleep(0.1)
        async with asyncio.timeout(_SOON):
            assert await store.wait(KEY, 0.2) is None
        await store.put(KEY, reply())
        assert await asyncio.gather(*long) == [reply()] * 2


async def test_a_reader_whose_wait_was_cut_short_goes_on(store: DynamoDbResponseStore) -> None:
    items = store.stream(KEY, BEGINNING)
    for index in range(3):
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.03):
                    await anext(items)
        await add(store, 1, index, index)

        async with asyncio.timeout(_SOON):
            assert await anext(items) == chunk(1, index)


async def test_a_reader_of_a_quiet_turn_reads_no_chunks(
    store: DynamoDbResponseStore, front: AwsFront
) -> None:
    await add(store, 1, 0, 0)
    items = store.stream(KEY, BEGINNING)
    assert await anext(items) == chunk(1, 0)
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(_next(items))
        await _looks(front, 8)
        await give_up(reading)

    assert len(front.made("Query")) == 1


async def test_a_throttled_table_is_looked_at_ever_more_rarely(
    store: DynamoDbResponseStore, front: AwsFront
) -> None:
    front.always("GetItem", error(400, "ThrottlingException"))
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(store.wait(KEY, 30))
        await _looks(front, 11)
        before = len(front.made("GetItem"))
        await asyncio.sleep(4 * LONGEST_SECONDS)
        looked = len(front.made("GetItem")) - before
        front.always("GetItem", None)
        await store.put(KEY, reply())
        async with asyncio.timeout(_SOON):
            assert await waiting == reply()

    assert looked <= 5


async def test_waits_for_many_turns_leave_nothing_behind(store: DynamoDbResponseStore) -> None:
    for number in range(5):
        assert await store.wait(ReplyKey("", f"r{number}"), 0.02) is None

    assert not store._polls


async def test_waiting_for_a_cancellation_is_no_hot_loop(front: AwsFront) -> None:
    async with open_sessions(front.url, _CLOCK) as sessions:
        claim = (await begin(sessions, "t1")).claim
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(sessions.wait_cancelled(claim))
            await _looks(front, 15)
            before = len(front.made("GetItem"))
            await asyncio.sleep(2.5)
            looked = len(front.made("GetItem")) - before
            await give_up(waiting)

    assert 1 <= looked <= 4
