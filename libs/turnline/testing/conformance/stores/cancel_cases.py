"""Cases of SessionStore: cancelling turns that wait, run, lapsed or have ended."""

import asyncio

import pytest

from turnline.errors import FencedError
from turnline.protocol import SessionKey
from turnline.store import Busy, Cancelled, Done, New, SessionStore
from turnline.testing.conformance.stores.harness import StoreTime, meanwhile, soon
from turnline.testing.conformance.stores.ledger_rig import (
    KEY,
    LEASE,
    LONG,
    SessionCases,
    begin,
    commit,
    is_cancelled,
    look,
    outcome,
    run_turn,
    told,
)


class CancelCases(SessionCases):
    """`cancel_turn` and what becomes of the turn."""

    async def test_a_queued_turn_that_is_cancelled_never_begins(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        assert await store.cancel_turn(KEY, "t1") is Cancelled.QUEUED

        assert is_cancelled(await other.begin_turn(KEY, "t1", lease=LONG))
        assert is_cancelled(await store.begin_turn(KEY, "t1", lease=LONG))

    async def test_a_cancelled_turn_leaves_the_session_free_and_as_it_was(
        self, store: SessionStore
    ) -> None:
        await run_turn(store, "t0", state={"n": 0})
        await store.cancel_turn(KEY, "t1")

        begun = await begin(store, "t2")

        assert (told(begun.session), begun.session.state) == ([("t0", "hello")], {"n": 0})

    async def test_a_turn_that_waits_behind_another_can_be_cancelled(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        running = await begin(store, "t1")
        async with meanwhile(time, store.wait_cancelled(running.claim)) as waiting:
            assert await other.cancel_turn(KEY, "t2") is Cancelled.QUEUED
            await time.calm()
            assert not waiting.done()

        await commit(store, running.claim)
        assert is_cancelled(await store.begin_turn(KEY, "t2", lease=LONG))

    async def test_a_turn_that_waits_for_its_next_attempt_can_be_cancelled(
        self, store: SessionStore
    ) -> None:
        begun = await begin(store, "t1")
        await store.abandon_turn(begun.claim)

        assert await store.cancel_turn(KEY, "t1") is Cancelled.QUEUED

        assert is_cancelled(await store.begin_turn(KEY, "t1", lease=LONG))

    async def test_a_turn_that_ended_cannot_be_cancelled(self, store: SessionStore) -> None:
        claim = await run_turn(store, "t1")

        assert await store.cancel_turn(KEY, "t1") is Cancelled.DONE

        assert await store.begin_turn(KEY, "t1", lease=LONG) == Done(outcome=outcome(claim))

    async def test_a_turn_cancelled_before_it_began_has_ended(self, store: SessionStore) -> None:
        await store.cancel_turn(KEY, "t1")

        assert await store.cancel_turn(KEY, "t1") is Cancelled.DONE

    async def test_a_running_turn_stays_running_until_its_runner_stops(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        begun = await begin(store, "t1")

        cancelled = [await other.cancel_turn(KEY, "t1") for _ in range(2)]

        assert cancelled == [Cancelled.RUNNING, Cancelled.RUNNING]
        assert isinstance(await other.begin_turn(KEY, "t1", lease=LONG), Busy)
        await store.renew_turn(begun.claim, lease=LONG)

    async def test_a_runner_that_finishes_first_keeps_its_outcome(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        begun = await begin(store, "t1")
        await other.cancel_turn(KEY, "t1")

        await commit(store, begun.claim)

        replayed = await other.begin_turn(KEY, "t1", lease=LONG)
        assert replayed == Done(outcome=outcome(begun.claim))
        assert told(await look(other)) == [("t1", "hello")]

    async def test_a_cancelled_turn_its_runner_gave_up_is_not_tried_again(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        begun = await begin(store, "t1")
        await other.cancel_turn(KEY, "t1")

        await store.abandon_turn(begun.claim)

        assert is_cancelled(await other.begin_turn(KEY, "t1", lease=LONG))
        assert isinstance(await store.begin_turn(KEY, "t2", lease=LONG), New)

    async def test_a_cancelled_turn_whose_runner_died_is_not_tried_again(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        begun = await begin(store, "t1", lease=LEASE * time.tick)
        await other.cancel_turn(KEY, "t1")
        await time.pass_ticks(LEASE + 1)

        assert is_cancelled(await other.begin_turn(KEY, "t1", lease=LONG))
        with pytest.raises(FencedError):
            await commit(store, begun.claim)

    async def test_a_cancelled_turn_whose_runner_died_stays_so_after_later_turns(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        await begin(store, "t1", lease=LEASE * time.tick)
        await other.cancel_turn(KEY, "t1")
        await time.pass_ticks(LEASE + 1)
        await run_turn(store, "t2")

        assert is_cancelled(await other.begin_turn(KEY, "t1", lease=LONG))

    async def test_a_cancelled_turn_whose_runner_died_has_ended(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        await begin(store, "t1", lease=LEASE * time.tick)
        await other.cancel_turn(KEY, "t1")
        await time.pass_ticks(LEASE + 1)

        assert await other.cancel_turn(KEY, "t1") is Cancelled.DONE

    async def test_a_lapsed_turn_is_cancelled_like_a_queued_one(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        dead = await begin(store, "t1", lease=LEASE * time.tick)
        await time.pass_ticks(LEASE + 1)

        assert await other.cancel_turn(KEY, "t1") is Cancelled.QUEUED

        with pytest.raises(FencedError):
            await commit(store, dead.claim)
        assert is_cancelled(await other.begin_turn(KEY, "t1", lease=LONG))

    async def test_turns_of_other_sessions_and_scopes_are_not_cancelled(
        self, store: SessionStore
    ) -> None:
        await store.cancel_turn(KEY, "t1")

        for key in (SessionKey("", "s2"), SessionKey("you", KEY.session_id)):
            assert isinstance(await store.begin_turn(key, "t1", lease=LONG), New)


class CancelNoticeCases(SessionCases):
    """`wait_cancelled`."""

    async def test_a_runner_is_told_by_another_process(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        begun = await begin(store, "t1")
        async with meanwhile(time, store.wait_cancelled(begun.claim)) as waiting:
            assert not waiting.done()
            assert await other.cancel_turn(KEY, "t1") is Cancelled.RUNNING

            await soon(time, waiting)

    async def test_a_cancellation_from_before_the_wait_is_told_at_once(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        begun = await begin(store, "t1")
        await other.cancel_turn(KEY, "t1")

        await soon(time, store.wait_cancelled(begun.claim))

    async def test_a_renewal_does_not_lose_a_cancellation(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        begun = await begin(store, "t1")
        await other.cancel_turn(KEY, "t1")
        await store.renew_turn(begun.claim, lease=LONG)

        await soon(time, store.wait_cancelled(begun.claim))

    async def test_another_sessions_cancellation_tells_nobody_here(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        yours = SessionKey("you", KEY.session_id)
        mine = await begin(store, "t1")
        await begin(store, "t1", key=yours)
        async with meanwhile(time, store.wait_cancelled(mine.claim)) as waiting:
            assert await other.cancel_turn(yours, "t1") is Cancelled.RUNNING
            await time.calm()

            assert not waiting.done()

    async def test_a_cancellation_tells_the_next_attempt_nothing(
        self, store: SessionStore, time: StoreTime
    ) -> None:
        first = await begin(store, "t1")
        await store.cancel_turn(KEY, "t1")
        await commit(store, first.claim)
        second = await begin(store, "t2")

        async with meanwhile(time, store.wait_cancelled(second.claim)) as waiting:
            assert not waiting.done()


class CancelRaceCases(SessionCases):
    """Two who want different things of a turn at once."""

    async def test_a_cancel_and_a_commit_at_once_agree(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        for number in range(10):
            turn = f"t{number}"
            begun = await begin(store, turn)

            cancelled, _ = await asyncio.gather(
                other.cancel_turn(KEY, turn), commit(store, begun.claim)
            )

            assert cancelled in (Cancelled.RUNNING, Cancelled.DONE)
            replayed = await store.begin_turn(KEY, turn, lease=LONG)
            assert replayed == Done(outcome=outcome(begun.claim))

    async def test_a_cancel_and_a_begin_at_once_agree(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        for number in range(10):
            key = SessionKey("", f"race-{number}")

            begun, cancelled = await asyncio.gather(
                store.begin_turn(key, "t1", lease=LONG), other.cancel_turn(key, "t1")
            )

            if isinstance(begun, New):
                assert cancelled is Cancelled.RUNNING
            else:
                assert is_cancelled(begun)
                assert cancelled is Cancelled.QUEUED

    async def test_a_cancel_and_a_give_up_at_once_agree(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        for number in range(10):
            turn = f"t{number}"
            begun = await begin(store, turn)

            cancelled, _ = await asyncio.gather(
                other.cancel_turn(KEY, turn), store.abandon_turn(begun.claim)
            )

            assert cancelled in (Cancelled.RUNNING, Cancelled.QUEUED)
            assert is_cancelled(await store.begin_turn(KEY, turn, lease=LONG))
