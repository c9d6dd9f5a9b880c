"""Cases of SessionStore: what a commit writes, when it is refused, and crashes around it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from turnline.errors import FencedError
from turnline.protocol import ChatReply, SessionKey
from turnline.store import Busy, Claim, Done, New, SessionStore
from turnline.testing.conformance.stores.harness import StoreTime
from turnline.testing.conformance.stores.ledger_rig import (
    KEY,
    LEASE,
    LONG,
    SessionCases,
    begin,
    commit,
    failure_outcome,
    look,
    outcome,
    record,
    run_turn,
    told,
)

_STATE = {"n": 1, "f": 1.5, "t": "Grüße 👋\u0000", "x": [None, True, {"": []}], "big": 2**53}


def _circle() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["again"] = circle
    return circle


_NO_JSON: dict[str, Any] = {
    "set": {"x": {1, 2}},
    "number-key": {"x": {1: "one"}},
    "nan": {"x": [float("nan")]},
    "object": {"x": object()},
    "bytes": {"x": b"raw"},
    "half-a-character": {"x": "\ud800"},
    "circle": _circle(),
}


class CommitCases(SessionCases):
    """What is there after `commit_turn`."""

    async def test_a_committed_turn_is_done_with_its_outcome(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        begun = await begin(store, "t1")
        extra = {"status": "paused", "interruptions": [{"id": 1, "why": None}]}
        ended = replace(
            outcome(begun.claim), payload=ChatReply(result="ü 👋", extra=extra), chunk_count=5
        )

        await store.commit_turn(begun.claim, ended, record=record("t1"), state={})

        assert await other.begin_turn(KEY, "t1", lease=LONG) == Done(outcome=ended)

    async def test_a_failure_can_be_committed(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        begun = await begin(store, "t1")
        ended = failure_outcome(begun.claim)

        await store.commit_turn(begun.claim, ended, record=None, state={})

        assert await other.begin_turn(KEY, "t1", lease=LONG) == Done(outcome=ended)
        assert told(await look(store)) == []

    async def test_a_commit_frees_the_session(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        await run_turn(store, "t1")

        assert isinstance(await other.begin_turn(KEY, "t2", lease=LONG), New)

    async def test_history_is_in_the_order_of_commits(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        for number, each in enumerate([store, other, store]):
            await run_turn(each, f"t{number}", f"reply {number}")

        session = await look(other)

        assert told(session) == [("t0", "reply 0"), ("t1", "reply 1"), ("t2", "reply 2")]

    async def test_a_record_is_read_as_it_was_committed(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        begun = await begin(store, "t1")
        kept = record("t1", "Grüße 👋", {"role": "tool", "x": [1, None]}, {"ü": {"y": 2.5}})

        await store.commit_turn(begun.claim, outcome(begun.claim), record=kept, state={})

        (read,) = (await look(other)).history
        assert replace(read, items=tuple(read.items)) == kept

    async def test_state_is_read_as_it_was_committed(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        await run_turn(store, "t1", state=_STATE)

        assert (await look(other)).state == _STATE

    async def test_state_is_replaced_whole(self, store: SessionStore) -> None:
        await run_turn(store, "t1", state={"a": 1, "b": 2})
        await run_turn(store, "t2", state={"b": 3})
        assert (await look(store)).state == {"b": 3}

        await run_turn(store, "t3", state={})

        assert (await look(store)).state == {}

    async def test_a_done_turn_is_replayed_while_another_runs(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        first = await run_turn(store, "t1")
        await begin(store, "t2")

        replayed = await other.begin_turn(KEY, "t1", lease=LONG)

        assert replayed == Done(outcome=outcome(first))

    async def test_sessions_and_scopes_share_nothing(self, store: SessionStore) -> None:
        yours = SessionKey("you", KEY.session_id)
        await run_turn(store, "t1", state={"mine": 1})

        begun = await begin(store, "t1", key=yours)

        assert (list(begun.session.history), dict(begun.session.state)) == ([], {})

    async def test_many_sessions_commit_at_once(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        keys = [SessionKey("", f"s{number}") for number in range(20)]

        await asyncio.gather(
            *(
                run_turn(each, "t", key.session_id, key=key, state={"me": key.session_id})
                for key, each in zip(keys, [store, other] * 10, strict=True)
            )
        )

        sessions = [await look(store, key=key) for key in keys]
        assert [told(each) for each in sessions] == [[("t", key.session_id)] for key in keys]
        assert [each.state for each in sessions] == [{"me": key.session_id} for key in keys]


class RefusalCases(SessionCases):
    """Commits that must write nothing."""

    async def test_committing_again_does_nothing(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        claim = await run_turn(store, "t1", "first", state={"n": 1})

        await commit(other, claim, "second", state={"n": 2})

        session = await look(store)
        assert (told(session), session.state) == ([("t1", "first")], {"n": 1})
        assert await store.begin_turn(KEY, "t1", lease=LONG) == Done(
            outcome=outcome(claim, "first")
        )

    async def test_committing_again_does_nothing_however_late(
        self, store: SessionStore, time: StoreTime
    ) -> None:
        begun = await begin(store, "t1", lease=LEASE * time.tick)
        await commit(store, begun.claim, state={"n": 1})
        await run_turn(store, "t2", state={"n": 2})
        await time.pass_ticks(LEASE + 1)
        await begin(store, "t3")

        await commit(store, begun.claim, state={"n": 1})

        assert isinstance(await store.begin_turn(KEY, "t4", lease=LONG), Busy)

    async def test_a_claim_committed_twice_at_once_is_in_history_once(
        self, store: SessionStore, other: SessionStore
    ) -> None:
        begun = await begin(store, "t1")

        await asyncio.gather(*(commit(each, begun.claim) for each in [store, other] * 5))

        assert told(await look(store)) == [("t1", "hello")]

    async def test_a_lapsed_claim_cannot_commit(self, store: SessionStore, time: StoreTime) -> None:
        await run_turn(store, "t0", "before", state={"n": 0})
        begun = await begin(store, "t1", lease=LEASE * time.tick)
        await time.pass_ticks(LEASE + 1)

        with pytest.raises(FencedError):
            await commit(store, begun.claim, state={"n": 1})

        again = await begin(store, "t1")
        assert (told(again.session), again.session.state) == ([("t0", "before")], {"n": 0})

    async def test_a_dead_runners_commit_is_refused_once_another_runs(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        dead = await begin(store, "t1", lease=LEASE * time.tick)
        await time.pass_ticks(LEASE + 1)
        alive = await begin(other, "t1")

        with pytest.raises(FencedError):
            await commit(store, dead.claim, "from the dead", state={"dead": True})
        await commit(other, alive.claim, "alive")

        session = await look(store)
        assert (told(session), session.state) == ([("t1", "alive")], {})

    async def test_a_dead_runners_commit_is_refused_once_another_ended(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        dead = await begin(store, "t1", lease=LEASE * time.tick)
        await time.pass_ticks(LEASE + 1)
        alive = await run_turn(other, "t1", "alive")

        with pytest.raises(FencedError):
            await commit(store, dead.claim, "from the dead", state={"dead": True})

        replayed = await store.begin_turn(KEY, "t1", lease=LONG)
        assert replayed == Done(outcome=outcome(alive, "alive"))

    async def test_a_dead_runner_of_an_earlier_turn_is_refused(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        dead = await begin(store, "t1", lease=LEASE * time.tick)
        await time.pass_ticks(LEASE + 1)
        alive = await begin(other, "t2")

        with pytest.raises(FencedError):
            await commit(store, dead.claim)
        await commit(other, alive.claim)

        assert told(await look(store)) == [("t2", "hello")]

    async def test_an_abandoned_claim_cannot_commit(self, store: SessionStore) -> None:
        begun = await begin(store, "t1")
        await store.abandon_turn(begun.claim)

        with pytest.raises(FencedError):
            await commit(store, begun.claim)

        assert told(await look(store)) == []

    async def test_a_claim_nobody_was_given_cannot_commit(self, store: SessionStore) -> None:
        begun = await begin(store, "t1")
        ahead = replace(begun.claim, fence=begun.claim.fence + 1)
        unknown = Claim(key=SessionKey("", "nobody"), request_id="t", fence=1, attempt=1)

        for claim in (ahead, unknown):
            with pytest.raises(FencedError):
                await commit(store, claim)

        await commit(store, begun.claim)

    @pytest.mark.parametrize("state", _NO_JSON.values(), ids=_NO_JSON.keys())
    async def test_a_state_that_is_no_json_is_refused_and_nothing_is_written(
        self, store: SessionStore, state: dict[str, Any]
    ) -> None:
        await run_turn(store, "t0", state={"n": 0})
        begun = await begin(store, "t1")

        with pytest.raises(ValueError, match="state"):
            await commit(store, begun.claim, state=state)

        await commit(store, begun.claim, state={"n": 1})
        session = await look(store)
        assert (told(session), session.state) == ([("t0", "hello"), ("t1", "hello")], {"n": 1})

    async def test_items_that_are_no_json_are_refused_and_nothing_is_written(
        self, store: SessionStore
    ) -> None:
        begun = await begin(store, "t1")
        kept = record("t1", "hello", {"x": {1, 2}})

        with pytest.raises(ValueError, match="items"):
            await store.commit_turn(begun.claim, outcome(begun.claim), record=kept, state={"n": 1})

        await store.abandon_turn(begun.claim)
        session = await look(store)
        assert (told(session), session.state) == ([], {})


class CrashCases(SessionCases):
    """A runner that dies between two steps of a turn."""

    async def test_dying_before_the_commit_leaves_no_trace(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        await run_turn(store, "t0", "before", state={"n": 0})
        dead = await begin(store, "t1", lease=LEASE * time.tick)
        dict(dead.session.state)["n"] = 1
        await time.pass_ticks(LEASE + 1)

        again = await begin(other, "t1")
        await commit(other, again.claim, "second try", state={"n": 2})

        assert (told(again.session), again.session.state) == ([("t0", "before")], {"n": 0})
        assert told(await look(store)) == [("t0", "before"), ("t1", "second try")]

    async def test_dying_after_the_commit_replays_the_outcome_to_every_delivery(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        claim = await run_turn(store, "t1")
        replayed = [await other.begin_turn(KEY, "t1", lease=LONG) for _ in range(3)]
        await time.pass_ticks(LEASE + 1)
        replayed.append(await store.begin_turn(KEY, "t1", lease=LONG))

        assert replayed == [Done(outcome=outcome(claim))] * 4
        assert told(await look(store)) == [("t1", "hello")]

    async def test_dying_on_every_attempt_does_not_hold_the_session(
        self, store: SessionStore, other: SessionStore, time: StoreTime
    ) -> None:
        for each in (store, other, store):
            await begin(each, "t1", lease=LEASE * time.tick)
            await time.pass_ticks(LEASE + 1)

        assert (await begin(other, "t2")).claim.attempt == 1
