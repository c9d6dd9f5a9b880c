"""The agent runner under the real Lambda runtime, behind a mapping over a real queue."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from turnline.aws.rig import Cloud, body_of, http_event
from turnline.testing.servers.event_source import EventSource
from turnline.testing.servers.lambda_runtime import (
    FunctionError,
    FunctionTimeoutError,
    LambdaFunction,
)


async def post(handler: LambdaFunction, prompt: str, session: str, **more: str) -> str:
    """Admit a turn; give its request id."""
    body = {"prompt": prompt, "session_id": session, **more}
    event = http_event("POST", body=body, headers={"prefer": "respond-async"})
    answer = await handler.invoke(event)
    assert answer["statusCode"] == 202, answer
    return str(body_of(answer)["request_id"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The functions a test looks at, and the runner's mapping."""

    handler: LambdaFunction
    runner: LambdaFunction
    source: EventSource


@asynccontextmanager
async def pipeline(
    cloud: Cloud, *, batch_size: int = 1, timeout: float = 30.0
) -> AsyncIterator[Pipeline]:
    """All three functions and both mappings."""
    async with (
        cloud.function("app_request_handler") as handler,
        cloud.function("app_agent_runner", timeout=timeout) as runner,
        cloud.function("app_response_handler") as responder,
        asyncio.TaskGroup() as tasks,
    ):
        source = cloud.source(cloud.input_url, runner, batch_size=batch_size)
        back = cloud.source(cloud.output_url, responder, batch_size=10)
        mappings = [tasks.create_task(source.run()), tasks.create_task(back.run())]
        yield Pipeline(handler=handler, runner=runner, source=source)
        for mapping in mappings:
            mapping.cancel()


async def answer(handler: LambdaFunction, request_id: str) -> dict[str, object]:
    """Poll for an answer, at most half a minute."""
    event = http_event("GET", query=f"request_id={request_id}&wait=10")
    async with asyncio.timeout(60):
        while True:
            got = await handler.invoke(event)
            if body_of(got).get("status") != "NOT_FOUND":
                return {"status": got["statusCode"], **body_of(got)}


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


async def test_a_turn_that_always_fails_is_answered_and_buried(cloud: Cloud) -> None:
    async with pipeline(cloud) as parts:
        request_id = await post(parts.handler, "fail always", "s")
        got = await answer(parts.handler, request_id)
        await cloud.until_empty(cloud.input_url)
        dead = await cloud.dead(cloud.input_url)

    assert (got["status"], got["detail"]["code"]) == (500, "agent_failed")  # type: ignore[index] # JSON
    assert cloud.starts == ["fail always"] * 3
    assert dead == 1


async def test_a_sandbox_killed_in_a_turn_costs_a_lease_and_history_holds_the_turn_once(
    cloud: Cloud,
) -> None:
    async with pipeline(cloud) as parts:
        request_id = await post(parts.handler, "stall then answer", "s")
        await cloud.until_started(1)
        await parts.runner.kill_busy()
        loop = asyncio.get_running_loop()
        killed = loop.time()
        got = await answer(parts.handler, request_id)
        took = loop.time() - killed

    assert got["result"] == "then answer "
    assert len(cloud.starts) == 2
    assert [turn.prompt for turn in await cloud.history("s")] == ["stall then answer"]
    # The queue's own visibility timeout is 30 s.
    assert took < 20


@pytest.mark.parametrize("agent", ["tester", "blocker"])
async def test_a_turn_that_cannot_end_in_time_is_handed_back_before_the_sandbox_dies(
    cloud: Cloud, agent: str
) -> None:
    async with pipeline(cloud, timeout=8.0) as parts:
        request_id = await post(parts.handler, "stall then answer", "s", agent=agent)
        got = await answer(parts.handler, request_id)

    assert got["result"] == "then answer "
    assert not any(isinstance(error, FunctionTimeoutError) for error in parts.source.broken)
    assert parts.source.failed[0] == [parts.source.events[0]["Records"][0]["messageId"]]
    assert len(await cloud.history("s")) == 1


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
