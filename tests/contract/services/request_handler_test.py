"""The request handler alone: REST and gRPC in front, requests on the input stream out, and answers
from the response store in.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import grpc.aio
import httpx
import pytest
import pytest_asyncio

from contract.api.answers import misfits
from contract.api.documents import document
from contract.services.packages import Service
from contract.services.stage import Stage, stage
from e2e.process import Server
from e2e.tokens import token_for
from turnline.protocol import ChatEvent, ChatReply, Chunk, EventType, ReplyKey
from turnline.store import StoredReply
from turnline.v1 import chat_pb2, chat_service_pb2
from turnline.v1 import envelope_pb2 as pb
from turnline.v1.chat_service_pb2_grpc import ChatServiceStub

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = "/api/v1/chat"
HEADERS = {"authorization": f"Bearer {token_for('ann')}"}


@dataclass(slots=True)
class At:
    stage: Stage
    server: Server

    async def ask(self, method: str = "POST", **request: object) -> httpx.Response:
        async with self.server.client() as client:
            client.headers.update(HEADERS)
            return await client.request(method, CHAT, **request)  # type: ignore[arg-type]  # passed on as it is

    async def answer(self, turn: pb.Envelope, text: str, *, count: int = 0) -> None:
        """Keep the end of a turn, as a responder does."""
        reply = StoredReply(
            request_id=turn.request_id,
            session_id=turn.session_id,
            status_code=200,
            payload=ChatReply(result=text),
            attempt=1,
            chunk_count=count,
        )
        await self.stage.stores.replies.put(key_of(turn), reply)

    async def piece(self, turn: pb.Envelope, index: int, event: ChatEvent) -> None:
        """Keep a piece of a turn, as a responder does."""
        chunk = Chunk(attempt=1, index=index, event=event)
        await self.stage.stores.replies.append(
            key_of(turn), session_id=turn.session_id, chunks=[chunk]
        )


def key_of(turn: pb.Envelope) -> ReplyKey:
    return ReplyKey(turn.scope, turn.request_id)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[At]:
    async with (
        stage(tmp_path_factory.mktemp("request_handler")) as opened,
        opened.playing(Service.REQUEST_HANDLER, api={"grpc_port": 0}) as server,
    ):
        yield At(opened, server)


async def test_a_post_becomes_a_request_and_the_kept_reply_its_answer(at: At) -> None:
    body = {"prompt": "hello", "session_id": "s", "mood": "fine"}
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(at.ask(json=body))
        request = await at.stage.hear_envelope("input")
        await at.answer(request, "hi")
    answer = asked.result()

    assert (answer.status_code, answer.json()["result"]) == (200, "hi")
    assert request.scope == request.user_id == "ann"
    assert request.delivery_mode == pb.DELIVERY_MODE_KEEP
    assert (request.request.prompt, request.request.extra["mood"]) == ("hello", "fine")
    assert answer.json()["request_id"] == request.request_id


async def test_a_request_tells_its_names_to_whoever_looks_at_headers(at: At) -> None:
    body = {"prompt": "hello", "session_id": "s", "request_id": "r-headers"}
    await at.ask(json=body, headers={"prefer": "respond-async"})

    headers = (await at.stage.hear("input")).headers or {}

    assert headers["content-type"] == "application/x-protobuf"
    assert (headers["request_id"], headers["user_id"]) == ("r-headers", "ann")
    assert headers["Nats-Msg-Id"]


async def test_a_stream_is_read_from_the_store_also_events_of_a_newer_version(at: At) -> None:
    body = {"prompt": "hello", "session_id": "s"}
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(at.ask(json=body, headers={"accept": "text/event-stream"}))
        request = await at.stage.hear_envelope("input")
        await at.piece(request, 0, ChatEvent(type=EventType.TEXT_DELTA, content="hi "))
        await at.piece(request, 1, ChatEvent(type=EventType.CUSTOM, data={"type": "newer"}))
        await at.answer(request, "hi ", count=2)
    lines = asked.result().text.splitlines()
    frames = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]

    assert request.delivery_mode == pb.DELIVERY_MODE_KEEP_STREAM
    assert [frame.get("delta") for frame in frames] == ["hi ", None, None]
    assert frames[1]["event"]["type"] == "newer"
    assert frames[2]["done"] is True


async def test_a_turn_that_is_asked_for_twice_is_one_message(at: At) -> None:
    body = {"prompt": "hello", "session_id": "s", "request_id": "r-twice"}
    later = {"prefer": "respond-async"}

    first, again = await at.ask(json=body, headers=later), await at.ask(json=body, headers=later)
    heard = [await at.stage.hear("input"), await at.stage.hear("input")]

    assert (first.status_code, again.status_code) == (202, 202)
    # The broker drops the second.
    assert len({(message.headers or {})["Nats-Msg-Id"] for message in heard}) == 1


async def test_a_turn_that_is_cancelled_is_told_to_the_session_store(at: At) -> None:
    body = {"prompt": "hello", "session_id": "s", "request_id": "r-cancelled"}
    await at.ask(json=body, headers={"prefer": "respond-async"})
    await at.stage.hear_envelope("input")

    cancelled = await at.ask("DELETE", params={"request_id": "r-cancelled"})
    read = await at.ask("GET", params={"request_id": "r-cancelled"})

    assert cancelled.json()["status"] == "CANCELLED"
    assert read.json()["detail"]["code"] == "turn_cancelled"


async def test_a_call_over_grpc_becomes_the_same_request(at: At) -> None:
    metadata = tuple(HEADERS.items())
    wanted = chat_service_pb2.ChatServiceChatRequest(
        session_id="s", request=chat_pb2.ChatRequest(prompt="hello")
    )
    async with grpc.aio.insecure_channel(f"127.0.0.1:{at.server.grpc_port}") as channel:
        call = ChatServiceStub(channel).Chat(wanted, metadata=metadata, timeout=20)
        request = await at.stage.hear_envelope("input")
        await at.answer(request, "hi")
        answer = await call

    assert (request.scope, request.request.prompt) == ("ann", "hello")
    assert answer.end.reply.result == "hi"


async def test_a_store_or_broker_that_is_away_is_told_as_documented(at: At) -> None:
    broker, valkey = at.stage.servers
    body = {"prompt": "hello", "session_id": "s"}

    await broker.stop(hard=True)
    without_broker = await at.ask(json=body)
    valkey.kill()
    without_store = await at.ask(json=body)

    for answer, code in (
        (without_broker, "transport_unavailable"),
        (without_store, "store_unavailable"),
    ):
        assert misfits(document("openapi.yaml"), answer) == []
        assert (answer.status_code, answer.json()["detail"]["code"]) == (503, code)
