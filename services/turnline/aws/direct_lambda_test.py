"""Direct mode on Lambda: the function of a frame runs the agent, under the real runtime client."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from turnline.aws.rig import Cloud
from turnline.testing.servers.api_gateway import STAGE, ApiGateway
from turnline.testing.servers.lambda_runtime import FunctionError, LambdaFunction

USER = "user-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The function behind a WebSocket API."""

    function: LambdaFunction

    async def event(self, kind: str, name: str, **more: object) -> dict[str, Any]:
        """Have an event handled; give the function's answer."""
        context = {
            "eventType": kind,
            "connectionId": name,
            "domainName": "api.example",
            "stage": STAGE,
        }
        answer: dict[str, Any] = await self.function.invoke({"requestContext": context, **more})
        return answer

    async def connect(self, name: str, token: str = USER) -> int:
        """Open a socket; give the status of its handshake."""
        query = {"queryStringParameters": {"token": token}}
        return int((await self.event("CONNECT", name, **query))["statusCode"])

    async def send(self, name: str, frame: Mapping[str, Any]) -> dict[str, Any] | None:
        """Send a frame; give the one that answers it, None: nothing answers it."""
        answer = await self.event("MESSAGE", name, body=json.dumps(frame))
        return json.loads(answer["body"]) if "body" in answer else None

    async def chat(
        self, prompt: str, request_id: str, *, session: str = "s"
    ) -> dict[str, Any] | None:
        """Send a chat frame on the socket `a`."""
        body = {"prompt": prompt, "session_id": session}
        return await self.send("a", {"request_id": request_id, "body": body})


@asynccontextmanager
async def direct(
    cloud: Cloud, gateway: ApiGateway, mode: str = "async", *, timeout: float = 30.0
) -> AsyncIterator[Api]:
    more = {
        **cloud.no_queues,
        "AK_EXECUTION__MODE": mode,
        "AK_WEBSOCKET_API__ENDPOINT_URL": gateway.url,
    }
    async with cloud.function("app_ws_direct", timeout=timeout, more=more) as function:
        yield Api(function=function)


@pytest.fixture
async def gateway() -> AsyncIterator[ApiGateway]:
    async with ApiGateway() as gateway:
        for name in ("a", "b"):
            gateway.open(name)
        yield gateway


def kinds(frames: list[Any]) -> list[tuple[str, str]]:
    return [(frame["type"], frame.get("request_id", "")) for frame in frames]


async def test_a_turn_is_acknowledged_then_answered_within_its_invocation(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with direct(cloud, gateway) as api:
        told = [await api.connect("a"), await api.connect("b"), await api.connect("c", "forged")]
        first = await api.chat("count", "r1")
        frames = gateway.frames["a"].copy()
        custom = await api.send("a", {"route": "status"})
        second = await api.chat("count", "r2")
        again = await api.chat("count", "r2")
        history = await cloud.history("s", scope=USER)

    assert told == [200, 200, 401]
    assert (first, second) == (None, None)
    assert kinds(frames) == [("CHAT_QUEUED", "r1"), ("CHAT_RESPONSE", "r1")]
    assert custom is not None
    assert custom["who"] == USER
    assert again is not None
    assert (again["type"], again["result"]) == ("CHAT_RESPONSE", f"2 of {USER} ")
    assert kinds(gateway.frames["b"]) == [("CHAT_RESPONSE", "r1"), ("CHAT_RESPONSE", "r2")]
    assert [turn.request_id for turn in history] == ["r1", "r2"]
    assert cloud.starts == ["count", "count"]
    assert api.function.sandboxes == 1


async def test_a_stream_arrives_piece_by_piece_and_ends_once_whatever_is_refused(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with direct(cloud, gateway, "stream") as api:
        await api.connect("a")
        gateway.refuse("a", 429, *[403] * 2)
        await api.chat("say one two three", "r")
        frames = [frame for frame in gateway.frames["a"] if frame["type"] == "STREAM_CHUNK"]

    assert "".join(frame.get("delta", "") for frame in frames) == "one two three "
    assert [frame["done"] for frame in frames].count(True) == 1
    assert frames[-1]["done"] is True


async def test_callers_are_told_of_a_turn_that_fails_and_of_one_with_no_agent(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with direct(cloud, gateway) as api:
        await api.connect("a")
        body = {"prompt": "x", "session_id": "s", "agent": "nobody"}
        unknown = await api.send("a", {"body": body})
        await api.chat("fail", "r")
        end = gateway.frames["a"][-1]

    assert unknown is not None
    assert (unknown["status"], unknown["code"]) == ("FAILED", "unknown_agent")
    assert (end["type"], end["status_code"], end["code"]) == ("CHAT_RESPONSE", 500, "agent_failed")
    assert cloud.starts.count("fail") == 3
    assert await cloud.history("s", scope=USER) == ()


async def test_a_turn_is_cut_off_and_its_caller_told_before_the_invocation_ends(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with direct(cloud, gateway, timeout=10.0) as api:
        await api.connect("a")
        answer = await api.chat("stall", "r")
        end = gateway.frames["a"][-1]
        after = await api.chat("say next", "r2")

    assert (answer, after) == (None, None)
    assert (end["request_id"], end["status_code"]) == ("r", 504)
    assert kinds(gateway.frames["a"])[-1] == ("CHAT_RESPONSE", "r2")
    assert "execution.turn_timeout" in api.function.log
    assert api.function.sandboxes == 1


async def test_a_turn_is_cancelled_from_another_sandbox(cloud: Cloud, gateway: ApiGateway) -> None:
    async with direct(cloud, gateway) as api:
        await api.connect("a")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(api.chat("stall", "r"))
            await cloud.until_started(1)
            cancelled = await api.send("a", {"route": "cancel", "request_id": "r"})
        end = gateway.frames["a"][-1]

    assert cancelled is not None
    assert cancelled["state"] == "CANCELLING"
    assert (end["request_id"], end["code"]) == ("r", "turn_cancelled")


async def test_a_turn_whose_sandbox_died_runs_once_more_when_it_is_sent_again(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with direct(cloud, gateway) as api:
        await api.connect("a")

        async def dies() -> None:
            with pytest.raises(FunctionError):
                await api.chat("stall then answer", "r")

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(dies())
            await cloud.until_started(1)
            await api.function.kill_busy()
        await api.chat("stall then answer", "r")
        end = gateway.frames["a"][-1]
        history = await cloud.history("s", scope=USER)

    assert (end["request_id"], end["result"]) == ("r", "then answer ")
    assert cloud.starts == ["stall then answer"] * 2
    assert [turn.request_id for turn in history] == ["r"]


async def test_an_answer_that_reaches_nobody_comes_before_the_next_frames_answer(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with direct(cloud, gateway) as api:
        await api.connect("a")
        gateway.close("a")
        await api.chat("say hello", "r1")
        await cloud.until_held(USER)
        await api.connect("b")
        body = {"prompt": "say again", "session_id": "s"}
        await api.send("b", {"request_id": "r2", "body": body})
        await cloud.until_held(USER, anything=False)

    assert kinds(gateway.frames["b"]) == [
        ("CHAT_RESPONSE", "r1"),
        ("CHAT_QUEUED", "r2"),
        ("CHAT_RESPONSE", "r2"),
    ]


async def test_sandboxes_take_turns_with_a_session_and_run_a_repeated_frame_once(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with direct(cloud, gateway) as api:
        await api.connect("a")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(api.chat("meet 2", "r1"))
            await cloud.until_started(1)
            tasks.create_task(api.chat("meet 2", "r1"))
            tasks.create_task(api.chat("count", "r2"))
            # Both were taken, and wait for the session.
            await gateway.until("a", 3, within=60.0)
            started = cloud.starts
            with (cloud.folder / "starts").open("a") as starts:
                starts.write("somebody\n")
        history = await cloud.history("s", scope=USER)

    assert started == ["meet 2"]
    assert cloud.starts == ["meet 2", "somebody", "count"]
    assert [turn.request_id for turn in history] == ["r1", "r2"]
    assert api.function.sandboxes == 3


async def test_settings_that_do_not_fit_are_an_error_of_the_init_phase(cloud: Cloud) -> None:
    more = {
        **cloud.no_queues,
        "AK_EXECUTION__MODE": "stream",
        "AK_SESSION__TYPE": "in_memory",
        "AK_EXECUTION__RESPONSE_STORE__TYPE": "in_memory",
    }
    async with cloud.function("app_ws_connection_handler", more=more) as function:
        with pytest.raises(FunctionError) as caught:
            await function.invoke({})

    for fault in ("execution.response_store.type", "session.type", "none is registered"):
        assert fault in caught.value.message
