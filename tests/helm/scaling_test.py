"""How many runners KEDA and the autoscaler want, of what the scaler tells them.

KEDA keeps none while nobody is active, and at least one otherwise; above that the autoscaler of
Kubernetes divides the metric by its target, and does nothing within a tenth of it.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc.aio
import pytest

from externalscaler import externalscaler_pb2 as pb
from externalscaler.externalscaler_pb2_grpc import ExternalScalerStub
from helm.chart import AGENTS, EKS, Release, flavour, merged, render
from turnline.hosting.grpc_server import GrpcOptions, GrpcServer
from turnline.scaler.backlog import Backlog
from turnline.scaler.keda import OLDEST_TURN, TURNS, ScalerDesk, make_service
from turnline.transport import QueueStats

TOLERANCE = 0.1
SECONDS = 60.0
BY_BROKER = {"autoscaling": {"by": "broker"}}


@dataclass(frozen=True)
class Scaled:
    """What a ScaledObject says."""

    spec: Mapping[str, Any]

    @property
    def trigger(self) -> dict[str, Any]:
        (found,) = self.spec["triggers"]
        trigger: dict[str, Any] = found
        return trigger

    def desired(self, value: float, target: float, now: int) -> int:
        """Give the runners that are wanted where `now` are there."""
        least, most = self.spec["minReplicaCount"], self.spec["maxReplicaCount"]
        if value <= 0:
            return int(least)
        if now == 0:
            return max(1, int(least))
        if abs(value / (target * now) - 1) <= TOLERANCE:
            return now
        return int(min(most, max(1, least, math.ceil(value / target))))


def scaled(release: Release) -> Scaled:
    (found,) = release.all("ScaledObject")
    return Scaled(found["spec"])


@asynccontextmanager
async def asked(stats: QueueStats) -> AsyncIterator[ExternalScalerStub]:
    """Run the scaler over a queue of which this is told, and give a client of it."""

    async def tell() -> QueueStats:
        return stats

    backlog, stop = Backlog(tell), asyncio.Event()
    desk = ScalerDesk(backlog=backlog, turns_per_replica=100)
    options = GrpcOptions(host="127.0.0.1", port=0, setting="api.grpc_port")
    server = GrpcServer([make_service(desk)], options)
    async with asyncio.TaskGroup() as tasks:
        working = tasks.create_task(backlog.run())
        tasks.create_task(server.run(stop))
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            stub = ExternalScalerStub(channel)
            # Answers once the queue was counted.
            stream = stub.StreamIsActive(pb.ScaledObjectRef(), wait_for_ready=True)
            await asyncio.wait_for(anext(aiter(stream)), SECONDS)
            yield stub
            stream.cancel()
        working.cancel()
        stop.set()


async def answered(
    release: Release, stats: QueueStats
) -> tuple[bool, dict[str, tuple[float, float]]]:
    """Ask as KEDA does, with the trigger's metadata: is it active; metric -> (value, target)."""
    metadata = scaled(release).trigger["metadata"]
    ref = pb.ScaledObjectRef(name="runner", namespace="agents", scalerMetadata=metadata)
    async with asked(stats) as stub:
        active = await stub.IsActive(ref, timeout=SECONDS)
        specs = await stub.GetMetricSpec(ref, timeout=SECONDS)
        found: dict[str, tuple[float, float]] = {}
        for each in specs.metricSpecs:
            request = pb.GetMetricsRequest(scaledObjectRef=ref, metricName=each.metricName)
            metrics = await stub.GetMetrics(request, timeout=SECONDS)
            found[each.metricName] = (
                metrics.metricValues[0].metricValueFloat,
                each.targetSizeFloat,
            )
    return active.result, found


def queue(waiting: int, in_flight: int, oldest: float = 0) -> QueueStats:
    return QueueStats(waiting=waiting, in_flight=in_flight, dead=0, oldest_age_seconds=oldest)


def released(**autoscaling: object) -> Release:
    return render(merged(AGENTS, {"autoscaling": autoscaling}))


@pytest.mark.parametrize(
    ("waiting", "in_flight", "now", "wanted"),
    [
        (0, 0, 3, 0),
        (1, 0, 0, 1),
        (0, 1, 1, 1),
        (0, 300, 6, 6),
        (50, 250, 3, 6),
        (301, 0, 1, 7),
        (5, 300, 6, 6),
        (5000, 0, 3, 20),
    ],
)
async def test_so_many_runners_are_wanted_for_so_many_turns(
    waiting: int, in_flight: int, now: int, wanted: int
) -> None:
    release = released(turnsPerReplica=50)

    active, metrics = await answered(release, queue(waiting, in_flight))

    assert active == (waiting + in_flight > 0)
    assert scaled(release).desired(*metrics[TURNS], now) == wanted


async def test_a_fleet_whose_turns_are_all_worked_on_is_not_taken_for_idle() -> None:
    release = released(turnsPerReplica=10)

    _, waiting = await answered(release, queue(80, 0))
    _, working = await answered(release, queue(0, 80))

    assert waiting == working


async def test_an_old_turn_asks_for_more_runners() -> None:
    release = released(turnsPerReplica=50, oldestTurnSeconds=900)

    _, metrics = await answered(release, queue(1, 5, oldest=2700))

    wants = scaled(release).desired
    assert wants(*metrics[TURNS], 1) == 1
    assert wants(*metrics[OLDEST_TURN], 1) == 3


def test_a_runner_has_as_many_turns_as_it_works_on_unless_said_otherwise() -> None:
    values = {"settings": {"execution": {"max_concurrency": 40}}}
    trigger = scaled(render(merged(AGENTS, values))).trigger

    assert trigger["metadata"]["turnsPerReplica"] == "40"


def test_keda_is_told_of_the_first_turn_by_the_scaler_of_the_release(
    releases: Mapping[str, Release],
) -> None:
    release = releases["baremetal"]
    trigger = scaled(release).trigger
    service = release.one("Service", "scaler")
    ports = [port["port"] for port in service["spec"]["ports"] if port["name"] == "grpc"]

    address = f"{service['metadata']['name']}.agents:{ports[0]}"
    assert (trigger["type"], trigger["metadata"]["scalerAddress"]) == ("external-push", address)


@pytest.mark.parametrize("name", ["baremetal", "baremetal-kafka", "eks"])
def test_where_keda_scales_nobody_else_says_how_many(
    name: str, releases: Mapping[str, Release]
) -> None:
    release = releases[name]
    target = scaled(release).spec["scaleTargetRef"]["name"]

    assert target == "chat-turnline-agent-runner"
    assert "replicas" not in release.parts["agent-runner"]["spec"]


def test_an_autoscaler_by_cpu_owns_the_number_of_its_pods(releases: Mapping[str, Release]) -> None:
    release = releases["baremetal, five, all of it"]
    (scaler,) = release.all("HorizontalPodAutoscaler")

    assert scaler["spec"]["scaleTargetRef"]["name"] == "chat-turnline-request-handler"
    assert "replicas" not in release.parts["request-handler"]["spec"]
    assert release.parts["responder"]["spec"]["replicas"] == 2


def test_without_keda_the_release_says_how_many(releases: Mapping[str, Release]) -> None:
    release = releases["dev"]

    assert release.all("ScaledObject") == []
    assert release.parts["agent-runner"]["spec"]["replicas"] == 1
    assert "scaler" not in release.parts


def test_the_flavour_of_eks_sleeps_and_those_of_metal_keep_one_runner(
    releases: Mapping[str, Release],
) -> None:
    least = {
        name: scaled(releases[name]).spec["minReplicaCount"]
        for name in ("baremetal", "baremetal-kafka", "eks")
    }

    assert least == {"baremetal": 1, "baremetal-kafka": 1, "eks": 0}


def test_keda_sums_the_partitions_where_it_counts_them_itself(
    releases: Mapping[str, Release],
) -> None:
    release = releases["baremetal, the guide's model"]
    spec = scaled(release).spec
    consumers = {
        each["spec"]["durableName"]
        for each in release.all("Consumer")
        if each["spec"]["streamName"] == "AGENT_REQUESTS"
    }
    modifiers = spec["advanced"]["scalingModifiers"]
    names = [each["name"] for each in spec["triggers"]]

    assert {each["metadata"]["consumer"] for each in spec["triggers"]} == consumers
    assert modifiers["formula"].split(" + ") == names
    assert (modifiers["target"], modifiers["metricType"]) == ("100", "AverageValue")
    assert "scaler" not in release.parts


def test_keda_counts_what_is_in_flight_on_sqs_too() -> None:
    trigger = scaled(render(merged(flavour("eks"), AGENTS, EKS, BY_BROKER))).trigger

    assert trigger["type"] == "aws-sqs-queue"
    assert trigger["metadata"]["scaleOnInFlight"] == "true"
    assert trigger["metadata"]["scaleOnDelayed"] == "true"


def test_keda_reads_the_group_and_topic_of_the_runners_on_kafka() -> None:
    signed_in = {"autoscaling": {"triggerAuthentication": "kafka"}}
    release = render(merged(flavour("baremetal-kafka"), AGENTS, BY_BROKER, signed_in))
    trigger = scaled(release).trigger
    kafka = release.config["execution"]["queues"]["kafka"]

    # KEDA asks from its own namespace.
    assert trigger["metadata"]["bootstrapServers"] == "kafka-kafka-bootstrap.agents.svc:9093"
    assert trigger["metadata"]["bootstrapServers"] == kafka["bootstrap_servers"]
    assert trigger["metadata"]["consumerGroup"] == "agent-kernel-input"
    assert trigger["metadata"]["topic"] == "agent-input"
    assert trigger["authenticationRef"] == {"name": "kafka"}
