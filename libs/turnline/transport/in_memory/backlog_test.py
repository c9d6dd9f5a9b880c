"""What the backlog promises beyond the port: whose turn it is, and how long to stay away."""

import math

import pytest

from turnline.errors import QueueFullError
from turnline.transport.in_memory.backlog import MAX_RETRY_AFTER, MIN_RETRY_AFTER, Backlog, Lease


def _backlog(
    *, max_messages: int = 100, max_per_group: int = 0, max_bytes: int = 1_000_000
) -> Backlog:
    return Backlog(
        lease_seconds=10.0,
        max_messages=max_messages,
        max_per_group=max_per_group,
        max_bytes=max_bytes,
    )


def _take(backlog: Backlog, now: float = 0.0) -> Lease:
    lease = backlog.take(now)
    assert lease is not None
    return lease


def test_groups_take_turns() -> None:
    backlog = _backlog()
    for raw, group in [(b"a1", "a"), (b"a2", "a"), (b"b1", "b"), (b"b2", "b")]:
        backlog.add(raw, group, 0.0)
    taken = []
    for _ in range(4):
        lease = _take(backlog)
        taken.append(lease.message.raw)
        backlog.remove(lease, 0.0)
    assert taken == [b"a1", b"b1", b"a2", b"b2"]


def test_an_untaken_message_is_the_next_to_be_taken() -> None:
    backlog = _backlog()
    backlog.add(b"a", "a", 0.0)
    backlog.add(b"b", "b", 0.0)
    backlog.untake(_take(backlog))
    again = _take(backlog)
    assert (again.message.raw, again.attempt) == (b"a", 1)


def test_nothing_is_due_in_an_empty_backlog() -> None:
    assert _backlog().next_event() == math.inf


def test_the_nearest_of_leases_and_pauses_is_due_next() -> None:
    backlog = _backlog()
    backlog.add(b"a", "a", 0.0)
    backlog.add(b"b", "b", 0.0)
    paused, _ = _take(backlog, 0.0), _take(backlog, 1.0)
    backlog.pause(paused, until=30.0)
    assert backlog.next_event() == 11.0
    backlog.pass_time(11.0)
    assert backlog.next_event() == 30.0


def test_a_renewed_lease_is_due_after_younger_ones() -> None:
    backlog = _backlog()
    backlog.add(b"a", "a", 0.0)
    backlog.add(b"b", "b", 0.0)
    old, young = _take(backlog, 0.0), _take(backlog, 1.0)
    backlog.renew(old, 5.0)
    backlog.pass_time(12.0)
    assert backlog.is_live(old)
    assert not backlog.is_live(young)


def test_nothing_is_kept_of_a_group_that_ran_dry() -> None:
    backlog = _backlog()
    for number in range(50):
        backlog.add(b"x", f"group-{number}", 0.0)
        backlog.remove(_take(backlog), 0.0)
    assert (backlog.waiting, backlog.in_flight, backlog.oldest_arrival()) == (0, 0, None)
    assert backlog.take(0.0) is None


def _work_for(backlog: Backlog, seconds: float, times: int = 60) -> None:
    for _ in range(times):
        backlog.add(b"x", "worked", 0.0)
        backlog.remove(_take(backlog, 0.0), seconds)


def test_a_full_session_is_told_to_wait_about_as_long_as_a_turn_takes() -> None:
    backlog = _backlog(max_per_group=1)
    _work_for(backlog, 8.0)
    backlog.add(b"x", "full", 0.0)
    with pytest.raises(QueueFullError) as refusal:
        backlog.add(b"x", "full", 0.0)
    assert refusal.value.retry_after == pytest.approx(8.0, rel=0.1)


def test_a_full_queue_is_told_to_wait_the_less_the_more_is_worked_on() -> None:
    backlog = _backlog(max_messages=4)
    _work_for(backlog, 8.0)
    for number in range(4):
        backlog.add(b"x", f"group-{number}", 0.0)
        _take(backlog)
    with pytest.raises(QueueFullError) as refusal:
        backlog.add(b"x", "one more", 0.0)
    assert refusal.value.retry_after == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize(("seconds", "told"), [(0.0, MIN_RETRY_AFTER), (900.0, MAX_RETRY_AFTER)])
def test_the_wait_has_a_least_and_a_most(seconds: float, told: float) -> None:
    backlog = _backlog(max_per_group=1)
    _work_for(backlog, seconds)
    backlog.add(b"x", "full", 0.0)
    with pytest.raises(QueueFullError) as refusal:
        backlog.add(b"x", "full", 0.0)
    assert refusal.value.retry_after == told


def test_bytes_are_bounded_as_messages_are_and_come_free_again() -> None:
    backlog = _backlog(max_bytes=10)
    backlog.add(b"sixsix", "a", 0.0)
    with pytest.raises(QueueFullError):
        backlog.add(b"fives", "b", 0.0)
    backlog.add(b"four", "b", 0.0)

    backlog.remove(_take(backlog), 1.0)

    backlog.add(b"sixsix", "c", 1.0)


def test_an_empty_backlog_takes_a_message_however_large() -> None:
    backlog = _backlog(max_bytes=1)

    backlog.add(b"larger", "a", 0.0)

    assert backlog.waiting == 1
