"""The scaler alone: KEDA's questions and scrapes in, the broker's counts out."""

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass

import grpc.aio
import pytest
import pytest_asyncio

from contract.services.packages import Service
from contract.services.stage import PATIENCE, Stage, stage
from e2e.process import Server
from externalscaler import externalscaler_pb2 as pb
from externalscaler.externalscaler_pb2_grpc import ExternalScalerStub
from turnline.v1 import envelope_pb2

pytestmark = pytest.mark.asyncio(loop_scope="module")

TURNS = "turnline-turns"
REF = pb.ScaledObjectRef(name="runner", namespace="chat", scalerMetadata={"turnsPerReplica": "7"})


@dataclass(slots=True)
class At:
    stage: Stage
    server: Server
    keda: ExternalScalerStub

    async def turns(self) -> int:
        """Ask for the count, once there is one."""
        asked = pb.GetMetricsRequest(scaledObjectRef=REF, metricName=TURNS)
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    [value] = (await self.keda.GetMetrics(asked)).metricValues
                except grpc.aio.AioRpcError as error:
                    assert error.code() is grpc.StatusCode.UNAVAILABLE
                    await asyncio.sleep(0.02)
                else:
                    return int(value.metricValue)

    async def counts(self, turns: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while await self.turns() != turns:  # noqa: ASYNC110 - told when asked
                await asyncio.sleep(0.02)

    async def scraped(self) -> str:
        async with self.server.client() as client:
            return (await client.get("/metrics")).text


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[At]:
    async with (
        stage(tmp_path_factory.mktemp("scaler")) as opened,
        opened.playing(Service.SCALER, api={"grpc_port": 0}) as server,
        grpc.aio.insecure_channel(f"127.0.0.1:{server.grpc_port}") as channel,
    ):
        yield At(opened, server, ExternalScalerStub(channel))


async def test_without_turns_it_asks_for_nobody(at: At) -> None:
    assert await at.turns() == 0
    assert not (await at.keda.IsActive(REF)).result


async def test_it_targets_what_the_trigger_says(at: At) -> None:
    [spec] = (await at.keda.GetMetricSpec(REF)).metricSpecs

    assert (spec.metricName, spec.targetSize, spec.targetSizeFloat) == (TURNS, 7, 7.0)


async def test_messages_of_any_version_are_counted_over_all_partitions(at: At) -> None:
    streamed = at.keda.StreamIsActive(REF)
    assert await streamed.read() == pb.IsActiveResponse(result=False)

    for number in range(6):
        envelope = envelope_pb2.Envelope(request_id=f"r{number}", session_id=f"s{number}")
        await at.stage.put("input", envelope.SerializeToString(), f"s{number}")

    await at.counts(6)
    assert await streamed.read() == pb.IsActiveResponse(result=True)
    assert 'turnline_queue_waiting{queue="input"} 6.0' in await at.scraped()
    streamed.cancel()


async def test_a_wrong_target_is_refused_by_name(at: At) -> None:
    wrong = pb.ScaledObjectRef(scalerMetadata={"turnsPerReplica": "none"})

    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await at.keda.GetMetricSpec(wrong)

    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "turnsPerReplica" in str(refused.value.details())


async def test_at_its_end_its_streams_are_to_be_opened_again(at: At) -> None:
    streamed = at.keda.StreamIsActive(REF)
    await streamed.read()

    at.server.signal(signal.SIGTERM)

    with pytest.raises(grpc.aio.AioRpcError) as ended:
        async with asyncio.timeout(PATIENCE):
            await streamed.read()
    assert ended.value.code() is grpc.StatusCode.UNAVAILABLE
    assert (await at.server.ended()).code == 0
