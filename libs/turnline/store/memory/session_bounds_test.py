"""The in-process SessionStore keeps to its bounds and never gives a live claim's session up."""

import pytest

from turnline.errors import FencedError
from turnline.protocol import SessionKey
from turnline.store import Busy, New
from turnline.store.memory import MemorySessionOptions, MemorySessionStore
from turnline.testing import FakeClock
from turnline.testing.conformance.stores.ledger_rig import (
    KEY,
    LONG,
    begin,
    commit,
    is_cancelled,
    look,
    run_turn,
    told,
)

_A, _B, _C = (SessionKey("", name) for name in "abc")


def _store(clock: FakeClock | None = None, **options: float) -> MemorySessionStore:
    asked = MemorySessionOptions(**options)  # type: ignore[arg-type]  # checked by the class
    return MemorySessionStore(asked, clock or FakeClock())


async def test_of_too_many_sessions_the_one_longest_unused_gives_way() -> None:
    store = _store(max_sessions=2)
    for key in (_A, _B, _A, _C):
        await run_turn(store, f"t-{key.session_id}-{store.size}", key=key)

    assert store.size == 2
    assert len((await look(store, key=_A)).history) == 2
    assert told(await look(store, key=_B)) == []


async def test_a_session_with_a_live_claim_does_not_give_way() -> None:
    store = _store(max_sessions=2)
    begun = await begin(store, "t1", key=_A)
    for number in range(50):
        await run_turn(store, "t", key=SessionKey("", f"other-{number}"))

    await commit(store, begun.claim)

    assert told(await look(store, key=_A)) == [("t1", "hello")]
    assert store.size == 2


async def test_sessions_above_the_bound_go_once_their_claims_end() -> None:
    store = _store(max_sessions=3)
    claims = [
        (await begin(store, "t1", key=SessionKey("", f"live-{number}"))).claim
        for number in range(40)
    ]
    assert store.size == 40
    for claim in claims:
        await store.abandon_turn(claim)

    for number in range(5):
        await run_turn(store, "t", key=SessionKey("", f"new-{number}"))

    assert store.size == 3


async def test_a_live_claim_outlives_the_ttl_of_its_session() -> None:
    clock = FakeClock()
    store = _store(clock, ttl=10.0)
    begun = await begin(store, "t1", lease=30.0)
    await clock.advance(25)

    await begin(store, "t1", key=_B)

    assert isinstance(await store.begin_turn(KEY, "t2", lease=LONG), Busy)
    await commit(store, begun.claim)


async def test_a_fence_never_comes_again_after_its_session_gave_way() -> None:
    clock = FakeClock()
    store = _store(clock, max_sessions=1)
    fences = []
    for _ in range(3):
        fences.append((await run_turn(store, "t1", key=_A)).fence)
        fences.append((await run_turn(store, "t1", key=_B)).fence)

    assert fences == sorted(set(fences))


async def test_a_dead_runner_cannot_commit_into_a_session_that_gave_way() -> None:
    clock = FakeClock()
    store = _store(clock, max_sessions=1)
    dead = await begin(store, "t1", key=_A, lease=5.0)
    await clock.advance(6)
    await run_turn(store, "t1", key=_B)

    with pytest.raises(FencedError):
        await commit(store, dead.claim)
    alive = await begin(store, "t1", key=_A)
    with pytest.raises(FencedError):
        await commit(store, dead.claim)

    await commit(store, alive.claim)


async def test_many_sessions_stay_within_the_bound() -> None:
    store = _store(max_sessions=100)

    for number in range(5_000):
        await run_turn(store, "t", key=SessionKey("", f"s{number}"))

    assert store.size == 100


async def test_marks_of_cancelled_turns_are_bounded() -> None:
    store = _store(max_done_per_session=3)
    for number in range(5):
        await store.cancel_turn(KEY, f"t{number}")

    assert isinstance(await store.begin_turn(KEY, "t0", lease=LONG), New)
    assert is_cancelled(await store.begin_turn(KEY, "t4", lease=LONG))


async def test_counts_of_attempts_are_bounded() -> None:
    store = _store(max_done_per_session=3)
    for number in range(5):
        begun = await begin(store, f"t{number}")
        await store.abandon_turn(begun.claim)

    counted = []
    for number in (4, 0):
        begun = await begin(store, f"t{number}")
        counted.append(begun.claim.attempt)
        await store.abandon_turn(begun.claim)

    assert counted == [2, 1]
