"""Queues that are missing, differ, or would break a promise."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import yaml

from turnline.errors import ConfigurationError
from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.aws_front import AwsFront, error
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.transport.sqs import SqsOptions, SqsProvisioner, SqsTransport
from turnline.transport.sqs.api import SqsApi
from turnline.transport.sqs.harness import api_of, fresh_queues, options_for


@pytest.fixture
def wanted(server: ElasticMqServer) -> SqsOptions:
    """Options for queues that are not there."""
    return options_for(server.url)


@pytest.fixture
async def options(server: ElasticMqServer) -> AsyncIterator[SqsOptions]:
    """Options for queues that are as they should be."""
    async with fresh_queues(server.url) as options:
        yield options


@pytest.fixture
async def api(options: SqsOptions) -> AsyncIterator[SqsApi]:
    async with api_of(options) as api:
        yield api


async def faults_of(options: SqsOptions) -> tuple[str, ...]:
    """Give what stops start-up; empty: nothing does."""
    try:
        async with SqsTransport(options, SystemClock()):
            return ()
    except ConfigurationError as error:
        return error.faults


async def set_ceiling(api: SqsApi, options: SqsOptions, count: int) -> None:
    found = json.loads((await api.attributes(options.input.url))["RedrivePolicy"])
    policy = json.dumps({**found, "maxReceiveCount": count})
    await api.configure(options.input.url, {"RedrivePolicy": policy})


async def test_missing_queues_are_all_named_with_the_fix(wanted: SqsOptions) -> None:
    faults = await faults_of(wanted)

    assert len(faults) == 2
    for fault, queue in zip(faults, wanted.queues, strict=True):
        assert fault.startswith(f"execution.queues.{queue.name}.url: queue {queue.queue_name}")
        assert "turnline provision" in fault


async def test_what_is_missing_is_planned_made_and_then_well(wanted: SqsOptions) -> None:
    async with SqsProvisioner(wanted, SystemClock()) as provisioner:
        planned = await provisioner.plan()
        assert [(change.name, change.missing) for change in planned] == [
            (name, True) for queue in wanted.queues for name in (queue.dead_name, queue.queue_name)
        ]
        assert await provisioner.apply() == planned
        assert await provisioner.plan() == []

    assert await faults_of(wanted) == ()


async def test_a_process_with_one_queue_looks_at_that_one_only(options: SqsOptions) -> None:
    alone = replace(options, output=replace(options.output, url=""))

    assert await faults_of(alone) == ()


@pytest.mark.parametrize("ceiling", [1, 3])
async def test_a_ceiling_that_would_leave_a_caller_unanswered_is_refused(
    options: SqsOptions, api: SqsApi, ceiling: int
) -> None:
    await set_ceiling(api, options, ceiling)

    (fault,) = await faults_of(options)
    assert fault.startswith("execution.queues.input.max_receive_count: is 3")
    assert f"gives up after {ceiling}" in fault
    assert "to 4 or more" in fault


async def test_a_ceiling_one_above_is_taken_and_planned_higher(
    options: SqsOptions, api: SqsApi
) -> None:
    await set_ceiling(api, options, 4)

    assert await faults_of(options) == ()
    await set_ceiling(api, options, 3)
    async with SqsProvisioner(options, SystemClock()) as provisioner:
        (change,) = await provisioner.plan()
        assert not change.missing
        assert "maxReceiveCount" in change.details[0]
        await provisioner.apply()
    assert await faults_of(options) == ()


async def test_a_queue_without_a_place_for_dead_letters_is_refused(
    options: SqsOptions, api: SqsApi
) -> None:
    bare = options.input.url.replace("-in.fifo", "-bare.fifo")
    await api.create(bare.rpartition("/")[2], {"FifoQueue": "true"})

    (fault,) = await faults_of(replace(options, input=replace(options.input, url=bare)))
    assert "no redrive policy" in fault
    await api.delete_queue(bare)


async def test_a_queue_with_content_based_deduplication_is_taken(
    options: SqsOptions, api: SqsApi
) -> None:
    found = await api.attributes(options.input.url)
    url = options.input.url.replace("-in.fifo", "-content.fifo")
    asked = {
        "FifoQueue": "true",
        "ContentBasedDeduplication": "true",
        "RedrivePolicy": found["RedrivePolicy"],
    }
    await api.create(url.rpartition("/")[2], asked)
    given = replace(options, input=replace(options.input, url=url))
    async with SqsTransport(given, SystemClock()) as transport:
        await transport.input.send(request("session", "one"))
        assert await transport.input.send(request("session", "one")) is False
        assert (await transport.input.stats()).waiting == 1
    await api.delete_queue(url)


async def test_what_may_not_be_made_is_named_and_the_rest_is_done(
    server: ElasticMqServer, wanted: SqsOptions
) -> None:
    async with AwsFront(server.port) as front:
        front.next("CreateQueue", error(403, "AccessDenied", query="AccessDenied"))
        options = replace(wanted, endpoint_url=front.url)
        async with SqsProvisioner(options, SystemClock()) as provisioner:
            with pytest.raises(ConfigurationError) as raised:
                await provisioner.apply()
            (fault,) = raised.value.faults
            assert "input" in fault and "allow the action" in fault
            left = [change.name for change in await provisioner.plan()]
    assert left == [wanted.input.dead_name, wanted.input.queue_name]


def test_the_template_holds_every_queue_with_its_dead_letters(wanted: SqsOptions) -> None:
    resources = yaml.safe_load(SqsProvisioner(wanted, SystemClock()).manifests())["Resources"]

    assert list(resources) == [
        *("InputDeadLetters", "InputQueue", "OutputDeadLetters", "OutputQueue"),
    ]
    queue = resources["InputQueue"]["Properties"]
    assert queue["QueueName"] == wanted.input.queue_name
    assert queue["FifoQueue"] is True
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {
        "Fn::GetAtt": ["InputDeadLetters", "Arn"]
    }
    assert queue["RedrivePolicy"]["maxReceiveCount"] > wanted.input.max_receive_count


def test_the_region_is_read_from_the_queue() -> None:
    options = options_for("https://sqs.eu-central-1.amazonaws.com")

    assert replace(options, region=None).aws.region == "eu-central-1"
    assert replace(options_for("http://localhost:9324"), region=None).aws.region is None
