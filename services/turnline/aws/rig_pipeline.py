"""For this room's tests: the pipeline as functions, and how tests ask it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from turnline.aws.rig import Cloud, body_of, http_event
from turnline.testing.servers.event_source import EventSource
from turnline.testing.servers.lambda_runtime import LambdaFunction


async def post(handler: LambdaFunction, prompt: str, session: str, **more: str) -> str:
    """Admit a turn; give its request id."""
    body = {"prompt": prompt, "session_id": session, **more}
    event = http_event("POST", body=body, headers={"prefer": "respond-async"})
    answer = await handler.invoke(event)
    assert answer["statusCode"] == 202, answer  # noqa: S101 - used by tests only
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


async def answer(handler: LambdaFunction, request_id: str) -> dict[str, Any]:
    """Poll for an answer, a minute at most."""
    event = http_event("GET", query=f"request_id={request_id}&wait=10")
    async with asyncio.timeout(60):
        while True:
            got = await handler.invoke(event)
            if body_of(got).get("status") != "NOT_FOUND":
                return {"status": got["statusCode"], **body_of(got)}
