"""The functions while what they keep things in is away."""

import asyncio

from turnline.aws.rig import Cloud, body_of, http_event
from turnline.testing.servers.dynamodb import DynamoDbServer
from turnline.testing.servers.lambda_runtime import FunctionTimeoutError


async def test_answers_that_cannot_be_kept_stay_on_the_queue_until_they_can(
    cloud: Cloud, dynamodb: DynamoDbServer
) -> None:
    async with (
        cloud.function("app_request_handler") as handler,
        cloud.function("app_agent_runner") as runner,
        cloud.function("app_response_handler", timeout=8.0) as responder,
        asyncio.TaskGroup() as tasks,
    ):
        body = {"prompt": "say hello", "session_id": "s", "request_id": "r"}
        await handler.invoke(http_event("POST", body=body, headers={"prefer": "respond-async"}))
        assert await responder.invoke({"Records": []}) == {"batchItemFailures": []}
        running = tasks.create_task(cloud.source(cloud.input_url, runner).run())
        await cloud.until_empty(cloud.input_url, within=90.0)

        dynamodb.pause()
        back = cloud.source(cloud.output_url, responder, batch_size=10)
        answering = tasks.create_task(back.run())
        try:
            async with asyncio.timeout(60):
                while not back.failed:  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.05)
        finally:
            dynamodb.resume()
        got = await handler.invoke(http_event("GET", query="request_id=r&wait=20"))
        await cloud.until_empty(cloud.output_url)
        dead = await cloud.dead(cloud.output_url)
        for mapping in (running, answering):
            mapping.cancel()

    assert (got["statusCode"], body_of(got)["result"]) == (200, "hello ")
    assert back.failed[0] == [back.events[0]["Records"][0]["messageId"]]
    assert not any(isinstance(error, FunctionTimeoutError) for error in back.broken)
    assert dead == 0
