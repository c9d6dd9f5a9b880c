"""Cases of ResponseStore: streams of several attempts, and chunks that are gone."""

from turnline.protocol import BEGINNING, Position, ReplyKey
from turnline.store import Gap, ResponseStore
from turnline.testing.conformance.stores.harness import (
    ReplyHarness,
    ReplyLimits,
    StoreTime,
    meanwhile,
    soon,
)
from turnline.testing.conformance.stores.reply_rig import (
    KEY,
    ReplyCases,
    add,
    chunk,
    chunks,
    failed,
    read_all,
    reading,
    reply,
)


class RetryCases(ReplyCases):
    """Attempts that void what earlier ones streamed."""

    async def test_a_new_attempt_voids_the_chunks_before_it(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 3)
        await add(store, 2, 0, 1)
        await store.put(KEY, reply(attempt=2, chunks=2))

        items = await read_all(store, time)

        assert items == [*chunks(2, 0, 1), reply(attempt=2, chunks=2)]

    async def test_a_reader_in_a_voided_attempt_reads_the_new_one_from_its_first_chunk(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 3)
        async with reading(other, time) as reader:
            assert await reader.take(2) == chunks(1, 0, 1)
            # What is still unread of attempt 1 may be read or not; nothing of it follows attempt 2.
            await add(store, 2, 0, 2)
            await store.put(KEY, reply(attempt=2, chunks=3))
            items = list(await reader.rest())

        while items and items[0] in chunks(1, 2, 3):
            del items[0]
        assert items == [*chunks(2, 0, 2), reply(attempt=2, chunks=3)]

    async def test_a_waiting_reader_is_moved_to_the_new_attempt(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 3)
        async with reading(other, time) as reader:
            await reader.take(4)
            async with meanwhile(time, reader.next()) as waiting:
                await add(store, 2, 0, 0)

                assert await soon(time, waiting) == chunk(2, 0)

    async def test_a_position_in_a_voided_attempt_starts_the_new_one(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 5)
        await add(store, 2, 0, 1)
        await store.put(KEY, reply(attempt=2, chunks=2))

        items = await read_all(store, time, Position(1, 4))

        assert items == [*chunks(2, 0, 1), reply(attempt=2, chunks=2)]

    async def test_chunks_of_an_earlier_attempt_are_dropped(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 2, 0, 0)
        await add(other, 1, 0, 5)
        await add(store, 2, 1, 1)
        await store.put(KEY, reply(attempt=2, chunks=2))

        items = await read_all(store, time)

        assert items == [*chunks(2, 0, 1), reply(attempt=2, chunks=2)]

    async def test_an_end_of_a_later_attempt_voids_the_chunks_before_it(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 3)
        await store.put(KEY, reply(attempt=2))

        assert await read_all(store, time) == [reply(attempt=2)]
        assert await read_all(store, time, Position(1, 1)) == [reply(attempt=2)]

    async def test_a_failure_of_no_attempt_leaves_the_chunks(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 1)
        await store.put(KEY, failed(attempt=0))

        assert await read_all(store, time) == [*chunks(1, 0, 1), failed(attempt=0)]

    async def test_a_reply_that_replaces_a_failure_says_that_its_chunks_are_missing(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 1)
        await store.put(KEY, failed(chunks=2))
        await add(store, 2, 0, 2)
        await store.put(KEY, reply(attempt=2, chunks=3))

        items = await read_all(store, time)

        assert items == [Gap(attempt=2, first=0, last=2), reply(attempt=2, chunks=3)]


class GapCases(ReplyCases):
    """Chunks that are gone are said, exactly."""

    async def test_chunks_that_never_came_are_a_gap(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 1)
        await add(store, 1, 4, 5)
        await store.put(KEY, reply(chunks=6))

        items = await read_all(store, time)

        gap = Gap(attempt=1, first=2, last=3)
        assert items == [*chunks(1, 0, 1), gap, *chunks(1, 4, 5), reply(chunks=6)]

    async def test_a_gap_covers_only_what_the_reader_has_not_seen(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 1)
        await add(store, 1, 6, 6)
        await store.put(KEY, reply(chunks=7))

        items = await read_all(store, time, Position(1, 3))

        assert items == [Gap(attempt=1, first=4, last=5), chunk(1, 6), reply(chunks=7)]

    async def test_a_missing_beginning_is_a_gap(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 2, 3, 3)
        async with reading(store, time, Position(1, 7)) as reader:
            items = await reader.take(2)

        assert items == [Gap(attempt=2, first=0, last=2), chunk(2, 3)]

    async def test_a_missing_rest_is_a_gap_before_the_end(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 1)
        await store.put(KEY, reply(chunks=5))

        items = await read_all(store, time)

        assert items == [*chunks(1, 0, 1), Gap(attempt=1, first=2, last=4), reply(chunks=5)]

    async def test_a_stream_that_is_gone_entirely_is_one_gap(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await store.put(KEY, reply(chunks=5))

        items = await read_all(store, time, BEGINNING)

        assert items == [Gap(attempt=1, first=0, last=4), reply(chunks=5)]

    async def test_over_its_bound_a_stream_keeps_its_end(
        self, harness: ReplyHarness, time: StoreTime
    ) -> None:
        async with harness.open(ReplyLimits(max_chunks=4)) as store:
            await add(store, 1, 0, 2)
            await add(store, 1, 3, 9)
            await store.put(KEY, reply(chunks=10))

            items = await read_all(store, time)

        gap = Gap(attempt=1, first=0, last=5)
        assert items == [gap, *chunks(1, 6, 9), reply(chunks=10)]

    async def test_a_chunk_that_came_before_pushes_none_out(
        self, harness: ReplyHarness, time: StoreTime
    ) -> None:
        async with harness.open(ReplyLimits(max_chunks=4)) as store:
            await add(store, 1, 0, 3)
            await add(store, 1, 0, 1)
            await store.put(KEY, reply(chunks=4))

            items = await read_all(store, time)

        assert items == [*chunks(1, 0, 3), reply(chunks=4)]

    async def test_a_slow_reader_is_told_exactly_what_it_missed(
        self, harness: ReplyHarness, time: StoreTime
    ) -> None:
        async with harness.open(ReplyLimits(max_chunks=4)) as store:
            await add(store, 1, 0, 2)
            async with reading(store, time, Position(1, 1)) as reader:
                assert await reader.take(1) == [chunk(1, 2)]
                await add(store, 1, 3, 9)
                items = await reader.take(5)

        assert items == [Gap(attempt=1, first=3, last=5), *chunks(1, 6, 9)]

    async def test_a_reader_who_saw_what_is_gone_is_told_of_no_gap(
        self, harness: ReplyHarness, time: StoreTime
    ) -> None:
        async with harness.open(ReplyLimits(max_chunks=4)) as store:
            await add(store, 1, 0, 9)
            await store.put(KEY, reply(chunks=10))

            behind = await read_all(store, time, Position(1, 5))
            within = await read_all(store, time, Position(1, 7))

        assert behind == [*chunks(1, 6, 9), reply(chunks=10)]
        assert within == [*chunks(1, 8, 9), reply(chunks=10)]

    async def test_a_reply_evicted_while_it_is_read_leaves_no_reader_hanging(
        self, harness: ReplyHarness, time: StoreTime
    ) -> None:
        whole = [*chunks(1, 0, 9), reply(chunks=10)]
        async with harness.open(ReplyLimits(max_replies=1)) as store:
            await add(store, 1, 0, 9)
            await store.put(KEY, reply(chunks=10))
            async with reading(store, time) as reader:
                items = list(await reader.take(3))
                await store.put(ReplyKey("", "r2"), reply(request_id="r2"))
                items += await reader.rest()

        assert items == whole[: len(items)]
