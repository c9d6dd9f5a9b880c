"""Cases of SessionStore: who may run a turn, under which fence and attempt, and for how long."""

import asyncio

import pytest

from turnline.errors import FencedError
from turnline.protocol import SessionKey
from turnline.store import Busy, Claim, New, SessionStore
from turnline.testing.conformance.stores.harness import StoreTime
from turnline.testing.conformance.stores.ledger_rig import (
    KEY,
    LEASE,
    LONG,
    SessionCases,
    begin,
    commit,
    kinds,
    run_turn,
)


class ClaimCases(SessionCases):
    """`begin_turn` and `abandon_turn`."""

    async def test_a_new_session_is_empty(self, store: SessionStore) -> None:
        begun = await begin(store, "t1")

        assert (begun.claim.key, begun.claim.request_id) == (KEY, "t1")
        assert begun.claim.attempt == 1
        assert begun.claim.fence >= 1
        assert (list(begun.session.history), dict(begun.session.state)) == ([], {})

    @pytest.mark.parametrize("request_id", ["t1", "t2"], ids=["same-turn", "next-turn"])
    async def test_a_claimed_session_is_busy(
        self, store: SessionStore, other: SessionStore, request_id: str
    ) -> None:
        await begin(store, "t1", lease=LONG)

        begun = await other.begin_turn(KEY, request_id, lease=LONG)

        assert isinstance(begun, Busy)
        assert 0 < begun.seconds <= LONG

    async def test_busy_says_how_long_the_lease_still_runs(
        self, store: SessionStore, time: StoreTime
    ) -> None:
        await begin(store, "t1", lease=LEASE * time.tick)
        await time.pass_ticks(4)

        begun = await store.begin_turn(KEY, "t2", lease=LONG)

        assert isinstance(begun, Busy)
        assert 0 < begun.seconds <= (LEASE - 3.9) * time.tick

    async def test_a_busy_answer_changes_nothing(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        first = await begin(store, "t1")
        await other.begin_turn(KEY, "t1", lease=LONG)
        await other.begin_turn(KEY, "t2", lease=LONG)

        await commit(store, first.claim)

        assert (await begin(store, "t2")).claim.attempt == 1

    async def test_sessions_do_not_wait_for_each_other(self, store: SessionStore) -> None:
        keys = [SessionKey("", "s1"), SessionKey("", "s2"), SessionKey("me", "s1")]

        begun = [await store.begin_turn(key, "t1", lease=LONG) for key in keys]

        assert kinds(begun) == {"new": 3, "done": 0, "busy": 0}

    async def test_no_two_keys_meet_whatever_their_characters(self, store: SessionStore) -> None:
        keys = [
            SessionKey("a", "b"),
            SessionKey("", "~1a~1b"),
            SessionKey("", "a:b"),
            SessionKey("a~1b", "c"),
            SessionKey("a", "b~1c"),
            SessionKey("a:b", "c"),
            SessionKey("a", "b:c"),
            SessionKey("A", "b"),
            SessionKey("", "ä {}/#"),
        ]

        begun = [await store.begin_turn(key, "t1", lease=LONG) for key in keys]

        assert kinds(begun) == {"new": len(keys), "done": 0, "busy": 0}

    async def test_of_many_deliveries_of_a_turn_one_may_run(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        begun = await asyncio.gather(
            *(each.begin_turn(KEY, "t1", lease=LONG) for each in [store, other] * 10)
        )

        assert kinds(begun) == {"new": 1, "done": 0, "busy": 19}

    async def test_of_many_turns_of_a_session_one_may_run(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        turns = [(each, f"t{number}") for number, each in enumerate([store, other] * 10)]

        begun = await asyncio.gather(
            *(each.begin_turn(KEY, turn, lease=LONG) for each, turn in turns)
        )

        assert kinds(begun) == {"new": 1, "done": 0, "busy": 19}

    async def test_of_many_who_want_a_lapsed_claim_one_gets_it(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        await begin(store, "t1", lease=LEASE * time.tick)
        await time.pass_ticks(LEASE + 1)

        begun = await asyncio.gather(
            *(each.begin_turn(KEY, "t1", lease=LONG) for each in [store, other] * 10)
        )

        assert kinds(begun) == {"new": 1, "done": 0, "busy": 19}

    async def test_a_dead_runner_costs_no_more_than_its_lease(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        dead = await begin(store, "t1", lease=LEASE * time.tick)
        await time.pass_ticks(LEASE / 2)
        assert isinstance(await other.begin_turn(KEY, "t1", lease=LONG), Busy)
        await time.pass_ticks(LEASE / 2 + 1)

        begun = await begin(other, "t1")

        assert begun.claim.fence > dead.claim.fence
        assert begun.claim.attempt == 2

    async def test_each_claim_has_a_higher_fence(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        fences = [(await run_turn(store, "t1")).fence]
        abandoned = await begin(other, "t2")
        await other.abandon_turn(abandoned.claim)
        fences.append(abandoned.claim.fence)
        fences.append((await begin(store, "t2", lease=LEASE * time.tick)).claim.fence)
        await time.pass_ticks(LEASE + 1)
        fences.append((await begin(other, "t3")).claim.fence)

        assert fences == sorted(set(fences))

    async def test_attempts_are_counted_by_turn(self, store: SessionStore) -> None:
        attempts = []
        for turn in ("t1", "t1", "t2", "t1", "t2"):
            begun = await begin(store, turn)
            attempts.append(begun.claim.attempt)
            await store.abandon_turn(begun.claim)

        assert attempts == [1, 2, 1, 3, 2]

    async def test_an_abandoned_session_is_free_at_once(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        begun = await begin(store, "t1")

        await store.abandon_turn(begun.claim)

        assert isinstance(await other.begin_turn(KEY, "t2", lease=LONG), New)

    async def test_an_old_claim_cannot_abandon_a_new_one(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        old = await begin(store, "t1")
        await store.abandon_turn(old.claim)
        new = await begin(other, "t1")

        await store.abandon_turn(old.claim)

        assert isinstance(await store.begin_turn(KEY, "t2", lease=LONG), Busy)
        await commit(other, new.claim)

    async def test_abandoning_what_is_over_does_nothing(self, store: SessionStore) -> None:
        claim = await run_turn(store, "t1")
        await store.abandon_turn(claim)
        unknown = Claim(key=SessionKey("", "nobody"), request_id="t", fence=1, attempt=1)
        await store.abandon_turn(unknown)

        assert kinds([await store.begin_turn(KEY, "t1", lease=LONG)])["done"] == 1


class RenewCases(SessionCases):
    """`renew_turn`."""

    async def test_a_renewed_claim_outlives_its_first_lease(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        begun = await begin(store, "t1", lease=LEASE * time.tick)
        for _ in range(3):
            await time.pass_ticks(LEASE / 2)
            await store.renew_turn(begun.claim, lease=LEASE * time.tick)
        await time.pass_ticks(LEASE / 2)

        assert isinstance(await other.begin_turn(KEY, "t1", lease=LONG), Busy)
        await commit(store, begun.claim)

    async def test_a_renewed_lease_counts_from_the_renewal(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        begun = await begin(store, "t1", lease=LONG)

        await store.renew_turn(begun.claim, lease=LEASE * time.tick)
        await time.pass_ticks(LEASE + 1)

        assert isinstance(await other.begin_turn(KEY, "t1", lease=LONG), New)

    async def test_a_lapsed_claim_cannot_be_renewed(
        self, store: SessionStore, time: StoreTime
    ) -> None:
        begun = await begin(store, "t1", lease=LEASE * time.tick)
        await time.pass_ticks(LEASE + 1)

        with pytest.raises(FencedError):
            await store.renew_turn(begun.claim, lease=LONG)
        assert isinstance(await store.begin_turn(KEY, "t2", lease=LONG), New)

    async def test_an_old_claim_cannot_be_renewed(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        old = await begin(store, "t1", lease=LEASE * time.tick)
        await time.pass_ticks(LEASE + 1)
        await begin(other, "t1", lease=LEASE * time.tick)

        with pytest.raises(FencedError):
            await store.renew_turn(old.claim, lease=LONG)
        await time.pass_ticks(LEASE + 1)
        assert isinstance(await store.begin_turn(KEY, "t1", lease=LONG), New)

    async def test_a_committed_claim_cannot_be_renewed(self, store: SessionStore) -> None:
        claim = await run_turn(store, "t1")

        with pytest.raises(FencedError):
            await store.renew_turn(claim, lease=LONG)
        assert isinstance(await store.begin_turn(KEY, "t2", lease=LONG), New)

    async def test_an_abandoned_claim_cannot_be_renewed(self, store: SessionStore) -> None:
        begun = await begin(store, "t1")
        await store.abandon_turn(begun.claim)

        with pytest.raises(FencedError):
            await store.renew_turn(begun.claim, lease=LONG)

    async def test_a_claim_of_an_unknown_session_cannot_be_renewed(
        self, store: SessionStore
    ) -> None:
        claim = Claim(key=SessionKey("", "nobody"), request_id="t", fence=1, attempt=1)

        with pytest.raises(FencedError):
            await store.renew_turn(claim, lease=LONG)
