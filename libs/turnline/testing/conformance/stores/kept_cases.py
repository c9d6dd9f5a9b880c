"""Cases of SessionStore: what is kept shares nothing with callers, and for how long it is kept."""

from dataclasses import replace

from turnline.protocol import ChatReply
from turnline.store import Done, New, SessionStore
from turnline.testing.conformance.stores.harness import SessionHarness, SessionLimits, StoreTime
from turnline.testing.conformance.stores.ledger_rig import (
    KEY,
    LONG,
    SessionCases,
    begin,
    look,
    outcome,
    record,
    run_turn,
    told,
)


class AliasCases(SessionCases):
    """An agent may do what it likes with what it was given."""

    async def test_changing_the_given_state_does_not_change_the_stored_one(
        self, store: SessionStore
    ) -> None:
        await run_turn(store, "t1", state={"list": [1], "deep": {"x": {"y": 1}}})

        given = (await look(store)).state
        given["list"].append(2)
        given["deep"]["x"]["y"] = 2

        assert (await look(store)).state == {"list": [1], "deep": {"x": {"y": 1}}}

    async def test_changing_given_items_does_not_change_the_history(
        self, store: SessionStore
    ) -> None:
        begun = await begin(store, "t1")
        kept = record("t1", "hello", {"calls": [1]})
        await store.commit_turn(begun.claim, outcome(begun.claim), record=kept, state={})

        (given,) = (await look(store)).history
        given.items[0]["calls"].append(2)

        (again,) = (await look(store)).history
        assert again.items[0] == {"calls": [1]}

    async def test_changing_what_was_committed_does_not_change_what_is_stored(
        self, store: SessionStore
    ) -> None:
        begun = await begin(store, "t1")
        state, item, extra = {"list": [1]}, {"calls": [1]}, {"more": [1]}
        ended = replace(outcome(begun.claim), payload=ChatReply(result="x", extra=extra))
        kept = record("t1", "hello", item)
        await store.commit_turn(begun.claim, ended, record=kept, state=state)

        for mine in (state["list"], item["calls"], extra["more"]):
            mine.append(2)

        session = await look(store)
        replayed = await store.begin_turn(KEY, "t1", lease=LONG)
        assert session.state == {"list": [1]}
        assert session.history[0].items[0] == {"calls": [1]}
        assert isinstance(replayed, Done)
        assert isinstance(replayed.outcome.payload, ChatReply)
        assert replayed.outcome.payload.extra == {"more": [1]}


class BoundCases(SessionCases):
    """TTL and bounds of a session."""

    async def test_of_a_long_history_the_oldest_turns_give_way(
        self, harness: SessionHarness
    ) -> None:
        async with harness.open(SessionLimits(max_history=3)) as store:
            for number in range(5):
                await run_turn(store, f"t{number}")

            session = await look(store)

        assert [turn.request_id for turn in session.history] == ["t2", "t3", "t4"]

    async def test_of_many_ended_turns_the_oldest_are_forgotten(
        self, harness: SessionHarness
    ) -> None:
        async with harness.open(SessionLimits(max_done=3)) as store:
            for number in range(5):
                await run_turn(store, f"t{number}")

            kept = [await store.begin_turn(KEY, f"t{number}", lease=LONG) for number in (4, 3, 2)]
            forgotten = await store.begin_turn(KEY, "t1", lease=LONG)

        assert [type(begun) for begun in kept] == [Done, Done, Done]
        assert isinstance(forgotten, New)

    async def test_an_unused_session_expires(
        self, harness: SessionHarness, time: StoreTime
    ) -> None:
        async with harness.open(SessionLimits(ttl_ticks=20)) as store:
            claim = await run_turn(store, "t1", state={"n": 1})
            await time.pass_ticks(21)

            begun = await begin(store, "t1")

        assert (told(begun.session), begun.session.state) == ([], {})
        assert begun.claim.fence != claim.fence

    async def test_each_turn_keeps_a_session_alive(
        self, harness: SessionHarness, time: StoreTime
    ) -> None:
        async with harness.open(SessionLimits(ttl_ticks=20)) as store:
            for number in range(4):
                await run_turn(store, f"t{number}")
                await time.pass_ticks(12)

            session = await look(store)

        assert len(session.history) == 4
