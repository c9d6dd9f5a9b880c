"""What start-up says of objects on the server, and what the provisioner makes of them."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import yaml

from turnline.errors import ConfigurationError
from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.nats import NatsServer
from turnline.transport.nats import NatsOptions, NatsTransport
from turnline.transport.nats.harness import api_of, delete_streams, options_for
from turnline.transport.nats.jetstream import JetStream
from turnline.transport.nats.provisioner import NatsProvisioner
from turnline.transport.nats.topology import topology_of


@pytest.fixture
def options(server: NatsServer) -> NatsOptions:
    return replace(options_for(server.url), auto_provision=False)


@pytest.fixture
async def api(server: NatsServer, options: NatsOptions) -> AsyncIterator[JetStream]:
    async with api_of(server.url) as api:
        yield api
        await delete_streams(api, options)


async def provision(options: NatsOptions) -> None:
    async with NatsProvisioner(options, SystemClock()) as provisioner:
        await provisioner.apply()


async def faults_at_start(options: NatsOptions) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as refusal:
        async with NatsTransport(options, SystemClock()):
            raise AssertionError("entered")
    return refusal.value.faults


async def test_start_up_names_every_missing_object_and_the_fix(
    api: JetStream, options: NatsOptions
) -> None:
    faults = await faults_at_start(options)

    names = [spec.name for spec in topology_of(options).objects]
    assert len(faults) == len(names) == 8
    for name in names:
        assert any(name in fault and "is missing" in fault for fault in faults)
    assert all("turnline provision" in fault for fault in faults)


async def test_what_was_provisioned_passes_start_up(api: JetStream, options: NatsOptions) -> None:
    await provision(options)

    async with NatsTransport(options, SystemClock()) as transport:
        assert await transport.input.send(request("session", "turn")) is True


async def test_the_provisioner_tells_what_it_would_do_and_does_it_once(
    api: JetStream, options: NatsOptions
) -> None:
    async with NatsProvisioner(options, SystemClock()) as provisioner:
        plan = await provisioner.plan()
        assert [change.missing for change in plan] == [True] * 8
        assert await provisioner.apply() == plan
        assert await provisioner.plan() == []
        assert await provisioner.apply() == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_msgs", 17),
        ("max_age", 3_600_000_000_000),
        ("duplicate_window", 1_000_000_000),
        ("discard", "old"),
        ("allow_direct", False),
        ("max_msgs_per_subject", 3),
    ],
)
async def test_a_stream_that_differs_is_named_with_field_wanted_and_found(
    api: JetStream, options: NatsOptions, field: str, value: object
) -> None:
    options = replace(options, input=replace(options.input, max_per_session=50))
    await provision(options)
    config = await stream_config(api, options.input.stream)
    if field == "discard":
        config |= {"discard_new_per_subject": False}
    await api.call(f"STREAM.UPDATE.{options.input.stream}", config | {field: value})

    (fault,) = await faults_at_start(options)

    wanted = topology_of(options).streams[0].config[field]
    assert options.input.stream in fault
    assert f"{field} is {value!r}, wanted {wanted!r}" in fault


@pytest.mark.parametrize("max_ack_pending", [None, 1])
async def test_a_process_that_counts_other_partitions_does_not_start(
    api: JetStream, options: NatsOptions, max_ack_pending: int | None
) -> None:
    options = replace(options, partitions=3, max_ack_pending=max_ack_pending)
    await provision(options)

    faults = await faults_at_start(replace(options, partitions=2))

    for queue in options.queues:
        found = [fault for fault in faults if fault.startswith(f"stream {queue.stream}:")]
        assert "'sessions in 3 partitions', wanted 'sessions in 2 partitions'" in found[0]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ack_wait", 300_000_000_000),
        ("max_deliver", 4),
        ("max_ack_pending", 1),
        ("filter_subject", "elsewhere"),
    ],
)
async def test_a_consumer_that_differs_is_named_with_field_wanted_and_found(
    api: JetStream, options: NatsOptions, field: str, value: object
) -> None:
    await provision(options)
    stream, name = options.input.stream, f"{options.input.stream}-all"
    info = await api.consumer(stream, name)
    assert info is not None
    if field == "filter_subject":
        value = f"{options.input.prefix}.0.>"
    config = info["config"] | {field: value, "name": name}
    await api.call(f"CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": config})

    (fault,) = await faults_at_start(options)

    assert f"{field} is {value!r}, wanted " in fault and name in fault


async def test_auto_provision_creates_the_missing_and_refuses_the_differing(
    api: JetStream, options: NatsOptions
) -> None:
    await provision(options)
    stream = options.input.stream
    await api.call(f"STREAM.UPDATE.{stream}", await stream_config(api, stream) | {"max_msgs": 5})
    await api.call(f"STREAM.DELETE.{options.output.stream}")

    faults = await faults_at_start(replace(options, auto_provision=True))

    assert len(faults) == 1 and "max_msgs is 5" in faults[0]
    assert await api.stream(options.output.stream) is not None
    assert (await stream_config(api, stream))["max_msgs"] == 5


async def test_the_provisioner_changes_what_differs(api: JetStream, options: NatsOptions) -> None:
    await provision(options)
    wider = replace(options, max_messages=77, ack_wait=33.0)

    await provision(wider)

    assert (await stream_config(api, options.input.stream))["max_msgs"] == 77
    async with NatsTransport(wider, SystemClock()):
        pass


async def test_what_the_server_will_not_change_is_said(
    api: JetStream, options: NatsOptions
) -> None:
    name = options.input.stream
    await api.call(
        f"STREAM.CREATE.{name}",
        {"name": name, "subjects": [f"{options.input.prefix}.>"], "storage": "memory"},
    )

    async with NatsProvisioner(options, SystemClock()) as provisioner:
        with pytest.raises(ConfigurationError) as refusal:
            await provisioner.apply()

    assert any(name in fault and "refuses" in fault for fault in refusal.value.faults)
    assert await api.stream(options.output.stream) is not None


async def test_processes_that_provision_at_the_same_time_all_start(
    api: JetStream, options: NatsOptions
) -> None:
    eager = replace(options, auto_provision=True)
    async with (
        NatsTransport(eager, SystemClock()) as one,
        NatsTransport(eager, SystemClock()) as other,
    ):
        await one.input.send(request("session", "turn"))
        assert (await other.input.stats()).waiting == 1


@pytest.mark.parametrize("max_ack_pending", [None, 1])
async def test_the_manifests_make_the_same_objects(
    api: JetStream, options: NatsOptions, max_ack_pending: int | None
) -> None:
    options = replace(options, max_ack_pending=max_ack_pending, partitions=3)
    async with NatsProvisioner(options, SystemClock()) as provisioner:
        documents = list(yaml.safe_load_all(provisioner.manifests()))
        for document in documents:
            await apply_manifest(api, document)
        assert await provisioner.plan() == []
    names = [document["metadata"]["name"] for document in documents]
    assert len(set(names)) == len(names)


async def stream_config(api: JetStream, name: str) -> dict[str, object]:
    info = await api.stream(name)
    assert info is not None
    config: dict[str, object] = info["config"]
    return config


async def apply_manifest(api: JetStream, document: dict[str, object]) -> None:
    """Do with a resource what the controller does: its fields are the server's in camel case."""
    spec = json.loads(json.dumps(document["spec"]))
    snake = {"maxMsgs": "max_msgs", "replicas": "num_replicas"}
    snake["discardPerSubject"] = "discard_new_per_subject"
    config = {}
    for name, value in spec.items():
        field = snake.get(name) or "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
        if field in ("max_age", "duplicate_window", "ack_wait"):
            value = round(float(str(value).removesuffix("s") or 0) * 1_000_000_000)
        config[field] = value
    if document["kind"] == "Stream":
        await api.call(f"STREAM.CREATE.{config['name']}", config)
        return
    stream, name = config.pop("stream_name"), config["durable_name"]
    asked = {"stream_name": stream, "config": config | {"name": name}}
    await api.call(f"CONSUMER.CREATE.{stream}.{name}", asked)
