"""Cases of ResponseStore: waiting for an end, expiry and eviction."""

import asyncio

from turnline.protocol import ReplyKey
from turnline.store import Opened, PendingReply, ResponseStore
from turnline.testing.conformance.stores.harness import (
    ReplyHarness,
    ReplyLimits,
    StoreTime,
    meanwhile,
    soon,
)
from turnline.testing.conformance.stores.reply_rig import (
    KEY,
    SESSION,
    ReplyCases,
    add,
    failed,
    give_up,
    reply,
)

_PENDING = PendingReply(request_id=KEY.request_id, session_id=SESSION)


class WaitCases(ReplyCases):
    """`wait`."""

    async def test_an_end_from_before_the_wait_is_given_at_once(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await store.put(KEY, failed())

        assert await soon(time, other.wait(KEY, 2 * time.patience)) == failed()

    async def test_a_waiter_learns_of_the_end_from_another_process(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await store.open(KEY, session_id=SESSION, fingerprint="f")
        async with meanwhile(time, other.wait(KEY, 2 * time.patience)) as waiting:
            await store.put(KEY, reply())

            assert await soon(time, waiting) == reply()

    async def test_a_wait_may_begin_before_the_turn_is_known(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        async with meanwhile(time, other.wait(KEY, 2 * time.patience)) as waiting:
            await store.open(KEY, session_id=SESSION, fingerprint="f")
            await store.put(KEY, reply())

            assert await soon(time, waiting) == reply()

    async def test_every_waiter_is_told(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        async with asyncio.TaskGroup() as tasks:
            waiting = [
                tasks.create_task(each.wait(KEY, 2 * time.patience)) for each in [store, other] * 10
            ]
            await time.calm()
            await store.put(KEY, reply())
            told = await soon(time, asyncio.gather(*waiting))

        assert told == [reply()] * 20

    async def test_an_end_put_while_a_wait_begins_is_not_missed(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        keys = [ReplyKey("", f"race-{number}") for number in range(20)]

        async with asyncio.TaskGroup() as tasks:
            waiting = [tasks.create_task(other.wait(key, 2 * time.patience)) for key in keys]
            putting = [store.put(key, reply(request_id=key.request_id)) for key in keys]
            await asyncio.gather(*putting)
            told = await soon(time, asyncio.gather(*waiting))

        assert told == [reply(request_id=key.request_id) for key in keys]

    async def test_a_wait_ends_with_none_when_its_time_is_over(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        await store.open(KEY, session_id=SESSION, fingerprint="f")
        async with meanwhile(time, store.wait(KEY, 5 * time.tick)) as waiting:
            assert not waiting.done()
            await time.pass_ticks(6)

            assert await soon(time, waiting) is None

    async def test_a_wait_without_time_only_looks(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        assert await soon(time, store.wait(KEY, 0.0)) is None

        await store.put(KEY, reply())

        assert await soon(time, store.wait(KEY, 0.0)) == reply()

    async def test_another_turns_end_does_not_end_a_wait(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        async with meanwhile(time, store.wait(KEY, 2 * time.patience)) as waiting:
            await store.put(ReplyKey("", "r2"), reply(request_id="r2"))
            await store.put(ReplyKey("you", KEY.request_id), reply())
            await time.calm()

            assert not waiting.done()

    async def test_a_chunk_does_not_end_a_wait(self, store: ResponseStore, time: StoreTime) -> None:
        async with meanwhile(time, store.wait(KEY, 2 * time.patience)) as waiting:
            await add(store, 1, 0, 3)
            await time.calm()

            assert not waiting.done()

    async def test_a_waiter_who_leaves_takes_nothing_along(
        self, store: ResponseStore, time: StoreTime
    ) -> None:
        async with (
            meanwhile(time, store.wait(KEY, 2 * time.patience)) as leaving,
            meanwhile(time, store.wait(KEY, 2 * time.patience)) as staying,
        ):
            await give_up(leaving)
            await store.put(KEY, reply())

            assert await soon(time, staying) == reply()

    async def test_a_waiter_of_a_discarded_turn_waits_on(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await store.open(KEY, session_id=SESSION, fingerprint="f")
        async with meanwhile(time, other.wait(KEY, 2 * time.patience)) as waiting:
            await store.discard(KEY)
            await time.calm()
            assert not waiting.done()
            await store.put(KEY, reply())

            assert await soon(time, waiting) == reply()


class ExpiryCases(ReplyCases):
    """TTL and bounds."""

    async def test_an_expired_reply_is_unknown(
        self, harness: ReplyHarness, time: StoreTime
    ) -> None:
        async with harness.open(ReplyLimits(ttl_ticks=10)) as store:
            await store.put(KEY, reply())
            await time.pass_ticks(5)
            assert await store.get(KEY) == reply()
            await time.pass_ticks(6)

            assert await store.get(KEY) is None
            assert await store.open(KEY, session_id=SESSION, fingerprint="g") is Opened.NEW

    async def test_an_abandoned_pending_turn_expires(
        self, harness: ReplyHarness, time: StoreTime
    ) -> None:
        async with harness.open(ReplyLimits(ttl_ticks=10)) as store:
            await store.open(KEY, session_id=SESSION, fingerprint="f")
            await time.pass_ticks(11)

            assert await store.get(KEY) is None
            assert await store.open(KEY, session_id=SESSION, fingerprint="g") is Opened.NEW

    async def test_the_ttl_of_a_reply_counts_from_its_end(
        self, harness: ReplyHarness, time: StoreTime
    ) -> None:
        async with harness.open(ReplyLimits(ttl_ticks=10)) as store:
            await store.open(KEY, session_id=SESSION, fingerprint="f")
            await time.pass_ticks(7)
            await store.put(KEY, reply())
            await time.pass_ticks(7)

            assert await store.get(KEY) == reply()

    async def test_a_chunk_keeps_a_pending_turn_alive(
        self, harness: ReplyHarness, time: StoreTime
    ) -> None:
        async with harness.open(ReplyLimits(ttl_ticks=10)) as store:
            await store.open(KEY, session_id=SESSION, fingerprint="f")
            await time.pass_ticks(7)
            await add(store, 1, 0, 0)
            await time.pass_ticks(7)

            assert await store.get(KEY) == _PENDING

    async def test_an_end_after_expiry_is_a_first_end(
        self, harness: ReplyHarness, time: StoreTime
    ) -> None:
        async with harness.open(ReplyLimits(ttl_ticks=10)) as store:
            await store.put(KEY, reply("old"))
            await time.pass_ticks(11)
            await store.put(KEY, reply("new"))

            assert await store.get(KEY) == reply("new")

    async def test_finished_replies_give_way_oldest_first(self, harness: ReplyHarness) -> None:
        keys = [ReplyKey("", f"r{number}") for number in range(5)]
        async with harness.open(ReplyLimits(max_replies=3)) as store:
            for key in keys:
                await store.put(key, reply(request_id=key.request_id))

            kept = [await store.get(key) is not None for key in keys]

        assert kept == [False, False, True, True, True]

    async def test_a_pending_turn_with_a_waiter_does_not_give_way(
        self, harness: ReplyHarness, time: StoreTime
    ) -> None:
        async with harness.open(ReplyLimits(max_replies=2)) as store:
            await store.open(KEY, session_id=SESSION, fingerprint="f")
            async with meanwhile(time, store.wait(KEY, 2 * time.patience)) as waiting:
                for number in range(10):
                    key = ReplyKey("", f"other-{number}")
                    await store.open(key, session_id=SESSION, fingerprint="f")
                    await store.put(key, reply(request_id=key.request_id))
                assert await store.get(KEY) == _PENDING
                await store.put(KEY, reply())

                assert await soon(time, waiting) == reply()
