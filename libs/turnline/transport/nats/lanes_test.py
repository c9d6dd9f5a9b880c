"""Parked messages, and when somebody should look at them."""

from turnline.transport.nats.held import Held
from turnline.transport.nats.lanes import Lanes


def held(sequence: int, subject: str = "s", delivered: int = 1) -> Held:
    return Held(
        reply=f"$JS.ACK.{sequence}.{delivered}",
        consumer="all",
        delivered=delivered,
        sequence=sequence,
        stamp=sequence,
        subject=subject,
        raw=b"",
        lease_until=10.0,
    )


def parked(*messages: Held) -> Lanes:
    lanes = Lanes()
    for message in messages:
        lanes.add(message, 0.0)
    return lanes


def taken(lanes: Lanes) -> list[int]:
    found = []
    while (message := lanes.take_due()) is not None:
        found.append(message.sequence)
    return found


def test_what_is_parked_is_not_due() -> None:
    assert taken(parked(held(1), held(2))) == []


def test_the_first_of_a_woken_subject_is_due_once() -> None:
    lanes = parked(held(5), held(3), held(4))

    lanes.wake("s")

    assert taken(lanes) == [3]
    assert len(lanes) == 2


def test_waking_one_subject_wakes_no_other() -> None:
    lanes = parked(held(1, "a"), held(2, "b"))

    lanes.wake("b")

    assert taken(lanes) == [2]


def test_a_wake_during_a_look_is_not_lost() -> None:
    lanes = Lanes()
    message = held(2)
    lanes.look(message)
    lanes.wake("s")
    lanes.add(message, 0.0)
    lanes.looked(message)

    assert taken(lanes) == [2]


def test_a_wake_after_a_look_that_parked_nothing_is_forgotten() -> None:
    lanes = Lanes()
    message = held(2)
    lanes.look(message)
    lanes.wake("s")
    lanes.looked(message)
    lanes.add(held(3), 0.0)

    assert taken(lanes) == []


def test_a_later_delivery_of_a_message_takes_the_place_of_the_earlier() -> None:
    lanes = parked(held(1), held(1, delivered=2))

    assert len(lanes) == 1
    assert [message.delivered for message in lanes] == [2]


def test_what_was_taken_out_is_not_due() -> None:
    lanes = parked(held(1))
    lanes.wake("s")

    lanes.remove(held(1))

    assert taken(lanes) == [] and len(lanes) == 0 and lanes.subjects == ()


def test_what_nobody_looked_at_for_long_is_due() -> None:
    lanes = parked(held(1, "old"))
    lanes.add(held(2, "new"), 5.0)

    lanes.wake_unseen(before=1.0)

    assert taken(lanes) == [1]
