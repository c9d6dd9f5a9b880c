"""What a process is connected to: here, under which name its traces arrive at a real collector."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnline.config import Settings, Topology
from turnline.hosting import WebOptions, WebServer, open_backends
from turnline.protocol.clock import SystemClock
from turnline.telemetry import names


@asynccontextmanager
async def a_collector() -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve OTLP over HTTP; give where, and the list of what arrives."""
    received: list[bytes] = []

    async def keep(request: Request) -> Response:
        received.append(await request.body())
        return Response()

    app = Starlette(routes=[Route("/v1/traces", keep, methods=["POST"])])
    web = WebServer(app, WebOptions(host="127.0.0.1", port=0, close_seconds=1.0))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(web.run(stop))
        await web.started.wait()
        try:
            yield f"http://127.0.0.1:{web.port}", received
        finally:
            stop.set()


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (Topology.SINGLE_PROCESS, b"chat"),
        (Topology.RUNNER, b"chat-runner"),
        (Topology.IO_HANDLER, b"chat-io-handler"),
    ],
)
async def test_each_part_of_the_pipeline_has_its_own_name_in_traces(
    part: Topology, name: bytes
) -> None:
    async with a_collector() as (endpoint, received):
        telemetry = {"otlp_endpoint": endpoint, "service_name": "chat"}
        settings = Settings.model_validate({"telemetry": telemetry})
        async with open_backends(settings, SystemClock(), part=part) as backends:
            with backends.tracing.start_span(names.REQUEST):
                pass

    (spans,) = received
    # A text in protobuf stands behind its length.
    assert bytes([len(name)]) + name in spans
