"""Turns on Lambda that fail, that run out of time, and whose sandbox dies."""

import asyncio

import pytest

from turnline.aws.rig import Cloud
from turnline.aws.rig_pipeline import answer, pipeline, post
from turnline.testing.servers.lambda_runtime import FunctionTimeoutError


async def test_a_turn_that_always_fails_is_answered_and_buried(cloud: Cloud) -> None:
    async with pipeline(cloud) as parts:
        request_id = await post(parts.handler, "fail always", "s")
        got = await answer(parts.handler, request_id)
        await cloud.until_empty(cloud.input_url)
        dead = await cloud.dead(cloud.input_url)

    assert (got["status"], got["detail"]["code"]) == (500, "agent_failed")
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
    assert took < 28


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
