"""What settings make of it: the transport by its name, its books where the sessions are."""

from collections.abc import Mapping
from typing import Any

import pytest

from turnline.config import Settings
from turnline.hosting import open_backends
from turnline.protocol.clock import SystemClock
from turnline.telemetry import captured_logs
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.kafka import KafkaServer
from turnline.testing.servers.valkey import running_valkey
from turnline.transport.kafka import KafkaOptions, KafkaTransport
from turnline.transport.kafka.harness import fresh_topics
from turnline.transport.kafka.options import options_from


def settings_for(
    options: KafkaOptions, session: Mapping[str, Any], *, consumers: int = 2
) -> Settings:
    """Give settings that name the topics of `options`."""
    queues = {
        "type": "kafka",
        "input": {"no_of_consumers": consumers},
        "kafka": {
            "bootstrap_servers": options.bootstrap_servers,
            "input_topic": options.input.topic,
            "output_topic": options.output.topic,
            "group_id": options.input.group,
        },
    }
    return Settings.model_validate({"execution": {"queues": queues}, "session": session})


async def test_books_are_shared_where_sessions_are(server: KafkaServer) -> None:
    with running_valkey() as valkey:
        session = {"type": "valkey", "valkey": {"url": valkey.url}}
        async with fresh_topics(server.bootstrap) as options:
            settings = settings_for(options, session)
            for new in (True, False):
                async with open_backends(settings, SystemClock()) as backends:
                    assert backends.transport.input.capabilities.native_count
                    sent = await backends.transport.input.send(request("session", "turn"))
                    assert sent is new


async def test_books_are_the_processs_own_otherwise(server: KafkaServer) -> None:
    async with fresh_topics(server.bootstrap) as options:
        settings = settings_for(options, {"type": "in_memory"})
        async with open_backends(settings, SystemClock()) as backends:
            assert isinstance(backends.transport, KafkaTransport)
            assert not backends.transport.input.capabilities.native_count


@pytest.mark.parametrize(("consumers", "level"), [(3, "info"), (4, "warning")])
async def test_fewer_partitions_than_consumers_are_warned_of_at_start_up(
    server: KafkaServer, consumers: int, level: str
) -> None:
    async with fresh_topics(server.bootstrap, partitions=3) as fresh:
        settings = settings_for(fresh, {"type": "in_memory"}, consumers=consumers)
        with captured_logs() as records:
            async with KafkaTransport(options_from(settings), SystemClock()):
                pass
    (line,) = (
        record
        for record in records
        if record["event"] == "transport.consumers" and record["queue"] == "input"
    )
    assert line["level"] == level
    assert (line["partitions"], line["consumers"]) == (3, consumers)


def test_the_names_are_the_guides() -> None:
    settings = Settings.model_validate({"execution": {"queues": {"type": "kafka"}}})
    options = options_from(settings)
    assert [queue.topic for queue in options.queues] == ["agent-input", "agent-output"]
    assert [queue.dead_topic for queue in options.queues] == [
        "agent-input.dlq",
        "agent-output.dlq",
    ]
    assert [queue.group for queue in options.queues] == [
        "agent-kernel-input",
        "agent-kernel-output",
    ]
