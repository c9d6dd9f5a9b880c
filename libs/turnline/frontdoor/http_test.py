"""Errors as HTTP answers."""

import asyncio
import json

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from turnline.errors import (
    CODES,
    Code,
    QueueFullError,
    StoreUnavailableError,
    TurnlineError,
    UnauthenticatedError,
)
from turnline.frontdoor import error_response, json_response, web_app


@pytest.mark.parametrize("code", list(Code))
def test_every_code_has_its_status_and_retry_hint(code: Code) -> None:
    error = TurnlineError("why")
    error.code = code

    answer = error_response(error, session_id="s1")

    detail = json.loads(bytes(answer.body))["detail"]
    assert answer.status_code == CODES[code].http_status
    assert detail == {
        "error": "why",
        "code": code.value,
        "retry": CODES[code].retry.value,
        "session_id": "s1",
    }


@pytest.mark.parametrize(("seconds", "header"), [(0.1, "1"), (1.0, "1"), (1.2, "2"), (0.0, "1")])
def test_a_known_pause_is_a_header_in_whole_seconds(seconds: float, header: str) -> None:
    answer = error_response(QueueFullError("full", scope="queue", retry_after=seconds))

    assert answer.headers["retry-after"] == header


def test_no_pause_is_made_up() -> None:
    assert "retry-after" not in error_response(StoreUnavailableError("gone")).headers


def test_a_missing_token_says_which_is_wanted() -> None:
    assert error_response(UnauthenticatedError("no")).headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("status", [204, 205, 304])
def test_a_status_without_body_gets_none(status: int) -> None:
    assert json_response(status, {"a": 1}).body == b""


async def get(path: str) -> httpx.Response:
    async def raising(request: Request) -> Response:
        match request.path_params["what"]:
            case "ours":
                raise StoreUnavailableError("gone", retry_after=3)
            case "framework":
                raise HTTPException(429, "slow down", headers={"X-A": "b"})
            case _:
                raise ValueError("secret of 10.0.0.1")

    app = web_app([Route("/{what}", raising)])
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://t") as client:
        return await client.get(path)


async def test_an_error_of_ours_is_rendered_wherever_it_was_raised() -> None:
    answer = await get("/ours")

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")
    assert answer.json()["detail"]["code"] == "store_unavailable"


async def test_an_error_of_the_framework_keeps_status_and_headers() -> None:
    answer = await get("/framework")

    assert (answer.status_code, answer.headers["x-a"]) == (429, "b")
    assert answer.json()["detail"] == {
        "error": "slow down",
        "code": "invalid_request",
        "retry": "never",
    }


async def test_the_unexpected_is_500_without_its_text() -> None:
    answer = await get("/unexpected")

    assert answer.status_code == 500
    assert answer.json() == {
        "detail": {"error": "Internal error", "code": "internal", "retry": "never"}
    }


async def test_an_unknown_path_has_the_same_shape() -> None:
    answer = await get("/no/such/path")

    assert (answer.status_code, answer.json()["detail"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("begun", [False, True])
async def test_a_request_that_is_cut_off_is_told_to_come_back_unless_its_answer_began(
    begun: bool,
) -> None:
    running, sent = asyncio.Event(), list[Message]()

    async def stuck(_: Scope, __: Receive, send: Send) -> None:
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        running.set()
        await asyncio.Event().wait()

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    class Stuck:
        __call__ = staticmethod(stuck)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    call = asyncio.ensure_future(web_app([Route("/", Stuck())])(scope, receive, send))
    await running.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    if begun:
        assert [message["status"] for message in sent] == [200]
    else:
        [start, body] = sent
        detail = json.loads(body["body"])["detail"]
        assert (start["status"], detail["code"], detail["retry"]) == (503, "draining", "after")
