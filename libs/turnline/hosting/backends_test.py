"""What a process is connected to: here, under which name its traces arrive at a real collector."""

import pytest

from turnline.config import Settings, Topology
from turnline.hosting import open_backends
from turnline.protocol.clock import SystemClock
from turnline.telemetry import names
from turnline.testing.servers.otlp import OtlpCollector


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
    async with OtlpCollector() as collector:
        telemetry = {"otlp_endpoint": collector.url, "service_name": "chat"}
        settings = Settings.model_validate({"telemetry": telemetry})
        async with open_backends(settings, SystemClock(), part=part) as backends:
            with backends.tracing.start_span(names.REQUEST):
                pass

    (spans,) = collector.received
    # A text in protobuf stands behind its length.
    assert bytes([len(name)]) + name in spans
