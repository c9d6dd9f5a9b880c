"""KEDA's questions, asked over real gRPC of a real NATS server's queue."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc.aio
import pytest

from externalscaler import externalscaler_pb2 as pb
from externalscaler.externalscaler_pb2_grpc import ExternalScalerStub
from turnline.config import Settings
from turnline.hosting.grpc_server import GrpcOptions, GrpcServer
from turnline.protocol.clock import SystemClock
from turnline.scaler.backlog import Backlog
from turnline.scaler.keda import OLDEST_TURN, TURNS, ScalerDesk, make_service
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.nats import NatsServer
from turnline.transport import Queue
from turnline.transport.registry import open_transport

REF = pb.ScaledObjectRef(name="runner", namespace="chat")
SOON = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """A scaler, its queue, and the server that holds it."""

    keda: ExternalScalerStub
    queue: Queue
    nats: NatsServer

    async def value(self, metric: str) -> float:
        """Ask for a metric until it is known."""
        asked = pb.GetMetricsRequest(scaledObjectRef=REF, metricName=metric)
        answer = await self.keda.GetMetrics(asked, wait_for_ready=True)
        [value] = answer.metricValues
        assert value.metricName == metric
        assert value.metricValue >= value.metricValueFloat
        return value.metricValueFloat

    async def until(self, metric: str, wanted: float) -> None:
        """Wait for a metric to have a value."""
        while await self.value(metric) != wanted:  # noqa: ASYNC110 - the server's
            await asyncio.sleep(0.01)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with asyncio.timeout(60), NatsServer() as nats, _scaler(nats) as rig:
        yield rig


@asynccontextmanager
async def _scaler(nats: NatsServer) -> AsyncIterator[Rig]:
    queues = {"type": "nats", "nats": {"url": nats.url, "auto_provision": True}}
    settings = Settings.model_validate({"execution": {"queues": queues}})
    stop = asyncio.Event()
    async with open_transport(settings, SystemClock()) as transport, asyncio.TaskGroup() as tasks:
        backlog = Backlog(transport.input.stats, every=0.05, kept=0.5)
        desk = ScalerDesk(backlog=backlog, turns_per_replica=100)
        options = GrpcOptions(host="127.0.0.1", port=0, setting="api.grpc_port")
        server = GrpcServer([make_service(desk)], options)
        working = tasks.create_task(backlog.run())
        tasks.create_task(server.run(stop))
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            stub = ExternalScalerStub(channel)
            await asyncio.wait_for(anext(aiter(stub.StreamIsActive(REF))), SOON)
            yield Rig(keda=stub, queue=transport.input, nats=nats)
        stop.set()
        working.cancel()


async def test_turns_that_wait_and_turns_in_flight_are_counted_alike(rig: Rig) -> None:
    for number in range(3):
        await rig.queue.send(request(f"s{number}", f"r{number}"))
    await rig.until(TURNS, 3.0)

    async with rig.queue.consumer() as consumer:
        deliveries = [await consumer.receive() for _ in range(3)]
        async with asyncio.timeout(SOON):
            while (await rig.queue.stats()).in_flight != 3:  # noqa: ASYNC110 - the server's
                await asyncio.sleep(0.01)
        await rig.until(TURNS, 3.0)
        for delivery in deliveries:
            await delivery.ack()
        await rig.until(TURNS, 0.0)


async def test_the_age_of_the_oldest_turn_grows(rig: Rig) -> None:
    assert await rig.value(OLDEST_TURN) == 0.0
    await rig.queue.send(request("s", "r"))

    async with asyncio.timeout(SOON):
        while not (age := await rig.value(OLDEST_TURN)):  # noqa: ASYNC110 - the server's
            await asyncio.sleep(0.01)
        while await rig.value(OLDEST_TURN) <= age:  # noqa: ASYNC110 - the server's
            await asyncio.sleep(0.01)


async def test_one_turn_wakes_a_fleet_of_none_and_its_end_lets_it_rest(rig: Rig) -> None:
    assert not (await rig.keda.IsActive(REF)).result
    said = aiter(rig.keda.StreamIsActive(REF))
    assert not (await anext(said)).result

    await rig.queue.send(request("s", "r"))
    assert (await anext(said)).result
    async with rig.queue.consumer() as consumer:
        await (await consumer.receive()).ack()
        assert not (await anext(said)).result
    assert not (await rig.keda.IsActive(REF)).result


async def test_a_queue_that_cannot_be_counted_is_not_called_empty(rig: Rig) -> None:
    await rig.queue.send(request("s", "r"))
    await rig.until(TURNS, 1.0)
    rig.nats.freeze()
    try:
        code = grpc.StatusCode.OK
        while code is grpc.StatusCode.OK:
            code = await _code(rig)
            await asyncio.sleep(0.01)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await rig.value(TURNS)
        late = asyncio.ensure_future(anext(aiter(rig.keda.StreamIsActive(REF))))
        said, _ = await asyncio.wait([late], timeout=0.3)
    finally:
        rig.nats.thaw()

    assert (code, refused.value.code()) == (grpc.StatusCode.UNAVAILABLE,) * 2
    # Who comes in an outage is told nothing of before it, and what there is after it.
    assert not said
    assert (await late).result
    while await _code(rig) is not grpc.StatusCode.OK:  # noqa: ASYNC110 - the server's
        await asyncio.sleep(0.05)
    assert await rig.value(TURNS) == 1.0


async def _code(rig: Rig) -> grpc.StatusCode:
    call = rig.keda.IsActive(REF)
    return await call.code()


@pytest.mark.parametrize(
    ("metadata", "targets"),
    [
        ({}, {TURNS: 100.0}),
        ({"turnsPerReplica": "12.5"}, {TURNS: 12.5}),
        ({"oldestTurnSeconds": "30"}, {TURNS: 100.0, OLDEST_TURN: 30.0}),
    ],
)
async def test_a_trigger_says_what_each_replica_should_have(
    rig: Rig, metadata: Mapping[str, str], targets: Mapping[str, float]
) -> None:
    ref = pb.ScaledObjectRef(name="runner", namespace="chat", scalerMetadata=metadata)
    specs = (await rig.keda.GetMetricSpec(ref)).metricSpecs

    assert {spec.metricName: spec.targetSizeFloat for spec in specs} == targets
    assert all(spec.targetSize >= 1 for spec in specs)


@pytest.mark.parametrize("key", ["turnsPerReplica", "oldestTurnSeconds"])
@pytest.mark.parametrize("value", ["", "0", "-1", "nan", "inf", "many"])
async def test_a_target_that_is_none_is_refused_by_its_name(rig: Rig, key: str, value: str) -> None:
    ref = pb.ScaledObjectRef(name="runner", scalerMetadata={key: value})
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await rig.keda.GetMetricSpec(ref)

    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert key in (refused.value.details() or "")


async def test_a_metric_there_is_not_is_refused(rig: Rig) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await rig.value("other")

    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
