"""The gateway alone: sockets in front; requests on the input stream out, pushes of pods in."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import httpx
import pytest
import pytest_asyncio

from chaos.processes.topology import PUSH_TOKEN
from contract.services.packages import Service
from contract.services.stage import PATIENCE, Frame, Stage, stage
from e2e.process import Server
from e2e.tokens import token_for
from turnline.gateway.rig_talks import Conversation, call_at, over_both, socket_at
from turnline.protocol import ChatReply, ReplyKey
from turnline.push import PUSH_PATH, PUSH_TOKEN_HEADER
from turnline.store import Connection, StoredReply
from turnline.v1 import envelope_pb2 as pb

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(slots=True)
class At:
    stage: Stage
    server: Server

    def connect(self, user: str, over: str) -> AbstractAsyncContextManager[Conversation]:
        token = token_for(user)
        if over == "grpc":
            return call_at(self.server.grpc_port, token)
        return socket_at(self.server.port, token)

    async def connection_of(self, user: str) -> Connection:
        """Wait until the connection store says where a user's only socket is."""
        async with asyncio.timeout(PATIENCE):
            told = self.stage.stores.connections.connections_of
            while not (found := await told(user)):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.02)
        [connection] = found
        return connection

    async def push(self, connection: Connection, *frames: Frame) -> httpx.Response:
        """Push to a socket as another pod does, at the address that it told."""
        headers = {PUSH_TOKEN_HEADER: PUSH_TOKEN}
        body = {"connection_id": connection.connection_id, "messages": list(frames)}
        async with httpx.AsyncClient(base_url=connection.endpoint, headers=headers) as client:
            return await client.post(PUSH_PATH, json=body)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[At]:
    async with (
        stage(tmp_path_factory.mktemp("gateway")) as opened,
        opened.playing(Service.GATEWAY, api={"grpc_port": 0}) as server,
    ):
        yield At(opened, server)


@over_both
async def test_a_chat_frame_becomes_a_request_of_its_user(at: At, over: str) -> None:
    async with at.connect("ann", over) as talk:
        body = {"prompt": "hello", "session_id": "s", "mood": "fine"}
        queued = await talk.ask(request_id=f"r-{over}", stream=True, body=body)
        request = await at.stage.hear_envelope("input")

    assert (queued["type"], queued["request_id"]) == ("CHAT_QUEUED", f"r-{over}")
    assert (request.request_id, request.session_id) == (f"r-{over}", "s")
    assert request.scope == request.user_id == request.request.user_id == "ann"
    assert request.delivery_mode == pb.DELIVERY_MODE_PUSH_STREAM
    assert (request.request.prompt, request.request.extra["mood"]) == ("hello", "fine")
    assert (request.attempt, request.fence, request.HasField("deadline")) == (0, 0, True)


@over_both
async def test_frames_that_are_pushed_reach_the_socket_as_they_are(at: At, over: str) -> None:
    user = f"bob-{over}"
    async with at.connect(user, over) as talk:
        connection = await at.connection_of(user)
        answer = await at.push(connection, {"type": "NOTE", "n": 1}, {"type": "OF_THE_FUTURE"})
        heard = [await talk.hear(), await talk.hear()]

    assert (answer.status_code, answer.json()) == (200, {"status": "SUCCESS"})
    assert heard == [{"type": "NOTE", "n": 1}, {"type": "OF_THE_FUTURE"}]


async def test_what_was_held_comes_with_the_next_socket(at: At) -> None:
    await at.stage.stores.connections.hold("carl", {"type": "NOTE"})

    async with at.connect("carl", "websocket") as talk:
        assert await talk.hear() == {"type": "NOTE"}


async def test_a_turn_that_ended_elsewhere_is_replayed_from_the_response_store(at: At) -> None:
    async with at.connect("dan", "websocket") as talk:
        frame = {"request_id": "r-dan", "body": {"prompt": "hello", "session_id": "s"}}
        await talk.ask(**frame)
        await at.stage.hear_envelope("input")
        reply = StoredReply(
            request_id="r-dan", session_id="s", status_code=200, payload=ChatReply(result="hi")
        )
        await at.stage.stores.replies.put(ReplyKey("dan", "r-dan"), reply)
        await talk.ask(**frame)
        answer = await talk.hear()

    assert (answer["type"], answer["result"]) == ("CHAT_RESPONSE", "hi")


async def test_a_push_for_a_socket_that_is_gone_is_404(at: At) -> None:
    async with at.connect("eve", "websocket"):
        connection = await at.connection_of("eve")
    async with asyncio.timeout(PATIENCE):
        answer = await at.push(connection, {"n": 1})
        while answer.status_code == 200:
            answer = await at.push(connection, {"n": 1})

    assert answer.json()["detail"]["code"] == "not_found"
