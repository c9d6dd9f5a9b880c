"""Cases of ResponseStore: admitting turns, their ends, waiting, expiry and eviction."""

import asyncio

import pytest

from turnline.errors import RetryHint
from turnline.protocol import ChatReply, Failure, ReplyKey
from turnline.store import Opened, PendingReply, ResponseStore, StoredReply
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
_FULL_REPLY = ChatReply(
    result="Grüße 👋\n\u0000", extra={"status": "paused", "interruptions": [{"id": 1, "x": None}]}
)
_FULL_FAILURE = Failure(
    code="a_code_of_tomorrow",
    message="Später",
    status_code=429,
    retry=RetryHint.AFTER,
    retry_after=1.5,
    field="prompt",
)


class AdmissionCases(ReplyCases):
    """`open`, `discard` and what they leave for `get`."""

    async def test_an_unknown_turn_reads_as_none(self, store: ResponseStore) -> None:
        assert await store.get(KEY) is None

    async def test_an_opened_turn_reads_as_pending(
        self, store: ResponseStore, other: ResponseStore
    ) -> None:
        opened = await store.open(KEY, session_id=SESSION, fingerprint="f")

        assert opened is Opened.NEW
        assert await other.get(KEY) == _PENDING

    @pytest.mark.parametrize("fingerprint", ["f", ""])
    async def test_opening_again_with_the_same_body_is_known(
        self, store: ResponseStore, other: ResponseStore, fingerprint: str
    ) -> None:
        await store.open(KEY, session_id=SESSION, fingerprint=fingerprint)

        again = await other.open(KEY, session_id=SESSION, fingerprint=fingerprint)

        assert again is Opened.KNOWN

    @pytest.mark.parametrize(("first", "second"), [("f", "g"), ("f", ""), ("", "g")])
    async def test_opening_with_another_body_is_different(
        self, store: ResponseStore, first: str, second: str
    ) -> None:
        await store.open(KEY, session_id=SESSION, fingerprint=first)

        again = await store.open(KEY, session_id="another", fingerprint=second)

        assert again is Opened.DIFFERENT
        assert await store.get(KEY) == _PENDING

    async def test_a_finished_turn_still_tells_bodies_apart(self, store: ResponseStore) -> None:
        await store.open(KEY, session_id=SESSION, fingerprint="f")
        await store.put(KEY, reply())

        same = await store.open(KEY, session_id=SESSION, fingerprint="f")
        different = await store.open(KEY, session_id=SESSION, fingerprint="g")

        assert (same, different) == (Opened.KNOWN, Opened.DIFFERENT)
        assert await store.get(KEY) == reply()

    async def test_a_turn_known_by_its_end_takes_the_first_fingerprint(
        self, store: ResponseStore
    ) -> None:
        await store.put(KEY, reply())

        first = await store.open(KEY, session_id=SESSION, fingerprint="f")
        second = await store.open(KEY, session_id=SESSION, fingerprint="g")

        assert (first, second) == (Opened.KNOWN, Opened.DIFFERENT)

    async def test_a_turn_known_by_its_chunks_takes_the_first_fingerprint(
        self, store: ResponseStore
    ) -> None:
        await add(store, 1, 0, 0)

        first = await store.open(KEY, session_id=SESSION, fingerprint="f")
        second = await store.open(KEY, session_id=SESSION, fingerprint="g")

        assert (first, second) == (Opened.KNOWN, Opened.DIFFERENT)

    async def test_of_many_who_open_at_once_one_is_new(
        self, store: ResponseStore, other: ResponseStore
    ) -> None:
        stores = [store, other] * 10

        async with asyncio.TaskGroup() as tasks:
            opening = [
                tasks.create_task(each.open(KEY, session_id=SESSION, fingerprint="f"))
                for each in stores
            ]

        found = sorted(task.result() for task in opening)
        assert found == [Opened.KNOWN] * 19 + [Opened.NEW]

    async def test_the_same_id_in_another_scope_is_another_turn(self, store: ResponseStore) -> None:
        mine, yours = ReplyKey("me", "r"), ReplyKey("you", "r")
        await store.open(mine, session_id=SESSION, fingerprint="f")
        await store.put(mine, reply(request_id="r"))

        assert await store.get(yours) is None
        assert await store.open(yours, session_id=SESSION, fingerprint="g") is Opened.NEW

    async def test_no_two_keys_meet_whatever_their_characters(self, store: ResponseStore) -> None:
        keys = [
            ReplyKey("a", "b"),
            ReplyKey("", "~1a~1b"),
            ReplyKey("", "a:b"),
            ReplyKey("a~1b", "c"),
            ReplyKey("a", "b~1c"),
            ReplyKey("a:b", "c"),
            ReplyKey("a", "b:c"),
            ReplyKey("A", "b"),
            ReplyKey("", "ä {}/#"),
        ]

        opened = [await store.open(key, session_id=SESSION, fingerprint="f") for key in keys]

        assert opened == [Opened.NEW] * len(keys)

    async def test_a_discarded_turn_is_unknown(self, store: ResponseStore) -> None:
        await store.open(KEY, session_id=SESSION, fingerprint="f")

        await store.discard(KEY)

        assert await store.get(KEY) is None
        assert await store.open(KEY, session_id=SESSION, fingerprint="g") is Opened.NEW

    async def test_a_finished_turn_cannot_be_discarded(self, store: ResponseStore) -> None:
        await store.put(KEY, reply())

        await store.discard(KEY)

        assert await store.get(KEY) == reply()

    async def test_discarding_an_unknown_turn_does_nothing(self, store: ResponseStore) -> None:
        await store.discard(KEY)

        assert await store.get(KEY) is None


class EndCases(ReplyCases):
    """`put`, `get` and which end wins."""

    @pytest.mark.parametrize("payload", [_FULL_REPLY, _FULL_FAILURE], ids=["reply", "failure"])
    async def test_an_end_is_read_as_it_was_put(
        self, store: ResponseStore, other: ResponseStore, payload: ChatReply | Failure
    ) -> None:
        end = StoredReply(
            request_id=KEY.request_id,
            session_id="Sitzung ~1",
            status_code=429,
            payload=payload,
            attempt=3,
            chunk_count=17,
        )

        await store.put(KEY, end)

        assert await other.get(KEY) == end

    async def test_reading_destroys_nothing(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await store.put(KEY, reply())

        read = [
            await store.get(KEY),
            await soon(time, store.wait(KEY, time.patience)),
            await other.get(KEY),
            await soon(time, other.wait(KEY, time.patience)),
            await store.get(KEY),
        ]

        assert read == [reply()] * 5

    async def test_the_first_reply_wins(self, store: ResponseStore) -> None:
        await store.put(KEY, reply("first"))
        await store.put(KEY, reply("second", attempt=2))

        assert await store.get(KEY) == reply("first")

    async def test_a_reply_replaces_a_failure(self, store: ResponseStore) -> None:
        await store.put(KEY, failed())
        await store.put(KEY, reply(attempt=2))

        assert await store.get(KEY) == reply(attempt=2)

    async def test_a_failure_does_not_replace_a_reply(self, store: ResponseStore) -> None:
        await store.put(KEY, reply())
        await store.put(KEY, failed(attempt=2))

        assert await store.get(KEY) == reply()

    async def test_the_first_failure_wins(self, store: ResponseStore) -> None:
        await store.put(KEY, failed("agent_failed"))
        await store.put(KEY, failed("turn_cancelled"))

        assert await store.get(KEY) == failed("agent_failed")

    async def test_a_reply_that_replaced_a_failure_stays(self, store: ResponseStore) -> None:
        await store.put(KEY, failed())
        await store.put(KEY, reply("first", attempt=2))
        await store.put(KEY, reply("second", attempt=3))

        assert await store.get(KEY) == reply("first", attempt=2)


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
