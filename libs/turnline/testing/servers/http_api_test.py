"""An HTTP API of API Gateway: what a function is told, and what its caller is."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from turnline.testing.servers.http_api import MAX_BYTES, HttpApi

CHAT = "/api/v1/chat"


class Function:
    """Notes its events, and returns or raises what it is given."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.events: list[Mapping[str, Any]] = []

    async def invoke(self, event: Mapping[str, Any]) -> object:
        self.events.append(event)
        if isinstance(self.answer, Exception):
            raise self.answer
        if isinstance(self.answer, asyncio.Event):
            await self.answer.wait()
        return self.answer


@asynccontextmanager
async def called(
    answer: object, *, seconds: float = 30.0
) -> AsyncIterator[tuple[Function, httpx.AsyncClient]]:
    function = Function(answer)
    async with (
        HttpApi(function.invoke, seconds=seconds) as api,
        httpx.AsyncClient(base_url=api.url, timeout=10.0) as client,
    ):
        yield function, client


async def test_a_request_becomes_an_event_of_format_2() -> None:
    async with called({"statusCode": 202, "body": "{}"}) as (function, client):
        await client.post(
            f"{CHAT}?a=1&a=2&b=%20",
            json={"prompt": "ü"},
            headers=[("X-Many", "1"), ("X-Many", "2"), ("Cookie", "k=v; l=w")],
        )
        await client.post(CHAT, content=b"\xff\x00", headers={"content-type": "image/png"})
        await client.get(CHAT)
    told, binary, empty = function.events

    assert (told["version"], told["routeKey"]) == ("2.0", f"POST {CHAT}")
    assert (told["rawPath"], told["rawQueryString"]) == (CHAT, "a=1&a=2&b=%20")
    assert told["queryStringParameters"] == {"a": "1,2", "b": " "}
    assert told["headers"]["x-many"] == "1,2"
    assert (told["cookies"], "cookie" in told["headers"]) == (["k=v", "l=w"], False)
    assert told["requestContext"]["http"]["method"] == "POST"
    assert told["requestContext"]["http"]["sourceIp"] == "127.0.0.1"
    assert (told["body"].replace(" ", ""), told["isBase64Encoded"]) == ('{"prompt":"ü"}', False)
    assert base64.b64decode(binary["body"]) == b"\xff\x00"
    assert binary["isBase64Encoded"] is True
    assert "body" not in empty


async def test_what_a_function_returns_is_the_answer() -> None:
    returned = {
        "statusCode": 202,
        "headers": {"content-type": "image/png", "retry-after": "1"},
        "cookies": ["a=1", "b=2"],
        "body": base64.b64encode(b"\xff").decode(),
        "isBase64Encoded": True,
    }
    async with called(returned) as (function, client):
        answer = await client.post(CHAT)
        function.answer = {"plain": True}
        inferred = await client.post(CHAT)

    assert (answer.status_code, answer.content) == (202, b"\xff")
    assert (answer.headers["content-type"], answer.headers["retry-after"]) == ("image/png", "1")
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert (inferred.status_code, inferred.json()) == (200, {"plain": True})


@pytest.mark.parametrize(
    "returned", [RuntimeError("boom"), {"statusCode": "none"}, {"statusCode": 200, "body": 1}]
)
async def test_a_function_that_fails_is_an_internal_server_error(returned: object) -> None:
    async with called(returned) as (_, client):
        answer = await client.post(CHAT)

    assert (answer.status_code, answer.json()) == (500, {"message": "Internal Server Error"})


async def test_a_function_that_takes_too_long_is_503_and_goes_on() -> None:
    go_on = asyncio.Event()
    async with called(go_on, seconds=0.1) as (function, client):
        answer = await client.post(CHAT)

    assert (answer.status_code, answer.json()) == (503, {"message": "Service Unavailable"})
    assert len(function.events) == 1


async def test_routes_that_are_not_there_and_bodies_over_the_limit_reach_no_function() -> None:
    async with called({"statusCode": 200}) as (function, client):
        told = [
            await client.get("/nowhere"),
            await client.put(CHAT),
            await client.get(f"{CHAT}/"),
            await client.post(CHAT, content=b"x" * (MAX_BYTES + 1)),
        ]

    assert [each.status_code for each in told] == [404, 404, 404, 413]
    assert told[0].json() == {"message": "Not Found"}
    assert function.events == []
