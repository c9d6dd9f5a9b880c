"""Direct mode over REST: the process that takes a request runs its turn."""

import asyncio
from typing import Any

import httpx
import pytest

from turnline.aws.rig import Cloud, body_of, http_event
from turnline.aws.rig_container import Container, container
from turnline.testing.servers.lambda_runtime import FunctionError, LambdaFunction

CHAT = "/api/v1/chat"
TOKEN = {"authorization": "Bearer user-1"}


def function(cloud: Cloud, *, timeout: float = 30.0, mode: str = "rest_sync") -> LambdaFunction:
    more = {**cloud.no_queues, "AK_EXECUTION__MODE": mode}
    return cloud.function("app_rest_direct", timeout=timeout, more=more)


async def ask(of: LambdaFunction, prompt: str, request_id: str, **more: str) -> dict[str, Any]:
    body = {"prompt": prompt, "session_id": "s", "request_id": request_id, **more}
    answer = await of.invoke(http_event("POST", body=body))
    return {"status": answer["statusCode"], **body_of(answer)}


async def test_a_function_answers_a_turn_in_the_invocation_that_took_it(cloud: Cloud) -> None:
    async with function(cloud) as api:
        first = await ask(api, "count", "r1")
        second = await ask(api, "count", "r2")
        again = await ask(api, "count", "r2")
        failed = await ask(api, "fail", "r3")
        unknown = await ask(api, "x", "r4", agent="nobody")
        polled = body_of(await api.invoke(http_event("GET", query="request_id=r1")))
        own = body_of(await api.invoke(http_event("GET", "/app")))
        history = await cloud.history("s")

    assert (first["status"], first["result"]) == (200, "1 of  ")
    assert second["result"] == again["result"] == "2 of  "
    assert failed["status"] == 500
    assert unknown["status"] == 400
    assert polled["result"] == first["result"]
    assert own == {"path": "/app"}
    assert cloud.starts == ["count", "count", "fail", "fail", "fail"]
    assert [turn.request_id for turn in history] == ["r1", "r2"]
    assert api.sandboxes == 1


async def test_a_turn_of_a_function_ends_with_its_callers_wait(cloud: Cloud) -> None:
    async with function(cloud, timeout=10.0) as api:
        late = await ask(api, "stall", "r1")
        after = await ask(api, "say next", "r2")
        history = await cloud.history("s")

    assert "result" not in late
    assert after["result"] == "next "
    assert [turn.request_id for turn in history] == ["r2"]
    assert "execution.turn_timeout" in api.log
    assert api.sandboxes == 1


async def test_a_turn_whose_sandbox_died_runs_once_more_when_it_is_sent_again(cloud: Cloud) -> None:
    async with function(cloud) as api:

        async def dies() -> None:
            with pytest.raises(FunctionError):
                await ask(api, "stall then answer", "r")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(dies())
            await cloud.until_started(1)
            await api.kill_busy()
        answer = await ask(api, "stall then answer", "r")
        history = await cloud.history("s")

    assert answer["result"] == "then answer "
    assert [turn.request_id for turn in history] == ["r"]


async def test_a_function_that_should_answer_before_the_turn_is_done_is_refused(
    cloud: Cloud,
) -> None:
    async with function(cloud, mode="rest_async") as api:
        with pytest.raises(FunctionError) as caught:
            await api.invoke({})

    assert "execution.mode: is rest_async" in caught.value.message


def settings(cloud: Cloud, mode: str, **more: str) -> dict[str, str]:
    return {**cloud.no_queues, "AK_EXECUTION__MODE": mode, **more}


async def chat(client: httpx.AsyncClient, prompt: str, request_id: str) -> httpx.Response:
    body = {"prompt": prompt, "session_id": "s", "request_id": request_id}
    return await client.post(CHAT, json=body, headers=TOKEN)


async def until_answered(client: httpx.AsyncClient, request_id: str) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while True:
            params = {"request_id": request_id, "wait": "10"}
            got = await client.get(CHAT, params=params, headers=TOKEN)
            if got.status_code == 200:
                answer: dict[str, Any] = got.json()
                return answer


async def test_a_container_answers_at_once_and_serves_an_applications_own_paths(
    cloud: Cloud,
) -> None:
    async with (
        container(cloud, "ecs_rest_direct", settings(cloud, "rest_sync")) as process,
        process.client() as client,
    ):
        refused = await client.post(CHAT, json={"prompt": "x", "session_id": "s"})
        answers = [await chat(client, "count", f"r{number}") for number in range(3)]
        failed = await chat(client, "fail", "f")
        agents = await client.get("/api/v1/agents", headers=TOKEN)
        own = await client.put("/app/x?a=1&a=2", content=b"\xff", headers={"X-It": "y"})
        history = await cloud.history("s", scope="user-1")
        code = await process.stop()

    assert refused.status_code == 401
    assert [answer.json()["result"] for answer in answers] == [
        f"{number} of user-1 " for number in (1, 2, 3)
    ]
    assert failed.status_code == 500
    assert agents.json() == {"agents": ["tester", "blocker"]}
    event = own.json()["event"]
    assert (event["routeKey"], event["rawPath"]) == ("PUT /app/{name}", "/app/x")
    assert (event["rawQueryString"], event["queryStringParameters"]) == ("a=1&a=2", {"a": "1,2"})
    assert (event["body"], event["isBase64Encoded"]) == ("/w==", True)
    assert (event["headers"]["x-it"], event["pathParameters"]) == ("y", {"name": "x"})
    assert [turn.request_id for turn in history] == ["r0", "r1", "r2"]
    assert code == 0


async def test_a_turn_that_one_container_took_is_read_from_another(cloud: Cloud) -> None:
    more = settings(cloud, "rest_async")
    async with (
        container(cloud, "ecs_rest_direct", more) as first,
        container(cloud, "ecs_rest_direct", more) as second,
        first.client() as one,
        second.client() as other,
    ):
        accepted = await chat(one, "say hello", "r")
        answer = await until_answered(other, "r")

    assert (accepted.status_code, accepted.json()["status"]) == (202, "ACCEPTED")
    assert answer["result"] == "hello "


async def test_a_container_that_stops_tells_who_waits_to_send_again(cloud: Cloud) -> None:
    more = settings(cloud, "rest_sync", AK_EXECUTION__DRAIN_GRACE="3")
    async with container(cloud, "ecs_rest_direct", more) as first, first.client() as client:
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(chat(client, "stall then answer", "r"))
            await cloud.until_started(1)
            code = await first.stop()
        told = waiting.result()
    async with (
        container(cloud, "ecs_rest_direct", settings(cloud, "rest_sync")) as second,
        second.client() as client,
    ):
        answer = await chat(client, "stall then answer", "r")
        history = await cloud.history("s", scope="user-1")

    assert code == 0
    assert told.status_code == 503
    assert "retry-after" in told.headers
    assert answer.json()["result"] == "then answer "
    assert [turn.request_id for turn in history] == ["r"]


async def test_a_container_with_nothing_to_run_and_nowhere_to_keep_it_is_refused(
    cloud: Cloud,
) -> None:
    stores = ("AK_SESSION__TYPE", "AK_EXECUTION__RESPONSE_STORE__TYPE")
    more = {**settings(cloud, "rest_sync"), **dict.fromkeys(stores, "in_memory")}
    process = Container(cloud, "ecs_rest", more)
    code = await process.ended()

    assert code == 78
    for fault in (
        "execution.response_store.type: is in_memory",
        "session.type: is in_memory",
        "but none is registered",
    ):
        assert fault in process.log
    assert "connection_store" not in process.log
