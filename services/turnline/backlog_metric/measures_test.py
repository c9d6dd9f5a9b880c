"""What is published of which counts."""

import math

from hypothesis import given
from hypothesis import strategies as st

from turnline.backlog_metric import Fleet, Queue, measures

TARGETS = st.integers(1, 100)
QUEUES = st.builds(Queue, waiting=st.integers(0, 200_000), in_flight=st.integers(0, 120_000))
RUNNING_FLEETS = st.integers(1, 1000).map(lambda count: Fleet(running=count, desired=count))
FLEETS = st.builds(Fleet, running=st.integers(0, 1000), desired=st.integers(0, 1000))


def values(queue: Queue, fleet: Fleet) -> dict[str, float]:
    return {measure.name: measure.value for measure in measures(queue, fleet)}


def wanted_tasks(queue: Queue, fleet: Fleet, target: int) -> int:
    """What target tracking asks for, by the expression of the policy (tasks x value / target)."""
    value = values(queue, fleet)
    tracked = max(value["BacklogPerTask"], target * value["BusyShare"])
    return math.ceil(fleet.desired * tracked / target - 1e-9)


def test_the_backlog_is_shared_by_the_running_tasks() -> None:
    value = values(Queue(waiting=12, in_flight=8), Fleet(running=4, desired=4))

    assert value["BacklogPerTask"] == 5


def test_one_turn_in_flight_and_none_waiting_is_a_backlog_of_one() -> None:
    value = values(Queue(waiting=0, in_flight=1), Fleet(running=1, desired=1))

    assert value["BacklogPerTask"] == 1


def test_one_message_and_no_task_asks_to_be_woken() -> None:
    value = values(Queue(waiting=1, in_flight=0), Fleet(running=0, desired=0))

    assert value["BacklogWithoutTasks"] == 1


def test_a_turn_left_in_flight_by_a_lost_task_asks_to_be_woken_too() -> None:
    value = values(Queue(waiting=0, in_flight=1), Fleet(running=0, desired=0))

    assert value["BacklogWithoutTasks"] == 1


def test_nobody_is_woken_twice_while_a_task_is_on_its_way() -> None:
    value = values(Queue(waiting=1, in_flight=0), Fleet(running=0, desired=1))

    assert value["BacklogWithoutTasks"] == 0


def test_nothing_to_do_wakes_nobody() -> None:
    value = values(Queue(waiting=0, in_flight=0), Fleet(running=0, desired=0))

    assert value == {"BacklogPerTask": 0, "BusyShare": 0, "BacklogWithoutTasks": 0}


def test_an_empty_queue_whose_turns_are_being_worked_on_keeps_its_tasks() -> None:
    queue, fleet = Queue(waiting=0, in_flight=2), Fleet(running=2, desired=2)

    assert wanted_tasks(queue, fleet, target=5) == 2


def test_an_idle_fleet_may_shrink_to_none() -> None:
    queue, fleet = Queue(waiting=0, in_flight=0), Fleet(running=9, desired=9)

    assert wanted_tasks(queue, fleet, target=5) == 0


@given(QUEUES, FLEETS)
def test_the_share_of_busy_tasks_is_between_none_and_all(queue: Queue, fleet: Fleet) -> None:
    assert 0 <= values(queue, fleet)["BusyShare"] <= 1


@given(QUEUES, RUNNING_FLEETS, TARGETS)
def test_a_fleet_is_never_asked_to_shrink_below_its_turns_in_flight(
    queue: Queue, fleet: Fleet, target: int
) -> None:
    assert wanted_tasks(queue, fleet, target) >= min(queue.in_flight, fleet.running)


@given(QUEUES, RUNNING_FLEETS, TARGETS)
def test_enough_tasks_are_asked_for_to_bring_the_backlog_to_its_target(
    queue: Queue, fleet: Fleet, target: int
) -> None:
    tasks = wanted_tasks(queue, fleet, target)

    assert queue.backlog <= tasks * target


@given(QUEUES, FLEETS)
def test_whoever_is_to_be_woken_has_work_and_no_task(queue: Queue, fleet: Fleet) -> None:
    asleep = fleet.running == fleet.desired == 0

    assert values(queue, fleet)["BacklogWithoutTasks"] == (asleep and queue.backlog > 0)
