"""How many pulls are open, and at which consumers."""

from turnline.transport.nats.pulls import Pull, Pulls


def one() -> Pulls:
    return Pulls(["all"], 3.0)


def many() -> Pulls:
    return Pulls(["p0", "p1", "p2"], 1.0)


def names(pulls: list[Pull]) -> list[str]:
    return [pull.consumer for pull in pulls]


def test_nobody_waits_so_nothing_is_pulled() -> None:
    assert one().wanted(0, 0.0) == []
    assert many().wanted(0, 0.0) == []


def test_each_reader_has_one_pull() -> None:
    pulls = one()

    assert len(pulls.wanted(2, 0.0)) == 2
    assert pulls.wanted(2, 0.1) == []
    assert len(pulls.wanted(3, 0.2)) == 1


def test_a_message_uses_up_a_pull() -> None:
    pulls = one()
    pulls.wanted(2, 0.0)

    pulls.arrived("all")

    assert len(pulls) == 1


def test_a_pull_left_open_by_a_reader_that_went_serves_the_next() -> None:
    pulls = one()
    pulls.wanted(1, 0.0)
    assert pulls.wanted(0, 0.1) == []

    assert pulls.wanted(1, 0.2) == []


def test_an_expired_pull_is_made_anew() -> None:
    pulls = one()
    (first,) = pulls.wanted(1, 0.0)

    assert pulls.ended(first.number, "408", 3.0) is True

    assert len(pulls.wanted(1, 3.0)) == 1


def test_a_pull_the_server_forgot_is_made_anew() -> None:
    pulls = one()
    pulls.wanted(1, 0.0)

    assert pulls.wanted(1, 3.9) == []
    assert len(pulls.wanted(1, 4.1)) == 1


def test_after_a_refusal_the_next_pull_waits_a_moment() -> None:
    pulls = one()
    (first,) = pulls.wanted(1, 0.0)

    assert pulls.ended(first.number, "503", 0.1) is False

    assert pulls.wanted(1, 0.2) == []
    assert len(pulls.wanted(1, 0.7)) == 1


def test_a_status_for_a_pull_taken_for_served_ends_another() -> None:
    pulls = one()
    first, _ = pulls.wanted(2, 0.0)
    pulls.arrived("all")  # the server served the second

    pulls.ended(first.number, "408", 3.0)

    assert len(pulls) == 0


def test_a_new_connection_starts_from_nothing() -> None:
    pulls = one()
    pulls.wanted(2, 0.0)

    pulls.void()

    assert len(pulls.wanted(2, 0.1)) == 2


def test_many_consumers_are_asked_in_turn_and_one_pull_is_left_at_each_when_all_are_empty() -> None:
    pulls = many()
    asked = []
    for _ in range(3):
        (pull,) = pulls.wanted(1, 0.0)
        assert pull.wait_seconds == 0
        asked.append(pull.consumer)
        pulls.ended(pull.number, "404", 0.0)
    assert sorted(asked) == ["p0", "p1", "p2"]

    left = pulls.wanted(1, 0.0)

    assert sorted(names(left)) == ["p0", "p1", "p2"]
    assert all(pull.wait_seconds > 0 for pull in left)
    assert pulls.wanted(5, 0.0) == []


def test_a_message_makes_many_consumers_be_asked_in_turn_again() -> None:
    pulls = many()
    for _ in range(3):
        (pull,) = pulls.wanted(1, 0.0)
        pulls.ended(pull.number, "404", 0.0)
    pulls.wanted(1, 0.0)

    pulls.arrived("p1")

    (pull,) = pulls.wanted(1, 0.0)
    assert pull.wait_seconds == 0


def test_a_consumer_with_all_its_deliveries_out_counts_as_empty() -> None:
    pulls = many()
    (pull,) = pulls.wanted(1, 0.0)

    assert pulls.ended(pull.number, "409", 0.0) is True

    assert len(pulls.wanted(1, 0.0)) == 1
