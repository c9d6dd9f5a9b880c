"""What frames do over API Gateway's sockets, each call answered with one frame at most."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import orjson
import pytest

from turnline.auth import AuthValidator, Context, ValidationResult
from turnline.aws.gateway_push import GatewayClients, GatewayRoutes
from turnline.aws.inbox import Inbox
from turnline.aws.sockets import SocketDesk
from turnline.awssdk import AwsOptions
from turnline.errors import UnauthenticatedError
from turnline.frontdoor import Admission
from turnline.gateway.custom import CustomRoutes, RouteMessage
from turnline.gateway.handler import GatewayOptions
from turnline.protocol import ChatReply, ReplyKey
from turnline.push import PushSignals
from turnline.store import StoredReply
from turnline.store.memory import (
    MemoryConnectionOptions,
    MemoryConnectionStore,
    MemoryResponseOptions,
    MemoryResponseStore,
    MemorySessionOptions,
    MemorySessionStore,
)
from turnline.telemetry import Metrics
from turnline.testing import FakeClock
from turnline.transport.in_memory import InMemoryOptions, InMemoryTransport

ENDPOINT = "https://api/live"
CHAT = {"route": "chat", "request_id": "r", "body": {"prompt": "hi", "session_id": "s"}}


class Tokens(AuthValidator):
    """Takes tokens that begin with `user-`, each its own user."""

    def validate(self, token: str, context: Context | None = None) -> ValidationResult:
        return ValidationResult(is_valid=token.startswith("user-"), claims={"userId": token})


def status(message: RouteMessage) -> dict[str, Any]:
    return {"up": True, "who": message["user_id"]}


class Rig:
    """A desk over stores and a queue in this process."""

    def __init__(
        self, transport: InMemoryTransport, clock: FakeClock, parts: AsyncExitStack
    ) -> None:
        self.transport = transport
        self.connections = MemoryConnectionStore(MemoryConnectionOptions(), clock)
        self.replies = MemoryResponseStore(MemoryResponseOptions(), clock)
        sessions = MemorySessionStore(MemorySessionOptions(), clock)
        self.desk = SocketDesk(
            connections=self.connections,
            replies=self.replies,
            admission=Admission(
                queue=transport.input,
                replies=self.replies,
                sessions=sessions,
                clock=clock,
                accepting=lambda: True,
            ),
            routes=CustomRoutes({"status": status, "silent": lambda _: None}, timeout=5.0),
            validator=Tokens(),
            options=GatewayOptions(chat_route="chat", streams=True, turn_timeout=60.0),
            inbox=Inbox(
                connections=self.connections,
                routes=GatewayRoutes(GatewayClients(AwsOptions(region="eu-west-1"), parts)),
                signals=PushSignals(Metrics()),
            ),
        )

    async def send(self, frame: object, connection_id: str = "c1") -> dict[str, Any]:
        """Send a frame; give its answer."""
        text = frame if isinstance(frame, str) else orjson.dumps(frame).decode()
        answer = await self.desk.message(connection_id, text, endpoint=ENDPOINT)
        assert answer is not None
        return answer


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    clock = FakeClock()
    async with (
        InMemoryTransport(InMemoryOptions(), clock) as transport,
        AsyncExitStack() as parts,
    ):
        rig = Rig(transport, clock, parts)
        await rig.desk.connect("c1", endpoint=ENDPOINT, token="user-1")
        yield rig


async def test_a_socket_is_found_under_its_user_until_it_leaves(rig: Rig) -> None:
    [held] = await rig.connections.connections_of("user-1")
    await rig.desk.disconnect("c1")

    assert (held.connection_id, held.endpoint) == ("c1", ENDPOINT)
    assert await rig.connections.connections_of("user-1") == ()
    assert (await rig.send(CHAT))["code"] == "unauthenticated"


async def test_leaving_twice_changes_nothing(rig: Rig) -> None:
    await rig.desk.disconnect("c1")
    await rig.desk.disconnect("c1")


@pytest.mark.parametrize("token", [None, "", "forged"])
async def test_nobody_comes_in_without_a_token_that_is_taken(rig: Rig, token: str | None) -> None:
    with pytest.raises(UnauthenticatedError):
        await rig.desk.connect("c2", endpoint=ENDPOINT, token=token)

    assert (await rig.send(CHAT, "c2"))["status"] == "FAILED"


async def test_whom_an_authorizer_found_needs_no_token(rig: Rig) -> None:
    assert await rig.desk.connect("c2", endpoint=ENDPOINT, token=None, user_id="u2") == "u2"
    assert (await rig.send(CHAT, "c2"))["user_id"] == "u2"


async def test_a_chat_frame_is_queued_for_the_sockets_user(rig: Rig) -> None:
    frame = {**CHAT, "user_id": "other", "body": {**CHAT["body"], "user_id": "other"}}  # type: ignore[dict-item] # a dict
    answer = await rig.send(frame)

    async with rig.transport.input.consumer() as consumer:
        envelope = (await consumer.receive()).envelope
    assert answer == {
        "status": "SUCCESS",
        "message": "Request queued successfully",
        "user_id": "user-1",
        "session_id": "s",
        "request_id": "r",
        "type": "CHAT_QUEUED",
    }
    assert (envelope.scope, envelope.user_id) == ("user-1", "user-1")
    assert envelope.delivery_mode.streams


async def test_a_frame_that_is_sent_again_after_its_turns_end_is_answered_with_it(rig: Rig) -> None:
    await rig.send(CHAT)
    reply = StoredReply(
        request_id="r", session_id="s", status_code=200, payload=ChatReply(result="all"), attempt=1
    )
    await rig.replies.put(ReplyKey("user-1", "r"), reply)

    streamed = await rig.send(CHAT)
    whole = await rig.send({**CHAT, "stream": False})
    resumed = await rig.send({"route": "resume", "request_id": "r"})

    assert (streamed["type"], streamed["done"], streamed["result"]) == ("STREAM_CHUNK", True, "all")
    assert (whole["type"], whole["result"]) == ("CHAT_RESPONSE", "all")
    assert resumed == streamed


async def test_a_turn_that_runs_is_said_to_run_and_can_be_cancelled(rig: Rig) -> None:
    await rig.send(CHAT)
    running = await rig.send({"route": "resume", "request_id": "r"})
    cancelled = await rig.send({"route": "cancel", "request_id": "r"})

    assert (running["type"], running["state"]) == ("SYSTEM_RESPONSE", "RUNNING")
    assert cancelled["state"] == "CANCELLED"


async def test_another_users_turn_cannot_be_seen_or_cancelled(rig: Rig) -> None:
    await rig.send(CHAT)
    await rig.desk.connect("c2", endpoint=ENDPOINT, token="user-2")

    for route in ("resume", "cancel"):
        answer = await rig.send({"route": route, "request_id": "r"}, "c2")
        assert (answer["status"], answer["code"]) == ("FAILED", "not_found")


async def test_a_custom_route_answers_at_once_or_not_at_all(rig: Rig) -> None:
    answer = await rig.send({"route": "status", "request_id": "q"})

    assert answer == {
        "status": "SUCCESS",
        "up": True,
        "who": "user-1",
        "type": "SYSTEM_RESPONSE",
        "request_id": "q",
    }
    assert await rig.desk.message("c1", '{"route": "silent"}', endpoint=ENDPOINT) is None


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ("no json", "Invalid frame: not JSON"),
        ("[1]", "Invalid frame: must be a JSON object"),
        ({"route": "chat"}, "body is required"),
        ({"body": {"prompt": "x"}}, "session_id is required"),
        ({"body": {"session_id": "s"}}, "prompt is required unless"),
        ({"route": "nope", "body": {}}, "Route 'nope' not found"),
        ({"route": "cancel"}, "request_id is required"),
    ],
)
async def test_a_wrong_frame_is_answered_with_what_is_wrong(
    rig: Rig, frame: object, message: str
) -> None:
    answer = await rig.send(frame)

    assert (answer["status"], answer["type"]) == ("FAILED", "SYSTEM_RESPONSE")
    assert message in answer["message"]


async def test_a_frame_is_answered_though_api_gateway_says_nothing_to_what_is_held(
    rig: Rig,
) -> None:
    await rig.connections.hold("user-1", {"push_id": "1"})
    came: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(lambda _, to: came.append(to), "127.0.0.1") as silent:
        endpoint = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}/x"
        text = orjson.dumps({"route": "status"}).decode()
        answer = await rig.desk.message("c1", text, endpoint=endpoint)
        for writer in came:
            writer.close()

    assert answer is not None
    assert answer["up"]
    # A second try comes after 3 s.
    assert len(came) == 1
