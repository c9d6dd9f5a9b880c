"""The agent runner under the real Lambda runtime, behind a mapping over a real queue."""

import asyncio

import pytest

from turnline.aws.rig import Cloud
from turnline.aws.rig_pipeline import answer, pipeline, post
from turnline.testing.servers.event_source import EventSource
from turnline.testing.servers.lambda_runtime import FunctionError


async def test_a_session_stops_at_its_first_failure_and_others_go_on(cloud: Cloud) -> None:
    async with cloud.function("app_request_handler") as handler:
        for prompt, session in (("fail a", "g1"), ("b", "g1"), ("c", "g2"), ("d", "g1")):
            await post(handler, prompt, session)
    async with cloud.function("app_agent_runner") as runner, asyncio.TaskGroup() as tasks:
        source = EventSource(
            cloud.input_url,
            endpoint=cloud.sqs_url,
            invoke=runner.invoke,
            batch_size=10,
            concurrency=1,
        )
        polling = tasks.create_task(source.run())
        async with asyncio.timeout(60):
            while not source.failed:  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)
        polling.cancel()

    bodies = {r["messageId"]: r["body"] for r in source.events[0]["Records"]}
    failed = [name for name in "abcd" if any(f'{name}"' in bodies[i] for i in source.failed[0])]
    assert sorted(cloud.starts[:2]) == ["c", "fail a"]
    assert len(bodies) == 4
    assert failed == ["a", "b", "d"]
    assert (await cloud.counts(cloud.output_url))[0] == 1


async def test_sessions_of_a_batch_run_side_by_side(cloud: Cloud) -> None:
    async with cloud.function("app_request_handler") as handler:
        for number in range(4):
            await post(handler, "meet 4", f"s{number}")
    async with cloud.function("app_agent_runner") as runner, asyncio.TaskGroup() as tasks:
        source = EventSource(
            cloud.input_url,
            endpoint=cloud.sqs_url,
            invoke=runner.invoke,
            batch_size=10,
            concurrency=1,
        )
        polling = tasks.create_task(source.run())
        await cloud.until_empty(cloud.input_url, within=60.0)
        polling.cancel()

    assert len(cloud.starts) == 4
    assert len(source.events[0]["Records"]) == 4


async def test_a_turn_that_fails_once_is_tried_again_and_the_order_of_its_session_kept(
    cloud: Cloud,
) -> None:
    async with pipeline(cloud, batch_size=10) as parts:
        first = await post(parts.handler, "recover one", "s")
        second = await post(parts.handler, "two", "s")
        answers = [await answer(parts.handler, first), await answer(parts.handler, second)]

    assert [each["result"] for each in answers] == ["one ", "two "]
    assert cloud.starts == ["recover one", "recover one", "two"]
    assert [turn.prompt for turn in await cloud.history("s")] == ["recover one", "two"]


async def test_a_scheduled_occurrence_that_brings_no_metadata_runs_once(cloud: Cloud) -> None:
    body = {
        "prompt": "count",
        "session_id": "s",
        "request_id": "occurrence-1",
        "user_id": "u1",
        "scheduled_task_id": "task-7",
        "scheduled_time": "2026-11-30T12:00:00Z",
    }
    async with pipeline(cloud) as parts:
        await cloud.send_plain(cloud.input_url, body, group="s")
        got = await answer(parts.handler, "occurrence-1")
        await cloud.send_plain(cloud.input_url, body, group="s")
        await cloud.until_empty(cloud.input_url)

    assert (got["status"], got["result"]) == (200, "1 of u1 task-7")
    assert cloud.starts == ["count"]


async def test_an_environment_is_used_again_with_what_it_has_open(cloud: Cloud) -> None:
    async with pipeline(cloud) as parts:
        for number in range(3):
            got = await answer(parts.handler, await post(parts.handler, "count", f"s{number}"))
            assert got["status"] == 200
        sandboxes = parts.handler.sandboxes

    assert sandboxes == 1


async def test_all_faults_of_the_settings_are_told_at_init(cloud: Cloud) -> None:
    more = {
        "AK_EXECUTION__QUEUES__OUTPUT__URL": "",
        "AK_EXECUTION__QUEUES__INPUT__URL": f"{cloud.sqs_url}/000000000000/plain",
        "AK_EXECUTION__MODE": "rest_sync",
    }
    async with cloud.function("app_stream_runner", more=more) as runner:
        with pytest.raises(FunctionError) as raised:
            await runner.invoke({"Records": []})

    assert raised.value.kind == "ConfigurationError"
    for told in (
        "execution.queues.output.url: is not set",
        "execution.queues.input.url: names no FIFO queue",
        "execution.mode: is rest_sync, but ServerlessStreamAgentRunner",
    ):
        assert told in raised.value.message
