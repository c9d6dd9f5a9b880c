"""Spans of functions: at the collector when an invocation ends, and no reason to wait for long."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from turnline.aws.rig import Cloud, http_event, opened_cloud
from turnline.aws.rig_pipeline import answer, pipeline, post
from turnline.testing.servers.dynamodb import DynamoDbServer
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.testing.servers.otlp import OtlpCollector

# The exporter's own clock sends nothing within a test.
NEVER = {"OTEL_BSP_SCHEDULE_DELAY": "3600000"}
MOST_SECONDS = 5.0


@pytest.fixture
async def collector() -> AsyncIterator[OtlpCollector]:
    async with OtlpCollector() as collector:
        yield collector


@pytest.fixture
async def traced(
    tmp_path: Path, sqs: ElasticMqServer, dynamodb: DynamoDbServer, collector: OtlpCollector
) -> AsyncIterator[Cloud]:
    """An installation whose functions trace."""
    more = {**NEVER, "AK_TELEMETRY__OTLP_ENDPOINT": collector.url}
    async with opened_cloud(tmp_path, sqs, dynamodb, **more) as cloud:
        yield cloud


async def test_what_an_invocation_did_is_at_the_collector_when_it_ends(
    traced: Cloud, collector: OtlpCollector
) -> None:
    async with traced.function("app_request_handler") as handler:
        body = {"prompt": "say hello", "session_id": "s"}
        event = http_event("POST", body=body, headers={"prefer": "respond-async"})
        before = collector.has("turn.request")
        answered = await handler.invoke(event)
        handler.freeze()
        after = collector.has("turn.request")
        handler.thaw()

    assert answered["statusCode"] == 202
    assert (before, after) == (False, True)


async def test_spans_of_all_functions_are_sent(traced: Cloud, collector: OtlpCollector) -> None:
    async with pipeline(traced) as functions:
        request_id = await post(functions.handler, "say hello", "s")
        answered = await answer(functions.handler, request_id)
        for name in ("turn.request", "turn.attempt", "turn.commit", "turn.answer"):
            await collector.until(name)

    assert answered["result"] == "hello "


async def test_a_collector_that_hangs_costs_a_second_once(
    traced: Cloud, collector: OtlpCollector
) -> None:
    collector.answering.clear()
    event = http_event("POST", body={}, headers={"prefer": "respond-async"})
    async with traced.function("app_request_handler") as handler:
        await handler.invoke(http_event("GET", "/health"))
        statuses, seconds = [], []
        for _ in range(2):
            began = time.monotonic()
            statuses.append((await handler.invoke(event))["statusCode"])
            seconds.append(time.monotonic() - began)
        log = handler.log

    assert statuses == [400, 400]
    assert seconds[1] < seconds[0]
    assert seconds[0] < MOST_SECONDS
    assert log.count("tracing.unflushed") == 1
