"""Cases of ResponseStore: reading streams from any place, and what is taken into them."""

import asyncio

from turnline.protocol import ChatEvent, Chunk, EventType, Position, ReplyKey
from turnline.store import Gap, PendingReply, ResponseStore
from turnline.testing.conformance.stores.harness import (
    StoreTime,
    meanwhile,
    soon,
)
from turnline.testing.conformance.stores.reply_rig import (
    KEY,
    SESSION,
    ReplyCases,
    add,
    chunk,
    chunks,
    failed,
    read_all,
    reading,
    reply,
)


class ReaderCases(ReplyCases):
    """Reading from a position, once or often, early or late."""

    async def test_a_finished_stream_is_its_chunks_in_order_and_its_end(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 2)
        await add(store, 1, 3, 3)
        await store.put(KEY, reply(chunks=4))

        assert await read_all(other, time) == [*chunks(1, 0, 3), reply(chunks=4)]

    async def test_a_waiting_reader_learns_of_each_chunk_from_another_process(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        async with reading(other, time) as reader:
            for index in range(3):
                async with meanwhile(time, reader.next()) as waiting:
                    await add(store, 1, index, index)

                    assert await soon(time, waiting) == chunk(1, index)

    async def test_a_waiting_reader_learns_of_the_end(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 0)
        async with reading(other, time) as reader:
            await reader.take(1)
            async with meanwhile(time, reader.next()) as waiting:
                await store.put(KEY, reply(chunks=1))

                assert await soon(time, waiting) == reply(chunks=1)
            assert await reader.rest() == []

    async def test_a_pending_stream_does_not_stop(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await store.open(KEY, session_id=SESSION, fingerprint="f")
        await add(store, 1, 0, 1)
        async with reading(store, time) as reader:
            await reader.take(2)
            async with meanwhile(time, reader.next()) as waiting:
                assert not waiting.done()

    async def test_an_end_without_chunks_is_the_whole_stream(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await store.put(KEY, reply())

        assert await read_all(store, time) == [reply()]

    async def test_a_failure_ends_a_stream(self, store: ResponseStore, time: StoreTime) -> None:
        await add(store, 1, 0, 1)
        await store.put(KEY, failed(chunks=2))

        assert await read_all(store, time) == [*chunks(1, 0, 1), failed(chunks=2)]

    async def test_reading_begins_behind_the_position(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 4)
        await store.put(KEY, reply(chunks=5))

        items = await read_all(other, time, Position(1, 2))

        assert items == [*chunks(1, 3, 4), reply(chunks=5)]

    async def test_reading_behind_the_last_chunk_gives_the_end(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 4)
        await store.put(KEY, reply(chunks=5))

        assert await read_all(store, time, Position(1, 4)) == [reply(chunks=5)]

    async def test_a_position_ahead_of_what_is_stored_waits_for_what_follows_it(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 4)
        async with (
            reading(store, time, Position(1, 6)) as reader,
            meanwhile(time, reader.next()) as waiting,
        ):
            await add(store, 1, 5, 6)
            await time.calm()
            assert not waiting.done()
            await add(store, 1, 7, 7)

            assert await soon(time, waiting) == chunk(1, 7)

    async def test_a_position_in_an_attempt_to_come_waits_for_it(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 4)
        async with (
            reading(store, time, Position(2, 0)) as reader,
            meanwhile(time, reader.next()) as waiting,
        ):
            await add(store, 2, 0, 0)
            await time.calm()
            assert not waiting.done()
            await add(store, 2, 1, 1)

            assert await soon(time, waiting) == chunk(2, 1)

    async def test_a_finished_stream_can_be_read_again(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 2)
        await store.put(KEY, reply(chunks=3))

        first = await read_all(store, time)
        again = [await read_all(each, time) for each in (store, other)]

        assert again == [first, first]

    async def test_readers_do_not_disturb_each_other(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 3)
        async with (
            reading(store, time) as first,
            reading(other, time, Position(1, 1)) as second,
            reading(store, time, Position(1, 3)) as third,
        ):
            assert await first.take(1) == [chunk(1, 0)]
            assert await second.take(2) == chunks(1, 2, 3)
            await add(store, 1, 4, 4)
            await store.put(KEY, reply(chunks=5))

            assert await third.rest() == [chunk(1, 4), reply(chunks=5)]
            assert await first.rest() == [*chunks(1, 1, 4), reply(chunks=5)]
            assert await second.rest() == [chunk(1, 4), reply(chunks=5)]

    async def test_a_reader_may_come_before_the_turn_is_known(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        async with reading(other, time) as reader, meanwhile(time, reader.rest()) as waiting:
            assert not waiting.done()
            await store.open(KEY, session_id=SESSION, fingerprint="f")
            await add(store, 1, 0, 0)
            await store.put(KEY, reply(chunks=1))

            assert await soon(time, waiting) == [chunk(1, 0), reply(chunks=1)]

    async def test_streams_of_other_scopes_and_turns_stay_apart(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        yours, another = ReplyKey("you", KEY.request_id), ReplyKey("", "r2")
        await add(store, 1, 0, 1, key=yours)
        await add(store, 1, 0, 5, key=another)
        await add(store, 1, 0, 0)
        await store.put(KEY, reply(chunks=1))

        assert await read_all(store, time) == [chunk(1, 0), reply(chunks=1)]

    async def test_a_long_stream_arrives_whole_while_it_is_written(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        async with reading(other, time) as reader, meanwhile(time, reader.rest()) as waiting:
            for first in range(0, 1_000, 50):
                await add(store, 1, first, first + 49)
            await store.put(KEY, reply(chunks=1_000))

            assert await soon(time, waiting) == [*chunks(1, 0, 999), reply(chunks=1_000)]

    async def test_a_reader_of_a_discarded_turn_waits_on(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await store.open(KEY, session_id=SESSION, fingerprint="f")
        async with reading(other, time) as reader, meanwhile(time, reader.rest()) as waiting:
            await store.discard(KEY)
            await time.calm()
            assert not waiting.done()
            await add(store, 1, 0, 0)
            await store.put(KEY, reply(chunks=1))

            assert await soon(time, waiting) == [chunk(1, 0), reply(chunks=1)]


class AppendCases(ReplyCases):
    """What is taken into a stream and what is dropped."""

    async def test_a_chunk_is_read_as_it_was_appended(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        events = [
            ChatEvent(
                type=EventType.TOOL_CALL_RESULT,
                message_id="m ü",
                role="tool",
                content='{"x": "👋\\n"}',
                tool_call_id="t",
                name="look",
            ),
            ChatEvent(type=EventType.CUSTOM, data={"a": [1, 2.5, None, {"b": True}], "ü": ""}),
            ChatEvent(type=EventType.MESSAGE_END),
        ]
        sent = [Chunk(attempt=1, index=at, event=event) for at, event in enumerate(events)]

        await store.append(KEY, session_id=SESSION, chunks=sent)

        async with reading(other, time) as reader:
            assert await reader.take(3) == sent

    async def test_chunks_make_an_unknown_turn_pending(self, store: ResponseStore) -> None:
        await add(store, 1, 0, 0)

        known = await store.get(KEY)
        assert known == PendingReply(request_id=KEY.request_id, session_id=SESSION)

    async def test_appending_nothing_does_nothing(self, store: ResponseStore) -> None:
        await store.append(KEY, session_id=SESSION, chunks=[])

        assert await store.get(KEY) is None

    async def test_a_chunk_that_came_before_is_dropped(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 2)
        await add(other, 1, 0, 2)
        await add(store, 1, 1, 4)
        await store.put(KEY, reply(chunks=5))

        assert await read_all(store, time) == [*chunks(1, 0, 4), reply(chunks=5)]

    async def test_the_same_chunks_appended_at_once_are_stored_once(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        async with asyncio.TaskGroup() as tasks:
            for each in [store, other] * 5:
                tasks.create_task(add(each, 1, 0, 9))
        await store.put(KEY, reply(chunks=10))

        assert await read_all(store, time) == [*chunks(1, 0, 9), reply(chunks=10)]

    async def test_chunks_after_the_end_are_dropped(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 1)
        await store.put(KEY, reply(chunks=2))
        await add(other, 1, 2, 3)
        await add(other, 2, 0, 0)

        assert await read_all(store, time) == [*chunks(1, 0, 1), reply(chunks=2)]

    async def test_a_late_chunk_does_not_go_back_in_the_stream(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await add(store, 1, 0, 0)
        await add(store, 1, 3, 3)
        await add(store, 1, 1, 2)
        await store.put(KEY, reply(chunks=4))

        items = await read_all(store, time)

        gap = Gap(attempt=1, first=1, last=2)
        assert items == [chunk(1, 0), gap, chunk(1, 3), reply(chunks=4)]
