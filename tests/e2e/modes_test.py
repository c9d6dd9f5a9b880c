"""The client modes against a real process: alike over REST and gRPC, and the guide's JSON."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from e2e.clients import SERVED, SURFACES, Told, Turn, caller, over_both
from e2e.process import Server, dev, serving

CHAT = "/api/v1/chat"
DOCS_AGENT = Path(__file__).parents[2] / "examples" / "docs_agent" / "agent.py"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(tmp_path, *dev(), settings=SERVED) as server:
        yield server


@pytest.fixture
async def docs(tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(tmp_path, *dev(DOCS_AGENT), settings=SERVED) as server:
        yield server


def data_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


async def stream(client: httpx.AsyncClient, body: dict[str, Any]) -> tuple[httpx.Response, str]:
    headers = {"accept": "text/event-stream"}
    async with client.stream("POST", CHAT, json=body, headers=headers) as answer:
        return answer, "".join([piece async for piece in answer.aiter_text()])


async def frames_of(server: Server, frame: dict[str, Any], *, last: str) -> list[dict[str, Any]]:
    """Send a chat frame and read up to the frame of type `last` that ends the answer."""
    frames: list[dict[str, Any]] = []
    async with connect(f"{server.ws_url}/ws?token=u1") as socket:
        await socket.send(json.dumps(frame))
        while not frames or frames[-1]["type"] != last or not frames[-1].get("done", True):
            frames.append(json.loads(await socket.recv()))
    return frames


@over_both
async def test_whoever_waits_is_answered_on_the_same_request(server: Server, surface: str) -> None:
    async with caller(server, surface) as client:
        answer = await client.chat(Turn(prompt="hello there", request_id="r1"))

    assert answer == Told(status=200, result="hello there ", session_id="s1", request_id="r1")


@over_both
async def test_whoever_comes_back_gets_the_reply_by_id(server: Server, surface: str) -> None:
    async with caller(server, surface) as client:
        taken = await client.submit(Turn(prompt="hello there"))
        answer = await client.reply(taken.request_id, wait=10)

    assert taken.request_id
    assert taken == Told(status=202, session_id="s1", request_id=taken.request_id)
    assert (answer.status, answer.result) == (200, "hello there ")
    assert answer.request_id == taken.request_id


@over_both
async def test_a_stream_is_numbered_and_ends_once(server: Server, surface: str) -> None:
    async with caller(server, surface) as client:
        streamed = await client.stream(Turn(prompt="hello there", request_id="r1"))
        rest = await client.resume("r1", (1, 1))

    assert [piece.kind for piece in streamed.pieces] == [
        "message_start",
        "text_delta",
        "text_delta",
        "message_end",
    ]
    assert [piece.place for piece in streamed.pieces] == [(1, 0), (1, 1), (1, 2), (1, 3)]
    assert streamed.text == "hello there "
    assert [end.result for end in streamed.ends] == ["hello there "]
    assert rest.pieces == streamed.pieces[2:]
    assert len(rest.ends) == 1


async def test_rest_async_answers_202_and_then_gives_the_reply_by_id(server: Server) -> None:
    async with server.client() as client:
        accepted = await client.post(
            CHAT,
            json={"prompt": "hello there", "session_id": "a1"},
            headers={"prefer": "respond-async"},
        )
        request_id = accepted.json()["request_id"]
        query = {"request_id": request_id, "session_id": "a1", "wait": "10"}
        answer = await client.get(CHAT, params=query)

    assert accepted.status_code == 202
    assert accepted.json() == {
        "status": "ACCEPTED",
        "request_id": request_id,
        "session_id": "a1",
    }
    assert accepted.headers["preference-applied"] == "respond-async"
    assert answer.status_code == 200
    assert answer.json() == {
        "result": "hello there ",
        "session_id": "a1",
        "request_id": request_id,
    }


async def test_frames_of_sse_name_their_session_and_only_the_last_is_done(server: Server) -> None:
    async with server.client() as client:
        answer, text = await stream(client, {"prompt": "hello there", "session_id": "st1"})

    chunks = data_lines(text)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert [chunk["done"] for chunk in chunks] == [False, False, False, False, True]
    assert {chunk["session_id"] for chunk in chunks} == {"st1"}


async def test_websocket_chat_is_acknowledged_and_answered(server: Server) -> None:
    frame = {
        "route": "chat",
        "request_id": "r-1",
        "body": {"prompt": "hello there", "session_id": "ws1"},
    }

    queued, answer = await frames_of(server, frame, last="CHAT_RESPONSE")

    assert queued["type"] == "CHAT_QUEUED"
    assert (queued["status"], queued["user_id"], queued["request_id"]) == ("SUCCESS", "u1", "r-1")
    assert queued["message"] == "Request queued successfully"
    assert answer["type"] == "CHAT_RESPONSE"
    assert (answer["result"], answer["session_id"]) == ("hello there ", "ws1")
    assert answer["request_id"] == "r-1"


async def test_websocket_chat_streams_when_asked_to(server: Server) -> None:
    frame = {"stream": True, "body": {"prompt": "hello there", "session_id": "ws2"}}

    queued, *chunks = await frames_of(server, frame, last="STREAM_CHUNK")

    assert queued["type"] == "CHAT_QUEUED"
    assert {chunk["type"] for chunk in chunks} == {"STREAM_CHUNK"}
    assert "".join(chunk.get("delta", "") for chunk in chunks) == "hello there "
    assert [chunk["done"] for chunk in chunks].count(True) == 1


@pytest.mark.parametrize(
    ("mode", "status", "content_type"),
    [
        ("rest_sync", 200, "application/json"),
        ("rest_async", 202, "application/json"),
        ("stream", 200, "text/event-stream; charset=utf-8"),
        ("async", 400, "application/json"),
    ],
)
async def test_the_configured_mode_answers_callers_who_prefer_nothing(
    tmp_path: Path, mode: str, status: int, content_type: str
) -> None:
    settings = {"AK_EXECUTION__MODE": mode}
    async with serving(tmp_path, *dev(), settings=settings) as server, server.client() as client:
        answer = await client.post(CHAT, json={"prompt": "hello", "session_id": "m1"})

    assert answer.status_code == status
    assert answer.headers["content-type"] == content_type


async def test_the_docs_agent_answers_a_question_in_every_mode(docs: Server) -> None:
    question = Turn(prompt="What happens when a runner dies?", session_id="d1")
    answers: list[str] = []
    for surface in SURFACES:
        async with caller(docs, surface) as client:
            answers.append((await client.chat(question)).result)
            taken = await client.submit(question)
            answers.append((await client.reply(taken.request_id, wait=10)).result)
            answers.append((await client.stream(question)).text)
    body = {"prompt": question.prompt, "session_id": question.session_id}
    frames = await frames_of(docs, {"body": body}, last="CHAT_RESPONSE")
    answers.append(frames[-1]["result"])

    assert "runner" in answers[0]
    assert ".md" in answers[0]
    assert answers == [answers[0]] * 7
