"""Turns over client sockets, and over gRPC, through the whole pipeline, in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from websockets.exceptions import ConnectionClosed

from turnline.agent import AgentRegistry, Turn, agent
from turnline.auth import AuthValidator, ValidationResult
from turnline.auth.port import Context
from turnline.config import Settings
from turnline.gateway.rig_talks import Conversation, call_at, over_both, socket_at
from turnline.hosting import Lifecycle
from turnline.pipeline.single_process import SingleProcess, serve_single_process
from turnline.telemetry import captured_logs

CHAT = "/api/v1/chat"


class NamedByToken(AuthValidator):
    """Takes every token for its user's name."""

    async def validate(self, token: str, context: Context | None = None) -> ValidationResult:
        return ValidationResult(is_valid=True, claims={"userId": token})


@dataclass(slots=True)
class Server:
    """A pipeline that serves.

    Attributes:
        released: lets an agent go on that was told to pause.
        speaking: set when an agent has said something and pauses.
    """

    port: int
    grpc_port: int
    released: asyncio.Event
    speaking: asyncio.Event

    def connect(self, over: str, token: str = "u") -> AbstractAsyncContextManager[Conversation]:
        """Open a client's connection."""
        if over == "grpc":
            return call_at(self.grpc_port, token)
        return socket_at(self.port, token)


def agents(released: asyncio.Event, speaking: asyncio.Event) -> AgentRegistry:
    """Make the agents: prompts are `<count>`, `<count> pause` or `fail`."""
    registry = AgentRegistry()

    @agent("counter", registry=registry)
    async def counter(turn: Turn) -> AsyncIterator[str]:
        count, _, how = turn.prompt.partition(" ")
        if count == "fail":
            raise ValueError("secret")
        for number in range(int(count)):
            yield f"{number} "
            if how == "pause" and number == int(count) // 2:
                speaking.set()
                await released.wait()
            await asyncio.sleep(0)

    return registry


@asynccontextmanager
async def serving(**websocket_api: object) -> AsyncIterator[Server]:
    settings = Settings.model_validate(
        {
            "api": {"host": "127.0.0.1", "port": 0, "grpc_port": 0},
            "execution": {
                "drain_grace": 2,
                "queues": {"type": "in_memory", "in_memory": {"retry_backoff": 0.01}},
            },
            "websocket_api": websocket_api,
        }
    )
    lifecycle = Lifecycle()
    loop = asyncio.get_running_loop()
    bound: asyncio.Future[int] = loop.create_future()
    grpc_bound: asyncio.Future[int] = loop.create_future()
    released, speaking = asyncio.Event(), asyncio.Event()
    what = SingleProcess(
        agents=agents(released, speaking),
        socket_validator=NamedByToken(),
        started=bound.set_result,
        grpc_started=grpc_bound.set_result,
    )
    async with asyncio.timeout(50), asyncio.TaskGroup() as tasks:
        tasks.create_task(serve_single_process(settings, lifecycle, what))
        yield Server(await bound, await grpc_bound, released, speaking)
        lifecycle.drain()


def text_of(frames: list[dict[str, Any]]) -> str:
    return "".join(frame.get("delta", "") for frame in frames)


def counted(count: int) -> str:
    return "".join(f"{number} " for number in range(count))


@over_both
async def test_a_turn_is_queued_before_it_is_answered_however_fast_it_is(over: str) -> None:
    async def talk(server: Server, user: str) -> list[tuple[str, str]]:
        seen: list[tuple[str, str]] = []
        async with server.connect(over, user) as socket:
            for number in range(50):
                body = {"prompt": "1", "session_id": f"s{number % 5}"}
                await socket.say(request_id=f"r{number}", body=body)
            while len(seen) < 100:
                frame = await socket.hear()
                seen.append((frame["request_id"], frame["type"]))
        return seen

    async with serving() as server, asyncio.TaskGroup() as tasks:
        talks = [tasks.create_task(talk(server, f"u{number}")) for number in range(4)]

    for seen in (talk.result() for talk in talks):
        for number in range(50):
            queued = seen.index((f"r{number}", "CHAT_QUEUED"))
            assert queued < seen.index((f"r{number}", "CHAT_RESPONSE"))


@over_both
async def test_a_stream_that_was_cut_off_is_resumed_on_another_socket(over: str) -> None:
    async with serving() as server:
        async with server.connect(over) as socket:
            body = {"prompt": "20 pause", "session_id": "s"}
            await socket.say(request_id="r", stream=True, body=body)
            await server.speaking.wait()
            before = [await socket.hear() for _ in range(5)]
        async with server.connect(over) as socket:
            after = f"{before[-1]['attempt']}-{before[-1]['index']}"
            await socket.say(route="resume", request_id="r", body={"after": after})
            server.released.set()
            while (await socket.hear()).get("state") != "RESUMING":
                pass
            rest = await socket.hear_until_done()

    assert text_of(before) + text_of(rest) == counted(20)
    assert [frame["done"] for frame in rest].count(True) == 1


@over_both
async def test_a_running_turn_is_cancelled_over_a_socket(over: str) -> None:
    async with serving() as server, server.connect(over) as socket:
        body = {"prompt": "20 pause", "session_id": "s"}
        await socket.say(request_id="r", stream=True, body=body)
        await server.speaking.wait()
        await socket.say(route="cancel", request_id="r")
        frames = await socket.hear_until_done()

    (cancelled,) = [frame for frame in frames if frame["type"] == "SYSTEM_RESPONSE"]
    assert cancelled["state"] == "CANCELLING"
    assert (frames[-1]["code"], frames[-1]["status_code"]) == ("turn_cancelled", 499)


@over_both
async def test_a_turn_that_fails_is_answered_without_its_details(over: str) -> None:
    with captured_logs():
        async with serving() as server, server.connect(over) as socket:
            await socket.say(request_id="r", body={"prompt": "fail", "session_id": "s"})
            queued, answer = await socket.hear(), await socket.hear()
            await socket.say(
                request_id="q", stream=True, body={"prompt": "fail", "session_id": "s"}
            )
            await socket.hear()
            frames = await socket.hear_until_done()

    assert queued["type"] == "CHAT_QUEUED"
    assert (answer["type"], answer["code"], answer["status_code"]) == (
        "CHAT_RESPONSE",
        "agent_failed",
        500,
    )
    assert (frames[-1]["done"], frames[-1]["code"]) == (True, "agent_failed")
    assert "secret" not in str([answer, *frames])


@over_both
async def test_an_agent_nobody_registered_is_refused_at_once(over: str) -> None:
    async with serving() as server, server.connect(over) as socket:
        body = {"prompt": "1", "session_id": "s", "agent": "nobody"}
        await socket.say(request_id="r", body=body)
        refused = await socket.hear()

    assert (refused["status"], refused["code"]) == ("FAILED", "unknown_agent")


@over_both
async def test_a_users_reply_is_not_given_to_a_caller_who_names_no_user(over: str) -> None:
    async with serving() as server, server.connect(over) as socket:
        await socket.say(request_id="r", body={"prompt": "3", "session_id": "s"})
        await socket.hear()
        pushed = await socket.hear()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}") as client:
            unknown = await client.get(CHAT, params={"request_id": "r"})

    assert pushed["result"] == "0 1 2 "
    assert unknown.status_code == 404


async def test_a_client_that_reads_slowly_still_reads_everything() -> None:
    """It is cut off when it is too slow, and resumes until it has read it all."""
    count = 3_000
    async with serving(send_buffer=4) as server:
        text, position, closings = "", "", 0
        async with socket_at(server.port, "u", max_queue=1) as socket:
            body = {"prompt": str(count), "session_id": "s"}
            await socket.say(request_id="r", stream=True, body=body)
            assert (await socket.hear())["type"] == "CHAT_QUEUED"
        done = False
        while not done:
            async with socket_at(server.port, "u", max_queue=1) as socket:
                await socket.say(route="resume", request_id="r", body={"after": position})
                try:
                    while (await socket.hear()).get("state") != "RESUMING":
                        pass
                    while not done:
                        frame = await socket.hear()
                        text += frame.get("delta", "")
                        done = frame["done"]
                        position = f"{frame['attempt']}-{frame.get('index', -1)}"
                except ConnectionClosed:
                    closings += 1

    assert text == counted(count)
    assert closings < 100
