"""What `turnline provision` does on a cluster, and the manifests for those who do it otherwise."""

import asyncio
from dataclasses import replace

import pytest
import yaml

from turnline.config import Settings
from turnline.errors import ConfigurationError
from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.kafka import KafkaServer
from turnline.transport.kafka import KafkaTransport, open_provisioner
from turnline.transport.kafka.harness import options_for
from turnline.transport.kafka.provisioner import KafkaProvisioner


async def _settled(provisioner: KafkaProvisioner, left: int = 0) -> None:
    """Return when the brokers know of what was done; the controller knew before them."""
    async with asyncio.timeout(30):
        while len(await provisioner.plan()) > left:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.05)


async def test_what_is_missing_is_planned_made_and_then_in_order(server: KafkaServer) -> None:
    options = options_for(server.bootstrap)
    async with KafkaProvisioner(options) as provisioner:
        planned = await provisioner.plan()
        done = await provisioner.apply()
        await _settled(provisioner)
        assert list(await provisioner.apply()) == []
    assert [change.missing for change in planned] == [True] * 4
    assert list(done) == list(planned)
    async with KafkaTransport(options, SystemClock()) as transport:
        assert await transport.input.send(request("session", "turn")) is True


async def test_what_differs_is_said_field_by_field_and_mended(server: KafkaServer) -> None:
    options = options_for(server.bootstrap)
    async with KafkaProvisioner(options) as provisioner:
        await provisioner.apply()
        await _settled(provisioner)
    wanted = replace(options, partitions=5, max_age=3600.0)
    async with KafkaProvisioner(wanted) as provisioner:
        changes = await provisioner.plan()
        assert [change.name for change in changes] == [q.topic for q in options.queues]
        assert not any(change.missing for change in changes)
        text = "\n".join(changes[0].details)
        assert "partitions is 3, wanted 5" in text
        assert "retention.ms is '86400000', wanted '3600000'" in text
        await provisioner.apply()
        await _settled(provisioner)


async def test_more_partitions_than_wanted_are_left_alone(server: KafkaServer) -> None:
    options = options_for(server.bootstrap)
    async with KafkaProvisioner(options) as provisioner:
        await provisioner.apply()
        await _settled(provisioner)
    async with KafkaProvisioner(replace(options, partitions=2)) as provisioner:
        assert list(await provisioner.plan()) == []


async def test_what_the_brokers_refuse_is_named_and_the_rest_is_done(server: KafkaServer) -> None:
    fresh = options_for(server.bootstrap)
    options = replace(fresh, output=replace(fresh.output, topic="no such: name"))
    async with KafkaProvisioner(options) as provisioner:
        with pytest.raises(ConfigurationError) as refusal:
            await provisioner.apply()
        assert [fault.split("'")[0][:26] for fault in refusal.value.faults] == [
            "topic no such: name: the b"
        ]
        await _settled(provisioner, left=1)


def test_the_manifests_are_topics_of_strimzi() -> None:
    settings = Settings.model_validate(
        {"execution": {"queues": {"type": "kafka", "kafka": {"replicas": 3, "max_age": 7200}}}}
    )
    documents = list(yaml.safe_load_all(open_provisioner(settings, SystemClock()).manifests()))
    assert [document["kind"] for document in documents] == ["KafkaTopic"] * 4
    work, dead = documents[0]["spec"], documents[1]["spec"]
    assert (work["topicName"], work["partitions"], work["replicas"]) == ("agent-input", 32, 3)
    assert work["config"]["retention.ms"] == "7200000"
    assert work["config"]["min.insync.replicas"] == "2"
    assert (dead["topicName"], dead["partitions"]) == ("agent-input.dlq", 1)
    assert dead["config"]["cleanup.policy"] == "compact"
