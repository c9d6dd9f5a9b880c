"""The scaler counts what other processes sent and hold, on every broker."""

import asyncio
from pathlib import Path

import grpc.aio
import pytest

from chaos.processes.brokers import BROKERS
from chaos.processes.topology import environment
from e2e.process import END_SECONDS, Server, cli, serving
from externalscaler import externalscaler_pb2 as pb
from externalscaler.externalscaler_pb2_grpc import ExternalScalerStub
from turnline.config import Settings
from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.transport.registry import open_transport

TURNS = "turnline-turns"


@pytest.mark.parametrize("name", sorted(BROKERS))
async def test_turns_of_other_processes_are_counted_until_they_are_done(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asyncio.timeout(100), BROKERS[name]((), partitions=4) as broker:
        for variable, value in broker.variables.items():
            monkeypatch.setenv(variable, value)
        settings = Settings.model_validate(broker.settings)
        asked = {**environment(broker.settings), **broker.variables, "AK_API__GRPC_PORT": "0"}
        async with (
            open_transport(settings, SystemClock()) as transport,
            serving(tmp_path / "scaler", *cli("serve", "scaler"), settings=asked) as scaler,
            grpc.aio.insecure_channel(f"127.0.0.1:{_keda_port(scaler)}") as channel,
        ):
            keda = ExternalScalerStub(channel)
            await _until(keda, 0)
            # In more than one partition: what counts is their sum.
            for number in range(6):
                await transport.input.send(request(f"s{number}", f"r{number}"))
            await _until(keda, 6)
            async with transport.input.consumer() as consumer:
                held = [await consumer.receive() for _ in range(6)]
                await held[0].ack()
                await _until(keda, 5)
                for delivery in held[1:]:
                    await delivery.ack()
            await _until(keda, 0)
            assert not (await keda.IsActive(pb.ScaledObjectRef())).result
            assert await _tells_ages(keda) == (name != "sqs")


async def _tells_ages(keda: ExternalScalerStub) -> bool:
    by_age = pb.ScaledObjectRef(scalerMetadata={"oldestTurnSeconds": "20"})
    try:
        return len((await keda.GetMetricSpec(by_age)).metricSpecs) == 2
    except grpc.aio.AioRpcError as error:
        assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
        return False


def _keda_port(scaler: Server) -> int:
    [port] = [
        line["port"] for line in scaler.events("server.listening") if line["surface"] == "grpc"
    ]
    return int(port)


async def _until(keda: ExternalScalerStub, turns: int) -> None:
    """Wait for a count."""
    wanted = pb.GetMetricsRequest(metricName=TURNS)
    count = -1
    try:
        async with asyncio.timeout(END_SECONDS):
            while count != turns:
                await asyncio.sleep(0.02)
                try:
                    [value] = (await keda.GetMetrics(wanted)).metricValues
                except grpc.aio.AioRpcError as error:
                    # It has just started, and has not counted yet.
                    assert error.code() is grpc.StatusCode.UNAVAILABLE
                else:
                    count = value.metricValue
    except TimeoutError as error:
        raise AssertionError(f"{count} turns are counted, not {turns}") from error
