"""What waiting costs the server, and that who leaves takes it along."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from turnline.protocol import BEGINNING, ReplyKey
from turnline.store.valkey import ValkeyResponseOptions, ValkeyResponseStore
from turnline.store.valkey.commands import Commands
from turnline.store.valkey.listener import Listener
from turnline.store.valkey.server import open_commands, open_listener
from turnline.store.valkey.store_rig import CLOCK, at
from turnline.testing.conformance.stores.reply_rig import KEY, add, chunk, give_up, reply
from turnline.testing.servers.valkey import ValkeyServer

_SOON = 5.0


@pytest.fixture
async def commands(server: ValkeyServer) -> AsyncIterator[Commands]:
    async with open_commands(at(server), CLOCK) as commands:
        await commands.call("FLUSHALL")
        yield commands


@pytest.fixture
async def listener(server: ValkeyServer) -> AsyncIterator[Listener]:
    async with open_listener(at(server), CLOCK) as listener:
        yield listener


@pytest.fixture
def store(commands: Commands, listener: Listener) -> ValkeyResponseStore:
    return ValkeyResponseStore(ValkeyResponseOptions(prefix="w:", ttl=60), commands, listener)


async def _channels(commands: Commands, count: int) -> list[bytes]:
    """Give what is subscribed to, as soon as it is that many."""
    async with asyncio.timeout(_SOON):
        while True:
            found: list[bytes] = await commands.call("PUBSUB", "CHANNELS", "w:*")
            if len(found) == count:
                return found


async def test_all_who_wait_for_one_turn_share_a_subscription(
    store: ValkeyResponseStore, commands: Commands
) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(store.wait(KEY, 30)) for _ in range(100)]
        assert await _channels(commands, 1) == [b"w:{r1}:ended"]
        await store.put(KEY, reply())

    assert [task.result() for task in waiting] == [reply()] * 100
    assert await _channels(commands, 0) == []


async def test_a_waiter_that_is_cancelled_ends_its_subscription(
    store: ValkeyResponseStore, commands: Commands
) -> None:
    async with asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(store.wait(ReplyKey("", f"{at}"), 30)) for at in range(600)]
        await _channels(commands, 600)
        for task in waiting[1:]:
            task.cancel()

        assert await _channels(commands, 1) == [b"w:{0}:ended"]
        await give_up(waiting[0])

    assert await _channels(commands, 0) == []


async def test_a_waiter_whose_time_is_over_ends_its_subscription(
    store: ValkeyResponseStore, commands: Commands
) -> None:
    assert await store.wait(KEY, 0.1) is None

    assert await _channels(commands, 0) == []


async def test_a_reader_that_is_dropped_ends_its_subscription(
    store: ValkeyResponseStore, commands: Commands
) -> None:
    await add(store, 1, 0, 0)
    items = store.stream(KEY, BEGINNING)
    assert await anext(items) == chunk(1, 0)
    await _channels(commands, 1)

    del items

    assert await _channels(commands, 0) == []


async def test_a_reader_whose_wait_was_cut_short_goes_on(store: ValkeyResponseStore) -> None:
    items = store.stream(KEY, BEGINNING)
    for index in range(3):
        for _ in range(2):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await anext(items)
        await add(store, 1, index, index)

        async with asyncio.timeout(_SOON):
            assert await anext(items) == chunk(1, index)


async def test_who_waits_again_for_what_was_just_left_is_told(store: ValkeyResponseStore) -> None:
    for number in range(30):
        key = ReplyKey("", f"again-{number % 3}-{number // 3}")
        async with asyncio.TaskGroup() as tasks:
            left = tasks.create_task(store.wait(key, 30))
            await asyncio.sleep(0.001 * (number % 4))
            left.cancel()
            await asyncio.wait([left])
            waiting = tasks.create_task(store.wait(key, 30))
            await asyncio.sleep(0.001 * (number % 3))
            await store.put(key, reply())
            async with asyncio.timeout(_SOON):
                assert await waiting == reply()


async def test_a_reader_of_a_running_turn_looks_once_for_each_piece_of_news(
    store: ValkeyResponseStore, commands: Commands
) -> None:
    items = store.stream(KEY, BEGINNING)
    await commands.call("CONFIG", "RESETSTAT")
    for index in range(20):
        await add(store, 1, index, index)
        assert await anext(items) == chunk(1, index)

    stats = (await commands.call("INFO", "commandstats")).decode()
    (line,) = [line for line in stats.splitlines() if line.startswith("cmdstat_xrange:")]
    assert int(line.partition("calls=")[2].partition(",")[0]) <= 25 + 20
