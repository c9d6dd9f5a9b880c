"""The ledger as a value: fences, counts and bounds, and that it is read as it was written."""

import pytest

from turnline.errors import FencedError
from turnline.store.dynamodb.ledger import MAX_TRIES, Ledger, from_item, to_item

_NEW = Ledger(born="b")


def _claimed(ledger: Ledger, turn: str, *, micros: int = 0, until: int = 1000) -> Ledger:
    return ledger.claimed(turn, mark="m", micros=micros, until=until)


def test_a_fence_is_above_the_clock_and_above_the_one_before() -> None:
    first = _claimed(_NEW, "t", micros=1_700_000_000_000_000)
    behind = _claimed(first.free(), "t", micros=1_600_000_000_000_000)

    assert first.fence == 1_700_000_000_000_000
    assert behind.fence == first.fence + 1


def test_claims_of_a_turn_are_counted_until_it_ends() -> None:
    twice = _claimed(_claimed(_NEW, "t").free(), "t")

    assert twice.attempts("t") == 2
    assert twice.ended("t").attempts("t") == 0


def test_of_too_many_turns_that_never_end_the_one_claimed_longest_ago_is_forgotten() -> None:
    ledger = _claimed(_NEW, "old").free()
    ledger = _claimed(ledger, "again").free()
    for number in range(MAX_TRIES - 2):
        ledger = _claimed(ledger, f"t{number}").free()
    ledger = _claimed(ledger, "again").free()
    assert len(ledger.tries) == MAX_TRIES

    ledger = _claimed(ledger, "new")

    assert len(ledger.tries) == MAX_TRIES
    assert [ledger.attempts(turn) for turn in ("old", "again", "new")] == [0, 2, 1]


def test_only_the_claim_that_is_held_and_live_may_write() -> None:
    ledger = _claimed(_NEW, "t", micros=7, until=1000)

    ledger.check(7, 999)
    for each, fence, now in ((ledger, 6, 0), (ledger, 8, 0), (ledger, 7, 1000), (_NEW, 0, 0)):
        with pytest.raises(FencedError):
            each.check(fence, now)
    with pytest.raises(FencedError):
        ledger.free().check(7, 0)


@pytest.mark.parametrize("held", [True, False])
def test_a_ledger_is_read_as_it_was_written(held: bool) -> None:
    ledger = _claimed(_NEW, "ü", micros=2**60, until=2**50).recorded().with_state(b"{}")
    ledger = _claimed(ledger.ended("ü"), "t") if held else ledger.ended("ü").free()

    assert from_item(to_item(ledger, writer="w", expires=5)) == ledger


def test_what_another_release_wrote_beside_is_passed_over() -> None:
    item = to_item(_NEW, writer="w", expires=5) | {"unheard": {"S": "of"}}

    assert from_item(item) == _NEW
