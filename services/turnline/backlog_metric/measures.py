"""What is published, from what was counted.  Pure.

It must not know AWS's calls, nor what the scaling policies do with the values: those stand in
`deploy/terraform/containerized/modules/backlog-scaling`.
"""

from dataclasses import dataclass
from typing import NamedTuple

BACKLOG_PER_TASK = "BacklogPerTask"
BUSY_SHARE = "BusyShare"
BACKLOG_WITHOUT_TASKS = "BacklogWithoutTasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Messages of the input queue, as the queue approximates them.

    Attributes:
        waiting: ready to be taken, or not yet due.
        in_flight: taken and not settled: turns that run, and turns that wait for their retry.
    """

    waiting: int
    in_flight: int

    @property
    def backlog(self) -> int:
        """All that is not answered."""
        return self.waiting + self.in_flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Tasks of the runner service.

    Attributes:
        running: tasks that are up.
        desired: tasks that are wanted; above `running` while some are on their way.
    """

    running: int
    desired: int


class Measure(NamedTuple):
    """One value to publish.

    Attributes:
        name: of the metric.
        value: see `measures`.
        unit: CloudWatch's word for it.
    """

    name: str
    value: float
    unit: str


def measures(queue: Queue, fleet: Fleet) -> tuple[Measure, ...]:
    """Give the values of one moment.

    - `BacklogPerTask`: the whole backlog over the running tasks; over 1 when none runs.  Turns in
      flight count: a fleet whose queue is empty because all of it is being worked on is not idle.
    - `BusyShare`: the largest share of running tasks that may be at work, 0 to 1.  Each turn in
      flight may be on a task of its own.
    - `BacklogWithoutTasks`: 1 when there is work and no task is even wanted, else 0.  A share of a
      backlog cannot say this: one message is below any target.
    """
    tasks = max(fleet.running, 1)
    asleep = fleet.running == 0 and fleet.desired == 0
    return (
        Measure(BACKLOG_PER_TASK, queue.backlog / tasks, "Count"),
        Measure(BUSY_SHARE, min(queue.in_flight, fleet.running) / tasks, "None"),
        Measure(BACKLOG_WITHOUT_TASKS, float(asleep and queue.backlog > 0), "Count"),
    )
