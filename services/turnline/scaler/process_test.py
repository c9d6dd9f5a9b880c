"""The scaler as a process of its own: a broker, no store, a port for KEDA and one for scrapes."""

import asyncio

import grpc.aio
import httpx

from externalscaler import externalscaler_pb2 as pb
from externalscaler.externalscaler_pb2_grpc import ExternalScalerStub
from turnline.config import Settings, Topology, topology_faults
from turnline.hosting import Lifecycle
from turnline.protocol.clock import SystemClock
from turnline.scaler.keda import TURNS
from turnline.scaler.process import serve_scaler
from turnline.testing.conformance.transport.envelopes import request
from turnline.transport.registry import open_transport

SETTINGS = Settings.model_validate(
    {"api": {"host": "127.0.0.1", "port": 0, "grpc_port": 0}, "execution": {"max_concurrency": 7}}
)


async def test_it_answers_keda_and_scrapes_and_ends_when_told() -> None:
    lifecycle = Lifecycle()
    loop = asyncio.get_running_loop()
    web: asyncio.Future[int] = loop.create_future()
    keda: asyncio.Future[int] = loop.create_future()
    async with (
        asyncio.timeout(30),
        open_transport(SETTINGS, SystemClock()) as transport,
        asyncio.TaskGroup() as tasks,
    ):
        tasks.create_task(
            serve_scaler(
                SETTINGS,
                lifecycle,
                transport=transport,
                started=web.set_result,
                grpc_started=keda.set_result,
            )
        )
        await transport.input.send(request("s", "r"))
        async with grpc.aio.insecure_channel(f"127.0.0.1:{await keda}") as channel:
            stub = ExternalScalerStub(channel)
            stream = stub.StreamIsActive(pb.ScaledObjectRef())
            assert (await anext(aiter(stream))).result
            [spec] = (await stub.GetMetricSpec(pb.ScaledObjectRef())).metricSpecs
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{await web}") as client:
                scraped = (await client.get("/metrics")).text
                ready = await client.get("/ready")
            lifecycle.drain()
            code = await stream.code()

    assert (spec.metricName, spec.targetSize) == (TURNS, 7)
    assert 'queue_waiting{queue="input"} 1.0' in scraped
    assert ready.status_code == 200
    assert code is grpc.StatusCode.UNAVAILABLE


def test_it_does_not_start_without_a_port_for_keda_or_on_a_queue_of_another_process() -> None:
    queues = {"type": "nats", "nats": {"url": "nats://127.0.0.1:1"}}
    on_nats = Settings.model_validate({"execution": {"queues": queues}})
    [no_port] = topology_faults(on_nats, topology=Topology.SCALER)
    [in_memory] = topology_faults(SETTINGS, topology=Topology.SCALER)

    assert no_port.startswith("api.grpc_port: is not set")
    assert in_memory.startswith("execution.queues.type: in_memory lives inside one process")
