"""The Lambda function: counts messages and tasks once, and publishes what follows.

It runs alone beside AWS's own botocore, so it imports nothing of Turnline but its sibling.  What it
cannot count it does not publish: a missing value leaves the fleet as it is, a wrong one moves it.
"""

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import botocore.session  # pants: no-infer-dep
from botocore.config import Config  # pants: no-infer-dep

from turnline.backlog_metric.measures import Fleet, Measure, Queue, measures

_WAITING = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesDelayed")
_IN_FLIGHT = "ApproximateNumberOfMessagesNotVisible"
# Three calls, each tried twice, end well before the next minute's invocation.
_CALLS = Config(connect_timeout=2, read_timeout=5, retries={"mode": "standard", "max_attempts": 2})

# botocore makes the methods of its clients at run time.
Client: TypeAlias = Any


class NotCountedError(Exception):
    """Something could not be counted, so nothing was published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whose backlog is measured, and where the values go.

    Attributes:
        queue_url: of the input queue.
        cluster: name of the ECS cluster.
        service: name of the ECS service of runners.
        namespace: of the metrics.
    """

    queue_url: str
    cluster: str
    service: str
    namespace: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read the variables that Terraform sets.

        Raises:
            KeyError: a variable is missing; it is named.
        """
        return cls(
            queue_url=environment["AK_EXECUTION__QUEUES__INPUT__URL"],
            cluster=environment["ECS_CLUSTER"],
            service=environment["ECS_SERVICE"],
            namespace=environment["METRIC_NAMESPACE"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Clients of the three AWS services."""

    sqs: Client
    ecs: Client
    cloudwatch: Client


@functools.cache
def open_clients() -> Clients:
    """Open the clients once for all invocations of this process; nothing is sent yet."""
    session = botocore.session.get_session()
    return Clients(
        sqs=session.create_client("sqs", config=_CALLS),
        ecs=session.create_client("ecs", config=_CALLS),
        cloudwatch=session.create_client("cloudwatch", config=_CALLS),
    )


def handle(_event: object, _context: object) -> dict[str, float]:
    """Publish the values of this moment, and give them by name, for the log of a test event.

    Raises:
        NotCountedError: AWS answered without the counts.
        botocore.exceptions.ClientError: AWS refused a call.
        botocore.exceptions.HTTPClientError: AWS did not answer.
    """
    # Deployed alone, without turnline.config.
    target = Target.from_environment(os.environ)  # noqa: TID251 - see above
    published = publish(open_clients(), target)
    return {measure.name: measure.value for measure in published}


def publish(clients: Clients, target: Target) -> tuple[Measure, ...]:
    """Count, then publish all values in one call: all of them are there, or none is."""
    queue = count_messages(clients.sqs, target.queue_url)
    fleet = count_tasks(clients.ecs, target.cluster, target.service)
    published = measures(queue, fleet)
    dimensions = [
        {"Name": "ClusterName", "Value": target.cluster},
        {"Name": "ServiceName", "Value": target.service},
    ]
    clients.cloudwatch.put_metric_data(
        Namespace=target.namespace,
        MetricData=[
            {"MetricName": name, "Value": value, "Unit": unit, "Dimensions": dimensions}
            for name, value, unit in published
        ],
    )
    return published


def count_messages(sqs: Client, queue_url: str) -> Queue:
    """Ask the queue for its counts."""
    answer = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=[*_WAITING, _IN_FLIGHT])
    counts = answer.get("Attributes", {})
    missing = [name for name in (*_WAITING, _IN_FLIGHT) if name not in counts]
    if missing:
        raise NotCountedError(f"{queue_url} gave no {', '.join(missing)}")
    return Queue(
        waiting=sum(int(counts[name]) for name in _WAITING), in_flight=int(counts[_IN_FLIGHT])
    )


def count_tasks(ecs: Client, cluster: str, service: str) -> Fleet:
    """Ask the cluster for the service's counts; a service that is gone has none."""
    answer = ecs.describe_services(cluster=cluster, services=[service])
    for found in answer.get("services", []):
        if found.get("status") == "ACTIVE":
            return Fleet(running=found["runningCount"], desired=found["desiredCount"])
    reasons = ", ".join(failure.get("reason", "?") for failure in answer.get("failures", []))
    raise NotCountedError(f"no active service {service} in {cluster} ({reasons or 'not active'})")
