"""The in-process ResponseStore keeps to its bounds, cheaply, and says what it dropped."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from time import process_time

from turnline.protocol import BEGINNING, ReplyKey
from turnline.store import Gap, PendingReply, StoredReply, StreamItem
from turnline.store.memory import MemoryResponseOptions, MemoryResponseStore
from turnline.store.memory.chunk_log import ChunkLog
from turnline.testing import FakeClock
from turnline.testing.conformance.stores.reply_rig import (
    KEY,
    SESSION,
    add,
    chunk,
    chunks,
    reply,
)

_OTHER = ReplyKey("", "r2")


def _store(clock: FakeClock | None = None, **options: float) -> MemoryResponseStore:
    asked = MemoryResponseOptions(**options)  # type: ignore[arg-type]  # checked by the class
    return MemoryResponseStore(asked, clock or FakeClock())


async def _put_many(store: MemoryResponseStore, count: int, text: str = "hello") -> None:
    for number in range(count):
        key = ReplyKey("", f"many-{number}")
        await store.open(key, session_id=SESSION, fingerprint="f")
        await store.put(key, reply(text, request_id=key.request_id))


async def _rest(items: AsyncIterator[StreamItem]) -> list[StreamItem]:
    return [item async for item in items]


async def test_a_hundred_thousand_replies_nobody_reads_stay_within_the_bound() -> None:
    store = _store(max_replies=1_000)

    await _put_many(store, 100_000)

    assert store.usage.finished == 1_000
    assert store.usage.pending == 0
    assert store.usage.bytes < 1_000 * 2_000


async def test_over_the_bytes_bound_the_oldest_replies_give_way() -> None:
    store = _store(max_reply_bytes=100_000)

    await _put_many(store, 50, text="x" * 9_000)

    assert 5 <= store.usage.finished <= 10
    assert store.usage.bytes <= 100_000
    assert await store.get(ReplyKey("", "many-49")) is not None
    assert await store.get(ReplyKey("", "many-0")) is None


async def test_the_newest_reply_stays_whatever_its_size() -> None:
    store = _store(max_reply_bytes=1_000)

    await _put_many(store, 3, text="x" * 50_000)

    assert store.usage.finished == 1
    assert await store.get(ReplyKey("", "many-2")) is not None


async def test_the_counted_bytes_come_back_to_zero() -> None:
    clock = FakeClock()
    store = _store(clock, ttl=10.0, max_chunks_per_reply=3)
    await add(store, 1, 0, 9)
    await add(store, 2, 0, 9)
    await store.put(KEY, reply(attempt=3))
    await add(store, 1, 0, 4, key=_OTHER)
    await store.discard(_OTHER)
    await add(store, 1, 0, 4, key=ReplyKey("", "r3"))
    await clock.advance(11)

    assert await store.get(KEY) is None

    assert (store.usage.finished, store.usage.pending, store.usage.bytes) == (0, 0, 0)


async def test_counted_bytes_are_about_what_python_takes() -> None:
    store = _store()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        await _put_many(store, 300, text="x" * 200)
        for number in range(3_000):
            await add(store, 1, number, number)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 0.6 < store.usage.bytes / (after - before) < 1.5


async def test_streams_together_stay_within_the_bytes_bound() -> None:
    store = _store(max_reply_bytes=200_000)
    keys = [ReplyKey("", f"s{number}") for number in range(4)]

    for first in range(0, 1_000, 10):
        for key in keys:
            await add(store, 1, first, first + 9, key=key)

    assert store.usage.bytes <= 200_000
    items = store.stream(keys[0], BEGINNING)
    gap = await anext(items)
    assert isinstance(gap, Gap)
    assert await anext(items) == chunk(1, gap.last + 1)


async def test_one_stream_stays_within_its_own_bytes_bound() -> None:
    store = _store(max_chunk_bytes_per_reply=10_000)

    await add(store, 1, 0, 999)

    assert store.usage.bytes <= 12_000


async def test_over_the_bound_a_pending_turn_nobody_waits_for_gives_way() -> None:
    store = _store(max_pending=2)
    keys = [ReplyKey("", f"p{number}") for number in range(4)]
    watched = store.stream(keys[0], BEGINNING)
    for key in keys:
        await store.open(key, session_id=SESSION, fingerprint="f")

    kept = [await store.get(key) is not None for key in keys]

    assert kept == [True, False, False, True]
    del watched


async def test_a_pending_turn_somebody_reads_does_not_expire() -> None:
    clock = FakeClock()
    store = _store(clock, ttl=10.0)
    await store.open(KEY, session_id=SESSION, fingerprint="f")
    items = store.stream(KEY, BEGINNING)
    await clock.advance(25)

    known = await store.get(KEY)
    assert known == PendingReply(request_id=KEY.request_id, session_id=SESSION)

    del items
    await clock.advance(11)
    assert await store.get(KEY) is None


async def test_a_reply_evicted_while_it_is_read_is_read_to_its_end() -> None:
    store = _store(max_replies=1)
    await add(store, 1, 0, 4)
    await store.put(KEY, reply(chunks=5))
    items = store.stream(KEY, BEGINNING)
    first = await anext(items)

    await store.put(_OTHER, reply(request_id="r2"))

    assert await store.get(KEY) is None
    assert [first, *await _rest(items)] == [*chunks(1, 0, 4), reply(chunks=5)]


async def test_a_reply_that_expires_while_it_is_read_is_read_to_its_end() -> None:
    clock = FakeClock()
    store = _store(clock, ttl=10.0)
    await add(store, 1, 0, 4)
    await store.put(KEY, reply(chunks=5))
    items = store.stream(KEY, BEGINNING)
    first = await anext(items)

    await clock.advance(11)

    assert await store.get(KEY) is None
    assert [first, *await _rest(items)] == [*chunks(1, 0, 4), reply(chunks=5)]


async def test_a_new_reader_of_an_evicted_reply_does_not_get_the_old_one() -> None:
    store = _store(max_replies=1)
    await store.put(KEY, reply("old"))
    old = store.stream(KEY, BEGINNING)
    await store.put(_OTHER, reply(request_id="r2"))

    assert await store.wait(KEY, 0.0) is None
    await store.put(KEY, reply("new"))

    assert await _rest(store.stream(KEY, BEGINNING)) == [reply("new")]
    assert await _rest(old) == [reply("old")]


async def test_a_waiter_gets_its_reply_even_if_it_gives_way_in_the_same_moment() -> None:
    clock = FakeClock()
    store = _store(clock, max_replies=1)
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(store.wait(KEY, 60.0))
        await clock.run_ready()
        await store.put(KEY, reply())
        await store.put(_OTHER, reply(request_id="r2"))

    assert waiting.result() == reply()


async def test_a_cancelled_wait_for_an_item_loses_nothing() -> None:
    clock = FakeClock()
    store = _store(clock)
    items = store.stream(KEY, BEGINNING)
    async with asyncio.TaskGroup() as tasks:

        async def next_item() -> StreamItem:
            return await anext(items)

        waiting = tasks.create_task(next_item())
        await clock.run_ready()
        await add(store, 1, 0, 0)
        waiting.cancel()
        await clock.run_ready()

    assert waiting.cancelled()
    assert await anext(items) == chunk(1, 0)


async def test_whoever_stops_reading_or_waiting_leaves_nothing_behind() -> None:
    clock = FakeClock()
    store = _store(clock)
    items = store.stream(KEY, BEGINNING)
    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(store.wait(_OTHER, 5.0))
        await clock.run_ready()
        assert store.usage.watched == 2
        await clock.advance(6)
    assert waiting.result() is None
    del items, waiting

    assert store.usage.watched == 0


async def test_a_reader_with_much_to_read_lets_others_run() -> None:
    store = _store()
    await add(store, 1, 0, 2_000)
    await store.put(KEY, reply(chunks=2_001))
    read = 0
    read_before_other_ran: list[int] = []

    async def other() -> None:
        read_before_other_ran.append(read)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(other())
        async for _ in store.stream(KEY, BEGINNING):
            read += 1

    assert read_before_other_ran[0] < 2_000


def test_a_long_log_is_as_fast_as_a_short_one() -> None:
    log = ChunkLog(1)

    def seconds(first: int) -> float:
        begun = process_time()
        for sent in chunks(1, first, first + 9_999):
            log.add(sent)
            if len(log) > 20_000:
                log.drop_oldest()
            place = log.place_after(sent.index - 1)
            found = log.read(place)
            assert found is not None
            assert found[1] is sent
        return process_time() - begun

    spent = [seconds(first) for first in range(0, 60_000, 10_000)]

    assert spent[-1] < 5 * max(spent[0], 0.01)


async def test_what_an_end_voids_is_not_read_by_whoever_was_in_it() -> None:
    store = _store()
    await add(store, 1, 0, 4)
    items = store.stream(KEY, BEGINNING)
    await anext(items)

    end = reply(attempt=2)
    await store.put(KEY, end)

    rest = await _rest(items)
    assert rest == [end]
    assert isinstance(rest[0], StoredReply)
